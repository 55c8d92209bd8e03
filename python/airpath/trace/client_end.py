"""HTTP, TLS and pages as the clients saw them.

Read from the capture at their end, where a run has both.

At a server a response ends when its last byte is handed to the path. The page's time is measured
where it arrives.
"""

import json
from collections.abc import Callable
from typing import Any

import polars as pl

from airpath.trace.columns import table
from airpath.trace.selection import connection_number

TABLES = ("exchanges", "timelines", "pages")
"""The tables that are read from the capture at the clients' end."""


def web_tables(
    analysed: dict[str, Any],
    flow: tuple[str, ...],
    one_way: pl.DataFrame,
    analyse: Callable[[tuple[str, ...]], dict[str, Any]],
) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Return the tables of HTTP and TLS, and the HTTP Archive, numbered as in the first capture.

    Args:
        analysed: The core's analysis of the first capture.
        flow: The selectors of connections.
        one_way: The table of that name, with the connections' numbers in both captures.
        analyse: Analyses the capture at the clients' end, for a selection of its connections.
    """
    tables = {name: table(name, analysed["tables"]) for name in TABLES}
    archive = json.loads(analysed["archive"])
    numbers = {str(other): own for other, own in one_way.select("peer_connection", "connection").rows()}
    if tables["exchanges"].height == 0 or not numbers:
        return tables, archive
    there = tuple(other for each in flow if (other := _selector(each, one_way)) is not None)
    if flow and not there:
        return tables, archive
    peer = analyse(there)
    tables = {name: _renumbered(table(name, peer["tables"]), numbers) for name in TABLES}
    archive = json.loads(peer["archive"])
    for entry in archive["log"]["entries"]:
        entry["connection"] = str(numbers.get(entry["connection"], entry["connection"]))
    return tables, archive


def _selector(flow: str, one_way: pl.DataFrame) -> str | None:
    """Return the selector of the same connections in the other capture; `None` if it has none."""
    if flow.startswith("quic:"):
        return None
    number = connection_number(flow)
    if number is None:
        return flow
    numbers = one_way.filter(connection=number)["peer_connection"]
    return f"tcp:{numbers[0]}" if numbers.len() else None


def _renumbered(rows: pl.DataFrame, numbers: dict[str, int]) -> pl.DataFrame:
    """Give connections their numbers in the first capture; drop those that are not in it."""
    if "connection" not in rows.columns:
        return rows
    number = pl.col("connection").cast(pl.String).replace_strict(numbers, default=None, return_dtype=pl.Int64)
    return rows.with_columns(connection=number).drop_nulls("connection")
