"""The rate of captured payload."""

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.rates import nice_step, rates_of
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.traces import scatter
from airpath.plot.units import rate_unit
from airpath.plot.values import largest, numbers
from airpath.trace.figures.view import FlowView, direction_of

_STEPS = 120
"""Approximate number of time steps."""


def throughput(view: FlowView) -> go.Figure:
    """Draw the rate of payload in each direction, retransmissions included.

    Raises:
        NothingToDrawError: No data was sent.
    """
    if not view.main_senders:
        raise NothingToDrawError("no data was sent")
    packets = max(view.data(sender).height for sender in view.main_senders)
    step = nice_step(max(view.span / _STEPS, min(12 / packets, 0.1) * view.span, 1e-6))
    rates = {sender: rates_of(_sizes(view, sender), step, view.span) for sender in view.main_senders}
    scale, unit = rate_unit(max(largest(rate["rate"]) for rate in rates.values()))
    figure = blank(240, y_title=f"rate ({unit})", span=view.span)
    figure.update_yaxes(rangemode="tozero")
    words = []
    for sender, rate in rates.items():
        direction = direction_of(sender)
        x, y = [*numbers(rate["t"]), view.span], numbers(rate["rate"][[*range(rate.height), -1]], scale)
        dash = "dash" if direction == "up" and len(view.main_senders) > 1 else "solid"
        style = {"color": theme.direction(direction).light, "width": 1.6, "dash": dash, "shape": "hv"}
        figure.add_trace(scatter(x, y, mode="lines", name=direction, line=style, hovertemplate="%{x} s: %{y}"))
        words.append(f"{direction} up to {largest(rate['rate']) * scale:.4g} {unit}")
    figure.update_layout(showlegend=True)
    read = (
        f"Payload that passed the capture, retransmissions included: the mean of each {step:g} s. "
        "A gap is a stall; a plateau is the rate of the bottleneck."
    )
    alt = f"Rate of payload over time of flow {view.name}: {'; '.join(words)}."
    return captioned(figure, Caption("Throughput", read, alt))


def _sizes(view: FlowView, sender: str) -> pl.DataFrame:
    return view.data(sender).select("t", size=pl.col("length_bytes"))
