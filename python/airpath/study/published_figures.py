"""The figures of a study's text, drawn with our rows: bars or lines by an axis, in series.

`[[figure]]` of `study.toml` defines them. Where the study published a value of a row, the figure
shows it as an open circle.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, get_args

import plotly.graph_objects as go

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.study.figures import with_unit
from airpath.suggest import did_you_mean
from airpath.toml_table import Table

METRIC = "metric"
"""The name that stands for the metric of a row, in place of an axis."""
EXPERIMENT = "experiment"
"""The same for its experiment."""

Kind = Literal["bars", "lines"]
_READ = (
    "Ours with the 95 % interval of the mean; open circles are published values, with the published range or spread "
    "as a thick bar."
)
_HEIGHT = 300
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?: (\S+))?")
"""A value of an axis that is a number, and its unit."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of an experiment, as far as a figure depends on it."""

    metric: str
    unit: str
    case: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure of the text: which rows it shows, and how."""

    label: str
    """Its number in the text, such as `Figure 5`."""
    text: str
    kind: Kind
    experiments: tuple[str, ...]
    metrics: tuple[str, ...]
    along: str
    """The axis whose values are the places on the horizontal axis.

    `metric` and `experiment` stand for axes, too.
    """
    series: str | None
    """The axis whose values are the series, in the same way; `None`: a single series."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The values of other axes."""
    x_title: str | None = None
    """What the horizontal axis shows; `None`: the name of its axis."""
    y_title: str | None = None
    """What the vertical axis shows, without its unit; `None`: the name of the metric."""

    def rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return those rows of a result in its JSON form that the figure shows."""
        return [
            row
            for row in rows
            if row["experiment"] in self.experiments
            and row["metric"] in self.metrics
            and all(row["case"].get(axis) == value for axis, value in self.where.items())
        ]


def read_figure(
    table: Table, axes: Mapping[str, Mapping[str, Sequence[str]]], shown: Mapping[str, Sequence[Shown]]
) -> PublishedFigure:
    """Read a `[[figure]]`.

    Args:
        table: The table.
        axes: Of each experiment its axes with their values, those of aggregates included.
        shown: Of each experiment its rows.

    Raises:
        StudyError: It is invalid.
    """
    label = table.take("label", str)
    table.label = f"figure '{label}'"
    kind = table.take("kind", str, "bars")
    if kind not in get_args(Kind):
        kinds = get_args(Kind)
        raise table.error(f"'kind' must be one of {', '.join(kinds)}, not '{kind}'{did_you_mean(kind, kinds)}", "kind")
    figure = PublishedFigure(
        label=label,
        text=table.take("text", str),
        kind=kind,
        experiments=tuple(table.take("experiments", list)),
        metrics=tuple(table.take("metrics", list)),
        along=table.take("along", str),
        series=table.take("series", str, None),
        where=table.take("where", dict, {}),
        x_title=table.take("x_title", str, None),
        y_title=table.take("y_title", str, None),
    )
    table.finish()
    for experiment in figure.experiments:
        if experiment not in axes:
            raise table.error(f"no experiment '{experiment}'{did_you_mean(experiment, axes)}", "experiments")
        _check_axes(table, figure, experiment, axes[experiment])
        _check_metrics(table, figure, experiment, shown[experiment])
    units = dict.fromkeys(
        row.unit for experiment in figure.experiments for row in shown[experiment] if row.metric in figure.metrics
    )
    if len(units) > 1:
        raise table.error(f"the metrics need the same unit, not {', '.join(units)}", "metrics")
    if figure.along == METRIC and figure.x_title is None:
        raise table.error("'along' is 'metric': give 'x_title'", "along")
    if len(figure.metrics) > 1 and figure.y_title is None:
        raise table.error("several metrics need 'y_title'", "metrics")
    return figure


def _check_axes(table: Table, figure: PublishedFigure, experiment: str, axes: Mapping[str, Sequence[str]]) -> None:
    """Check that an experiment has the axes of a figure, and one row at each place of a series.

    Raises:
        StudyError: It has not.
    """
    known = {**axes, METRIC: figure.metrics, EXPERIMENT: figure.experiments}
    named = {"along": figure.along, **({} if figure.series is None else {"series": figure.series})}
    for key, axis in named.items():
        if axis not in known:
            raise table.error(f"'{experiment}' has no axis '{axis}'{did_you_mean(axis, known)}", key)
    for axis, value in figure.where.items():
        if axis in (METRIC, EXPERIMENT):
            raise table.error("'where' has values of axes", "where", next_step=f"give '{axis}s' in place of '{axis}'")
        if value not in known.get(axis, ()):
            raise table.error(f"'{experiment}' has no '{value}' of the axis '{axis}'", "where")
    # Each place of each series shows one row.
    free = set(axes) - {figure.along, figure.series} - figure.where.keys()
    if free:
        raise table.error(f"'{experiment}' has the axis '{min(free)}', too: give its value", "where")
    if len(figure.metrics) > 1 and METRIC not in (figure.along, figure.series):
        raise table.error("several metrics need `along` or `series` to be 'metric'", "metrics")


def _check_metrics(table: Table, figure: PublishedFigure, experiment: str, shown: Sequence[Shown]) -> None:
    """Check that an experiment has rows of each metric of a figure, with its values of axes.

    Raises:
        StudyError: It has not.
    """
    known = {row.metric for row in shown}
    for metric in figure.metrics:
        if metric not in known:
            raise table.error(f"'{experiment}' has no metric '{metric}'{did_you_mean(metric, known)}", "metrics")
        cases = [row.case for row in shown if row.metric == metric]
        if not any(figure.where.items() <= case.items() for case in cases):
            raise table.error(f"'{experiment}' has no row of '{metric}' with these values", "where")


def draw(figure: PublishedFigure, rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Draw a figure.

    Args:
        figure: Its definition.
        rows: What its `rows` returned.

    Raises:
        NothingToDrawError: There is no row.
    """
    if not rows:
        raise NothingToDrawError(f"the result has no rows of {figure.label}")
    unit = rows[0]["unit"]
    several = len(figure.experiments) > 1 and EXPERIMENT not in (figure.along, figure.series)
    places = list(dict.fromkeys(_place(figure, row, several) for row in rows))
    series = list(dict.fromkeys(_value(figure, row, figure.series) for row in rows))
    numbers, unit_of_places = _numbers(places) if figure.kind == "lines" else ({}, "")
    x_title = figure.x_title or figure.along.replace("_", " ")
    y_title = figure.y_title or figure.metrics[0].replace("-", " ")
    drawn = blank(_HEIGHT, x_title=with_unit(x_title, unit_of_places), y_title=with_unit(y_title, unit))
    for index, each in enumerate(series):
        members = [row for row in rows if _value(figure, row, figure.series) == each]
        at = [_place(figure, row, several) for row in members]
        drawn.add_trace(_ours(figure, each, members, [numbers.get(place, place) for place in at], index))
    _add_published(drawn, figure, rows, several, series, numbers)
    if numbers:
        drawn.update_xaxes(type="linear", rangemode="tozero", automargin=True)
    else:
        drawn.update_xaxes(type="category", categoryorder="array", categoryarray=places, automargin=True)
    drawn.update_yaxes(rangemode="tozero")
    drawn.update_layout(barmode="group", bargap=0.2, showlegend=True)
    if figure.kind == "bars":
        # Published values stand over the bars of their series.
        drawn.update_layout(scattermode="group", scattergap=0.2)
    names = [[_place(figure, row, several), _value(figure, row, figure.series)] for row in rows]
    values = "; ".join(
        f"{', '.join(filter(None, words))}: {row['ours']:.4g}" for words, row in zip(names, rows, strict=True)
    )
    return captioned(drawn, Caption(f"{figure.label}: {figure.text}", _READ, f"{figure.text} in {unit}: {values}."))


def _numbers(places: Sequence[str]) -> tuple[dict[str, float], str]:
    """Return the number of each place and their unit; none if one of them is no number in it."""
    found = {place: _NUMBER.fullmatch(place) for place in places}
    units = {each and (each[2] or "") for each in found.values()}
    numbers = {place: float(each[1]) for place, each in found.items() if each}
    return (numbers, units.pop() or "") if len(numbers) == len(places) and len(units) == 1 else ({}, "")


def _value(figure: PublishedFigure, row: Mapping[str, Any], axis: str | None) -> str:
    if axis is None:
        return ""
    if axis == METRIC:
        words = row[METRIC].split("-")
        return " ".join(words[len(_common_words(figure.metrics)) :] or words)
    return row[EXPERIMENT] if axis == EXPERIMENT else row["case"].get(axis, "")


def _common_words(metrics: Sequence[str]) -> list[str]:
    """Return the words with which the names of all metrics begin."""
    words = zip(*(metric.split("-") for metric in metrics), strict=False)
    common = [each[0] for each in takewhile(lambda each: len(set(each)) == 1, words)]
    # A number alone would not be understood.
    alone = any("-".join(metric.split("-")[len(common) :]).isdigit() for metric in metrics)
    return common[:-1] if alone else common


def _place(figure: PublishedFigure, row: Mapping[str, Any], several: bool) -> str:
    """Return the label on the horizontal axis."""
    value = _value(figure, row, figure.along)
    return f"{value}<br>{row['experiment']}" if several else value


def _ours(
    figure: PublishedFigure, name: str, rows: Sequence[Mapping[str, Any]], places: Sequence[str | float], index: int
) -> go.Bar | go.Scatter:
    colour = theme.SERIES[index % len(theme.SERIES)].light
    values = [row["ours"] for row in rows]
    interval = {
        "type": "data",
        "symmetric": False,
        "array": [row["high"] - row["ours"] for row in rows],
        "arrayminus": [row["ours"] - row["low"] for row in rows],
        "thickness": 1.5,
        "width": 4,
        "color": theme.INK.light,
    }
    common: dict[str, Any] = {"x": places, "y": values, "name": name or "ours", "error_y": interval}
    if figure.kind == "bars":
        return go.Bar(**common, offsetgroup=str(index), marker={"color": colour, "opacity": 0.75})
    dash = theme.DASHES[index % len(theme.DASHES)]
    return go.Scatter(**common, mode="lines+markers", line={"color": colour, "dash": dash}, marker={"size": 7})


def _add_published(
    drawn: go.Figure,
    figure: PublishedFigure,
    rows: Sequence[Mapping[str, Any]],
    several: bool,
    series: Sequence[str],
    numbers: Mapping[str, float],
) -> None:
    """Add the published values, above those of the same series."""
    shown = False
    for index, each in enumerate(series):
        known = [row for row in rows if row["published"] is not None and _value(figure, row, figure.series) == each]
        if not known:
            continue
        grouped = {"offsetgroup": str(index)} if figure.kind == "bars" else {}
        bounds = [row.get("published_range", (row["published"], row["published"])) for row in known]
        spread = [
            row.get("published_deviation", (high - low) / 2) for row, (low, high) in zip(known, bounds, strict=True)
        ]
        drawn.add_trace(
            go.Scatter(
                x=[numbers.get(place, place) for place in (_place(figure, row, several) for row in known)],
                y=[row["published"] for row in known],
                mode="markers",
                name="published",
                legendgroup="published",
                showlegend=not shown,
                marker={"symbol": "circle-open", "size": 12, "color": theme.INK.light, "line": {"width": 2}},
                error_y={"type": "data", "array": spread, "visible": any(spread), "width": 9, "thickness": 3},
                hovertemplate="published %{y}<extra></extra>",
                **grouped,
            )
        )
        shown = True
