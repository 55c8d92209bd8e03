"""Progress bar on standard error, on a terminal only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airpath.cli.messages import is_quiet
from airpath.quantities import time_left


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar and the time left while the block runs.

    Yields:
        A callback for the steps done and the total; `None` if standard error is no terminal.
    """
    if is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    # Standard output has the records of `--format jsonl`: they must not go to the bar's console.
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    with bar as progress:
        task = progress.add_task(title, total=None, left="")
        start = time.monotonic()

        def show(done: int, total: int) -> None:
            left = time_left(done, total, time.monotonic() - start)
            progress.update(task, completed=done, total=total, left=left)

        yield show
