"""Plotly traces of several figures."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath.plot.thin import Thinner, changes
from airpath.plot.values import numbers

_WEBGL_FROM = 20_000


def scatter(x: Sequence[Any], y: Sequence[Any], **style: Any) -> go.Scatter | go.Scattergl:
    """Return a line or points, drawn with WebGL if there are many."""
    if len(x) > _WEBGL_FROM:
        return go.Scattergl(x=x, y=y, **style)
    return go.Scatter(x=x, y=y, **style)


def steps(
    figure: go.Figure,
    frame: pl.DataFrame,
    y: str,
    scale: float,
    name: str,
    style: dict[str, Any],
    thinner: Thinner,
    **more: Any,
) -> None:
    """Add a line that keeps each value of `y` until the next, thinned."""
    kept = thinner(changes(frame, y), y, name)
    line = style | {"shape": "hv"}
    x, values = numbers(kept["t"]), numbers(kept[y], scale)
    figure.add_trace(scatter(x, values, mode="lines", name=name, line=line, hovertemplate="%{x} s: %{y}", **more))
