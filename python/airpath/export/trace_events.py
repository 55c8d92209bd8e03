"""The JSON format that Perfetto and Chrome read.

"Trace Event Format" (Google, 2016), the phases `X` (slice), `C` (counter), `i` (instant) and `M` (names). Times are
microseconds.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

Event = dict[str, Any]


def write(events: Iterable[Event], out: Path) -> Path:
    """Write events as a trace, one a line, and return the file.

    Raises:
        OSError: The file cannot be written.
    """
    with out.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        for index, event in enumerate(events):
            file.write((",\n" if index else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")
    return out


def counter(process: int, name: str, times: pl.Series, values: pl.Series, unit: str) -> Iterator[Event]:
    """Yield the values of a counter where it changes; times are in seconds."""
    pairs: Iterable[tuple[float, float | None]] = zip(times, values, strict=True)
    before = None
    for time, value in pairs:
        if value is not None and value != before:
            yield {"name": name, "ph": "C", "pid": process, "ts": micros(time), "args": {unit: value}}
            before = value


def named(kind: str, process: int, track: int, name: str) -> Event:
    """Return the event that gives a process or a track its name."""
    return {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}


def micros(seconds: float) -> float:
    """Return seconds as the format has them."""
    return round(seconds * 1e6, 3)
