"""A trace as text: one connection on a page, several in a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.quantities import count, seconds
from airpath.trace.causes import of_name
from airpath.trace.numbers import figures
from airpath.trace.words import Row, ended, ends, lost, main_cause, sentence, summary, worst_first

if TYPE_CHECKING:
    from rich.console import Console

    from airpath.trace.analysis import Trace

MOST_ROWS = 40
"""More connections than this are not listed; `--format csv` has all."""
MOST_STALLS = 5
"""More stalls than this are not told of; `Trace.stalls` has more."""


def render(trace: "Trace", console: "Console", *, why: bool) -> None:
    """Print the connections of a trace: one on a page, several in a table.

    Args:
        trace: The trace.
        console: Where to print.
        why: Whether to list what each stretch of their time is put down to, too.
    """
    flows = worst_first(trace.connections.iter_rows(named=True))
    console.print(summary(trace.reading, len(flows)), style="dim", soft_wrap=True)
    if len(flows) > 1:
        _table(flows, console)
    for flow in flows[:MOST_ROWS] if why else flows if len(flows) == 1 else []:
        _page(trace, flow, console, why=why)


def _page(trace: "Trace", flow: Row, console: "Console", *, why: bool) -> None:
    """Print all that is said of one connection."""
    console.print(f"\nConnection {flow['connection']}: {ends(flow)}", style="bold", soft_wrap=True)
    console.print(sentence(flow), soft_wrap=True)
    stalls = trace.stalls.filter(connection=flow["connection"]).head(MOST_STALLS)
    for stall in stalls.iter_rows(named=True):
        since = (stall["start"] - flow["start"]) / 1e9
        console.print(f"  From {seconds(since)}: {stall['story']}.", soft_wrap=True)
    directions = trace.directions.filter(connection=flow["connection"]).rows(named=True)
    head = [("", False), *((f"from the {row['from']}", False) for row in directions)]
    _print(console, head, [(name, *said) for name, said in figures(directions)])
    if why:
        _pieces(trace, flow, console)


def _pieces(trace: "Trace", flow: Row, console: "Console") -> None:
    """Print what each stretch of a connection's time is put down to."""
    rows = []
    for piece in trace.causes.filter(connection=flow["connection"]).iter_rows(named=True):
        since, length = (piece["start"] - flow["start"]) / 1e9, (piece["end"] - piece["start"]) / 1e9
        frames = f"{piece['first_frame']}–{piece['last_frame']}"
        rows.append((seconds(since), seconds(length), of_name(piece["cause"]).words, piece["confidence"], frames))
    _print(console, (("from", True), ("for", True), ("cause", False), ("sure", False), ("frames", False)), rows)


def _table(flows: Sequence[Row], console: "Console") -> None:
    """Print a row a connection."""
    head = (
        ("", True),
        ("connection", False),
        ("time", True),
        ("lost", True),
        ("most of it", False),
        ("segments", True),
    )
    rows = [
        (
            str(flow["connection"]),
            ends(flow),
            seconds(flow["duration_s"]),
            seconds(lost(flow)),
            main_cause(flow),
            count(flow["segments"]),
            ended(flow),
        )
        for flow in flows[:MOST_ROWS]
    ]
    _print(console, (*head, ("ended", False)), rows)
    said = "Lost is the time for which neither the path at its rate nor the applications account; the most comes first."
    console.print(said, style="dim", soft_wrap=True)
    if len(flows) > MOST_ROWS:
        line = f"{MOST_ROWS} of {len(flows):,} connections; --format csv has all, --flow picks."
        console.print(line, style="dim", soft_wrap=True)


def _print(console: "Console", head: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, number in head:
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
