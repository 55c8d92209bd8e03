"""The sender's windows, and its outstanding data."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, Line, NothingToDrawError, Results, drawn, lines
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter, steps
from airpath.plot.units import bytes_unit
from airpath.plot.values import largest, numbers, smallest
from airpath.quantities import size

_READ_ONE = (
    "The filled area is the data sent and not yet acknowledged; it stays below the smaller of the congestion window "
    "and the receiver's window. Marks show what reduced the congestion window, or restored it."
)
_READ_SEVERAL = "Congestion window by run, with marks at its reductions. Frequent reductions are frequent losses."
_READ_OUTSTANDING = (
    "Each line is the data that a sender has sent and that are not yet acknowledged, when an acknowledgement arrives."
)

# Triggers that change the window other than acknowledgements: symbol and text.
_MARKS = {
    "timeout": ("triangle-down", "time-out"),
    "fast-retransmit": ("diamond", "fast retransmit"),
    "congestion-experienced": ("square", "congestion experienced"),
    "undo": ("circle-open", "undone"),
}


def window(results: Results, flow: int | None = None, *, repetition: int | None = None, bins: int = BINS) -> go.Figure:
    """Draw congestion window, slow-start threshold, receive window and outstanding data.

    Args:
        results: One result, or several to be overlaid; of several lines each shows its congestion
            window alone.
        flow: Number of the flow; by default all transfers of one result, the median one of each of
            several.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points.

    Raises:
        NotLoggedError: A run did not log the `tcp` table.
        NothingToDrawError: There is no transfer over TCP, or the senders are real programs.
    """
    runs, chosen, notes, states = _senders(results, flow, repetition)
    thinner = Thinner(bins)
    columns = ["congestion_window", "outstanding"] if len(chosen) == 1 else ["congestion_window"]
    highest = max(largest(state[column]) for state in states for column in columns)
    scale, unit = bytes_unit(highest)
    figure = blank(320, y_title=f"window ({unit})", span=max(run.span for run in runs))
    figure.update_yaxes(range=[0, highest * scale * 1.08])
    for line, state in zip(chosen, states, strict=True):
        if len(chosen) == 1:
            notes += _one(figure, line, state, scale, highest, thinner)
        else:
            style = {"color": line.colour, "width": 1.8, "dash": line.dash}
            steps(figure, state, "congestion_window", scale, line.label, style, thinner, legendgroup=line.label)
            _triggers(figure, state, scale, line.colour, legendgroup=line.label, showlegend=False)
    alt = f"Congestion window over time: {'; '.join(map(_words, chosen, states))}."
    read = _READ_ONE if len(chosen) == 1 else _READ_SEVERAL
    title = "Window and outstanding data" if len(chosen) == 1 else "Congestion window"
    return captioned(figure, Caption(title, read, alt, notes + thinner.notes()))


def outstanding(
    results: Results, flow: int | None = None, *, repetition: int | None = None, bins: int = BINS
) -> go.Figure:
    """Draw the outstanding data of transfers.

    Args:
        results: One result, or several to be overlaid.
        flow: Number of the flow; by default all transfers of one result, the median one of each of
            several.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points.

    Raises:
        NotLoggedError: A run did not log the `tcp` table.
        NothingToDrawError: There is no transfer over TCP, or the senders are real programs.
    """
    runs, chosen, notes, states = _senders(results, flow, repetition)
    highest = max(largest(state["outstanding"]) for state in states)
    scale, unit = bytes_unit(highest)
    figure = blank(300, y_title=f"outstanding data ({unit})", span=max(run.span for run in runs))
    figure.update_yaxes(range=[0, highest * scale * 1.08])
    thinner = Thinner(bins)
    words = []
    for line, state in zip(chosen, states, strict=True):
        style = {"color": line.colour, "width": 1.8, "dash": line.dash}
        steps(figure, state, "outstanding", scale, line.label, style, thinner)
        words.append(f"{line.label}, up to {size(largest(state['outstanding']))}")
    figure.update_layout(showlegend=len(chosen) > 1)
    alt = f"Outstanding data over time: {'; '.join(words)}."
    return captioned(figure, Caption("Outstanding data", _READ_OUTSTANDING, alt, notes + thinner.notes()))


def _senders(
    results: Results, flow: int | None, repetition: int | None
) -> tuple[list[Drawn], list[Line], list[str], list[pl.DataFrame]]:
    """Return the runs, their chosen transfers with notes, and the states of each sender."""
    runs = drawn(results, repetition)
    chosen, notes = lines(runs, flow)
    states = [_states(line) for line in chosen]
    if all(state.height == 0 for state in states):
        raise NothingToDrawError(
            "the senders' windows and outstanding data are unknown: a real program does not report them"
        )
    return runs, chosen, notes, states


def _one(
    figure: go.Figure, line: Line, state: pl.DataFrame, scale: float, highest: float, thinner: Thinner
) -> list[str]:
    """Draw all windows of the only line; return notes."""
    hue = theme.direction(line.direction)
    area = {"fill": "tozeroy", "fillcolor": f"{hue.light}40"}
    steps(figure, state, "outstanding", scale, "outstanding", {"color": hue.light, "width": 1}, thinner, **area)
    notes = []
    for column, name, dash in (
        ("slow_start_threshold", "slow-start threshold", "dash"),
        ("peer_window", "receiver's window", "dot"),
    ):
        known = state.filter(pl.col(column).is_not_null())
        if known.height == 0:
            continue
        lowest = smallest(known[column])
        if lowest > highest * 1.08:
            notes.append(f"The {name} lies above the axis throughout, at {size(lowest)} or more.")
            continue
        steps(figure, known, column, scale, name, {"color": theme.MUTED.light, "width": 1.4, "dash": dash}, thinner)
    steps(
        figure,
        state,
        "congestion_window",
        scale,
        "congestion window",
        {"color": theme.INK.light, "width": 1.8},
        thinner,
    )
    _triggers(figure, state, scale, theme.ALERT.light)
    return notes


def _states(line: Line) -> pl.DataFrame:
    states = line.sender_states()
    columns = ("t", "trigger", "congestion_window", "slow_start_threshold", "peer_window", "outstanding")
    return states.select(columns).collect().sort("t", maintain_order=True)


def _triggers(figure: go.Figure, state: pl.DataFrame, scale: float, colour: str, **more: Any) -> None:
    for trigger, (symbol, words) in _MARKS.items():
        rows = state.filter(pl.col("trigger") == trigger)
        if rows.height:
            x, y = numbers(rows["t"]), numbers(rows["congestion_window"], scale)
            marker = {"symbol": symbol, "size": 9, "color": colour}
            name = f"{words} ({rows.height:,})"
            hover = f"%{{x}} s: {words}"
            figure.add_trace(scatter(x, y, mode="markers", name=name, marker=marker, hovertemplate=hover, **more))


def _words(line: Line, state: pl.DataFrame) -> str:
    most = largest(state["congestion_window"])
    cuts = {words: state.filter(pl.col("trigger") == trigger).height for trigger, (_, words) in _MARKS.items()}
    text = ", ".join(f"{count:,} × {words}" for words, count in cuts.items() if count)
    return f"{line.label}, up to {size(most)}, {text or 'never cut'}"
