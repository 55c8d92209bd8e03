"""The report of several traces: a connection of each on one page."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import plotly.graph_objects as go

from airpath.files import write_text
from airpath.report.figures import Figure, Missing, figure
from airpath.report.page import render
from airpath.report.tables import Cell, Table
from airpath.trace import connection_rows, figures, quic
from airpath.trace.avoidable import longest_first
from airpath.trace.compare.differences import differences
from airpath.trace.compare.figures import Shown, cause_bars, round_trips, sequences, throughputs
from airpath.trace.compare.sentences import Compared, against
from airpath.trace.compare.table import labels
from airpath.trace.connections import CAPTION, HEAD, cells, keys
from airpath.trace.data import TraceData
from airpath.trace.figures.view import FlowView
from airpath.trace.messages import ends, summary
from airpath.trace.selection import arguments
from airpath.trace.warnings import warnings_of_all

MOST_BARS = 6
"""At most this number of connections of a trace has a bar; the table has up to `MOST_ROWS` of
each."""
MOST_ROWS = 30
"""At most this number of connections of a trace is listed; the report of that trace alone has
more."""


def write(traces: Sequence[TraceData], out: Path, *, command: str | None = None) -> Path:
    """Write the report of several traces.

    Args:
        traces: The traces, in the order in which they are compared; the others are compared with
            the first.
        out: The HTML file.
        command: The command that makes the report again; by default `airpath trace compare` with
            these files.

    Raises:
        OSError: The file cannot be written.
        ValueError: There is no trace.
    """
    if not traces:
        raise ValueError("a comparison needs at least one trace")
    write_text(out, page(traces, out, command))
    return out


def page(traces: Sequence[TraceData], out: Path, command: str | None = None) -> str:
    """Return the report as HTML."""
    compared = [
        _compared(trace, label, index) for index, (trace, label) in enumerate(zip(traces, labels(traces), strict=True))
    ]
    drawn = _drawn(compared)
    return render(
        "traces.html.j2",
        title=" · ".join(each.label for each in compared),
        runs=compared,
        sentences=[against(each, compared[0]) for each in compared[1:]],
        summaries=[
            summary(each.trace.reading, each.trace.connections.height, each.trace.quic.height) for each in compared
        ],
        warnings=warnings_of_all(traces),
        over_time=[each for each in drawn if isinstance(each, Figure)],
        absent=[each for each in drawn if isinstance(each, Missing)],
        pages=[each for each in _pages(compared) if isinstance(each, Figure)],
        differences=differences(compared),
        tables=[_connections(compared)],
        commands=[command or _command(traces, out)],
    )


def _compared(trace: TraceData, label: str, index: int) -> Compared:
    flows = longest_first([*connection_rows.flows(trace), *quic.flows(trace)])
    return Compared(trace, label, index, flows, Shown(label, index, FlowView.of(trace, flows[0])))


def _drawn(compared: Sequence[Compared]) -> list[Figure | Missing]:
    shown = [each.shown for each in compared]
    makers: list[tuple[str, Callable[[], go.Figure]]] = [
        ("Where the time went", partial(cause_bars, _bars(compared))),
        ("Time–sequence", partial(sequences, shown)),
        ("Throughput", partial(throughputs, shown)),
        ("Round trip", partial(round_trips, shown)),
    ]
    return [figure(make, title, time=True) for title, make in makers]


def _pages(compared: Sequence[Compared]) -> list[Figure | Missing]:
    """Draw the page of each trace that has one, on a common time scale."""
    views = [
        replace(figures.PageView.of(each.trace, each.page), label=each.label)
        for each in compared
        if each.page is not None
    ]
    until = max((view.acknowledged for view in views), default=0.0)
    drawn: list[Figure | Missing] = []
    for number, view in enumerate(views, 1):
        made = figure(partial(figures.page_timeline, replace(view, until=until)), "Page", time=True)
        if isinstance(made, Figure):
            caption = replace(made.caption, read="") if drawn else made.caption
            made = replace(made, id=f"page-{number}", group="page", caption=caption)
        drawn.append(made)
    return drawn


def _bars(compared: Sequence[Compared]) -> list[Shown]:
    """Return a bar for each connection; of a trace with many for the longest ones."""
    return [
        Shown(
            each.label if len(each.flows) == 1 else f"{each.label}, {flow['connection']}: {ends(flow)}",
            each.index,
            FlowView.outline(each.trace, flow),
        )
        for each in compared
        for flow in each.flows[:MOST_BARS]
    ]


def _connections(compared: Sequence[Compared]) -> Table:
    """Return the connections of all traces."""
    listed = [(each, flow) for each in compared for flow in each.flows[:MOST_ROWS]]
    rows = [[Cell(each.label, number=False), *cells(flow)] for each, flow in listed]
    caption = f"{CAPTION} Of each trace the longest connection comes first."
    notes = [
        f"{MOST_ROWS} of {len(each.flows):,} connections of {each.label}."
        for each in compared
        if len(each.flows) > MOST_ROWS
    ]
    if any(len(each.flows) > 1 for each in compared):
        notes.insert(0, "Of each trace the longest connection is drawn above; --flow chooses others.")
    return Table("Connections", caption, ["trace", *HEAD], rows, notes, keys([flow for _, flow in listed]))


def _command(traces: Sequence[TraceData], out: Path) -> str:
    words = ["airpath", "trace", "compare", *(trace.sources.arguments[0] for trace in traces)]
    words += arguments(traces[0].flow)
    return shlex.join([*words, "-o", str(out)])
