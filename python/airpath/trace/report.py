"""The report of a trace: all connections in a table, and one of them drawn in full."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import plotly.graph_objects as go
import polars as pl

from airpath.quantities import count, seconds
from airpath.report.figures import Figure, Missing, figure
from airpath.report.page import render
from airpath.report.tables import MOST_ROWS, Cell, Table
from airpath.trace import figures
from airpath.trace.analysis import Trace
from airpath.trace.figures.view import FlowView, direction
from airpath.trace.numbers import figures as numbers
from airpath.trace.text import MOST_STALLS
from airpath.trace.words import Row, ended, ends, lost, main_cause, remarks, sentence, summary, worst_first

MOST_PAGES = 4
"""More pages than this, one of each client, are not drawn."""


def write(trace: Trace, out: Path, *, command: str | None = None) -> Path:
    """Write the report of a trace.

    Args:
        trace: The trace; of its connections the one that lost most time is drawn.
        out: The HTML file.
        command: The command that makes the report again.

    Raises:
        OSError: The file cannot be written.
    """
    out.write_text(page(trace, out, command), encoding="utf-8")
    return out


def page(trace: Trace, out: Path, command: str | None = None) -> str:
    """Return the report as HTML."""
    flows = worst_first(trace.connections.iter_rows(named=True))
    number = flows[0]["connection"]
    own = pl.col("connection") == number
    view = FlowView(
        flows[0],
        trace.observations(number),
        trace.selective(number),
        trace.causes.filter(own),
        trace.passages.filter(own),
    )
    drawn = _over_time(view, trace)
    return render(
        "trace.html.j2",
        title=f"Connection {view.name}",
        summary=summary(trace.reading, len(flows)),
        sentence=sentence(flows[0]),
        stalls=_stalls(trace, flows[0]),
        remarks=remarks(trace.reading),
        over_time=[each for each in drawn if isinstance(each, Figure)],
        absent=[each for each in drawn if isinstance(each, Missing)],
        pages=[each for each in _pages(trace) if isinstance(each, Figure)],
        tables=[_directions(trace, flows[0]), _connections(flows)],
        commands=[command or _command(trace, out)],
    )


def _over_time(view: FlowView, trace: Trace) -> list[Figure | Missing]:
    makers: list[tuple[str, Callable[[], go.Figure]]] = [("Where the time went", lambda: figures.cause_bar(view))]
    makers += [
        (f"Time–sequence, {direction(sender)}", partial(figures.time_sequence, view, sender))
        for sender in _worth_drawing(view)
    ]
    makers += [
        ("Outstanding data", lambda: figures.outstanding(view)),
        ("Round trip", lambda: figures.round_trip(view)),
        ("One-way delay", lambda: figures.one_way(view)),
        ("Throughput", lambda: figures.throughput(view)),
    ]
    if trace.sources.run is not None:
        makers.append(("Radio log", partial(figures.radio_lanes, view, trace.sources.run)))
    return [figure(make, title, time=True) for title, make in makers]


def _worth_drawing(view: FlowView) -> list[str]:
    """Return the ends whose stream is drawn: not one that merely asked for what the other sent."""
    sizes = {sender: int(view.data(sender)["length"].sum()) for sender in view.senders}
    return [sender for sender in view.senders if sizes[sender] * 20 >= max(sizes.values())] or ["server"]


def _pages(trace: Trace) -> list[Figure | Missing]:
    """Draw the pages with most requests."""
    drawn = []
    for page in trace.pages.sort("requests", descending=True).head(MOST_PAGES).iter_rows(named=True):
        own = trace.connections.filter(client_address=page["client_address"])["connection"].implode()
        exchanges, timelines = (
            frame.filter(pl.col("connection").is_in(own)) for frame in (trace.exchanges, trace.timelines)
        )
        view = figures.PageView(page, exchanges, timelines)
        drawn.append(figure(partial(figures.page_timeline, view), "Page"))
    return drawn


def _stalls(trace: Trace, flow: Row) -> list[str]:
    stalls = trace.stalls.filter(connection=flow["connection"]).head(MOST_STALLS).iter_rows(named=True)
    return [f"From {seconds((each['start'] - flow['start']) / 1e9)}: {each['story']}." for each in stalls]


def _directions(trace: Trace, flow: Row) -> Table:
    rows = trace.directions.filter(connection=flow["connection"]).rows(named=True)
    head = ["figure", *(f"from the {row['from']}" for row in rows)]
    cells = [[Cell(text, number=False) for text in (name, *said)] for name, said in numbers(rows)]
    caption = "What each end sent, as the capture saw it; all figures are in `Trace.directions`."
    return Table(f"Connection {flow['connection']}", caption, head, cells)


def _connections(flows: Sequence[Row]) -> Table:
    head = ["connection", "ends", "time", "lost", "most of it", "segments", "ended"]
    rows = [
        [
            Cell(str(flow["connection"]), number=False),
            Cell(ends(flow), number=False),
            Cell(seconds(flow["duration_s"])),
            Cell(seconds(lost(flow))),
            Cell(main_cause(flow), number=False),
            Cell(count(flow["segments"])),
            Cell(ended(flow), number=False),
        ]
        for flow in flows[:MOST_ROWS]
    ]
    caption = (
        "Lost is the time for which neither the path at its rate nor the applications account; who lost most comes "
        "first, and is drawn above."
    )
    notes = [f"{MOST_ROWS} of {len(flows):,} connections; all of them are in `Trace.connections`."]
    return Table("Connections", caption, head, rows, notes if len(flows) > MOST_ROWS else [])


def _command(trace: Trace, out: Path) -> str:
    words = ["airpath", "trace", *trace.sources.given]
    if trace.flow is not None:
        words += ["--flow", trace.flow]
    return shlex.join([*words, "-o", str(out)])
