"""A trace for Perfetto (ui.perfetto.dev) and chrome://tracing: the radio log's format for connections.

Each connection is a process. What its time is put down to are slices on one track, its exchanges of HTTP on another;
outstanding data, windows and round trips are counters, retransmissions instants. Times are microseconds from the first
connection's start.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.export.trace_events import Event, counter, micros, named, write
from airpath.trace.causes import of_name

if TYPE_CHECKING:
    from airpath.trace.analysis import Trace

_CAUSES, _EXCHANGES = 1, 2
"""Numbers of tracks."""


def perfetto(trace: "Trace", out: Path) -> Path:
    """Write the connections of a trace.

    Args:
        trace: The trace.
        out: The file, JSON.

    Raises:
        OSError: The file cannot be written.
    """
    return write(_events(trace), out)


def _events(trace: "Trace") -> Iterator[Event]:
    origin = int(trace.connections["start"].to_list()[0])
    segments, exchanges = trace.observations(), trace.exchanges
    for flow in trace.connections.iter_rows(named=True):
        number = flow["connection"]
        yield named("process_name", number, 0, f"{number}: {flow['client']} to {flow['server']}")
        yield from _causes(trace.causes.filter(connection=number), number, origin)
        yield from _exchanges(exchanges.filter(connection=number), number, origin)
        yield from _segments(segments.filter(connection=number), number, origin)


def _causes(rows: pl.DataFrame, number: int, origin: int) -> Iterator[Event]:
    if rows.height:
        yield named("thread_name", number, _CAUSES, "where the time went")
    for piece in rows.iter_rows(named=True):
        frames = {"first frame": piece["first_frame"], "last frame": piece["last_frame"], "sure": piece["confidence"]}
        name = of_name(piece["cause"]).words
        yield _slice(number, _CAUSES, name, piece["start"] - origin, piece["end"] - origin) | {"args": frames}


def _exchanges(rows: pl.DataFrame, number: int, origin: int) -> Iterator[Event]:
    known = rows.drop_nulls(["request_first", "response_last"])
    if known.height:
        yield named("thread_name", number, _EXCHANGES, "HTTP")
    for each in known.iter_rows(named=True):
        told = {"status": each["status"], "bytes": each["response_bytes"]}
        begin, end = each["request_first"] - origin, each["response_last"] - origin
        yield _slice(number, _EXCHANGES, f"{each['method']} {each['url']}", begin, end) | {"args": told}


def _segments(rows: pl.DataFrame, number: int, origin: int) -> Iterator[Event]:
    rows = rows.with_columns(t=(pl.col("time") - origin) / 1e9)
    for sender in ("client", "server"):
        own = rows.filter(pl.col("from") == sender)
        for column, name in (("outstanding", "outstanding data"), ("window", "window offered")):
            yield from counter(number, f"{name}, {sender}", own["t"], own[column], "bytes")
        samples = own.drop_nulls("round_trip")
        trips = samples["round_trip"] / 1e6
        yield from counter(number, f"round trip, seen by the {sender}'s answer", samples["t"], trips, "ms")
        for again in own.drop_nulls("retransmission").iter_rows(named=True):
            mark = {"name": f"sent again: {again['retransmission']}", "cat": "loss", "ph": "i", "s": "p", "pid": number}
            yield mark | {"tid": 0, "ts": micros(again["t"]), "args": {"frame": again["frame"]}}


def _slice(process: int, track: int, name: str, begin: int, end: int) -> dict[str, Any]:
    """Return a slice from nanoseconds."""
    place = {"name": name, "cat": "tcp", "ph": "X", "pid": process, "tid": track}
    return place | {"ts": micros(begin / 1e9), "dur": micros((end - begin) / 1e9)}
