"""A trace on the terminal: one connection in detail, several in a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.quantities import count, seconds
from airpath.terminal_table import print_table
from airpath.trace import connection_rows
from airpath.trace.avoidable import AVOIDABLE, SUM_OF_CONNECTIONS, avoidable, order, worst_first
from airpath.trace.before_capture import before_captures
from airpath.trace.causes import of_name
from airpath.trace.elapsed import LINKS
from airpath.trace.format import Row, figures
from airpath.trace.groups import GROUPED_ABOVE, cells, groups
from airpath.trace.groups import HEAD as GROUPS_HEAD
from airpath.trace.messages import clock, ended, ends, has_radio, main_cause, name_of, summary, together
from airpath.trace.quic import HEAD as QUIC_HEAD
from airpath.trace.quic import NUMBERS as QUIC_NUMBERS
from airpath.trace.quic import flows as quic_flows
from airpath.trace.quic import name_of as quic_name
from airpath.trace.quic import rows as quic_rows
from airpath.trace.verdict import all_connections, of_quic, sentences

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from airpath.trace.data import TraceData

MOST_ROWS = 40
"""The table has at most this number of connections; `--format csv` has all."""
MOST_GROUPS = 10
"""The table of groups has at most this number."""
_SHORT = 0.001
"""`--why` combines successive intervals below this share of the connection's time."""
_CONFIDENCES = ("low", "medium", "high")
MOST_STALLS = 5
"""A connection shows at most this number of stalls; `Trace.stalls` has more."""


def render(trace: "TraceData", console: "Console", *, why: bool) -> None:
    """Print the connections of a trace: one in detail, several in a table.

    Args:
        trace: The trace.
        console: Where to print.
        why: Whether to list the cause of each interval of their time, too.
    """
    flows = worst_first(connection_rows.flows(trace))
    quic = quic_flows(trace)
    for text in filter(None, (summary(trace.reading, len(flows), len(quic)), clock(trace.reading))):
        console.print(text, style="dim", soft_wrap=not console.is_terminal)
    if len(flows) > GROUPED_ABOVE:
        _groups(trace, flows, console)
    if len(flows) > 1:
        _together(trace, flows, console)
        _table(flows, console)
        for text in together(flows, trace.causes, trace.directions):
            console.print(text, soft_wrap=not console.is_terminal)
    if quic:
        _quic_table(quic, console, alone=len(flows) + len(quic) == 1)
    for flow in flows[:MOST_ROWS] if why else flows if len(flows) == 1 else []:
        _page(trace, flow, console, why=why)
    for flow in quic[:MOST_ROWS] if why else quic if len(quic) == 1 else []:
        _quic_page(trace, flow, console, why=why)


def _page(trace: "TraceData", flow: Row, console: "Console", *, why: bool) -> None:
    """Print the details of one connection."""
    console.print(
        f"\nConnection {flow['connection']}: {name_of(flow)}", style="bold", soft_wrap=not console.is_terminal
    )
    for text in sentences(trace, flow):
        console.print(text, soft_wrap=not console.is_terminal)
    _stalls(trace.stalls.filter(connection=flow["connection"]), flow, console)
    directions = trace.directions.filter(connection=flow["connection"]).rows(named=True)
    head = [("", False), *((f"from the {row['from']}", False) for row in directions)]
    _print(console, head, [(name, *texts) for name, texts in figures(directions)], even=True)
    if why:
        _pieces(trace.causes.filter(connection=flow["connection"]), flow, console)


def _quic_page(trace: "TraceData", flow: Row, console: "Console", *, why: bool) -> None:
    """Print the details of one QUIC flow."""
    console.print(f"\n{quic_name(flow)}", style="bold", soft_wrap=not console.is_terminal)
    for text in of_quic(trace, flow):
        console.print(text, soft_wrap=not console.is_terminal)
    _stalls(trace.stalls.filter(quic=flow["quic"]), flow, console)
    if why:
        _pieces(trace.causes.filter(quic=flow["quic"]), flow, console)


def _stalls(stalls: "pl.DataFrame", flow: Row, console: "Console") -> None:
    """Print the longest stalls of a flow."""
    for stall in stalls.head(MOST_STALLS).iter_rows(named=True):
        since = (stall["start"] - flow["start"]) / 1e9
        console.print(f"  From {seconds(since)}: {stall['story']}.", soft_wrap=not console.is_terminal)


def _together(trace: "TraceData", flows: Sequence[Row], console: "Console") -> None:
    """Print what limited all connections, and the sum of their times by cause."""
    for text in filter(None, [*all_connections(trace, flows), before_captures(trace, flows)]):
        console.print(text, soft_wrap=not console.is_terminal)


def _pieces(pieces: "pl.DataFrame", flow: Row, console: "Console") -> None:
    """Print the cause of each interval of a flow's time."""
    rows, radio = [], has_radio([flow])
    for run in _runs(pieces.rows(named=True), flow["duration_s"]):
        begin, end = run[0]["start"], run[-1]["end"]
        times: dict[str, int] = {}
        for piece in run:
            words = of_name(piece["cause"], radio=radio).words
            if piece["full_by"]:
                words += f" ({LINKS[piece['full_by']]})"
            times[words] = times.get(words, 0) + piece["end"] - piece["start"]
        # The largest first: short pieces of several causes share a line.
        cause = ", ".join(sorted(times, key=lambda words: -times[words]))
        frames = f"{run[0]['first_frame']}–{run[-1]['last_frame']}"
        confidence = min((piece["confidence"] for piece in run), key=_CONFIDENCES.index)
        rows.append((seconds((begin - flow["start"]) / 1e9), seconds((end - begin) / 1e9), cause, confidence, frames))
    _print(console, (("from", True), ("for", True), ("cause", False), ("confidence", False), ("frames", False)), rows)


def _runs(pieces: Sequence[Row], duration: float) -> list[list[Row]]:
    """Combine successive pieces that are shorter than a thousandth of the connection."""
    runs: list[list[Row]] = []
    least = duration * 1e9 * _SHORT
    for piece in pieces:
        short = piece["end"] - piece["start"] < least
        if short and runs and all(each["end"] - each["start"] < least for each in runs[-1]):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return runs


def _groups(trace: "TraceData", flows: Sequence[Row], console: "Console") -> None:
    """Print one row per group of connections."""
    every = groups(trace, flows)
    head = [(name, index > 2) for index, name in enumerate(GROUPS_HEAD)]
    _print(console, head, [cells(group) for group in every[:MOST_GROUPS]], titles=GROUPS_HEAD[:2], whole="main cause")
    if len(every) > MOST_GROUPS:
        console.print(f"{MOST_GROUPS} of {len(every):,} groups.", style="dim")


def _table(flows: Sequence[Row], console: "Console") -> None:
    """Print one row per connection."""
    head = (
        ("", True),
        ("flow", False),
        ("connection", False),
        ("time", True),
        ("avoidable", True),
        ("main cause", False),
        ("segments", True),
    )
    rows = [
        (
            str(flow["connection"]),
            flow["flow_name"],
            ends(flow),
            seconds(flow["duration_s"]),
            "–" if flow["captured_end"] else seconds(avoidable(flow)),
            main_cause(flow),
            count(flow["segments"]),
            ended(flow),
        )
        for flow in flows[:MOST_ROWS]
    ]
    optional = ["segments"] if len({row[-1] for row in rows}) > 1 else ["segments", "ended"]
    if "" not in (names := {row[1] for row in rows}) and len(names) == len(rows):
        optional.append("connection")
    head = (*head, ("ended", False))
    if len({row[1] for row in rows}) == 1:
        # All are the same flow, or of no result folder.
        head, rows = (head[0], *head[2:]), [(row[0], *row[2:]) for row in rows]
    titles = ["", "flow", "connection"]
    titles = [name for name, _ in head if name in titles]
    _print(console, head, rows, titles=titles, optional=optional, whole="main cause")
    legend = f"{AVOIDABLE} {SUM_OF_CONNECTIONS} {order(flows)}"
    console.print(legend, style="dim", soft_wrap=not console.is_terminal)
    if len(flows) > MOST_ROWS:
        line = f"{MOST_ROWS} of {len(flows):,} connections; --format csv lists all, --flow selects."
        console.print(line, style="dim", soft_wrap=not console.is_terminal)


def _quic_table(flows: Sequence[Row], console: "Console", *, alone: bool) -> None:
    """Print one row per QUIC flow, and how `--flow` selects one of several flows."""
    head = [(name, name in QUIC_NUMBERS) for name in QUIC_HEAD]
    # Connections have numbers of their own.
    rows = [(f"QUIC flow {number}", *texts) for number, *texts in quic_rows(flows)]
    _print(console, head, rows, titles=QUIC_HEAD[:2], whole="main cause")
    if alone:
        return
    line = f"--flow quic:{flows[0]['quic']} selects QUIC flow {flows[0]['quic']}."
    console.print(line, style="dim", soft_wrap=not console.is_terminal)


def _print(
    console: "Console",
    head: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[str]],
    *,
    titles: Sequence[str] = (),
    optional: Sequence[str] = (),
    whole: str | None = None,
    even: bool = False,
) -> None:
    names = [name for name, _ in head]
    right = [name for name, number in head if number]
    print_table(console, names, rows, right=right, titles=titles, optional=optional, whole=whole, even=even)
