"""Lines of a running measurement: what was transferred in each interval."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from airpath.cli.messages import Problem
from airpath.quantities import count, parse_seconds, rate, size

Progress = Callable[[int, int], None]
LONGEST_S = 86_400.0
SHORTEST_S = 0.1
"""The measurement reports its progress every 50 ms."""


@contextmanager
def interval_lines(
    seconds: float | None, kind: str, print_line: Callable[[dict[str, Any]], None], progress: Progress | None
) -> Iterator[Progress | None]:
    """Print a line for each interval while the block runs, also for one without progress.

    Args:
        seconds: The length of an interval; `None` prints no lines.
        kind: The kind of the measurement.
        print_line: Prints a line of `line_of`.
        progress: Gets the progress, too.

    Yields:
        The callback for the amount done and the total.
    """
    if seconds is None:
        yield progress
        return
    lines = _Lines(seconds, kind, print_line, progress)
    thread = threading.Thread(target=lines.run, daemon=True)
    thread.start()
    try:
        yield lines.update
    finally:
        lines.stop.set()
        thread.join()
        if lines.error is None:
            lines.end()
    if lines.error is not None:
        raise lines.error


def line_of(kind: str, start: float, end: float, amount: int) -> dict[str, Any]:
    """Return the record of an interval: bytes and rate of a transfer, else number and rate."""
    times = {"start_s": round(start, 3), "end_s": round(end, 3)}
    per_second = amount / max(end - start, 1e-9)
    if kind == "bulk":
        return times | {"bytes": amount, "throughput_bps": 8 * per_second}
    return times | {"count": amount, "per_s": per_second}


def text_of(line: dict[str, Any]) -> str:
    """Return a record as text."""
    times = f"{line['start_s']:7.1f} to {line['end_s']:.1f} s"
    if "bytes" in line:
        return f"{times}: {size(line['bytes'])}, {rate(line['throughput_bps'])}"
    return f"{times}: {line['count']:,}, {count(round(line['per_s'], 1))} per second"


class _Lines:
    def __init__(
        self, seconds: float, kind: str, print_line: Callable[[dict[str, Any]], None], progress: Progress | None
    ) -> None:
        self._seconds, self._kind, self._print, self._progress = seconds, kind, print_line, progress
        self._start = time.monotonic()
        self._done = self._printed = 0
        self._lines = 0
        self.stop = threading.Event()
        self.error: Exception | None = None
        """The error of `run`, to be raised in the main thread."""

    def update(self, done: int, total: int) -> None:
        """Store what is done."""
        self._done = done
        if self._progress is not None:
            self._progress(done, total)

    def run(self) -> None:
        """Print a line at the end of each interval."""
        try:
            while not self.stop.wait(self._start + (self._lines + 1) * self._seconds - time.monotonic()):
                self._line((self._lines + 1) * self._seconds)
        except Exception as error:
            self.error = error

    def end(self) -> None:
        """Print the line of the last interval, which is shorter."""
        if self._done > self._printed:
            self._line(time.monotonic() - self._start)

    def _line(self, end: float) -> None:
        done = self._done
        self._print(line_of(self._kind, self._lines * self._seconds, end, done - self._printed))
        self._printed = done
        self._lines += 1


def seconds_of(text: str | None, format: str) -> float | None:
    """Return the seconds of `--interval`; `format` is that of the summary."""
    if text is None:
        return None
    if format not in ("text", "jsonl"):
        raise Problem(f"--interval prints lines, but --format {format} is one document", next_step="use --format jsonl")
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise Problem(f"--interval: {error}", next_step="write it as in --interval '1 s'") from None
    if seconds < SHORTEST_S:
        raise Problem(f"--interval {text}: too short", next_step=f"use at least {SHORTEST_S:g} s")
    if seconds > LONGEST_S:
        raise Problem(f"--interval {text}: too long", next_step="use at most a day")
    return seconds
