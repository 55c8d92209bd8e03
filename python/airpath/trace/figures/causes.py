"""Where the time went: one bar with the shares, and below it when."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.quantities import seconds
from airpath.trace.causes import Cause, cause_shares, of_name, seconds_of
from airpath.trace.figures.bands import bands
from airpath.trace.figures.view import FlowView
from airpath.trace.format import percent
from airpath.trace.messages import has_radio

_READ = (
    "The connection's time from left to right. Colour and hatching of a band show the cause of its time. "
    "Where causes follow each other too fast for bands, their heights are their shares of the time. "
    "The legend has each cause with its time and its share."
)


def cause_bar(view: FlowView) -> go.Figure:
    """Draw the causes of a connection's elapsed time.

    Raises:
        NothingToDrawError: The connection has no duration.
    """
    totals = seconds_of(view.flow)
    radio = has_radio([view.flow])
    present = [(of_name(name, radio=radio), total) for name, total in totals.items()]
    if not present:
        raise NothingToDrawError("the flow took no time")
    parts = cause_shares(totals)
    figure = blank(96 + 20 * ((len(present) + 2) // 3), span=view.span, top=20 + 20 * ((len(present) + 2) // 3))
    rectangles = bands(view.pieces, view.span)
    for each, total in present:
        name = f"{each.words}: {seconds(total)}, {percent(parts[each.name])}"
        figure.add_trace(go.Bar(**band(rectangles.filter(cause=each.name), each, name)))
    figure.update_layout(showlegend=True, barmode="overlay", bargap=0)
    figure.update_yaxes(
        range=[-0.5, 0.5], showticklabels=False, ticks="", showgrid=False, zeroline=False, fixedrange=True
    )
    words = ", ".join(f"{each.words} {seconds(total)} ({percent(parts[each.name])})" for each, total in present)
    alt = f"Where the time of flow {view.name} went: {words}."
    return captioned(figure, Caption("Where the time went", _READ, alt))


def band(rectangles: pl.DataFrame, cause: Cause, name: str) -> dict[str, Any]:
    """Return the rectangles of one cause, rows of `bands`, as a Plotly trace: a horizontal bar."""
    pattern = {"shape": cause.pattern, "fgcolor": theme.PAGE.light, "size": 6, "solidity": 0.35, "fillmode": "overlay"}
    return {
        "orientation": "h",
        "base": rectangles["t"].round(6).to_list(),
        "x": rectangles["length"].round(6).to_list(),
        "y": rectangles["level"].round(4).to_list(),
        "width": rectangles["height"].round(4).to_list(),
        "name": name,
        "marker": {"color": cause.colour.light, "line": {"width": 0}, "pattern": pattern if cause.pattern else {}},
        "customdata": rectangles["text"].to_list(),
        "hovertemplate": f"{cause.words}: %{{customdata}}<extra></extra>",
    }
