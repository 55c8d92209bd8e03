"""The kinds of figures of a run: those of `airpath.plot`, and two of datagrams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import plotly.graph_objects as go
import polars as pl

from airpath import plot, theme
from airpath.plot.selection import NothingToDrawError, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import Thinner
from airpath.plot.traces import scatter
from airpath.result import Result
from airpath.study import run_events

_ASPECTS = ("mode", "carrier-to-interference", "scheme", "slots")
"""What a trace of the air interface shows."""
Window = tuple[float, float] | None
"""Start and end of the time that a figure shows, in seconds; `None`: the whole run."""


@dataclass(frozen=True, slots=True)
class View:
    """What a figure shows of its runs."""

    window: Window = None
    step: float | None = None
    """Seconds of each mean of a rate; `None`: by the length of the run."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of figure of a run."""

    draw: Callable[[Sequence[Result], View], go.Figure]
    unit: str | None = None
    """The base unit of its vertical axis, on which published values can be drawn."""
    overlays: bool = False
    """Whether it overlays several runs."""
    is_on_run_time: bool = True
    """Whether its horizontal axis is the time of the run."""
    has_step: bool = False
    """Whether it shows means of intervals."""


def _arrivals(results: Sequence[Result], view: View) -> go.Figure:
    """Draw a vertical line for each datagram that arrives."""
    (result,) = results
    start, end = view.window or (0.0, float("inf"))
    times = [time for time, _ in run_events.arrivals(result) if start <= time <= end]
    if not times:
        raise NothingToDrawError("no datagram arrives")
    figure = blank(200, span=times[-1])
    figure.add_trace(
        go.Scatter(
            x=[round(x, 4) if x is not None else None for time in times for x in (time, time, None)],
            y=[y for _ in times for y in (0, 1, None)],
            mode="lines",
            name="a datagram arrives",
            line={"color": theme.SERIES[0].light, "width": 1},
            hovertemplate="%{x:.2f} s<extra></extra>",
        )
    )
    figure.update_yaxes(showticklabels=False, showgrid=False, ticks="", range=[0, 1])
    read = "Each vertical line is a datagram that arrives."
    return captioned(figure, Caption("Arrivals", read, f"{len(times)} arrivals."))


def _inter_arrival(results: Sequence[Result], view: View) -> go.Figure:
    """Draw the time since the arrival before, at each arrival, and mark handovers."""
    (result,) = results
    start, end = view.window or (0.0, float("inf"))
    times = [time for time, _ in run_events.arrivals(result) if start <= time <= end]
    if len(times) < 2:
        raise NothingToDrawError(f"only {len(times)} datagrams arrive")
    rows = [(later, later - earlier) for earlier, later in pairwise(times)]
    frame = pl.DataFrame(rows, schema={"t": pl.Float64, "time": pl.Float64}, orient="row")
    thinner = Thinner()
    kept = thinner(frame, "time", "inter-arrival times")
    figure = blank(260, y_title="inter-arrival time (s)", span=times[-1])
    style = {"color": theme.SERIES[0].light, "width": 1}
    x, y = kept["t"].round(4).to_list(), kept["time"].round(4).to_list()
    figure.add_trace(scatter(x, y, mode="lines", name="inter-arrival time", line=style, hovertemplate="%{x} s: %{y} s"))
    handover = (pl.col("aspect") == "mode") & (pl.col("name") == "handover")
    changed = result.scan("states").filter(handover).select(pl.col("time") / 1e9).collect()["time"].to_list()
    seen = sorted({round(time, 3) for time in changed if start <= time <= min(end, times[-1])})
    longest = max(y)
    if seen:
        figure.add_trace(
            go.Scatter(
                x=[x for time in seen for x in (time, time, None)],
                y=[y for _ in seen for y in (0, longest * 1.05, None)],
                mode="lines",
                name=f"handover ({len(seen)})",
                line={"color": theme.MUTED.light, "width": 1, "dash": "dot"},
                hovertemplate="handover at %{x:.1f} s<extra></extra>",
            )
        )
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(showlegend=True)
    read = "The time since the arrival before, at each arrival of a datagram; lost ones are not counted."
    alt = f"{len(rows)} inter-arrival times up to {longest:.3g} s; {len(seen)} handovers."
    return captioned(figure, Caption("Inter-arrival times", read, alt, thinner.notes()))


def _radio_log(results: Sequence[Result], view: View) -> go.Figure:
    return plot.tracks(results, aspects=_ASPECTS, window=view.window)


def _throughput(results: Sequence[Result], view: View) -> go.Figure:
    """Draw the rate by run; of one run by transfer, or by direction if it has none."""
    return plot.throughput(results, by_flow=len(results) == 1 and bool(drawn(results)[0].transfers), step=view.step)


KINDS = {
    "arrivals": Kind(_arrivals),
    "connections": Kind(lambda results, _: plot.connections(results[0]), is_on_run_time=False),
    "inter-arrival": Kind(_inter_arrival, unit="s"),
    "outstanding": Kind(lambda results, _: plot.outstanding(results), unit="bytes", overlays=True),
    "radio-log": Kind(_radio_log),
    "round-trip": Kind(lambda results, _: plot.round_trip(results), unit="s", overlays=True),
    "throughput": Kind(_throughput, unit="bps", overlays=True, has_step=True),
    "time-sequence": Kind(lambda results, _: plot.time_sequence(results, segments=True), overlays=True),
}
"""The kinds by name."""
