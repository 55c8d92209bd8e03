"""The report of several traces: a connection of each beside those of the others, on one page."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import plotly.graph_objects as go

from airpath.quantities import count, rate, seconds, size
from airpath.report.figures import Figure, Missing, figure
from airpath.report.page import render
from airpath.report.tables import Cell, Table
from airpath.trace import figures
from airpath.trace.analysis import Trace
from airpath.trace.causes import CAUSES, Cause, seconds_of
from airpath.trace.compare import labels
from airpath.trace.connections import keys, where_it_went
from airpath.trace.figures.compared import Shown
from airpath.trace.figures.view import FlowView
from airpath.trace.words import Row, ended, ends, longest_first, lost, remarks, summary

MOST_BARS = 6
"""More connections of a trace than this have no bar; the table has up to `MOST_ROWS` of each."""
MOST_ROWS = 30
"""More connections of a trace than this are not listed; the report of that trace alone has more."""
_TOLD = 3
"""Causes that a sentence of differences names."""


@dataclass(frozen=True)
class Compared:
    """A trace among those that are compared, and its connection that is drawn: the longest."""

    trace: Trace
    label: str
    index: int
    flows: list[Row]
    """Its connections, the longest first."""
    shown: Shown

    @property
    def sent(self) -> Row:
        """The figures of what the main sender of that connection sent."""
        of_flow = self.trace.directions.filter(connection=self.flows[0]["connection"])
        return of_flow.filter(**{"from": self.shown.sender}).row(0, named=True)


def write(traces: Sequence[Trace], out: Path, *, command: str | None = None) -> Path:
    """Write the report of several traces.

    Args:
        traces: The traces, in the order in which they are compared; the first is what the others are measured by.
        out: The HTML file.
        command: The command that makes the report again; by default `airpath trace compare` with these files.

    Raises:
        OSError: The file cannot be written.
        ValueError: There is no trace.
    """
    if not traces:
        raise ValueError("a comparison needs at least one trace")
    out.write_text(page(traces, out, command), encoding="utf-8")
    return out


def page(traces: Sequence[Trace], out: Path, command: str | None = None) -> str:
    """Return the report as HTML."""
    compared = [
        _compared(trace, label, index) for index, (trace, label) in enumerate(zip(traces, labels(traces), strict=True))
    ]
    drawn = _drawn(compared)
    return render(
        "traces.html.j2",
        title=" · ".join(each.label for each in compared),
        runs=compared,
        sentences=[_against(each, compared[0]) for each in compared[1:]],
        summaries=[summary(each.trace.reading, len(each.flows)) for each in compared],
        remarks=[f"{remark}" for each in compared for remark in remarks(each.trace.reading)],
        over_time=[each for each in drawn if isinstance(each, Figure)],
        absent=[each for each in drawn if isinstance(each, Missing)],
        differences=_differences(compared),
        tables=[_connections(compared)],
        commands=[command or _command(traces, out)],
    )


def _compared(trace: Trace, label: str, index: int) -> Compared:
    flows = longest_first(trace.connections.iter_rows(named=True))
    return Compared(trace, label, index, flows, Shown(label, index, FlowView.of(trace, flows[0])))


def _drawn(compared: Sequence[Compared]) -> list[Figure | Missing]:
    shown = [each.shown for each in compared]
    makers: list[tuple[str, Callable[[], go.Figure]]] = [
        ("Where the time went", partial(figures.cause_bars, _bars(compared))),
        ("Time–sequence", partial(figures.sequences, shown)),
        ("Throughput", partial(figures.throughputs, shown)),
        ("Round trip", partial(figures.round_trips, shown)),
    ]
    return [figure(make, title, time=True) for title, make in makers]


def _bars(compared: Sequence[Compared]) -> list[Shown]:
    """Return a bar for each connection, of a trace with many for the longest."""
    return [
        Shown(
            each.label if len(each.flows) == 1 else f"{each.label}, {flow['connection']}: {ends(flow)}",
            each.index,
            FlowView.outline(each.trace, flow),
        )
        for each in compared
        for flow in each.flows[:MOST_BARS]
    ]


def _against(each: Compared, first: Compared) -> str:
    """Return how long a trace's connection took against the first's, and which causes make the difference."""
    own, others = (seconds_of(compared.flows[0]) for compared in (each, first))
    changes = {cause: own.get(cause.name, 0.0) - others.get(cause.name, 0.0) for cause in CAUSES}
    whole = each.flows[0]["duration_s"] - first.flows[0]["duration_s"]
    said = f"{each.label} took {seconds(each.flows[0]['duration_s'])}"
    if not any(changes.values()):
        return f"{said}, as {first.label} did, from the same causes."
    largest = sorted(changes, key=lambda cause: -abs(changes[cause]))[:_TOLD]
    causes = ", ".join(f"{cause.words} {_signed(changes[cause], seconds)}" for cause in largest if changes[cause])
    length = (
        f"as long as {first.label}" if whole == 0 else f"{_more(whole)} than {first.label}{_relative(whole, first)}"
    )
    return f"{said}, {length}: {causes}."


def _more(change: float) -> str:
    return f"{seconds(abs(change))} {'more' if change > 0 else 'less'}"


def _relative(change: float, first: Compared) -> str:
    base = first.flows[0]["duration_s"]
    return f" ({_percent(change / base)})" if base else ""


def _percent(share: float) -> str:
    return f"{share:+.1%}".replace("%", "\u00a0%").replace("-", "−")


def _signed(change: float, words: Callable[[float], str]) -> str:
    return f"{'+' if change > 0 else '−'}{words(abs(change))}"


Value = Callable[[Compared], float | None]


def _of_cause(cause: Cause) -> Value:
    return lambda each: seconds_of(each.flows[0]).get(cause.name, 0.0)


def _sent(column: str, factor: float = 1.0) -> Value:
    def value(each: Compared) -> float | None:
        figure = each.sent[column]
        return None if figure is None else figure * factor

    return value


_FIGURES: Sequence[tuple[str, Value, Callable[[float], str]]] = (
    ("time", lambda each: each.flows[0]["duration_s"], seconds),
    ("lost", lambda each: lost(each.flows[0]), seconds),
    *((cause.words, _of_cause(cause), seconds) for cause in CAUSES),
    ("bytes", _sent("unique_bytes"), size),
    ("throughput", _sent("throughput", 8), rate),
    ("segments with data", _sent("data_segments"), count),
    ("sent again", _sent("retransmissions"), count),
    ("by the timer", _sent("timeouts"), count),
    ("fast", _sent("fast_retransmissions"), count),
    ("tail probes", _sent("tail_probes"), count),
    ("needless", _sent("needless"), count),
    ("out of order", _sent("out_of_order"), count),
    ("round trip, least", _sent("shortest_round_trip"), seconds),
    ("round trip, mean", _sent("mean_round_trip"), seconds),
    ("round trip, most", _sent("longest_round_trip"), seconds),
    ("outages included, mean", _sent("mean_echo_round_trip"), seconds),
    ("outages included, most", _sent("longest_echo_round_trip"), seconds),
    ("most outstanding", _sent("largest_outstanding"), size),
    ("mean queueing", _sent("mean_queueing"), seconds),
    ("first flight", _sent("initial_window_segments"), count),
    ("largest segment", _sent("largest_segment"), size),
    ("longest pause", _sent("longest_idle"), seconds),
)
"""What is compared of the connections that are drawn."""


def _differences(compared: Sequence[Compared]) -> Table:
    """Return the figures that differ, each with its difference to the first trace's."""
    rows = []
    same = 0
    for name, value, words in _FIGURES:
        values = [value(each) for each in compared]
        if not any(values):
            continue
        if len({None if figure is None else words(figure) for figure in values}) == 1 and len(values) > 1:
            same += 1
            continue
        cells = [_figure(figure, None if index == 0 else values[0], words) for index, figure in enumerate(values)]
        rows.append([Cell(name, number=False), *cells])
    caption = (
        "Of the connections that are drawn above, and of the direction with more data; below each figure its "
        f"difference to {compared[0].label}."
    )
    notes = (
        [f"{same} more figures are the same in all."] if same > 1 else ["One more figure is the same in all."] * same
    )
    return Table("Differences", caption, ["figure", *(each.label for each in compared)], rows, notes)


def _figure(value: float | None, base: float | None, words: Callable[[float], str]) -> Cell:
    if value is None:
        return Cell("–")
    if base is None:
        return Cell(words(value))
    change = value - base
    if change == 0:
        return Cell(words(value), "the same")
    relative = f" ({_percent(change / base)})" if base else ""
    return Cell(words(value), f"{_signed(change, words)}{relative}")


def _connections(compared: Sequence[Compared]) -> Table:
    """Return the connections of all traces."""
    listed = [(each, flow) for each in compared for flow in each.flows[:MOST_ROWS]]
    rows = [
        [
            Cell(each.label, number=False),
            Cell(str(flow["connection"]), number=False),
            Cell(ends(flow), number=False),
            Cell(seconds(flow["duration_s"])),
            where_it_went(flow),
            Cell(seconds(lost(flow))),
            Cell(count(flow["segments"])),
            Cell(ended(flow), number=False),
        ]
        for each, flow in listed
    ]
    caption = (
        "Each bar is the whole time of its connection, whatever its length. Lost is the time for which neither the "
        "path at its rate nor the applications account. Of each trace the longest connection comes first."
    )
    notes = [
        f"{MOST_ROWS} of {len(each.flows):,} connections of {each.label}."
        for each in compared
        if len(each.flows) > MOST_ROWS
    ]
    if any(len(each.flows) > 1 for each in compared):
        notes.insert(0, "Of each trace the longest connection is drawn above; --flow chooses others.")
    head = ["trace", "connection", "ends", "time", "where it went", "lost", "segments", "ended"]
    return Table("Connections", caption, head, rows, notes, keys([flow for _, flow in listed]))


def _command(traces: Sequence[Trace], out: Path) -> str:
    words = ["airpath", "trace", "compare", *(trace.sources.given[0] for trace in traces)]
    if traces[0].flow is not None:
        words += ["--flow", traces[0].flow]
    return shlex.join([*words, "-o", str(out)])
