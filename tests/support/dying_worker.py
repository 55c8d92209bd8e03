"""A task that ends its worker, in a module that processes of a pool can import."""

import os

from airpath.sweep.task import Outcome, run_task
from airpath.sweep.work import Task


def exit_at_case_1(task: Task) -> Outcome:
    """Run a task, but end the process at case 1, as the kernel does for lack of memory."""
    if task.batches and task.batches[0].case == 1:
        os._exit(9)
    return run_task(task)
