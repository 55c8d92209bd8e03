"""What was said on connections as their clients had it: read from the capture at their end, where a run has both.

At a server a response is over when it has been handed to the path; how long a page took is seen where it arrives.
"""

import json
from collections.abc import Callable
from typing import Any

import polars as pl

from airpath.trace.columns import table

TABLES = ("exchanges", "timelines", "pages")
"""The tables of what was said that are taken from there."""


def said(
    analysed: dict[str, Any], flow: str | None, ways: pl.DataFrame, analyse: Callable[[str | None], dict[str, Any]]
) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Return the tables of what was said, and the HTTP Archive, with the connections' numbers at the first end.

    Args:
        analysed: What the core said of the first end.
        flow: Which connections.
        ways: The table of that name, which has the numbers of connections at both ends.
        analyse: Has the core read the capture at the clients' end, for a selection of its connections.
    """
    tables = {name: table(name, analysed["tables"]) for name in TABLES}
    archive = json.loads(analysed["archive"])
    numbers = {str(peer): own for peer, own in ways.select("peer_connection", "connection").rows()}
    if tables["exchanges"].height == 0 or not numbers:
        return tables, archive
    there = analyse(_selector(flow, ways))
    tables = {name: _renumbered(table(name, there["tables"]), numbers) for name in TABLES}
    archive = json.loads(there["archive"])
    for entry in archive["log"]["entries"]:
        entry["connection"] = str(numbers.get(entry["connection"], entry["connection"]))
    return tables, archive


def _selector(flow: str | None, ways: pl.DataFrame) -> str | None:
    """Return what selects the same connections at the other end: addresses are the same, numbers need not be."""
    if flow is None or not flow.isdecimal():
        return flow
    return str(ways.filter(connection=int(flow))["peer_connection"][0])


def _renumbered(rows: pl.DataFrame, numbers: dict[str, int]) -> pl.DataFrame:
    """Give connections their numbers at the first end; those that were not seen there are left out."""
    if "connection" not in rows.columns:
        return rows
    number = pl.col("connection").cast(pl.String).replace_strict(numbers, default=None, return_dtype=pl.Int64)
    return rows.with_columns(connection=number).drop_nulls("connection")
