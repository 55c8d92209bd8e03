"""The time–sequence plot of a captured connection, with the elements of tcptrace's plot."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter, steps
from airpath.plot.units import bytes_unit
from airpath.plot.values import largest, numbers
from airpath.quantities import number_of
from airpath.trace.figures.view import FlowView, direction_of, other

_READ = (
    "Each dot is a captured segment, the line below the acknowledged data, the dotted line above the end of the "
    "receiver's window. The vertical distance of dots and line is the data in flight, the horizontal distance the "
    "round trip. Short bars are SACK blocks, crosses are retransmissions, by trigger."
)
AGAIN = {
    "timeout": ("retransmitted by the timer", "x-thin"),
    "fast": ("retransmitted in fast recovery", "cross-thin"),
    "tail_probe": ("tail probe", "y-up-open"),
    "unknown": ("retransmitted", "asterisk-open"),
}
"""Text and symbol of a retransmission, by its trigger."""
_WINDOW_SHOWN = 1.6
"""The window's edge is drawn up to this multiple of the data's height."""


def time_sequence(view: FlowView, sender: str, *, bins: int = BINS) -> go.Figure:
    """Draw stream offset over time, for the data of one end.

    Args:
        view: The flow.
        sender: `server` or `client`.
        bins: How finely the time is cut where there are too many points; all retransmissions are
            kept.

    Raises:
        NothingToDrawError: That end sent no data.
    """
    data = view.data(sender)
    if data.height == 0:
        raise NothingToDrawError(f"the {sender} sent no data")
    direction = direction_of(sender)
    hue, back = theme.direction(direction), theme.direction("up" if direction == "down" else "down")
    thinner = Thinner(bins)
    highest = largest(data["end"])
    scale, unit = bytes_unit(highest)
    figure = blank(420, y_title=f"stream offset ({unit})", span=view.span)
    figure.update_yaxes(range=[-0.03 * highest * scale, 1.06 * highest * scale])
    heard = view.sent.filter((pl.col("from") == other(sender)) & pl.col("acknowledged").is_not_null())
    edges = heard.with_columns(edge=pl.col("acknowledged") + pl.col("window_bytes")).filter(
        pl.col("edge") <= _WINDOW_SHOWN * highest
    )
    if edges.height:
        style = {"color": theme.MUTED.light, "width": 1.2, "dash": "dot"}
        steps(figure, edges, "edge", scale, "receiver's window", style, thinner)
    steps(figure, heard, "acknowledged", scale, "acknowledged", {"color": back.light, "width": 1.6}, thinner)
    _blocks(figure, view, sender, scale)
    new = thinner(data.filter(pl.col("retransmission").is_null()), "end", "sent")
    _marks(figure, new, scale, "sent", {"symbol": "circle", "size": 4, "color": hue.light})
    again = data.filter(pl.col("retransmission").is_not_null())
    for trigger, (words, symbol) in AGAIN.items():
        rows = again.filter(retransmission=trigger)
        if rows.height:
            red = theme.ALERT.light
            style = {"symbol": symbol, "size": 8, "color": red, "line": {"width": 1.8, "color": red}}
            _marks(figure, rows, scale, f"{words} ({rows.height:,})", style)
    _zero_windows(figure, heard, scale)
    alt = (
        f"Stream offset over time of flow {view.name}: {number_of(data.height, 'segment')} with {highest:,.0f} bytes "
        f"from the {sender} in {view.span:.4g} s; {again.height:,} were retransmitted."
    )
    return captioned(figure, Caption(f"Time–sequence, {direction}", _READ, alt, thinner.notes()))


def _blocks(figure: go.Figure, view: FlowView, sender: str, scale: float) -> None:
    """Draw the SACK blocks as vertical bars, those of DSACK (RFC 2883) separately."""
    blocks = view.blocks.filter(pl.col("from") == other(sender))
    for duplicate, name, colour in ((False, "SACK", theme.GOOD), (True, "DSACK", theme.SERIES[1])):
        rows = blocks.filter(duplicate=duplicate)
        if rows.height == 0:
            continue
        x = [each for t in numbers(rows["t"]) for each in (t, t, None)]
        ends = zip(numbers(rows["left"], scale), numbers(rows["right"], scale), strict=True)
        y = [each for left, right in ends for each in (left, right, None)]
        line = {"color": colour.light, "width": 1.2}
        figure.add_trace(scatter(x, y, mode="lines", name=f"{name} ({rows.height:,})", line=line, hoverinfo="skip"))


def _zero_windows(figure: go.Figure, heard: pl.DataFrame, scale: float) -> None:
    closed = heard.filter(pl.col("window_bytes") == 0)
    if closed.height:
        x, y = numbers(closed["t"]), numbers(closed["acknowledged"], scale)
        style = {"symbol": "square-open", "size": 8, "color": theme.INK.light}
        name = f"window closed ({closed.height:,})"
        figure.add_trace(scatter(x, y, mode="markers", name=name, marker=style, hovertemplate="%{x} s: %{y}"))


def _marks(figure: go.Figure, rows: pl.DataFrame, scale: float, name: str, style: dict[str, Any]) -> None:
    x, y = numbers(rows["t"]), numbers(rows["end"], scale)
    frames = rows["frame"].to_list()
    hover = "%{x} s: %{y}<br>frame %{customdata}"
    figure.add_trace(scatter(x, y, mode="markers", name=name, marker=style, customdata=frames, hovertemplate=hover))
