"""An executor for the tasks of sweeps, and the worker processes of the built-in one."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.sweep.plan import Plan
from airpath.sweep.task import Failure, Outcome, run_task
from airpath.sweep.temporary import WorkerFolder, join_folder
from airpath.sweep.work import Task

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future, ProcessPoolExecutor
    from threading import Thread

_CORES_PER_LINK = 4
"""Real-time runs are sequential, unless there are this many cores for each."""
_TERMINATE_SECONDS = 10.0
"""How long a worker may take to end its programs."""
_TERMINATED = 128 + signal.SIGTERM
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_AHEAD = 3
"""Tasks submitted for each worker, so that none waits for the driver."""


class ExecutorLostError(Exception):
    """The executor ended or lost its tasks. What was finished is kept; the same sweep continues."""


class Pool:
    """An executor for tasks; the built-in one can be started again."""

    def __init__(self, executor: "Executor | None", workers: int, ahead: int = _AHEAD) -> None:
        self.own = executor is None
        self.workers = workers
        self.ahead = ahead * workers
        """Tasks that are submitted at the same time."""
        self._folder = WorkerFolder() if executor is None else None
        """The temporary files of the built-in executor's tasks."""
        self.executor = executor or self._start()

    def _start(self) -> "ProcessPoolExecutor":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Not forked: a copy of a process with threads can hang.
        assert self._folder is not None
        arguments = (str(self._folder.path), os.getpid())
        return ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=_prepare_worker, initargs=arguments
        )

    def submit(self, task: Task) -> "Future[Outcome]":
        """Submit a task; if the built-in executor is broken, the future reports it.

        Raises:
            ExecutorLostError: The executor takes no tasks.
        """
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        if self.own and _is_script_without_file():
            raise ExecutorLostError(
                "the executor takes no tasks: its processes import the script that calls it, and this one is no file; "
                "save it, or give executor=ThreadPoolExecutor()"
            )
        try:
            if not self.own:
                return self.executor.submit(run_task, task)
            # This may start workers. They inherit the mask, so Ctrl-C does not end their imports.
            with _without_interrupts():
                return self.executor.submit(_run_in_worker, run_task, task)
        except Exception as error:
            if self.own and isinstance(error, BrokenProcessPool):
                failed: Future[Outcome] = Future()
                failed.set_exception(error)
                return failed
            message = str(error)
            if self.own and "freeze_support" in message:
                # Python's own text is about programs that are frozen into one file.
                message = "its processes import the script that calls it; call it below `if __name__ == '__main__':`"
            raise ExecutorLostError(f"the executor takes no tasks: {message}") from error

    @property
    def is_broken(self) -> bool:
        """Whether a worker of the built-in executor was killed."""
        return self.own and bool(getattr(self.executor, "_broken", False))

    def restart(self) -> None:
        """Replace the built-in executor by a new one."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._start()

    def end(self) -> None:
        """End the built-in executor at once, and remove its temporary files.

        Unfinished tasks have written no rows.
        """
        from multiprocessing.connection import wait

        if self._folder is None:
            return
        processes = list((getattr(self.executor, "_processes", None) or {}).values())
        manager: Thread | None = getattr(self.executor, "_executor_manager_thread", None)
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        running = processes
        deadline = time.monotonic() + _TERMINATE_SECONDS
        while running and (left := deadline - time.monotonic()) > 0:
            ended = wait([process.sentinel for process in running], left)
            running = [process for process in running if process.sentinel not in ended]
        for process in running:
            process.kill()
        # The interpreter writes to the pipe of this thread when it ends, even while the thread
        # closes the pipe (CPython 3.11).
        if manager is not None:
            manager.join(_TERMINATE_SECONDS)
        self._folder.remove()


def _is_script_without_file() -> bool:
    """Return whether the program is a script from standard input, which no process can import."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return getattr(main, "__spec__", None) is None and file is not None and not Path(file).exists()


@contextmanager
def tasks_on(executor: "Executor | None", workers: int) -> Iterator[Pool]:
    """Yield a pool on an executor, or on processes of this machine, which end with the block."""
    pool = Pool(executor, workers)
    try:
        yield pool
    finally:
        pool.end()


def cores(plan: Plan) -> int:
    """Return the number of workers by default: the cores that this process may use.

    Runs in real time disturb each other: one of them needs `_CORES_PER_LINK` cores, for the link,
    its programs and the others of the machine.
    """
    found = len(os.sched_getaffinity(0))
    return max(1, found // _CORES_PER_LINK) if plan.work.is_real_time else found


def outcome_of(future: "Future[Outcome]", task: Task, pool: Pool) -> Outcome | None:
    """Return the outcome of a task; `None` if a worker of the built-in executor was killed.

    Raises:
        ExecutorLostError: The executor has lost the task, or is broken.
    """
    from concurrent.futures import BrokenExecutor, CancelledError

    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        if pool.own and isinstance(error, BrokenExecutor):
            return None
        raise ExecutorLostError(f"the executor lost its tasks: {error or type(error).__name__}") from error
    except Exception as error:  # of the executor: a worker was lost, a result too large
        return lost_outcome(task, f"{type(error).__name__}: {error}")


def lost_outcome(task: Task, error: str) -> Outcome:
    """Return the outcome of a task whose worker gave none."""
    empty = run_task(replace(task, batches=()))
    failures = tuple(Failure(each.case, each.first, each.count, each.overrides, error) for each in task.batches)
    return replace(empty, failures=failures)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread; it is handled after the block."""
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def _prepare_worker(folder: str, driver: int) -> None:
    """Prepare a worker process.

    Args:
        folder: The folder of its temporary files, which the driver removes.
        driver: The process that started it. The worker ends with it.
    """
    import ctypes

    # Ctrl-C is handled by the driver.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != driver:
        sys.exit(_TERMINATED)
    join_folder(Path(folder))


def _run_in_worker(run: Callable[[Task], Outcome], task: Task) -> Outcome:
    """Run a task. SIGTERM ends the worker, in real time also the programs of the task."""
    if not task.work.is_real_time:
        return run(task)

    def end(*_: object) -> None:
        # `subprocess.run` kills its process on an exception.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(_TERMINATED)

    signal.signal(signal.SIGTERM, end)
    try:
        return run(task)
    except SystemExit:
        # `ProcessPoolExecutor` would return it as the result of the task, and go on.
        os._exit(_TERMINATED)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
