"""The rows and the table of QUIC flows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.quantities import count, seconds, size
from airpath.report.tables import MOST_ROWS, Cell, Table
from airpath.trace.avoidable import worst_first
from airpath.trace.connections import keys, where_it_went
from airpath.trace.format import Row
from airpath.trace.messages import main_cause

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

HEAD = ("", "ends", "time", "main cause", "version", "established after", "round trip", "datagrams", "bytes")
"""Titles of the columns of `rows`."""
NUMBERS = ("time", "established after", "round trip")
"""Those with numbers."""
_VERSIONS = {1: "1", 0x6B3343CF: "2"}
"""Names of versions (RFC 9000 §15, RFC 9369 §3.1)."""


def flows(trace: "TraceData") -> list[Row]:
    """Return the rows of `Trace.quic` with what the text needs in addition, worst first.

    `start` and `duration_s` are as in `Trace.connections`, and `connection` is the number of the
    flow. `radio_known` is whether a radio log shows that the path has a radio.
    """
    radio = bool(trace.sources.radio)
    return worst_first(
        row
        | {
            "connection": row["quic"],
            "start": row["first"],
            "duration_s": (row["last"] - row["first"]) / 1e9,
            "radio_known": radio,
        }
        for row in trace.quic.iter_rows(named=True)
    )


def name_of(flow: Row) -> str:
    """Return the name of a QUIC flow: its number and its ends."""
    return f"QUIC flow {flow['quic']}: {flow['client']} → {flow['server']}"


def rows(own: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the texts of the first QUIC flows, rows of `flows`."""
    return [
        (
            str(flow["quic"]),
            f"{flow['client']} → {flow['server']}",
            seconds(flow["duration_s"]),
            main_cause(flow),
            _VERSIONS.get(flow["version"], f"{flow['version']:#010x}"),
            "–" if flow["established"] is None else seconds((flow["established"] - flow["first"]) / 1e9),
            "–" if flow["round_trip_p50_ns"] is None else seconds(flow["round_trip_p50_ns"] / 1e9),
            f"{count(flow['client_datagrams'])} up, {count(flow['server_datagrams'])} down",
            f"{size(flow['client_bytes'])} up, {size(flow['server_bytes'])} down",
        )
        for flow in own[:MOST_ROWS]
    ]


def quic_table(own: Sequence[Row]) -> Table | None:
    """Return the table of QUIC flows for a report, rows of `flows`; `None` without any."""
    if not own:
        return None
    cause, texts = HEAD.index("main cause"), []
    for flow, row in zip(own, rows(own), strict=False):
        cells = [Cell(text, number=name in NUMBERS) for name, text in zip(HEAD, row, strict=True)]
        cells[cause] = where_it_went(flow)
        texts.append(cells)
    head = ["number", *HEAD[1:cause], "where it went", *HEAD[cause + 1 :]]
    caption = (
        "QUIC encrypts acknowledgements and offsets: the causes are inferred from sizes and times of datagrams, and "
        "from round trips where the ends turn the spin bit."
    )
    notes = [f"{MOST_ROWS} of {len(own):,} flows."] if len(own) > MOST_ROWS else []
    return Table("QUIC", caption, head, texts, notes, keys(own[:MOST_ROWS]))


def figures_table(flow: Row) -> Table:
    """Return the table of the figures of a QUIC flow for a report."""
    ends = ("client", "server")
    datagrams = ["datagrams", *(count(flow[f"{end}_datagrams"]) for end in ends)]
    payload = ["UDP payload", *(size(flow[f"{end}_bytes"]) for end in ends)]
    cells = [[Cell(text, number=False) for text in row] for row in (datagrams, payload)]
    head = ["figure", "from the client", "from the server"]
    return Table(f"Figures of QUIC flow {flow['quic']}", "Datagrams that each end sent, as captured.", head, cells)
