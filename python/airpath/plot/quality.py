"""The quality of videos over HTTP over time."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn, flows_of
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.traces import scatter
from airpath.plot.values import numbers
from airpath.quantities import rate


def quality(results: Results, *, repetition: int | None = None) -> go.Figure:
    """Draw the quality of each segment of videos over HTTP.

    Of a single video also the rate at which each was loaded.

    Args:
        results: One result, or several to be overlaid.
        repetition: The repetition; by default the median one.

    Raises:
        NothingToDrawError: There is no video over HTTP that received a segment.
    """
    runs = drawn(results, repetition)
    chosen, notes = flows_of(runs, ("adaptive",))
    loaded = [(label, _segments(run, flow)) for run, flow, label in chosen]
    loaded = [(label, segments) for label, segments in loaded if segments.height]
    if not loaded:
        raise NothingToDrawError("the run has no video over HTTP that received a segment")
    figure = blank(240, y_title="rate (kbit/s)", span=max(run.span for run in runs))
    figure.update_yaxes(rangemode="tozero")
    words = []
    for index, (label, segments) in enumerate(loaded):
        style = {"color": theme.series(index).light, "width": 2, "dash": theme.dash(index), "shape": "hv"}
        x, y = numbers(segments["t"]), numbers(segments["rate_bps"].cast(pl.Float64), 1e-3)
        name = "quality" if len(loaded) == 1 else label
        trace = scatter(x, y, mode="lines", name=name, line=style, hovertemplate="%{x} s: %{y} kbit/s")
        figure.add_trace(trace)
        mean = sum(segments["bytes"].to_list()) * 8 / _media(segments)
        changes = int((segments["quality"].diff().fill_null(0) != 0).sum())
        words.append(f"{label}, {rate(mean)} on the mean, {changes} changes")
    if len(loaded) == 1:
        segments = loaded[0][1]
        dots = {"color": theme.DOWN.light, "size": 5}
        x, y = numbers(segments["finished"]), numbers(segments["throughput"], 1e-3)
        text = "%{x} s: loaded with %{y} kbit/s"
        figure.add_trace(scatter(x, y, mode="markers", name="throughput", marker=dots, hovertemplate=text))
    figure.update_layout(showlegend=True)
    read = "The rate of the quality that each segment has, from its request on. Dots: the rate at which it was loaded."
    return captioned(figure, Caption("Video quality", read, f"Quality over time: {'; '.join(words)}.", notes))


def _media(segments: pl.DataFrame) -> float:
    """Return the duration of the segments in seconds."""
    return float((segments["bytes"] * 8 / segments["rate_bps"]).sum())


def _segments(run: Drawn, flow: dict[str, Any]) -> pl.DataFrame:
    rows = run.result.segments.filter(repetition=run.repetition, flow=flow["flow"])
    loading = pl.col("finished_s") - pl.col("requested_s")
    return rows.with_columns(
        t=pl.col("requested_s") + flow["start_s"],
        finished=pl.col("finished_s") + flow["start_s"],
        throughput=pl.col("bytes") * 8 / loading,
    )
