"""The report of a trace: all connections in a table, and one of them drawn in full."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from airpath.quantities import count, seconds
from airpath.report.figures import Figure, Missing, figure
from airpath.report.page import render
from airpath.report.tables import MOST_ROWS, Cell, Table
from airpath.trace import figures
from airpath.trace.analysis import Trace
from airpath.trace.figures.view import FlowView, direction
from airpath.trace.words import ends, longest_first, remarks, summary


def write(trace: Trace, out: Path, *, command: str | None = None) -> Path:
    """Write the report of a trace.

    Args:
        trace: The trace; of its connections the one that took longest is drawn.
        out: The HTML file.
        command: The command that makes the report again.

    Raises:
        OSError: The file cannot be written.
    """
    out.write_text(page(trace, out, command), encoding="utf-8")
    return out


def page(trace: Trace, out: Path, command: str | None = None) -> str:
    """Return the report as HTML."""
    flows = longest_first(trace.connections.iter_rows(named=True))
    view = FlowView(flows[0], trace.observations(flows[0]["connection"]), trace.selective(flows[0]["connection"]))
    drawn = _over_time(view)
    return render(
        "trace.html.j2",
        title=f"Connection {view.name}",
        summary=summary(trace.reading, len(flows)),
        remarks=remarks(trace.reading),
        over_time=[each for each in drawn if isinstance(each, Figure)],
        absent=[each for each in drawn if isinstance(each, Missing)],
        tables=[_connections(flows)],
        commands=[command or _command(trace, out)],
    )


def _over_time(view: FlowView) -> list[Figure | Missing]:
    makers: list[tuple[str, Callable[[], go.Figure]]] = [
        (f"Time–sequence, {direction(sender)}", partial(figures.time_sequence, view, sender))
        for sender in view.senders or ["server"]
    ]
    makers += [
        ("Outstanding data", lambda: figures.outstanding(view)),
        ("Round trip", lambda: figures.round_trip(view)),
        ("Throughput", lambda: figures.throughput(view)),
    ]
    return [figure(make, title, time=True) for title, make in makers]


def _connections(flows: Sequence[Any]) -> Table:
    head = ["connection", "ends", "time", "segments", "ended"]
    rows = [
        [
            Cell(str(flow["connection"]), number=False),
            Cell(ends(flow), number=False),
            Cell(seconds(flow["duration_s"])),
            Cell(count(flow["segments"])),
            Cell(flow["outcome"], number=False),
        ]
        for flow in flows[:MOST_ROWS]
    ]
    caption = "Those that took longest first; the first is drawn above."
    notes = [f"{MOST_ROWS} of {len(flows):,} connections; all of them are in `Trace.connections`."]
    return Table("Connections", caption, head, rows, notes if len(flows) > MOST_ROWS else [])


def _command(trace: Trace, out: Path) -> str:
    words = ["airpath", "trace", *map(str, trace.files)]
    if trace.flow is not None:
        words += ["--flow", trace.flow]
    return shlex.join([*words, "-o", str(out)])
