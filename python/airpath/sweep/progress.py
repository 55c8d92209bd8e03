"""The progress of a sweep: on a terminal, and in a notebook."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airpath.quantities import time_left


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a running sweep."""

    runs: int
    """Finished runs, those of an earlier start included."""
    total: int
    """Runs of the plan; with `repeat.within` the most."""
    failed: int
    """Runs that stopped on an error."""
    seconds: float
    """Time since this start."""
    runs_before: int
    """Runs finished before this start."""
    error: str = ""
    """The first error of this start."""


@contextmanager
def sweep_progress(title: str) -> Iterator[Callable[[Progress], None] | None]:
    """Show finished runs, their rate, the time left and failures while the block runs.

    Yields:
        The callback for `sweep`; `None` if standard error is no terminal and there is no notebook.
    """
    if is_notebook():
        yield _notebook_bar(title)
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, state="")
        yield lambda now: bar.update(task, completed=now.runs, total=now.total, state=state(now))


def state(now: Progress) -> str:
    """Return rate, time left and failures."""
    rate = (now.runs - now.runs_before) / max(now.seconds, 1e-9)
    failed = f", {now.failed} failed" if now.failed else ""
    left = time_left(now.runs - now.runs_before, now.total - now.runs_before, now.seconds)
    return f"{rate:,.0f} runs/s{left and f', {left}'}{failed}"


def is_notebook() -> bool:
    """Return whether this code runs in a notebook."""
    # IPython's own module is loaded exactly if this code runs in it.
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _notebook_bar(title: str) -> Callable[[Progress], None]:
    """Return a callback that shows a line of HTML, and replaces it in place."""
    display: Any = sys.modules["IPython"].display
    handle: Any = display.display(display.HTML(_html(title, 0, 1, "")), display_id=True)
    return lambda now: handle.update(display.HTML(_html(title, now.runs, now.total, state(now))))


def _html(title: str, runs: int, total: int, text: str) -> str:
    from html import escape

    return f"{escape(title)} <progress value={runs} max={total}></progress> {runs:,} of {total:,} {escape(text)}"
