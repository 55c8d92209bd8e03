"""The figure of an experiment: published values beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned

_READ = (
    "One row per case: the filled dot is our value with the 95 % interval of its mean, the open circle the published "
    "value, the broad bar a published range, and a thin bar a published deviation. Rows with neither are predictions."
)
_ROW = 24
_ABBREVIATIONS = {"bler": "BLER"}


def draw(data: Mapping[str, Any], experiment: str, metric: str | None = None) -> go.Figure:
    """Draw the rows of an experiment: ours with the interval, and the published value.

    Args:
        data: The study's result in its JSON form, as `airpath study run ID --format json` prints
            it.
        experiment: Name of the experiment.
        metric: The metric to draw; by default the first.

    Raises:
        NothingToDrawError: The result has no such rows.
    """
    rows = [row for row in data["rows"] if row["experiment"] == experiment]
    metric = rows[0]["metric"] if metric is None and rows else metric
    rows = [row for row in rows if row["metric"] == metric]
    if not rows:
        raise NothingToDrawError(f"the result has no rows of '{metric or 'any figure'}' in '{experiment}'")
    unit = rows[0]["unit"]
    words = rows[0]["metric"].replace("-", " ")
    figure = blank(96 + _ROW * len(rows), x_title=with_unit(words, unit))
    places = [-index for index in range(len(rows))]
    known = [(place, row) for place, row in zip(places, rows, strict=True) if row["published"] is not None]
    ranges = [(place, row) for place, row in known if "published_range" in row]
    published = [(place, row) for place, row in known if "published_range" not in row]
    for place, row in known:
        low, high = _bounds(row)
        nearest = min(max(row["ours"], low), high)
        style = {"color": theme.LINE.light, "width": 1}
        figure.add_shape(type="line", x0=nearest, x1=row["ours"], y0=place, y1=place, line=style)
    if ranges:
        figure.add_trace(_published_ranges(ranges))
    _ours(figure, rows, places)
    if published:
        marker = {"symbol": "circle-open", "size": 13, "color": theme.INK.light, "line": {"width": 2}}
        figure.add_trace(
            go.Scatter(
                x=[row["published"] for _, row in published],
                y=[place for place, _ in published],
                mode="markers",
                name="published",
                marker=marker,
                error_x=_published_deviations([row for _, row in published]),
                hovertemplate="published %{x}<extra></extra>",
            )
        )
    names = [case_words(row) for row in rows]
    figure.update_yaxes(
        tickmode="array",
        tickvals=places,
        ticktext=names,
        range=[0.5 - len(rows), 0.5],
        automargin=True,
        ticks="",
        zeroline=False,
    )
    # From zero, so that a distance is seen in proportion to the values.
    figure.update_xaxes(rangemode="tozero")
    figure.update_layout(showlegend=True)
    alt = f"{experiment}, {with_unit(words, unit)}: {'; '.join(map(_row_words, rows))}."
    return captioned(figure, Caption(f"{experiment}: {words}", _READ, alt))


def with_unit(title: str, unit: str) -> str:
    """Return a title with its unit in parentheses; a number alone has none."""
    return title if unit in ("", "1") else f"{title} ({unit})"


def case_words(row: Mapping[str, Any]) -> str:
    """Return the case of a row as text.

    The values of its axes, each number with the name of its axis.
    """
    words = []
    for axis, value in row["case"].items():
        text = str(value)
        name = _ABBREVIATIONS.get(axis, axis.replace("_", " "))
        words.append(text if text[:1].isalpha() else f"{name} {text}")
    return ", ".join(words)


def _ours(figure: go.Figure, rows: Sequence[Mapping[str, Any]], places: Sequence[int]) -> None:
    spread = {
        "type": "data",
        "symmetric": False,
        "thickness": 2.5,
        "width": 5,
        "color": theme.SERIES[0].light,
        "array": [row["high"] - row["ours"] for row in rows],
        "arrayminus": [row["ours"] - row["low"] for row in rows],
    }
    figure.add_trace(
        go.Scatter(
            x=[row["ours"] for row in rows],
            y=places,
            mode="markers",
            name="ours, with 95 % interval",
            error_x=spread,
            marker={"size": 8, "color": theme.SERIES[0].light},
            hovertemplate="ours %{x:.5g}<extra></extra>",
        )
    )


def _bounds(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the published range; of a single value twice this value."""
    low, high = row.get("published_range", (row["published"], row["published"]))
    return low, high


def _published_ranges(ranges: Sequence[tuple[int, Mapping[str, Any]]]) -> go.Scatter:
    return go.Scatter(
        x=[x for _, row in ranges for x in (*_bounds(row), None)],
        y=[y for place, _ in ranges for y in (place, place, None)],
        mode="lines",
        name="published range",
        line={"width": 13, "color": theme.INK.light},
        opacity=0.3,
        hovertemplate="published range, %{x}<extra></extra>",
    )


def _published_deviations(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    deviations = [row.get("published_deviation", 0) for row in rows]
    style = {"type": "data", "thickness": 1.5, "width": 5, "color": theme.INK.light}
    return style | {"array": deviations, "visible": any(deviations)}


def _row_words(row: Mapping[str, Any]) -> str:
    if "published_range" in row:
        published = "published {:g} to {:g}".format(*row["published_range"])
    else:
        published = "not published" if row["published"] is None else f"published {row['published']:g}"
    return f"{case_words(row)}, ours {row['ours']:.4g}, {published}"
