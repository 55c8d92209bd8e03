"""The table of QUIC flows."""

from typing import TYPE_CHECKING

from airpath.quantities import count, seconds, size
from airpath.report.tables import MOST_ROWS, Cell, Table

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

HEAD = ("QUIC flow", "version", "time", "established after", "round trip", "datagrams up", "down", "bytes up", "down")
"""Titles of the columns of `rows`."""
_VERSIONS = {1: "1", 0x6B3343CF: "2"}
"""Names of versions (RFC 9000 §15, RFC 9369 §3.1)."""


def rows(trace: "TraceData") -> list[tuple[str, ...]]:
    """Return the texts of the first QUIC flows, one row each."""
    return [
        (
            f"{flow['client']} → {flow['server']}",
            _VERSIONS.get(flow["version"], f"{flow['version']:#010x}"),
            seconds((flow["last"] - flow["first"]) / 1e9),
            "–" if flow["established"] is None else seconds((flow["established"] - flow["first"]) / 1e9),
            "–" if flow["round_trip_p50_ns"] is None else seconds(flow["round_trip_p50_ns"] / 1e9),
            count(flow["client_datagrams"]),
            count(flow["server_datagrams"]),
            size(flow["client_bytes"]),
            size(flow["server_bytes"]),
        )
        for flow in trace.quic.head(MOST_ROWS).iter_rows(named=True)
    ]


def quic_table(trace: "TraceData") -> Table | None:
    """Return the table of QUIC flows for a report; `None` without any."""
    if trace.quic.height == 0:
        return None
    texts = [[Cell(text, number=index > 1) for index, text in enumerate(row)] for row in rows(trace)]
    caption = (
        "QUIC encrypts its acknowledgements: only sizes and times of datagrams are known, and the median round trip "
        "where the ends turn the spin bit."
    )
    notes = [f"{MOST_ROWS} of {trace.quic.height:,} flows."] if trace.quic.height > MOST_ROWS else []
    return Table("QUIC", caption, list(HEAD), texts, notes)
