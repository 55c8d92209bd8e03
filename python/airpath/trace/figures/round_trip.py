"""The round trips that the acknowledgements of a captured connection measure."""

from typing import Any

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
from airpath.trace.figures.view import SENDERS, FlowView, direction_of, other

_READ = (
    "Each dot is the time from a segment that was sent once to the acknowledgement that measures it (Karn's rule), "
    "between the capture and the end that acknowledges. Values above the minimum are waiting time: queues, radio "
    "retransmissions, delayed acknowledgements."
)
_READ_ECHO = " A ring is measured only by the echo of a timestamp; retransmissions during an outage are among these."


def round_trip(view: FlowView, *, bins: int = BINS) -> go.Figure:
    """Draw the round trips in each direction.

    By Karn's rule, and those that only timestamps measure.

    Raises:
        NothingToDrawError: No acknowledgement measures one.
    """
    karn = view.sent.filter(pl.col("round_trip_ns").is_not_null()).with_columns(rtt=pl.col("round_trip_ns") / 1e9)
    echo = view.sent.filter(pl.col("round_trip_ns").is_null(), pl.col("echo_round_trip_ns").is_not_null())
    echo = echo.with_columns(rtt=pl.col("echo_round_trip_ns") / 1e9)
    if karn.height + echo.height == 0:
        raise NothingToDrawError("no acknowledgement measures a round trip")
    thinner = Thinner(bins)
    scale, unit = seconds_unit(max(largest(karn["rtt"]), largest(echo["rtt"])))
    figure = blank(260, y_title=f"round trip ({unit})", span=view.span)
    figure.update_yaxes(rangemode="tozero")
    words = []
    for sender in SENDERS:
        direction = direction_of(sender)
        colour = theme.direction(direction).light
        samples, echoed = (each.filter(pl.col("from") == other(sender)) for each in (karn, echo))
        if samples.height:
            dot = {"color": colour, "size": 4, "symbol": "circle" if direction == "down" else "diamond"}
            _dots(
                figure,
                thinner(samples, "rtt", f"of data {direction}"),
                samples.height,
                scale,
                f"of data {direction}",
                dot,
            )
            low, mean, high = smallest(samples["rtt"]), average(samples["rtt"]), largest(samples["rtt"])
            words.append(f"of data {direction} {seconds(low)} to {seconds(high)}, {seconds(mean)} on the mean")
        if echoed.height:
            name = f"of data {direction}, by timestamps alone"
            ring = {"color": colour, "size": 8, "symbol": "circle-open" if direction == "down" else "diamond-open"}
            _dots(figure, thinner(echoed, "rtt", name), echoed.height, scale, name, ring)
            words.append(f"by timestamps alone {direction} up to {seconds(largest(echoed['rtt']))}")
    figure.update_layout(showlegend=True)
    alt = f"Round trips over time of flow {view.name}: {'; '.join(words)}."
    read = _READ + (_READ_ECHO if echo.height else "")
    caption = Caption("Round trip", read, alt, thinner.notes(), log_axis=True)
    return captioned(figure, caption)


def _dots(figure: go.Figure, kept: pl.DataFrame, number: int, scale: float, name: str, marker: dict[str, Any]) -> None:
    x, y = numbers(kept["t"]), numbers(kept["rtt"], scale)
    more = {"customdata": kept["frame"].to_list(), "hovertemplate": "%{x} s: %{y}<br>frame %{customdata}"}
    figure.add_trace(scatter(x, y, mode="markers", name=f"{name} ({number:,})", marker=marker, **more))
