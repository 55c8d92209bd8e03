"""The connections of captures as a trace for Perfetto and chrome://tracing.

Each connection is a process. The causes of its elapsed time are slices on one track, its HTTP
exchanges on another. Outstanding data, windows and round trips are counters; retransmissions are
instants. A QUIC flow is a process with its causes. Times count from the start of the first of all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from airpath.perfetto import Event, counter, instant, interval, process_name, track_name, write
from airpath.trace.causes import of_name
from airpath.trace.quic import flows

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_CAUSES, _EXCHANGES = 1, 2
"""Track numbers."""
_QUIC = 1_000_000
"""QUIC flows have numbers of their own: their processes count from this number."""


def perfetto(trace: "TraceData", out: Path) -> Path:
    """Write the connections of a trace.

    Args:
        trace: The trace.
        out: The file, JSON.

    Raises:
        OSError: The file cannot be written.
    """
    return write(_events(trace), out)


def _events(trace: "TraceData") -> Iterator[Event]:
    quic = flows(trace)
    origin = min([*trace.connections["start"], *(flow["start"] for flow in quic)])
    segments, exchanges, radio = trace.observations(), trace.exchanges, bool(trace.sources.radio)
    for flow in trace.connections.iter_rows(named=True):
        number = flow["connection"]
        yield process_name(number, f"{number}: {flow['client']} to {flow['server']}")
        yield from _causes(trace.causes.filter(connection=number), number, origin, "tcp", radio=radio)
        yield from _exchanges(exchanges.filter(connection=number), number, origin)
        yield from _segments(segments.filter(connection=number), number, origin)
    for flow in sorted(quic, key=lambda flow: flow["quic"]):
        process = _QUIC + flow["quic"]
        yield process_name(process, f"QUIC {flow['quic']}: {flow['client']} to {flow['server']}")
        yield from _causes(trace.causes.filter(quic=flow["quic"]), process, origin, "quic", radio=radio)


def _causes(rows: pl.DataFrame, number: int, origin: int, category: str, *, radio: bool) -> Iterator[Event]:
    if rows.height:
        yield track_name(number, _CAUSES, "where the time went")
    for piece in rows.iter_rows(named=True):
        details = {
            "first frame": piece["first_frame"],
            "last frame": piece["last_frame"],
            "confidence": piece["confidence"],
        }
        begin, duration = (piece["start"] - origin) / 1e9, (piece["end"] - piece["start"]) / 1e9
        yield interval(number, _CAUSES, category, of_name(piece["cause"], radio=radio).words, begin, duration, details)


def _exchanges(rows: pl.DataFrame, number: int, origin: int) -> Iterator[Event]:
    known = rows.drop_nulls(["request_first", "response_last"])
    if known.height:
        yield track_name(number, _EXCHANGES, "HTTP")
    for each in known.iter_rows(named=True):
        details = {"status": each["status"], "bytes": each["response_bytes"]}
        begin = (each["request_first"] - origin) / 1e9
        duration = (each["response_last"] - each["request_first"]) / 1e9
        yield interval(number, _EXCHANGES, "tcp", f"{each['method']} {each['url']}", begin, duration, details)


def _segments(rows: pl.DataFrame, number: int, origin: int) -> Iterator[Event]:
    rows = rows.with_columns(t=(pl.col("time") - origin) / 1e9)
    for sender in ("client", "server"):
        own = rows.filter(pl.col("from") == sender)
        for column, name in (("outstanding_bytes", "outstanding data"), ("window_bytes", "receive window")):
            yield from counter(number, f"{name}, {sender}", own["t"], own[column], "bytes")
        samples = own.drop_nulls("round_trip_ns")
        trips = samples["round_trip_ns"] / 1e6
        yield from counter(
            number, f"round trip, measured by the {sender}'s acknowledgements", samples["t"], trips, "ms"
        )
        for again in own.drop_nulls("retransmission").iter_rows(named=True):
            name = f"retransmission: {again['retransmission']}"
            yield instant(number, "loss", name, again["t"], {"frame": again["frame"]})
