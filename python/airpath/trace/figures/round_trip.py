"""The round trips that the acknowledgements of a captured flow measure."""

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter
from airpath.plot.units import seconds_unit
from airpath.plot.values import average, largest, numbers, smallest
from airpath.quantities import seconds
from airpath.trace.figures.view import FlowView, direction, other

_READ = (
    "Each dot is the time from a segment to the acknowledgement that measures it, between the capture and the end that "
    "answers. What lies above the lowest is waiting: queues, repetitions on the radio, delayed acknowledgements."
)


def round_trip(view: FlowView, *, bins: int = BINS) -> go.Figure:
    """Draw the round trips in each direction.

    Raises:
        NothingToDrawError: No acknowledgement measures one.
    """
    measured = view.sent.filter(pl.col("round_trip").is_not_null()).with_columns(rtt=pl.col("round_trip") / 1e9)
    if measured.height == 0:
        raise NothingToDrawError("no acknowledgement measures a round trip")
    thinner = Thinner(bins)
    scale, unit = seconds_unit(largest(measured["rtt"]))
    figure = blank(260, y_title=f"round trip ({unit})", span=view.span)
    figure.update_yaxes(rangemode="tozero")
    words = []
    for sender in ("server", "client"):
        samples = measured.filter(pl.col("from") == other(sender))
        if samples.height == 0:
            continue
        way = direction(sender)
        kept = thinner(samples, "rtt", f"of data {way}")
        name = f"of data {way} ({samples.height:,})"
        symbol = "circle" if way == "down" else "diamond-open"
        style = {"color": theme.direction(way).light, "size": 4, "symbol": symbol}
        x, y = numbers(kept["t"]), numbers(kept["rtt"], scale)
        figure.add_trace(
            scatter(
                x,
                y,
                mode="markers",
                name=name,
                marker=style,
                customdata=kept["frame"].to_list(),
                hovertemplate="%{x} s: %{y}<br>frame %{customdata}",
            )
        )
        low, mean, high = smallest(samples["rtt"]), average(samples["rtt"]), largest(samples["rtt"])
        words.append(f"of data {way} {seconds(low)} to {seconds(high)}, {seconds(mean)} on the mean")
    figure.update_layout(showlegend=True)
    alt = f"Round trips over time of flow {view.name}: {'; '.join(words)}."
    caption = Caption("Round trip", _READ, alt, thinner.notes(), log_axis=True)
    return captioned(figure, caption)
