"""The report of a trace: all connections in a table, and the first of them drawn in full."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import plotly.graph_objects as go
import polars as pl

from airpath.files import write_text
from airpath.quantities import seconds
from airpath.report.figures import Figure, Missing, figure
from airpath.report.page import render
from airpath.report.tables import Cell, Table
from airpath.trace import connection_rows, figures
from airpath.trace.avoidable import worst_first
from airpath.trace.connections import connections_table
from airpath.trace.data import TraceData
from airpath.trace.figures.view import FlowView, direction_of
from airpath.trace.format import Row
from airpath.trace.format import figures as numbers
from airpath.trace.groups import groups_table
from airpath.trace.messages import clock, counted, summary, together
from airpath.trace.quic import figures_table, quic_table
from airpath.trace.quic import flows as quic_flows
from airpath.trace.selection import arguments
from airpath.trace.text import MOST_STALLS
from airpath.trace.verdict import all_connections, of_quic, sentences
from airpath.trace.warnings import warnings_of

IN_FULL = 3
"""The default number of connections that are drawn in full."""
_FEWEST = 20
"""Connections with fewer segments are not drawn, unless there is no other."""
MOST_PAGES = 4
"""At most this number of pages is drawn, one per client."""


@dataclass(frozen=True)
class Connection:
    """A connection or a QUIC flow that the page shows in full."""

    id: str
    kind: str
    """`Connection`, or `QUIC flow`."""
    name: str
    sentence: str
    stalls: list[str]
    over_time: list[Figure]
    absent: list[Missing]
    table: Table


def write(trace: TraceData, out: Path, *, in_full: int = IN_FULL, command: str | None = None) -> Path:
    """Write the report of a trace.

    Args:
        trace: The trace.
        out: The HTML file.
        in_full: How many of its connections are drawn in full, from that with most avoidable time.
        command: The command that makes the report again.

    Raises:
        OSError: The file cannot be written.
    """
    write_text(out, page(trace, out, in_full=in_full, command=command))
    return out


def page(trace: TraceData, out: Path, *, in_full: int = IN_FULL, command: str | None = None) -> str:
    """Return the report as HTML."""
    flows = worst_first(connection_rows.flows(trace))
    explained: set[str] = set()
    # A connection of few segments has a line in the table. A figure of it shows no more.
    large = [flow for flow in flows if flow["segments"] >= _FEWEST] or flows[:1]
    quic = quic_flows(trace)
    drawn = [_connection(trace, flow, explained) for flow in [*large[:in_full], *quic[:in_full]]]
    alone = len(flows) + len(quic) == len(drawn) == 1
    files = (summary(trace.reading, len(flows), len(quic)), clock(trace.reading).rstrip("."))
    return render(
        "trace.html.j2",
        title=f"{drawn[0].kind} {drawn[0].name}" if alone else _title(len(flows), len(quic)),
        summary=". ".join(filter(None, files)),
        together=[] if alone else [*all_connections(trace, flows), *together(flows, trace.causes, trace.directions)],
        warnings=warnings_of(trace),
        alone=alone,
        drawn=drawn,
        connections=connections_table(flows, [flow["connection"] for flow in large[:in_full]]),
        groups=groups_table(trace, flows),
        quic=quic_table(quic),
        pages=[each for each in _pages(trace) if isinstance(each, Figure)],
        commands=[command or _command(trace, out, in_full)],
    )


def _connection(trace: TraceData, flow: Row, explained: set[str]) -> Connection:
    """Return a connection or a QUIC flow for the page.

    The explanation of a figure is shown once per page: `explained` has those shown before, and is
    extended.
    """
    view = FlowView.of(trace, flow)
    if "quic" in flow:
        kind, group, own = "QUIC flow", f"quic-{flow['quic']}", {"quic": flow["quic"]}
        drawings = [figure(lambda: figures.cause_bar(view), "Where the time went", time=True), *_radio_log(view, trace)]
        words, table = of_quic(trace, flow), figures_table(flow)
    else:
        number = flow["connection"]
        kind, group, own = "Connection", f"connection-{number}", {"connection": number}
        drawings, words, table = _over_time(view, trace), sentences(trace, flow), _directions(trace, flow)
    made = _grouped(drawings, group, explained)
    return Connection(
        group,
        kind,
        view.name,
        " ".join(words),
        _stalls(trace.stalls.filter(**own), flow),
        [each for each in made if isinstance(each, Figure)],
        [each for each in made if isinstance(each, Missing)],
        table,
    )


def _title(connections: int, quic: int) -> str:
    """Return the number of connections and QUIC flows."""
    return " and ".join(counted(connections, quic))


def _grouped(drawings: list[Figure | Missing], group: str, explained: set[str]) -> list[Figure | Missing]:
    """Return the figures of a connection with its group, and each explanation once."""
    made: list[Figure | Missing] = []
    for each in drawings:
        if isinstance(each, Figure):
            caption = replace(each.caption, read="") if each.caption.read in explained else each.caption
            explained.add(each.caption.read)
            made.append(replace(each, id=f"{group}-{each.id}", group=group, caption=caption))
        else:
            made.append(each)
    return made


def _over_time(view: FlowView, trace: TraceData) -> list[Figure | Missing]:
    makers: list[tuple[str, Callable[[], go.Figure]]] = [("Where the time went", lambda: figures.cause_bar(view))]
    makers += [
        (f"Time–sequence, {direction_of(sender)}", partial(figures.time_sequence, view, sender))
        for sender in view.main_senders or ["server"]
    ]
    makers += [
        ("Outstanding data", lambda: figures.outstanding(view)),
        ("Round trip", lambda: figures.round_trip(view)),
        ("One-way delay", lambda: figures.one_way(view)),
        ("Throughput", lambda: figures.throughput(view)),
    ]
    return [*(figure(make, title, time=True) for title, make in makers), *_radio_log(view, trace)]


def _radio_log(view: FlowView, trace: TraceData) -> list[Figure | Missing]:
    """Draw the radio log of a result folder; nothing of other captures."""
    run = trace.sources.run
    if run is None:
        return []
    return [figure(partial(figures.radio_tracks, view, run, trace.sources.repetition), "Radio log", time=True)]


def _pages(trace: TraceData) -> list[Figure | Missing]:
    """Draw the pages with most requests."""
    drawn = []
    for page in trace.pages.sort("requests", descending=True).head(MOST_PAGES).iter_rows(named=True):
        view = figures.PageView.of(trace, page)
        drawn.append(figure(partial(figures.page_timeline, view), "Page"))
    return drawn


def _stalls(stalls: pl.DataFrame, flow: Row) -> list[str]:
    longest = stalls.head(MOST_STALLS).iter_rows(named=True)
    return [f"From {seconds((each['start'] - flow['start']) / 1e9)}: {each['story']}." for each in longest]


def _directions(trace: TraceData, flow: Row) -> Table:
    rows = trace.directions.filter(connection=flow["connection"]).rows(named=True)
    head = ["figure", *(f"from the {row['from']}" for row in rows)]
    cells = [[Cell(text, number=False) for text in (name, *texts)] for name, texts in numbers(rows)]
    caption = "Data that each end sent, as captured."
    return Table(f"Figures of connection {flow['connection']}", caption, head, cells)


def _command(trace: TraceData, out: Path, in_full: int) -> str:
    words = ["airpath", "trace", *trace.sources.arguments]
    words += arguments(trace.flow)
    if in_full != IN_FULL:
        words += ["--in-full", str(in_full)]
    return shlex.join([*words, "-o", str(out)])
