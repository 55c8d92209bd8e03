"""The wait for the radio before a connection's first segment reached a capture at the server.

The time of a connection begins with its first captured segment. At a server that is the SYN, which
waited before for the set-up of the mobile's radio connection.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from airpath.quantities import seconds
from airpath.trace.format import Row

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_COLUMNS = ["begin", "end", "direction", "name"]
"""The header of airpath's own logs; other columns and units of a CSV file are for the core."""
_PAUSE_NS = 20_000_000
"""A wait of the same packet follows the one before it within this time."""
_MOST = 100
"""Of more connections it is not computed."""
_LEAST_S = 0.05
_LEAST_SHARE = 0.1
"""A wait is reported from this time, or from this share of the time of the connection."""


def before_capture(trace: "TraceData", flow: Row) -> str:
    """Return a sentence about the radio's delays of the SYN before it reached the server.

    Args:
        trace: The trace.
        flow: The connection, a row of `connection_rows.flows`.

    Returns:
        Empty if they are short, unknown, or part of the connection's time: in a capture at the
        mobile.
    """
    times, transit = _delays(trace, flow)
    if not times:
        return ""
    parts = ", ".join(
        f"{name} {seconds(time / 1e9)}" for name, time in sorted(times.items(), key=lambda each: -each[1])
    )
    took = "the SYN waited" if transit is None else f"the SYN was in transit for {seconds(transit / 1e9)}"
    return (
        f"Before it reached the server, {took}; radio, by state: {parts}. This is not part of the "
        f"{seconds(flow['duration_s'])}, which begin at the server."
    )


def before_captures(trace: "TraceData", flows: Sequence[Row]) -> str:
    """Return a sentence about such delays of several connections, or nothing."""
    if not trace.sources.radio or len(flows) > _MOST:
        return ""
    totals = [sum(times.values()) for times, _ in (_delays(trace, flow) for flow in flows) if times]
    if not totals:
        return ""
    return (
        f"{len(totals)} of {len(flows)} connections waited for the radio before their SYN reached the server, for up "
        f"to {seconds(max(totals) / 1e9)}. Their times begin at the server; --why shows each."
    )


def _delays(trace: "TraceData", flow: Row) -> tuple[dict[str, int], int | None]:
    """Return the time of each state that delayed the SYN, and its transit time if it is known."""
    window = _window(trace, flow) if trace.sources.radio else None
    if window is None:
        return {}, None
    begin, exact = window
    times: dict[str, int] = {}
    until, least = flow["start"], begin
    for start, end, name in reversed(_waits(trace, flow["client_address"])):
        if end > flow["start"]:
            continue
        if end <= least:
            break
        since = max(start, begin) if exact else start
        times[name] = times.get(name, 0) + end - since
        until = min(until, since)
        least = begin if exact else until - _PAUSE_NS
    if sum(times.values()) / 1e9 < min(_LEAST_S, _LEAST_SHARE * flow["duration_s"]):
        return {}, None
    return times, flow["start"] - begin if exact else None


def _window(trace: "TraceData", flow: Row) -> tuple[int, bool] | None:
    """Return when the SYN was sent, or the earliest end of its waits; and whether that is exact.

    `None` if the capture is not at the server, or has no handshake.
    """
    import polars as pl

    own = pl.col("connection") == flow["connection"]
    ends = dict(trace.directions.filter(own).select("from", "handshake_round_trip_s").rows())
    client, server = ends.get("client"), ends.get("server")
    if client is None or server is None or client >= server:
        return None
    sent = trace.transits.filter(own, pl.col("from") == "client", pl.col("arrival") == flow["start"])["time"]
    if sent.len():
        return int(sent.to_list()[0]), True
    return flow["start"] - round(server * 1e9), False


def _waits(trace: "TraceData", address: str) -> list[tuple[int, int, str]]:
    """Return the intervals in which the radio delays what a client sends, by their begins."""
    found: list[tuple[int, int, str]] = []
    for of, text, columns in trace.sources.radio:
        if of in (None, address) and not columns:
            found += _parsed(text)
    return found


@lru_cache(maxsize=16)
def _parsed(text: str) -> list[tuple[int, int, str]]:
    return sorted(_rows(text))


def _rows(text: str) -> Iterator[tuple[int, int, str]]:
    lines = csv.reader(io.StringIO(text))
    if next(lines, None) != _COLUMNS:
        return
    for begin, end, direction, name in lines:
        if direction != "down" and begin.isdecimal() and end.isdecimal():
            yield int(begin), int(end), name
