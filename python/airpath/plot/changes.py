"""Marks changes of conditions in a figure over time.

Grey bands for outages, dotted lines for other changes.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import plotly.graph_objects as go

from airpath import theme
from airpath.plot.selection import Drawn, Results, drawn
from airpath.plot.template import caption_of, time_unit
from airpath.quantities import seconds
from airpath.result import NotLoggedError

_MOST_NAMED = 6
"""The figure's notes name at most this number of changes; all are marked."""


@dataclass(frozen=True)
class _Change:
    start: float
    duration: float | None
    what: str
    where: str


def mark_changes(figure: go.Figure, results: Results, *, repetition: int | None = None) -> go.Figure:
    """Mark outages, handovers and new conditions in a figure over the run's time.

    Args:
        figure: The figure, which is changed.
        results: The results that it shows; changes that several have in common are marked once.
        repetition: The repetition; by default the median one.
    """
    return mark(figure, drawn(results, repetition))


def mark(figure: go.Figure, runs: Sequence[Drawn]) -> go.Figure:
    """Mark the changes of these runs in a figure."""
    changes = sorted({change for run in runs for change in _changes(run)}, key=lambda each: (each.start, each.what))
    if not changes:
        return figure
    grey = theme.MUTED.light
    unit = time_unit(figure)
    for change in changes:
        start = change.start / unit
        name = {"text": change.what.partition(",")[0], "font": {"size": 10, "color": grey}}
        across = {"xref": "x", "yref": "paper", "x0": start, "y0": 0, "y1": 1, "layer": "below"}
        if change.duration is None:
            label = name | {"textposition": "end", "textangle": 0, "xanchor": "left", "yanchor": "top"}
            line = {"color": grey, "width": 1, "dash": "dot"}
            figure.add_shape(type="line", x1=start, line=line, label=label, **across)
        else:
            label = name | {"textposition": "top left", "yanchor": "top"}
            end = start + change.duration / unit
            figure.add_shape(type="rect", x1=end, fillcolor=f"{grey}2e", line={"width": 0}, label=label, **across)
    caption = caption_of(figure)
    caption.notes.append(_words(changes))
    return figure.update_layout(meta=asdict(caption))


def mark_times(figure: go.Figure, times: Sequence[float]) -> None:
    """Draw a dotted line at each of these times, in seconds of the run."""
    unit = time_unit(figure)
    line = {"color": theme.MUTED.light, "width": 1, "dash": "dot"}
    for time in times:
        across = {"xref": "x", "yref": "paper", "x0": time / unit, "x1": time / unit, "y0": 0, "y1": 1}
        figure.add_shape(type="line", line=line, layer="below", **across)


def _changes(run: Drawn) -> list[_Change]:
    try:
        rows = run.events("changes").collect().iter_rows(named=True)
    except NotLoggedError:
        return []
    changes = []
    for row in rows:
        duration = None if row["duration"] is None else row["duration"] / 1e9
        where = row["component"] if row["user"] is None else f"{row['component']}, {run.user(row['user'])}"
        changes.append(_Change(row["t"], duration, _what(json.loads(row["change"])), where))
    return changes


def _what(change: dict[str, object]) -> str:
    """Return a change as text: its direction, kind and value."""
    direction = change.pop("direction", None)
    buffer = change.pop("buffer", None)
    kind, value = next(iter(change.items()))
    if isinstance(value, dict):
        value = value.get("distribution", "in bursts")
    words = [kind, str(value)] if direction is None else [kind, str(direction), str(value)]
    return " ".join(words) + (", buffer discarded" if buffer == "discard" else "")


def _words(changes: Sequence[_Change]) -> str:
    named = [f"{each.what} ({each.where}) at {seconds(each.start)}" for each in changes[:_MOST_NAMED]]
    more = f" and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
    return f"Conditions change, grey while nothing is sent: {'; '.join(named)}{more}."
