"""The received rate, by direction, run or flow."""

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.rates import nice_step, rates_of
from airpath.plot.selection import Drawn, Line, NothingToDrawError, Results, drawn, lines
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.traces import scatter
from airpath.plot.units import rate_unit
from airpath.plot.values import largest, numbers

_STEPS, _FEWEST_STEPS = 120, 30
"""Approximate number of time steps, and of those of few packets."""


def throughput(
    results: Results, *, by_flow: bool = False, repetition: int | None = None, step: float | None = None
) -> go.Figure:
    """Draw the rate of IP packets at the end points over time.

    Of one result by direction, of several by run.

    Args:
        results: One result, or several to be overlaid; of these the direction that carried more is
            drawn.
        by_flow: Draw one result's flows one by one.
        repetition: The repetition; by default the median one.
        step: Seconds of each mean; by default by the length of the run and the number of packets.

    Raises:
        NotLoggedError: A run did not log the `packets` table.
        NothingToDrawError: Nothing arrived, or there is no transfer for a figure by flow.
    """
    runs = drawn(results, repetition)
    span = max(run.span for run in runs)
    received = [_received(run) for run in runs]
    packets = max(frame.height for frame in received)
    if packets == 0:
        raise NothingToDrawError("no packet arrived")
    step = step or nice_step(span * max(1 / _STEPS, min(12 / packets, 1 / _FEWEST_STEPS)))
    if by_flow and len(runs) == 1:
        chosen, notes = lines(runs, None)
        rows = [(line.label, line.colour, line.dash, span, _of_flow(received[0], line)) for line in chosen]
        title = "Throughput by flow"
    elif len(runs) == 1:
        notes = []
        rows = [
            (name, theme.direction(name).light, dash, span, received[0].filter(pl.col("direction") == name))
            for name, dash in (("down", "solid"), ("up", "dash"))
        ]
        title = "Throughput"
    else:
        main = _main_direction(received)
        notes = [f"The direction with more data is drawn: {main}."]
        rows = [
            (run.label, theme.series(run.index).light, theme.dash(run.index), run.span, frame.filter(direction=main))
            for run, frame in zip(runs, received, strict=True)
        ]
        title = "Throughput"
    rates = [
        (name, colour, dash, end, rates_of(frame, step, end)) for name, colour, dash, end, frame in rows if frame.height
    ]
    scale, unit = rate_unit(max(largest(rate["rate"]) for *_, rate in rates))
    figure = blank(280, y_title=f"rate ({unit})", span=span)
    figure.update_yaxes(rangemode="tozero")
    words = []
    for name, colour, dash, end, rate in rates:
        x, y = [*numbers(rate["t"]), end], numbers(rate["rate"][[*range(rate.height), -1]], scale)
        style = {"color": colour, "width": 1.6, "dash": dash, "shape": "hv"}
        figure.add_trace(scatter(x, y, mode="lines", name=name, line=style, hovertemplate="%{x} s: %{y}"))
        words.append(f"{name}, up to {largest(rate['rate']) * scale:.4g} {unit}")
    figure.update_layout(showlegend=True)
    read = (
        f"IP packets, headers included, that reached their end point: the mean of each {_length(step)}. "
        "A gap is a stall; a plateau is the rate of the bottleneck."
    )
    alt = f"Rate of arriving packets over time: {'; '.join(words)}."
    return captioned(figure, Caption(title, read, alt, notes))


def _length(step: float) -> str:
    """Return the length of a step, in the largest unit that gives a whole number."""
    unit, seconds = next(
        ((unit, seconds) for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60)) if step % seconds == 0),
        ("s", 1),
    )
    return f"{step / seconds:g} {unit}"


def _received(run: Drawn) -> pl.DataFrame:
    arrived = run.events("packets").filter(pl.col("step") == "received")
    return arrived.select("t", "direction", "flow", pl.col("size").cast(pl.Int64)).collect()


def _of_flow(received: pl.DataFrame, line: Line) -> pl.DataFrame:
    return received.filter(flow=line.flow["flow"], direction=line.direction)


def _main_direction(received: Sequence[pl.DataFrame]) -> str:
    sums = pl.concat(received).group_by("direction").agg(pl.col("size").sum()).sort("size", "direction")
    return sums["direction"][-1]
