"""Plots of connections of several traces, on an axis of the time since the start of each."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.rates import nice_step, rates_of
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter, steps
from airpath.plot.units import bytes_unit, rate_unit, seconds_unit
from airpath.plot.values import average, largest, numbers, smallest
from airpath.quantities import number_of, seconds
from airpath.trace.causes import CAUSES, seconds_of
from airpath.trace.figures.bands import bands
from airpath.trace.figures.causes import band
from airpath.trace.figures.view import FlowView, direction_of, other
from airpath.trace.messages import main_cause

_ROW = 46
"""Height of a bar and its name, in pixels."""
_BAR = 0.56
"""Height of a bar alone, in rows."""
_STEPS = 120
"""Approximate number of time steps."""


@dataclass(frozen=True)
class Shown:
    """A connection as the figures name and colour it."""

    label: str
    index: int
    """Its position in the comparison, which determines colour and dash."""
    view: FlowView

    @property
    def colour(self) -> str:
        """Its colour, light."""
        return theme.series(self.index).light

    @property
    def dash(self) -> str:
        """Its dash, which distinguishes it without colour."""
        return theme.dash(self.index)

    @property
    def is_quic(self) -> bool:
        """Whether it is a QUIC flow."""
        return "quic" in self.view.flow

    @property
    def sender(self) -> str:
        """The end that sent most data."""
        flow = self.view.flow
        if self.is_quic:
            return "server" if flow["server_bytes"] >= flow["client_bytes"] else "client"
        return self.view.senders[0] if self.view.senders else "server"

    @property
    def direction(self) -> str:
        """The direction of most data."""
        return direction_of(self.sender)


def cause_bars(shown: Sequence[Shown]) -> go.Figure:
    """Draw the causes of each connection's elapsed time, one bar per connection.

    Raises:
        NothingToDrawError: No connection has a duration.
    """
    present = [cause for cause in CAUSES if any(cause.name in seconds_of(each.view.flow) for each in shown)]
    if not present:
        raise NothingToDrawError("no connection took any time")
    lines = (len(present) + 3) // 4
    figure = blank(_ROW * len(shown) + 64 + 20 * lines, span=_span(shown), top=12 + 20 * lines)
    rectangles = _rectangles(shown)
    for cause in present:
        figure.add_trace(go.Bar(**band(rectangles.filter(cause=cause.name), cause, cause.words)))
    for row, each in enumerate(shown):
        figure.add_annotation(
            text=f"{each.label}: {seconds(each.view.span)}",
            x=0,
            xref="paper",
            xanchor="left",
            xshift=3,
            align="left",
            showarrow=False,
            y=row - 0.34,
            yref="y",
            yanchor="middle",
            font={"size": 12, "color": each.colour},
        )
    figure.update_layout(showlegend=True, barmode="overlay", bargap=0)
    hidden = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False, "fixedrange": True}
    figure.update_yaxes(range=[len(shown) - 0.5, -0.6], **hidden)
    read = (
        "The time of each connection from left to right, on one scale. Colour and hatching of a band show the cause of "
        "its time. Where causes follow each other too fast for bands, their heights are their shares of the time."
    )
    words = [f"{each.label}, {seconds(each.view.span)}, mainly {main_cause(each.view.flow)}" for each in shown]
    return captioned(figure, Caption("Where the time went", read, f"Causes of elapsed time: {'; '.join(words)}."))


def sequences(shown: Sequence[Shown], *, bins: int = BINS) -> go.Figure:
    """Draw the acknowledged data and the retransmissions of each connection over time.

    Raises:
        NothingToDrawError: No data was sent.
    """
    chosen = _with_data(shown)
    thinner = Thinner(bins)
    scale, unit = bytes_unit(max(largest(each.view.data(each.sender)["end"]) for each in chosen))
    figure = blank(380, y_title=f"stream offset ({unit})", span=_span(chosen))
    words = []
    for each in chosen:
        style = {"color": each.colour, "width": 2, "dash": each.dash}
        heard = each.view.sent.filter(pl.col("from") == other(each.sender), pl.col("acknowledged") >= 0)
        steps(figure, heard, "acknowledged", scale, each.label, style, thinner, legendgroup=each.label)
        again = each.view.data(each.sender).filter(pl.col("retransmission").is_not_null())
        x, y = numbers(again["t"]), numbers(again["end"], scale)
        marker = {"symbol": "x-thin", "size": 7, "line": {"width": 1.4, "color": each.colour}}
        more = {"legendgroup": each.label, "showlegend": False, "customdata": again["frame"].to_list()}
        hover = "retransmitted at %{x} s<br>frame %{customdata}"
        name = f"{each.label}, retransmitted"
        figure.add_trace(scatter(x, y, mode="markers", name=name, marker=marker, hovertemplate=hover, **more))
        words.append(
            f"{each.label}, {largest(heard['acknowledged']):,.0f} bytes, {number_of(again.height, 'segment')} "
            "retransmitted"
        )
    figure.update_layout(showlegend=True)
    read = (
        "Each line is the acknowledged data: a steeper line is faster, a level line is a stall. A cross is a "
        "retransmission."
    )
    alt = f"Stream offset over time: {'; '.join(words)}."
    return captioned(
        figure, Caption("Time–sequence", read, alt, _encrypted(shown) + _directions(chosen) + thinner.notes())
    )


def throughputs(shown: Sequence[Shown]) -> go.Figure:
    """Draw the rate of payload of each connection.

    Raises:
        NothingToDrawError: No data was sent.
    """
    chosen = _with_data(shown)
    packets = max(each.view.data(each.sender).height for each in chosen)
    span = _span(chosen)
    step = nice_step(max(span / _STEPS, min(12 / packets, 0.1) * span, 1e-6))
    sizes = [each.view.data(each.sender).select("t", size=pl.col("length_bytes")) for each in chosen]
    rates = [rates_of(size, step, each.view.span) for each, size in zip(chosen, sizes, strict=True)]
    scale, unit = rate_unit(max(largest(rate["rate"]) for rate in rates))
    figure = blank(280, y_title=f"rate ({unit})", span=span)
    figure.update_yaxes(rangemode="tozero")
    words = []
    for each, rate in zip(chosen, rates, strict=True):
        x, y = [*numbers(rate["t"]), each.view.span], numbers(rate["rate"][[*range(rate.height), -1]], scale)
        style = {"color": each.colour, "width": 1.8, "dash": each.dash, "shape": "hv"}
        figure.add_trace(scatter(x, y, mode="lines", name=each.label, line=style, hovertemplate="%{x} s: %{y}"))
        words.append(f"{each.label}, up to {largest(rate['rate']) * scale:.4g} {unit}")
    figure.update_layout(showlegend=True)
    read = f"Payload that passed the capture, retransmissions included: the mean of each {step:g} s."
    alt = f"Rate of payload over time: {'; '.join(words)}."
    return captioned(figure, Caption("Throughput", read, alt, _encrypted(shown) + _directions(chosen)))


def round_trips(shown: Sequence[Shown], *, bins: int = BINS) -> go.Figure:
    """Draw the round trips that the acknowledgements of each connection's data measure.

    Raises:
        NothingToDrawError: No acknowledgement measures one.
    """
    samples = [
        each.view.sent.filter(pl.col("from") == other(each.sender), pl.col("round_trip_ns").is_not_null()).with_columns(
            rtt=pl.col("round_trip_ns") / 1e9
        )
        for each in shown
    ]
    chosen = [(each, sample) for each, sample in zip(shown, samples, strict=True) if sample.height]
    if not chosen:
        quic = any(each.is_quic for each in shown)
        raise NothingToDrawError(_ENCRYPTED if quic else "no acknowledgement measures a round trip")
    thinner = Thinner(bins)
    scale, unit = seconds_unit(max(largest(sample["rtt"]) for _, sample in chosen))
    figure = blank(300, y_title=f"round trip ({unit})", span=_span([each for each, _ in chosen]))
    figure.update_yaxes(rangemode="tozero")
    words = []
    for each, sample in chosen:
        kept = thinner(sample, "rtt", each.label)
        marker = {"size": 5, "color": each.colour, "opacity": 0.6, "symbol": _SYMBOLS[each.index % len(_SYMBOLS)]}
        x, y = numbers(kept["t"]), numbers(kept["rtt"], scale)
        name = f"{each.label} ({sample.height:,})"
        more = {"customdata": kept["frame"].to_list(), "hovertemplate": "%{x} s: %{y}<br>frame %{customdata}"}
        figure.add_trace(scatter(x, y, mode="markers", name=name, marker=marker, **more))
        low, mean, high = smallest(sample["rtt"]), average(sample["rtt"]), largest(sample["rtt"])
        words.append(f"{each.label}, {seconds(low)} to {seconds(high)}, {seconds(mean)} on the mean")
    figure.update_layout(showlegend=True)
    read = (
        "Each dot is the time from a segment to the acknowledgement that measures it, between the capture and the end "
        "that answers. Values above the minimum are waiting time."
    )
    notes = _encrypted(shown) + _directions([each for each, _ in chosen]) + thinner.notes()
    alt = f"Round trips over time: {'; '.join(words)}."
    return captioned(figure, Caption("Round trip", read, alt, notes, log_axis=True))


_SYMBOLS = ("circle", "diamond-open", "square", "triangle-up-open", "cross", "star-open")
"""Marker shapes, one per colour."""


def _rectangles(shown: Sequence[Shown]) -> pl.DataFrame:
    """Return the rectangles of all bars; the bar of a row lies below its label."""
    span = _span(shown)
    level, height = pl.col("level"), pl.col("height")
    rows = [
        bands(each.view.pieces, span).with_columns(level=row + 0.12 - _BAR * level, height=_BAR * height)
        for row, each in enumerate(shown)
    ]
    return pl.concat(rows)


def _with_data(shown: Sequence[Shown]) -> list[Shown]:
    chosen = [each for each in shown if each.view.senders]
    if not chosen:
        raise NothingToDrawError(_ENCRYPTED if any(each.is_quic for each in shown) else "no data was sent")
    return chosen


_ENCRYPTED = "QUIC encrypts its acknowledgements and offsets"


def _encrypted(shown: Sequence[Shown]) -> list[str]:
    """Return a note if there are QUIC flows, which the figure leaves out."""
    absent = [each.label for each in shown if each.is_quic]
    return [f"{_ENCRYPTED}: {', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not drawn."] if absent else []


def _directions(shown: Sequence[Shown]) -> list[str]:
    """Return a note if the main directions of the connections differ."""
    directions = {each.direction for each in shown}
    if len(directions) == 1:
        return []
    return [f"The direction with more data is shown: {', '.join(f'{each.label} {each.direction}' for each in shown)}."]


def _span(shown: Sequence[Shown]) -> float:
    return max(each.view.span for each in shown)
