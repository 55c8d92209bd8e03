"""The common parts of all figures: fonts, margins, axes, captions."""

import re
from dataclasses import asdict, dataclass, field
from typing import Any

import plotly.graph_objects as go

from airpath import theme

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_TITLE_HEIGHT = 40
_TOP = 40

_TIMES = (("d", 86_400.0), ("h", 3_600.0))
"""The units of long axes of time, with their seconds."""
_LEAST_UNITS = 3
"""The number of units from which on an axis has them."""
_HOVERED = re.compile(r"%\{(x|base)(?::[^}]*)?\} s\b")
"""A time in seconds in the template of a hover text."""

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
    """Set a figure's title, and its caption in `layout.meta`.

    A long axis of time in seconds becomes one in hours or days.
    """
    _shorten_time(figure)
    title = {"text": caption.title, "x": 0, "xref": "paper", "y": 0.98, "yanchor": "top", "font": {"size": 15}}
    return figure.update_layout(meta=asdict(caption), title=title)


def time_unit(figure: go.Figure) -> float:
    """Return the seconds of the unit of a figure's axis of time."""
    title = figure.to_plotly_json()["layout"].get("xaxis", {}).get("title", {}).get("text")
    return next((length for unit, length in _TIMES if title == f"time ({unit})"), 1.0)


def _shorten_time(figure: go.Figure) -> None:
    """Give an axis `time (s)` of many hours another unit, and its data the same."""
    axis = figure.to_plotly_json()["layout"]["xaxis"]
    if axis.get("title", {}).get("text") != "time (s)" or "range" not in axis:
        return
    start, end = axis["range"]
    unit, length = next(((unit, length) for unit, length in _TIMES if end - start >= _LEAST_UNITS * length), ("s", 1.0))
    if unit == "s":
        return
    figure.update_xaxes(title_text=f"time ({unit})", range=[start / length, end / length])
    layout: Any = figure.layout
    traces: Any = figure.data
    for trace in traces:
        values = {key: trace[key] for key in ("x", "x0", "dx", "base") if key in trace and trace[key] is not None}
        trace.update({key: _divided(value, length) for key, value in values.items()})
        if getattr(trace, "hovertemplate", None):
            trace.hovertemplate = _HOVERED.sub(rf"%{{\1:.7~g}} {unit}", trace.hovertemplate)
    for shape in (each for each in layout.shapes if each.xref in (None, "x")):
        shape.update(x0=shape.x0 / length, x1=shape.x1 / length)
    for text in (each for each in layout.annotations if each.xref in (None, "x")):
        text.update(x=text.x / length)


def _divided(value: Any, by: float) -> Any:
    """Return a number, or each of several that is known, divided."""
    if isinstance(value, int | float):
        return value / by
    return [None if each is None else each / by for each in value]


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
