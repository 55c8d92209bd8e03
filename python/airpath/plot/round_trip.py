"""Round trips as senders and pings measured them, over time and as a distribution."""

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.acknowledgements import round_trips, tcp_round_trips
from airpath.plot.selection import Drawn, Line, NothingToDrawError, Results, drawn, lines
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner, changes
from airpath.plot.traces import scatter
from airpath.plot.units import seconds_unit
from airpath.plot.values import largest, numbers, smallest
from airpath.tables import is_steering_probe

_READ = (
    "Each dot is a round trip that the sender measured, at the time of the acknowledgement. The line is smoothed. "
    "Values above the minimum are waiting time: queues, radio retransmissions."
)
_READ_PING = (
    "Each dot is the round trip of a ping, at the time of its reply. "
    "Values above the minimum are waiting time: queues, radio retransmissions."
)
_READ_SHARE = (
    "The share of round trips up to the value on the axis. A line further left is better. "
    "It crosses 50 % at the median."
)
_MOST_DOTS = 3
"""With more runs than this only the smoothed lines are drawn, as dots would hide each other."""


def round_trip(
    results: Results, flow: int | None = None, *, repetition: int | None = None, bins: int = BINS
) -> go.Figure:
    """Draw round trips over time: of a ping if a run has one and no flow is selected, else of TCP.

    Args:
        results: One result, or several to be overlaid.
        flow: Number of the transfer; by default all transfers of one result, the median one of each
            of several.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points.

    Raises:
        NotLoggedError: A run did not log the `tcp` table, or no `app` table where it has pings.
        NothingToDrawError: There is neither a transfer over TCP nor a ping.
    """
    runs = drawn(results, repetition)
    pinged = flow is None and any(_pings(run) for run in runs)
    chosen, notes = _pinged_lines(runs) if pinged else lines(runs, flow)
    thinner = Thinner(bins)
    samples = [_samples(line) for line in chosen]
    longest = max((largest(sample[column]) for sample in samples for column in ("round_trip", "smoothed")), default=0.0)
    if longest == 0:
        raise NothingToDrawError("no round trip was measured")
    scale, unit = seconds_unit(longest)
    figure = blank(300, y_title=f"round trip ({unit})", span=max(run.span for run in runs))
    figure.update_yaxes(range=[0, longest * scale * 1.08])
    for line, sample in zip(chosen, samples, strict=True):
        _draw(figure, line, sample, scale, thinner, alone=len(chosen) == 1, dots=len(chosen) <= _MOST_DOTS)
    if pinged and len(runs) == 1:
        notes += _shade_load(figure, runs[0])
    alt = f"Round trip over time: {'; '.join(map(_words, chosen, samples))}."
    caption = Caption("Round trip", _READ_PING if pinged else _READ, alt, notes + thinner.notes())
    shortest = min(smallest(sample["round_trip"]) for sample in samples)
    caption.log_axis = longest > 100 * shortest > 0
    return captioned(figure, caption)


def round_trip_share(results: Results, *, bins: int = BINS) -> go.Figure:
    """Draw the distribution of all round trips of all flows and repetitions, one line per run.

    Raises:
        NotLoggedError: A run did not log the `tcp` table, or no `app` table where it has pings.
        NothingToDrawError: No round trip was measured.
    """
    runs = drawn(results)
    pooled = [_sorted_round_trips(run) for run in runs]
    longest = max(largest(values) for values in pooled)
    if longest == 0:
        raise NothingToDrawError("no round trip was measured")
    scale, unit = seconds_unit(longest)
    figure = blank(280, x_title=f"round trip ({unit})", y_title="share at most (%)")
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(range=[0, 101])
    words = []
    for run, values in zip(runs, pooled, strict=True):
        if values.len() == 0:
            continue
        points = min(values.len(), bins)
        share = pl.Series([(index + 1) / points for index in range(points)])
        at = pl.Series([values[max(round(each * values.len()) - 1, 0)] for each in share])
        colour = theme.DOWN if len(runs) == 1 else theme.series(run.index)
        style = {"color": colour.light, "width": 2, "dash": theme.dash(run.index), "shape": "hv"}
        name = f"{run.label} ({values.len():,})"
        hover = "%{y} % within %{x}"
        trace = scatter(numbers(at, scale), numbers(share, 100), name=name, mode="lines", line=style)
        figure.add_trace(trace.update(hovertemplate=hover, showlegend=True))
        words.append(f"{run.label}, half within {at[(points - 1) // 2] * scale:.4g} {unit}")
    title = "Distribution of the round trip"
    return captioned(figure, Caption(title, _READ_SHARE, f"Share of round trips by length: {'; '.join(words)}."))


def _draw(
    figure: go.Figure, line: Line, sample: pl.DataFrame, scale: float, thinner: Thinner, *, alone: bool, dots: bool
) -> None:
    measured = sample.filter(pl.col("round_trip").is_not_null())
    smoothed = sample.filter(pl.col("smoothed").is_not_null())
    colour = theme.direction(line.direction).light if alone else line.colour
    # The dots and the line of a run share one legend entry.
    group = {} if alone else {"legendgroup": line.label}
    if dots or smoothed.height == 0:
        name = "measured" if alone else line.label
        kept = thinner(measured, "round_trip", name)
        marker = {"size": 4, "color": colour, "opacity": 0.65 if alone else 0.45}
        x, y = numbers(kept["t"]), numbers(kept["round_trip"], scale)
        listed = alone or smoothed.height == 0
        style = {"mode": "markers", "marker": marker, "hovertemplate": "%{x} s: %{y}", "showlegend": listed}
        figure.add_trace(scatter(x, y, name=name, **style, **group))
    if smoothed.height:
        name = "smoothed" if alone else line.label
        kept = thinner(changes(smoothed, "smoothed"), "smoothed", name if alone else f"{name}, smoothed")
        ink = theme.INK.light if alone else colour
        style = {"color": ink, "width": 1.8, "dash": "solid" if alone else line.dash, "shape": "hv"}
        x, y = numbers(kept["t"]), numbers(kept["smoothed"], scale)
        figure.add_trace(scatter(x, y, mode="lines", name=name, line=style, hovertemplate="%{x} s: %{y}", **group))


def _shade_load(figure: go.Figure, run: Drawn) -> list[str]:
    """Shade the time of transfers, in which pings wait in queues."""
    spans = sorted(
        (flow["start_s"], run.span if flow["duration_s"] is None else flow["start_s"] + flow["duration_s"])
        for flow in run.transfers
    )
    for index, (start, end) in enumerate(spans):
        begin = max([start, *(earlier[1] for earlier in spans[:index])])  # overlapping transfers are shaded once
        if end > begin:
            figure.add_vrect(x0=begin, x1=end, fillcolor=theme.GRID.light, opacity=0.55, layer="below", line_width=0)
    return ["Shaded: a transfer is in progress."] if spans else []


def _samples(line: Line) -> pl.DataFrame:
    """Return `t`, `round_trip` and `smoothed` of a line, in seconds."""
    if line.flow["kind"] == "ping":
        arrived = line.of_flow("app").filter(pl.col("step") == "arrived")
        columns = arrived.select("t", round_trip=pl.col("delay") / 1e9, smoothed=pl.lit(None, pl.Float64))
    else:
        states = line.sender_states()
        columns = states.select(
            "t", round_trip=pl.col("round_trip") / 1e9, smoothed=pl.col("smoothed_round_trip") / 1e9
        )
    known = columns.collect().sort("t", maintain_order=True)
    if known.height or line.flow["kind"] == "ping":
        return known
    concluded = round_trips(line.of_flow("packets"), [line.flow])
    return concluded.select("t", "round_trip", smoothed=pl.lit(None, pl.Float64)).collect()


def _sorted_round_trips(run: Drawn) -> pl.Series:
    """Return the round trips of all flows and repetitions of a run, in seconds.

    Of its pings if it has any.
    """
    if _pings(run):
        pings = {flow["flow"] for flow in _pings(run)}
        rows = run.result.scan("app").filter((pl.col("step") == "arrived") & pl.col("flow").is_in(pings))
        return rows.select(pl.col("delay").sort() / 1e9).collect().to_series()
    if not run.transfers:
        return pl.Series([], dtype=pl.Float64)
    return tcp_round_trips(run.result).select(pl.col("round_trip").sort()).collect().to_series()


def _pings(run: Drawn) -> list[dict[str, object]]:
    """Return the pings of the scenario, without the probes of `[steering]`."""
    return [flow for flow in run.flows if flow["kind"] == "ping" and not is_steering_probe(flow)]


def _pinged_lines(runs: Sequence[Drawn]) -> tuple[list[Line], list[str]]:
    """Return a line for the first ping of each run that has one."""
    alone = len(runs) == 1
    found = [(run, _pings(run)) for run in runs]
    chosen = [
        Line(run, pings[0], str(pings[0]["name"]) if alone else run.label, run.index) for run, pings in found if pings
    ]
    several = [run.label for run, pings in found if len(pings) > 1]
    notes = ["Of several pings, the first is drawn."] if several else []
    missing = [run.label for run, pings in found if not pings]
    if missing:
        notes.append(f"No ping in: {', '.join(missing)}.")
    return chosen, notes


def _words(line: Line, sample: pl.DataFrame) -> str:
    values = sample["round_trip"].drop_nulls()
    if values.len() == 0:
        return f"{line.label}, none measured"
    half = values.median()
    return f"{line.label}, {smallest(values):.4g} to {largest(values):.4g} s, median {half:.4g} s"
