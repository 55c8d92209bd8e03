"""A trace as text: one connection on a page, several in a table."""

from typing import TYPE_CHECKING

from airpath.quantities import count, seconds
from airpath.trace.words import ends, longest_first, summary

if TYPE_CHECKING:
    from rich.console import Console

    from airpath.trace.analysis import Trace

MOST_ROWS = 40
"""More connections than this are not listed on a terminal's page; `--format csv` has all."""


def render(trace: "Trace", console: "Console") -> None:
    """Print the connections of a trace."""
    flows = longest_first(trace.connections.iter_rows(named=True))
    console.print(summary(trace.reading, len(flows)), style="bold", soft_wrap=True)
    _table(flows, console)


def _table(flows: list, console: "Console") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, right in (("", True), ("connection", False), ("time", True), ("segments", True), ("ended", False)):
        table.add_column(name, justify="right" if right else "left")
    for flow in flows[:MOST_ROWS]:
        table.add_row(
            str(flow["connection"]), ends(flow), seconds(flow["duration_s"]), count(flow["segments"]), flow["outcome"]
        )
    console.print(table)
    if len(flows) > MOST_ROWS:
        line = f"{MOST_ROWS} of {len(flows):,} connections, those that took longest; --format csv has all."
        console.print(line, style="dim", soft_wrap=True)
