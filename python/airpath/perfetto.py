"""Writes traces for Perfetto (ui.perfetto.dev) and chrome://tracing.

Format: "Trace Event Format" (Google, 2016), the phases `X` (slice), `C` (counter), `i` (instant)
and `M` (names). The functions take seconds; the file has microseconds. A process and its tracks are
identified by numbers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from airpath.files import replacing

Event = dict[str, Any]


def write(events: Iterable[Event], out: Path) -> Path:
    """Write events as a trace, one per line, and return the file.

    Raises:
        OSError: The file cannot be written.
    """
    with replacing(out) as draft, draft.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        for index, event in enumerate(events):
            file.write((",\n" if index else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")
    return out


def process_name(process: int, name: str) -> Event:
    """Return the event that names a process."""
    return {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": name}}


def track_name(process: int, track: int, name: str) -> Event:
    """Return the event that names a track of a process."""
    return {"name": "thread_name", "ph": "M", "pid": process, "tid": track, "args": {"name": name}}


def interval(
    process: int,
    track: int,
    category: str,
    name: str,
    begin: float,
    duration: float,
    arguments: Mapping[str, Any] | None = None,
) -> Event:
    """Return a slice: an interval with a name on a track."""
    event = {"name": name, "cat": category, "ph": "X", "pid": process, "tid": track}
    event |= {"ts": _micros(begin), "dur": _micros(max(duration, 0.0))}
    return event if arguments is None else event | {"args": dict(arguments)}


def counter(process: int, name: str, times: pl.Series, values: pl.Series, unit: str) -> Iterator[Event]:
    """Yield the values of a counter, where they change; missing values are skipped."""
    pairs: Iterable[tuple[float, float | None]] = zip(times, values, strict=True)
    before = None
    for time, value in pairs:
        if value is not None and value != before:
            yield {"name": name, "ph": "C", "pid": process, "ts": _micros(time), "args": {unit: value}}
            before = value


def instant(process: int, category: str, name: str, time: float, arguments: Mapping[str, Any]) -> Event:
    """Return an instant event of a process."""
    event = {"name": name, "cat": category, "ph": "i", "s": "p", "pid": process, "tid": 0}
    return event | {"ts": _micros(time), "args": dict(arguments)}


def _micros(seconds: float) -> float:
    return round(seconds * 1e6, 3)
