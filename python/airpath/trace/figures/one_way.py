"""The one-way delays of packets between two captures, and the lost packets."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter
from airpath.plot.units import seconds_unit
from airpath.plot.values import largest, numbers, smallest
from airpath.quantities import seconds
from airpath.trace.figures.view import SENDERS, FlowView, direction_of

_READ = (
    "Each dot is a packet, at its sending time: its delay to the other capture. A triangle is a lost packet. Values "
    "above the minimum are waiting time."
)


def one_way(view: FlowView, *, bins: int = BINS) -> go.Figure:
    """Draw the one-way delay in each direction.

    Raises:
        NothingToDrawError: There is no capture of the other end.
    """
    transits = view.since_start(view.transits)
    arrived = transits.filter(pl.col("delay_ns").is_not_null()).with_columns(took=pl.col("delay_ns") / 1e9)
    if arrived.height == 0:
        raise NothingToDrawError("this needs a capture of the other end")
    thinner = Thinner(bins)
    scale, unit = seconds_unit(largest(arrived["took"]))
    figure = blank(260, y_title=f"one-way delay ({unit})", span=view.span)
    figure.update_yaxes(rangemode="tozero")
    words = []
    for sender in SENDERS:
        own = arrived.filter(pl.col("from") == sender)
        lost = transits.filter((pl.col("from") == sender) & (pl.col("fate") == "lost"))
        direction = direction_of(sender)
        colour = theme.direction(direction).light
        dot = "circle" if direction == "down" else "diamond-open"
        kept = thinner(own, "took", direction)
        _marks(figure, kept, scale, f"{direction} ({own.height:,})", {"color": colour, "size": 4, "symbol": dot})
        style = {"color": colour, "size": 8, "symbol": "triangle-down-open"}
        _marks(figure, lost.with_columns(took=pl.lit(0.0)), scale, f"{direction}, lost ({lost.height:,})", style)
        if own.height:
            low, high = smallest(own["took"]), largest(own["took"])
            words.append(f"{direction} {seconds(low)} to {seconds(high)}, {lost.height:,} lost")
    figure.update_layout(showlegend=True)
    alt = f"One-way delays over time of flow {view.name}: {'; '.join(words)}."
    return captioned(figure, Caption("One-way delay", _READ, alt, thinner.notes(), log_axis=True))


def _marks(figure: go.Figure, rows: pl.DataFrame, scale: float, name: str, style: dict[str, Any]) -> None:
    if rows.height == 0:
        return
    x, y, frames = numbers(rows["t"]), numbers(rows["took"], scale), rows["frame"].to_list()
    hover = "%{x} s: %{y}<br>frame %{customdata}"
    figure.add_trace(scatter(x, y, mode="markers", name=name, marker=style, customdata=frames, hovertemplate=hover))
