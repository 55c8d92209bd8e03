"""The playout buffer of videos over time, and their stalls."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn, flows_of
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.traces import scatter
from airpath.plot.values import largest, numbers
from airpath.quantities import number_of
from airpath.tables import VIDEOS


def playback(results: Results, *, repetition: int | None = None) -> go.Figure:
    """Draw the playout buffer of videos over time, and their stalls.

    Args:
        results: One result, or several to be overlaid.
        repetition: The repetition; by default the median one.

    Raises:
        NothingToDrawError: There is no video.
    """
    runs = drawn(results, repetition)
    chosen, notes = flows_of(runs, VIDEOS)
    levels = [_levels(run, flow) for run, flow, _ in chosen]
    highest = max((largest(level["buffer_s"]) for level in levels), default=0.0)
    if highest == 0:
        raise NothingToDrawError("the run has no video that received media")
    figure = blank(260, y_title="buffer (s)", span=max(run.span for run in runs))
    figure.update_yaxes(range=[0, highest * 1.08])
    words = []
    for index, ((run, flow, label), level) in enumerate(zip(chosen, levels, strict=True)):
        style = {"color": theme.series(index).light, "width": 1.8, "dash": theme.dash(index)}
        x, y = numbers(level["t"]), numbers(level["buffer_s"])
        figure.add_trace(scatter(x, y, mode="lines", name=label, line=style, hovertemplate="%{x} s: %{y} s"))
        stalls = _stalls(level, flow, run.span)
        for start, end in stalls if len(chosen) == 1 else []:
            figure.add_vrect(x0=start, x1=end, fillcolor=theme.GRID.light, opacity=0.8, layer="below", line_width=0)
        words.append(f"{label}, up to {largest(level['buffer_s']):.4g} s, {number_of(len(stalls), 'stall')}")
    if len(chosen) == 1:
        notes.append("Shaded: playback waits for media.")
    figure.update_layout(showlegend=len(chosen) > 1)
    read = (
        "Media that has arrived and is not displayed yet, once a second. At zero playback stalls, until the buffer is "
        "full again."
    )
    return captioned(figure, Caption("Playout buffer", read, f"Playout buffer over time: {'; '.join(words)}.", notes))


def _levels(run: Drawn, flow: dict[str, Any]) -> pl.DataFrame:
    buffers = run.result.buffers.filter(repetition=run.repetition, flow=flow["flow"])
    return buffers.with_columns(t=pl.col("time_s") + flow["start_s"]).filter(pl.col("t") <= run.span)


def _stalls(level: pl.DataFrame, flow: dict[str, Any], span: float) -> list[tuple[float, float]]:
    """Return from when to when playback waited, to the second: the start included."""
    ended = span if flow["duration_s"] is None else flow["start_s"] + flow["duration_s"]
    waiting = level.filter(pl.col("t") < ended).with_columns(group=pl.col("playing").rle_id())
    groups = waiting.filter(~pl.col("playing")).group_by("group", maintain_order=True)
    return [
        (start, min(end + 1, ended)) for _, start, end in groups.agg(a=pl.col("t").min(), b=pl.col("t").max()).rows()
    ]
