"""The common parts of all figures: fonts, margins, axes, captions."""

from dataclasses import asdict, dataclass, field
from typing import Any

import plotly.graph_objects as go

from airpath import theme

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_TITLE_HEIGHT = 40
_TOP = 40

_AXIS = {
    "gridcolor": theme.GRID.light,
    "linecolor": theme.LINE.light,
    "zerolinecolor": theme.LINE.light,
    "zerolinewidth": 1,
    "showline": True,
    "ticks": "outside",
    "tickcolor": theme.LINE.light,
    "ticklen": 4,
    "title": {"font": {"size": 12, "color": theme.MUTED.light}, "standoff": 8},
    "tickfont": {"size": 11, "color": theme.MUTED.light},
}

TEMPLATE = go.layout.Template(
    layout={
        "font": {"family": FONT, "size": 12, "color": theme.INK.light},
        "paper_bgcolor": theme.PAGE.light,
        "plot_bgcolor": theme.PAGE.light,
        "colorway": [colour.light for colour in theme.SERIES],
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": theme.SURFACE.light,
            "bordercolor": theme.LINE.light,
            "font": {"size": 12, "color": theme.INK.light},
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 12},
            "bgcolor": f"{theme.PAGE.light}00",
            "itemsizing": "constant",
            "itemwidth": 42,
        },
    }
)
"""Plotly's template of airpath; `figure.update_layout(template=…)` takes it."""


@dataclass
class Caption:
    """The texts of a figure."""

    title: str
    read: str
    """One line: how to read it."""
    alt: str
    """The alternative text for readers who cannot see the figure."""
    notes: list[str] = field(default_factory=list)
    """Notes about omitted or thinned data."""
    log_axis: bool = False
    """Whether the page offers a logarithmic axis, because of the range of values."""


def blank(
    height: int, x_title: str = "time (s)", y_title: str = "", span: float | None = None, top: int = _TOP
) -> go.Figure:
    """Return a figure in airpath's theme.

    Args:
        height: Pixels without the title.
        x_title: What the horizontal axis shows, with its unit.
        y_title: What the vertical axis shows, with its unit.
        span: Where the horizontal axis ends if it is one of time, which begins at zero.
        top: Pixels above the axes, for the legend.
    """
    # The same left and right margins everywhere, so that time axes are aligned.
    margin = {"l": 78, "r": 22, "t": top + _TITLE_HEIGHT, "b": 44}
    figure = go.Figure(layout={"template": TEMPLATE, "height": height + _TITLE_HEIGHT, "margin": margin})
    figure.update_xaxes(title_text=x_title)
    if span is not None:
        figure.update_xaxes(range=[0, span])
    figure.update_yaxes(title_text=y_title)
    return figure


def captioned(figure: go.Figure, caption: Caption) -> go.Figure:
    """Set a figure's title, and its caption in `layout.meta`."""
    title = {"text": caption.title, "x": 0, "xref": "paper", "y": 0.98, "yanchor": "top", "font": {"size": 15}}
    return figure.update_layout(meta=asdict(caption), title=title)


def caption_of(figure: go.Figure) -> Caption:
    """Return the caption of a figure of this package."""
    return Caption(**figure.to_plotly_json()["layout"]["meta"])


def untitled(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as plain data without title, caption and template."""
    data = figure.to_plotly_json()
    layout = {key: each for key, each in data["layout"].items() if key not in ("title", "meta", "template")}
    layout["height"] -= _TITLE_HEIGHT
    layout["margin"] = layout["margin"] | {"t": layout["margin"]["t"] - _TITLE_HEIGHT}
    return {"data": data["data"], "layout": layout}


def ramp(colours: tuple[theme.Colour, ...]) -> list[list[Any]]:
    """Return a colour scale from a theme's ramp."""
    return [[index / (len(colours) - 1), colour.light] for index, colour in enumerate(colours)]
