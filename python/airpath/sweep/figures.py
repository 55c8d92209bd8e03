"""The figures of a sweep: a figure's mean over the axes, and which axis matters most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt
from statistics import fmean, pvariance
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import TEMPLATE, Caption, blank, captioned, ramp
from airpath.plot.values import largest
from airpath.quantities import base_of
from airpath.sweep.axis_names import joined_name, words_of
from airpath.sweep.number_columns import as_quantities

MOST_PANELS = 12
MOST_LINES = 6
"""Panels and lines of a figure; the others are left out, with a note."""

_MOST_LEVELS = 12
_SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up")
"""Markers of the values of an axis, which distinguish points without colour."""
_PANEL = 260
_POINT = "; a click on a point shows the command that runs it again"


@dataclass(frozen=True, slots=True)
class Scale:
    """The values of an axis on a figure: numbers if all have the same unit, otherwise texts."""

    path: str
    unit: str
    numbers: Mapping[Any, float]

    @property
    def title(self) -> str:
        """The axis in words, with its unit."""
        return f"{words_of(self.path)} ({self.unit})" if self.unit else words_of(self.path)

    def at(self, value: Any) -> float | str:
        """Return the place of a value."""
        return self.numbers[value] if self.numbers else _text(value)

    @property
    def is_log(self) -> bool:
        """Whether the values span more than a factor of 20."""
        places = self.numbers.values()
        return bool(places) and min(places) > 0 and max(places) > 20 * min(places)


def _text(value: Any) -> str:
    """Return a value of an axis; a case that does not set it has the value of the scenario."""
    return "of the scenario" if value is None else str(value)


_UNITS = {"_s": "s", "_bps": "bit/s", "_kbps": "kbit/s", "_bytes": "B", "_ms": "ms", "_ns": "ns"}


def title_of(column: str) -> str:
    """Return a column's name as words with its unit: `duration_s` is `duration (s)`."""
    for suffix, unit in _UNITS.items():
        if (name := column.removesuffix(suffix)) and name != column:
            return f"{name.replace('_', ' ')} ({unit})"
    return column.replace("_", " ")


def scale(path: str, values: Sequence[Any]) -> Scale:
    """Return the scale of an axis's values, in the smallest of their units."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return Scale(path, "", {value: float(value) for value in values})
    quantities = as_quantities(values)
    if not quantities:
        return Scale(path, "", {})
    factors = {unit: base_of(unit) for unit in {each.unit for each in quantities.values()}}
    unit = min(factors, key=factors.__getitem__)
    if len(factors) == 1:
        return Scale(path, unit, {value: each.number for value, each in quantities.items()})
    return Scale(path, unit, {value: float(f"{each.base / factors[unit]:.12g}") for value, each in quantities.items()})


def effects(means: pl.DataFrame, axes: Sequence[str]) -> dict[str, float]:
    """Return the share of the variance between cases that each axis explains alone, falling.

    That is the variance of the means over its levels (the correlation ratio η²). The rest is due to
    interactions of axes, and to chance.
    """
    total = pvariance(means["mean"].to_list()) if means.height > 1 else 0.0
    shares = {}
    for axis in axes:
        levels = _levels(means, axis)
        grouped = means.group_by(levels.alias("level")).agg(pl.col("mean").mean(), pl.len())
        grand = fmean(means["mean"].to_list())
        between = sum(n * (mean - grand) ** 2 for _, mean, n in grouped.iter_rows()) / means.height
        shares[axis] = between / total if total else 0.0
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _levels(means: pl.DataFrame, axis: str) -> pl.Expr:
    """Return the levels of an axis; many different numbers are divided into ten ranges."""
    places = scale(axis, means[axis].unique().to_list())
    if means[axis].n_unique() <= _MOST_LEVELS or not places.numbers:
        return pl.col(axis)
    numbers = pl.col(axis).map_elements(places.at, return_dtype=pl.Float64)
    return numbers.rank().mul(10).truediv(means.height + 1).floor()


def join_confounded(means: pl.DataFrame, axes: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Join axes with inseparable effects: the value of one determines that of the other.

    Such are the keys of `[[case]]` that always change together. The joined axis has the values of
    the key with the most of them, and the names of all.
    """
    levels = means.select(_levels(means, axis).alias(axis) for axis in axes)
    determined: dict[str, list[str]] = {}
    for axis in sorted(axes, key=lambda axis: -levels[axis].n_unique()):
        first = next((each for each in determined if _determines(levels, each, axis)), None)
        determined.setdefault(first or axis, []).append(axis)
    names = {first: joined_name(keys) for first, keys in determined.items()}
    return means.rename(names), [names[axis] for axis in axes if axis in names]


def _determines(levels: pl.DataFrame, one: str, other: str) -> bool:
    """Whether all cases with a level of one axis have the same level of the other."""
    return levels.select(one, other).n_unique() == levels[one].n_unique()


def partly_confounded(means: pl.DataFrame, axes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of axes that change together in part, such as keys of a list of cases.

    Cramér's V of their values is at least a quarter: it is 0 in a grid, and 1 where one determines
    the other. Axes of a sample with many numbers are left out.
    """
    few = [axis for axis in axes if 1 < means[axis].n_unique() <= _MOST_LEVELS]
    return [pair for pair in combinations(few, 2) if _cramers_v(means, *pair) >= _CONFOUNDED]


_MOST_PAIRS = 3
"""Most pairs of axes that a caption names."""
_CONFOUNDED = 0.25
"""Least V of two axes that the caption names.

In a sample of 100 cases, two axes of three values have about 0.14 by chance.
"""


def _cramers_v(means: pl.DataFrame, one: str, other: str) -> float:
    """Return Cramér's V of two axes over the cases.

    Cramér, Mathematical Methods of Statistics, 1946, §21.9.
    """
    number = means.height
    rows, columns = (dict(means[axis].value_counts().iter_rows()) for axis in (one, other))
    cells = means.group_by(one, other).len().iter_rows()
    squares = sum(count**2 / (rows[a] * columns[b]) for a, b, count in cells)
    return sqrt(max(squares - 1, 0.0) / (min(len(rows), len(columns)) - 1)) if number else 0.0


def draw_effects(means: pl.DataFrame, axes: Sequence[str], figure: str) -> go.Figure:
    """Draw which axis matters most.

    Raises:
        NothingToDrawError: All cases have the same mean, or there is one axis only.
    """
    shares = effects(means, axes)
    if len(axes) < 2 or not any(shares.values()):
        raise NothingToDrawError("one axis, or no difference between the cases")
    drawn = blank(70 + 26 * len(shares), x_title="share of the variance between the cases (%)")
    names = list(reversed(shares))
    drawn.add_trace(
        go.Bar(
            x=[100 * shares[name] for name in names],
            y=[words_of(name) for name in names],
            orientation="h",
            marker={"color": theme.DOWN.light},
            hovertemplate="%{y}: %{x:.1f} %<extra></extra>",
        )
    )
    drawn.update_yaxes(automargin=True, ticks="", showgrid=False)
    drawn.update_xaxes(range=[0, 100])
    read = "What each axis explains alone. The rest to 100 % is due to combinations of axes, and to chance."
    if pairs := partly_confounded(means, axes):
        named = "; ".join(f"{words_of(one)} and {words_of(other)}" for one, other in pairs[:_MOST_PAIRS])
        more = f" and {len(pairs) - _MOST_PAIRS} more pairs" if pairs[_MOST_PAIRS:] else ""
        read += f" These change together in part, so the share of each contains some of the other's: {named}{more}."
    alt = ", ".join(f"{words_of(name)} {share:.0%}" for name, share in shares.items())
    return captioned(
        drawn, Caption(f"Which axis matters most: {title_of(figure)}", read, f"{title_of(figure)}: {alt}.")
    )


def draw_map(means: pl.DataFrame, axes: Sequence[str], figure: str, commands: Mapping[int, str]) -> go.Figure:
    """Draw the mean over the two axes that matter most, as a heat map.

    Raises:
        NothingToDrawError: Fewer than two axes have few levels.
    """
    ranked = [axis for axis in effects(means, axes) if 1 < means[axis].n_unique() <= 3 * _MOST_LEVELS]
    # The keys of a table of cases change together, so that two of them are no grid.
    chosen = next((pair for pair in combinations(ranked, 2) if _is_grid(means, pair)), None)
    if chosen is None:
        raise NothingToDrawError("a heat map needs two axes with a grid of values")
    title = title_of(figure)
    across, down = sorted(chosen, key=lambda axis: not scale(axis, means[axis].unique().to_list()).numbers)
    columns, rows = (_in_order(means, axis) for axis in (across, down))
    across_words, down_words = words_of(across), words_of(down)
    cells = {
        (column, row): (mean, case)
        for column, row, mean, case in means.group_by(across, down)
        .agg(pl.col("mean").mean(), pl.col("case").first())
        .iter_rows()
    }
    drawn = blank(150 + 34 * len(rows), x_title=across_words, top=60)
    found = [[cells.get((column, row), (None, None)) for column in columns] for row in rows]
    drawn.add_trace(
        go.Heatmap(
            z=[[mean for mean, _ in line] for line in found],
            x=[_text(column) for column in columns],
            y=[_text(row) for row in rows],
            colorscale=ramp(theme.AIRTIME_RAMP),
            xgap=2,
            ygap=2,
            texttemplate="%{z:.4~s}" if largest(means["mean"].abs()) >= 1e4 else "%{z:.4g}",
            customdata=[[commands.get(case) for _, case in line] for line in found],
            showscale=False,
            hovertemplate=f"{across_words} %{{x}}<br>{down_words} %{{y}}<br>{title} %{{z:.5g}}<extra></extra>",
        )
    )
    drawn.update_xaxes(type="category", showgrid=False)
    # The name of the axis above its values: it is often longer than the map is high.
    drawn.update_yaxes(type="category", showgrid=False, automargin=True)
    drawn.add_annotation(
        x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", text=f"{down_words} ↓", showarrow=False
    )
    others = [axis for axis in axes if axis not in (across, down)]
    notes = [f"Each cell is the mean over {', '.join(map(words_of, others))}."] if others else []
    which = "the two axes that matter most" if [*chosen] == ranked[:2] else "two axes with all combinations"
    read = f"The mean of the cases over {which}" + (_POINT if not others else "") + "."
    what = f"{title} over {across_words} and {down_words}"
    alt = f"{what}, from {means['mean'].min():.4g} to {means['mean'].max():.4g}."
    return captioned(drawn, Caption(what, read, alt, notes))


def draw_lines(
    means: pl.DataFrame,
    axes: Sequence[str],
    figure: str,
    commands: Mapping[int, str],
    *,
    order: Sequence[str] = (),
) -> go.Figure:
    """Draw the mean with its interval over one axis.

    Another axis has a line for each value, the others have panels. Over an axis of categories, such
    as presets, points take the place of lines.

    Args:
        means: The means of the cases, as of `SweepResult.means`.
        axes: The axes that vary.
        figure: The column whose means they are.
        commands: The command of each case, for the browser.
        order: The axis of the figure, then that of its lines; by default those with most numbers,
            and with most effect.

    Raises:
        NothingToDrawError: There is no axis.
    """
    if not axes or not means.height:
        raise NothingToDrawError("the sweep has no axes")
    across = max(
        order[:1] or axes,
        key=lambda axis: (bool(scale(axis, means[axis].unique().to_list()).numbers), means[axis].n_unique()),
    )
    ranked = [*order, *(axis for axis in effects(means, axes) if axis not in order)]
    rest = [axis for axis in ranked if axis != across]
    is_sample = bool(rest) and not _is_grid(means, [across, rest[0]])
    by = rest[0] if rest and not is_sample else None
    panel_axes = [axis for axis in rest if axis != by] if not is_sample else []
    places = scale(across, _in_order(means, across))
    panels = means.select(panel_axes).unique(maintain_order=True).rows() if panel_axes else [()]
    orders = [{value: place for place, value in enumerate(_in_order(means, axis))} for axis in panel_axes]
    panels = sorted(panels, key=lambda panel: [order[value] for order, value in zip(orders, panel, strict=True)])
    lines = _in_order(means, by)[:MOST_LINES] if by else [None]
    notes = []
    if len(panels) > MOST_PANELS:
        notes.append(f"The first {MOST_PANELS} of {len(panels)} panels.")
        panels = panels[:MOST_PANELS]
    if by and means[by].n_unique() > MOST_LINES:
        notes.append(f"The first {MOST_LINES} of {means[by].n_unique()} values of {words_of(by)}.")
    wide = 2 if len(panels) == 4 else min(len(panels), 3)
    high = -(-len(panels) // wide)
    names = [words_of(axis) for axis in panel_axes]
    titles = [
        "<br>".join(f"{name} {_text(value)}" for name, value in zip(names, panel, strict=True)) for panel in panels
    ]
    above = 24 + 15 * len(panel_axes)  # the titles of the panels, below the legend
    drawn = make_subplots(
        high,
        wide,
        shared_yaxes=True,
        shared_xaxes=True,
        subplot_titles=titles if panel_axes else None,
        # Above a place without a panel, an axis has its labels and title.
        vertical_spacing=(above + (44 if len(panels) % wide else 0)) / (_PANEL * high),
    )
    shown: set[int] = set()  # the lines that the legend has
    for number, panel in enumerate(panels):
        chosen = (
            means.filter(pl.all_horizontal(pl.col(a).eq_missing(v) for a, v in zip(panel_axes, panel, strict=True)))
            if panel_axes
            else means
        )
        for index, value in enumerate(lines):
            line = chosen.filter(pl.col(by).eq_missing(value)) if by else chosen
            if line.is_empty():
                continue
            drawn.add_trace(
                _line(
                    line,
                    across,
                    places,
                    commands,
                    index,
                    by,
                    _text(value) if by else title_of(figure),
                    markers_only=is_sample or not places.numbers,
                    show=index not in shown and by is not None,
                ),
                row=number // wide + 1,
                col=number % wide + 1,
            )
            shown.add(index)
    margin = {"l": 78, "r": 22, "t": 76 + above, "b": 50}
    drawn.update_layout(template=TEMPLATE, height=_PANEL * high + margin["t"] + margin["b"], margin=margin)
    title = {"text": words_of(by) if by else None}
    if not places.numbers:
        # The points of a category side by side; a line between categories would have no meaning.
        drawn.update_layout(scattermode="group", scattergap=0.6)
    drawn.update_layout(legend={"y": 1 + above / (_PANEL * high), "tracegroupgap": 0, "title": title})
    drawn.update_annotations(font_size=11)
    drawn.update_xaxes(type="log" if places.is_log else "linear" if places.numbers else "category")
    # The last panel of each column, which may be above the last row.
    for number in range(max(len(panels) - wide, 0), len(panels)):
        row, column = number // wide + 1, number % wide + 1
        drawn.update_xaxes(title_text=places.title, showticklabels=True, row=row, col=column)
    drawn.update_yaxes(matches="y")
    drawn.update_layout(yaxis_matches=None)
    for row in range(1, high + 1):
        drawn.update_yaxes(title_text=title_of(figure), row=row, col=1)
    read = f"Means with the 95 % interval{_POINT if commands else ''}."
    what = f"{title_of(figure)} over {words_of(across)}"
    alt = what + (f" by {words_of(by)}" if by else "") + f", {len(panels)} panels."
    return captioned(drawn, Caption(what, read, alt, notes))


def _line(
    line: pl.DataFrame,
    across: str,
    places: Scale,
    commands: Mapping[int, str],
    index: int,
    by: str | None,
    name: str,
    *,
    markers_only: bool,
    show: bool,
) -> go.Scatter:
    line = (
        line.with_columns(_place=pl.Series([places.at(value) for value in line[across]])).sort("_place")
        if places.numbers
        else line
    )
    colour = theme.series(index).light
    means = line["mean"].to_list()
    high = [0 if top is None else top - mean for top, mean in zip(line["high"], means, strict=True)]
    low = [0 if bottom is None else mean - bottom for bottom, mean in zip(line["low"], means, strict=True)]
    return go.Scatter(
        x=[places.at(value) for value in line[across]],
        y=means,
        error_y={"type": "data", "symmetric": False, "array": high, "arrayminus": low, "thickness": 1.5, "width": 3},
        mode="markers" if markers_only else "lines+markers",
        line={"color": colour, "dash": theme.dash(index)},
        marker={"color": colour, "size": 7, "symbol": _SYMBOLS[index % len(_SYMBOLS)] if markers_only else "circle"},
        name=name,
        legendgroup=name,
        offsetgroup=str(index),
        showlegend=show,
        customdata=[commands.get(case) for case in line["case"]],
        hovertemplate=f"{places.title} %{{x}}: %{{y:.5g}}<extra>{f'{words_of(by)} ' if by else ''}{name}</extra>",
    )


def _is_grid(means: pl.DataFrame, axes: Sequence[str]) -> bool:
    """Whether the cases have every combination of the values of some axes."""
    return means.select(axes).unique().height == prod(means[axis].n_unique() for axis in axes)


def _in_order(means: pl.DataFrame, axis: str) -> list[Any]:
    """Return the values of an axis, numbers by size, others in the order of the plan."""
    values = means[axis].unique(maintain_order=True).to_list()
    numbers = scale(axis, values).numbers
    return sorted(values, key=numbers.__getitem__) if numbers else values
