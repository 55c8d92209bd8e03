"""One figure of many repetitions or flows: each as a dot, and the mean with its 95 % interval."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError, Results, drawn, left_out
from airpath.plot.template import Caption, blank, caption_of, captioned
from airpath.plot.traces import scatter
from airpath.plot.units import bytes_unit, rate_unit, seconds_unit
from airpath.plot.values import average, largest, numbers
from airpath.result import Result
from airpath.statistics import Interval, mean_interval, repetition_means

ENOUGH = 5
"""With fewer repetitions than this the interval is unreliable, and the figure notes it."""

TITLES = {
    "duration_s": "Completion time",
    "throughput_bps": "Throughput",
    "rtt_mean_s": "Mean round trip",
    "delay_mean_s": "Mean delay",
    "retransmitted_packets": "Segments retransmitted",
    "timeouts": "Time-outs",
    "first_byte_s": "Time to the first byte",
    "page_time_s": "Page time",
    "first_contentful_paint_s": "First contentful paint",
    "largest_contentful_paint_s": "Largest contentful paint",
    "speed_index_s": "Speed Index",
    "load_event_s": "Load event",
}
"""Titles of figures of common columns."""


def compare(
    results: Results,
    metric: str = "duration_s",
    *,
    of: Literal["repetitions", "flows"] = "repetitions",
) -> go.Figure:
    """Draw a figure of the flows table over all repetitions or flows.

    One row per run, its mean with the 95 % interval.

    Args:
        results: One result, or several to be compared.
        metric: A column of `Result.flows`, such as `duration_s`, `throughput_bps` or `rtt_mean_s`.
        of: What each dot is: the mean of a repetition's flows, or a flow of the median repetition.

    Raises:
        KeyError: The flows have no such column.
        NothingToDrawError: No flow has a value in it.
    """
    runs = drawn(results)
    samples = [_means(run.result, metric) if of == "repetitions" else _flows(run.flows, metric) for run in runs]
    if not any(sample.len() for sample in samples):
        raise NothingToDrawError(f"no flow has a {metric}")
    rows = [(run.label, run.index, sample) for run, sample in zip(runs, samples, strict=True)]
    figure = distribution(rows, metric, "flow" if of == "flows" else "repetition")
    caption = caption_of(figure)
    caption.notes += [f"{run.label}: {words}." for run in runs if (words := left_out(run.result))]
    return figure.update_layout(meta=asdict(caption))


def distribution(
    rows: Sequence[tuple[str, int, pl.Series]],
    metric: str,
    dot: str,
    each: str = "",
    dots: Sequence[pl.Series] | None = None,
) -> go.Figure:
    """Draw samples of a figure: a row for each case, with its mean and 95 % interval.

    Args:
        rows: Name of each case, number of its colour, and its samples; at least one sample in all.
        metric: The name of the figure; its end is the unit, as in the frames.
        dot: What each sample is: `repetition`, `load`, or `flow`, which has no interval; `view`,
            `page` or `run` if each row has one sample.
        each: The same in the caption; by default from `dot`.
        dots: The values that are drawn, in the order of the rows, where samples are means of them.
    """
    shown = dots if dots is not None else [sample for *_, sample in rows]
    scale, unit = _unit(metric, max(map(largest, shown)))
    title = TITLES.get(metric, metric.removesuffix("_s").replace("_", " ").capitalize())
    figure = blank(100 + 64 * len(rows), x_title=f"{title.lower()} ({unit})" if unit else title.lower(), top=14)
    notes, words = [], []
    for place, (label, index, sample) in enumerate(rows):
        if sample.len() == 0:
            notes.append(f"{label}: no {'flow' if dot == 'repetition' else dot} has a value.")
            continue
        colour = theme.series(index)
        _dots(figure, shown[place], scale, -place, colour)
        interval = mean_interval(sample.to_list()) if sample.len() > 1 and dot != "flow" else None
        if interval is not None:
            _mean(figure, interval, scale, -place, colour)
            if sample.len() < ENOUGH:
                notes.append(f"{label}: {sample.len()} {dot}s are too few to trust the interval.")
        figure.add_annotation(
            text=f"<b>{label}</b>",
            x=0,
            xref="paper",
            xanchor="left",
            xshift=4,
            y=-place,
            yshift=23,
            yanchor="middle",
            showarrow=False,
            font={"size": 12, "color": colour.light},
        )
        words.append(f"{label}, {_words(shown[place], interval, scale, unit)}")
    figure.update_yaxes(
        range=[0.45 - len(rows), 0.65], showticklabels=False, ticks="", showgrid=False, zeroline=False, showline=False
    )
    figure.update_layout(showlegend=False)
    read = f"Each dot is {each or ('the mean of a repetition' if dot == 'repetition' else f'a {dot}')}."
    if any(sample.len() > 1 for *_, sample in rows) and dot != "flow":
        read += " The diamond is the mean of all, the bar its 95 % interval."
    return captioned(figure, Caption(title, read, f"{title}: {'; '.join(words)}.", notes))


def _means(result: Result, metric: str) -> pl.Series:
    """Return the mean over the flows of each repetition, of those that have a value.

    Raises:
        KeyError: The flows have no such column.
    """
    flows = result.flows
    if metric not in flows.columns:
        raise KeyError(f"flows have no '{metric}'")
    return repetition_means(flows, metric).sort("repetition")[metric].drop_nulls()


def _flows(flows: Sequence[dict[str, object]], metric: str) -> pl.Series:
    return pl.Series([flow.get(metric) for flow in flows], dtype=pl.Float64).drop_nulls()


def _unit(metric: str, largest: float) -> tuple[float, str]:
    if metric.endswith("_s"):
        return seconds_unit(largest)
    if metric.endswith("_bps"):
        return rate_unit(largest)
    return bytes_unit(largest) if metric.endswith("bytes") else (1.0, "")


def _dots(figure: go.Figure, sample: pl.Series, scale: float, row: float, colour: theme.Colour) -> None:
    """Draw the values of a row, neighbours at different heights so that all are visible."""
    ordered = numbers(sample.sort(), scale)
    heights = [row + 0.09 * (index * 3 % 5 - 2) for index in range(len(ordered))]
    marker = {"size": 7, "color": f"{colour.light}55", "line": {"width": 1, "color": colour.light}}
    figure.add_trace(scatter(ordered, heights, mode="markers", marker=marker, hovertemplate="%{x}<extra></extra>"))


def _mean(figure: go.Figure, interval: Interval, scale: float, row: float, colour: theme.Colour) -> None:
    spread = {
        "type": "data",
        "symmetric": False,
        "thickness": 3,
        "width": 9,
        "color": colour.light,
        "array": [(interval.high - interval.mean) * scale],
        "arrayminus": [(interval.mean - interval.low) * scale],
    }
    marker = {"symbol": "diamond", "size": 13, "color": colour.light, "line": {"width": 2, "color": theme.PAGE.light}}
    mean = interval.mean * scale
    hover = f"mean {mean:.5g}, {interval.low * scale:.5g} to {interval.high * scale:.5g}<extra>n = {interval.n}</extra>"
    figure.add_trace(go.Scatter(x=[mean], y=[row], mode="markers", marker=marker, error_x=spread, hovertemplate=hover))


def _words(sample: pl.Series, interval: Interval | None, scale: float, unit: str) -> str:
    mean = average(sample) * scale
    of = f"mean {mean:.4g} {unit}".strip() + f" of {sample.len():,}"
    if interval is None:
        return of
    return f"{of}, 95 % interval {interval.low * scale:.4g} to {interval.high * scale:.4g}"
