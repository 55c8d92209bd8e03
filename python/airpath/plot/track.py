"""A track: one aspect of a run over time, drawn as a row of a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.thin import thin
from airpath.plot.values import largest, smallest
from airpath.quantities import seconds

BAND = 17
"""Pixels of a track of named states."""
GAP = 7
"""Pixels between tracks."""
HEAD = 20
"""Pixels of the heading of a group of tracks."""
_QUIET = {"idle", "none", "disconnected", "no-coverage"}
"""States at rest, or without any wait; drawn grey."""
_COLOURS = {
    0: ("transfer", "connected", "cell-dch", "call", "active"),
    1: (
        "access",
        "establishment",
        "promotion",
        "master",
        "short",
        "scheduling-request",
        "harq-repeat",
        "repeats",
        "recovering",
    ),
    2: ("paging", "cell-pch", "secondary", "long", "grant", "stalled"),
    3: ("reselection", "cell-fach", "inactive", "random-access", "set-up"),
    4: ("handover", "drx", "reset"),
    5: ("re-establishment", "stuck", "failed"),
}
"""The states of `crates/core/src/state.rs` by the number of their colour, which is the same in all
figures: 0 where data flows."""
_COLOUR_OF = {state: number for number, states in _COLOURS.items() for state in states}
MOST_BANDS = 400
"""A track of more states omits those too short to be visible."""
_PIXELS = 900
"""Approximate width of a figure, in pixels."""
_EDGE, _MOST_LINES = 1.4, 200
"""Pixels of the line of a state narrower than a pixel; the most such lines in a track."""
_BINS = 500
_LETTERS = 130
"""Approximate number of letters across the width of a figure."""


@dataclass(frozen=True)
class Track:
    """One aspect of one mobile in one direction."""

    name: str
    rows: pl.DataFrame
    """`t` and `name`, or `t` and `number`, in the order of time."""
    direction: str | None
    height: int
    """Pixels."""
    steps: bool
    """Whether it is a line of numbers."""

    @property
    def label(self) -> str:
        """Its name, short enough for the margin."""
        return self.title + {"down": " ↓", "up": " ↑"}.get(self.direction or "", "")

    def words(self, span: float) -> str:
        """Return it as text: the range of numbers, or the states that lasted longest."""
        if self.steps:
            return f"{self.name} from {smallest(self.rows['number']):.3g} to {largest(self.rows['number']):.3g}"
        frame = _bands(self.rows, span).group_by("name").agg(pl.col("length").sum()).sort("length", "name")
        longest = [f"{name} {seconds(length)}" for name, length in frame.reverse().head(3).rows()]
        return f"{self.name} {', '.join(longest)}"

    @property
    def title(self) -> str:
        """Its name without the direction: states of tracks of one title have the same colours."""
        return self.name.removesuffix(f" {self.direction}")

    def unnamed(self, span: float, start: float = 0.0) -> list[tuple[str, str]]:
        """Return title and state of those whose name fits into none of their bands, by time."""
        if self.steps:
            return []
        frame = _bands(self.rows, span)
        named = frame.filter(_fits(span - start))["name"].unique()
        return [(self.title, name) for name in frame["name"].unique(maintain_order=True) if name not in named]


class Stack:
    """Places the parts of a figure on one horizontal axis, from top to bottom.

    Args:
        figure: The figure.
        total: Pixels of all parts together.
        start: Where the horizontal axis begins.
    """

    def __init__(self, figure: go.Figure, total: float, start: float = 0.0) -> None:
        self.figure = figure
        self.start = start
        self.number = 0
        """Vertical axes so far."""
        self._total = total
        self._top = 0.0
        self._colours: dict[str, dict[str, str]] = {}

    def heading(self, text: str) -> None:
        """Add the heading of a group."""
        self.figure.add_annotation(
            text=f"<b>{text}</b>",
            x=0,
            xref="paper",
            xanchor="left",
            y=1 - self._top / self._total,
            yref="paper",
            yanchor="top",
            showarrow=False,
            font={"size": 12},
        )
        self._top += HEAD

    def axis(self, height: float, **axis: Any) -> str:
        """Add a vertical axis with these properties; return its name."""
        domain = [max(1 - (self._top + height) / self._total, 0.0), 1 - self._top / self._total]
        self._top += height + GAP
        self.number += 1
        shape = {"domain": domain, "zeroline": False, "ticks": "", "fixedrange": True}
        self.figure.update_layout({f"yaxis{self._suffix}": shape | axis})
        return f"y{self._suffix}"

    def track(self, track: Track, span: float) -> None:
        """Add a track whose last value is valid until `span`, in seconds."""
        (_draw_steps if track.steps else _draw_bands)(self, track, span)

    def colour(self, title: str, state: str) -> str:
        """Return the light colour of a state in the tracks of a title."""
        if state in _QUIET:
            return theme.GRID.light
        if state in _COLOUR_OF:
            return theme.state(_COLOUR_OF[state]).light
        if state.isdecimal():
            return theme.state(1 + int(state) % (len(theme.STATES) - 1)).light
        colours = self._colours.setdefault(title, {})
        return colours.setdefault(state, theme.state(1 + len(colours) % (len(theme.STATES) - 1)).light)

    def legend(self, states: Sequence[tuple[str, str]]) -> None:
        """Add a legend for states, each with the title of its track, above the parts."""
        found = list(dict.fromkeys(states))
        self.figure.update_layout(
            {"showlegend": bool(found), "legend": {"y": 1, "yanchor": "bottom", "itemwidth": 30, "font": {"size": 11}}}
        )
        for title, state in found:
            marker = {"color": self.colour(title, state), "symbol": "square", "size": 10}
            name = f"{title}: {state}"
            self.figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker))

    def finish(self) -> None:
        """Put the horizontal axis below the last part."""
        self.figure.update_layout({"barmode": "overlay", "bargap": 0, "xaxis": {"anchor": f"y{self._suffix}"}})

    @property
    def _suffix(self) -> str:
        return "" if self.number == 1 else str(self.number)


def _draw_bands(stack: Stack, track: Track, span: float) -> None:
    """Draw a track of named states: a bar for each, coloured by its name."""
    frame = _brief_last(_bands(track.rows, span), span - stack.start)
    colours = [stack.colour(track.title, name) for name in frame["name"]]
    edge = {
        "color": [theme.brief_state(colour) for colour in colours],
        "width": [_EDGE if brief else 0 for brief in frame["brief"]],
    }
    labels = {"tickmode": "array", "tickvals": [0], "ticktext": [track.label]}
    axis = stack.axis(track.height, range=[-0.5, 0.5], showgrid=False, **labels)
    stack.figure.add_trace(
        go.Bar(
            orientation="h",
            base=frame["t"].round(4).to_list(),
            x=frame["length"].round(4).to_list(),
            y=[0] * frame.height,
            width=1,
            xaxis="x",
            yaxis=axis,
            marker={"color": colours, "line": edge},
            # A name that does not fit is shown on hover only.
            text=frame.select(pl.when(_fits(span - stack.start)).then("name").otherwise(pl.lit("")))["name"].to_list(),
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"size": 10, "color": theme.INK.light},
            textangle=0,
            constraintext="none",
            customdata=[[name, seconds(length)] for name, length in frame.select("name", "length").rows()],
            hovertemplate=f"%{{customdata[0]}} from %{{base:.3f}} s for %{{customdata[1]}}<extra>{track.name}</extra>",
            name=track.name,
            showlegend=False,
        )
    )


def _brief_last(frame: pl.DataFrame, span: float) -> pl.DataFrame:
    """Return the bands with a column `brief`: those narrower than a pixel that are drawn as lines.

    They are last, the longest of them on top. Where they are many, none is drawn as a line.
    """
    quiet = pl.col("name").is_in(list(_QUIET))
    brief = ~quiet & (pl.col("length") < span / _PIXELS)
    marked = frame.with_columns(brief=brief)
    if marked["brief"].sum() > _MOST_LINES:
        return frame.with_columns(brief=pl.lit(value=False))
    lines = marked.filter("brief").sort("length", maintain_order=True)
    return pl.concat([marked.filter(~pl.col("brief")), lines])


def _draw_steps(stack: Stack, track: Track, span: float) -> None:
    """Draw a track of numbers: a stepped line."""
    rows = thin(track.rows, "number", _BINS)
    low, high = float(smallest(track.rows["number"])), float(largest(track.rows["number"]))
    colour = {"up": theme.UP, "down": theme.DOWN}.get(track.direction or "", theme.INK)
    ends = sorted({low, high})
    margin = max(high - low, 1.0) * 0.12
    labels = {"ticktext": [f"{end:.3g}" if abs(end) < 1000 else f"{end:,.0f}" for end in ends], "tickfont": {"size": 9}}
    axis = stack.axis(track.height, range=[low - margin, high + margin], tickmode="array", tickvals=ends, **labels)
    stack.figure.add_trace(
        go.Scatter(
            x=[*rows["t"].round(4).to_list(), round(span, 4)],
            y=[*rows["number"].round(2).to_list(), round(float(rows["number"][-1]), 2)],
            mode="lines",
            line={"shape": "hv", "width": 1, "color": colour.light},
            xaxis="x",
            yaxis=axis,
            name=track.name,
            hovertemplate=f"%{{y}} at %{{x:.3f}} s<extra>{track.name}</extra>",
            showlegend=False,
        )
    )
    stack.figure.add_annotation(
        text=track.label,
        x=0,
        xref="paper",
        xanchor="right",
        # Left of the numbers of the axis, of 5 pixels a letter.
        xshift=-min(9 + 5 * max(map(len, labels["ticktext"])), 24),
        y=(low + high) / 2,
        yref=axis,
        showarrow=False,
        # Smaller than those of bands: the numbers of the axis are beside it.
        font={"size": 10, "color": theme.MUTED.light},
    )


def _fits(span: float) -> pl.Expr:
    """Return whether the name of a state fits into its band."""
    return pl.col("length") > span / _LETTERS * (pl.col("name").str.len_chars() + 1)


def _bands(rows: pl.DataFrame, span: float) -> pl.DataFrame:
    """Return the start and length of each state.

    Of many states, those too short to be visible join the one before.
    """
    if rows.height > MOST_BANDS:
        length = pl.col("t").shift(-1).fill_null(span) - pl.col("t")
        rows = rows.filter((length >= span / _LETTERS / 8) | (pl.int_range(pl.len()) == 0))
        rows = rows.filter(pl.col("name").ne_missing(pl.col("name").shift()))
    return rows.with_columns(length=pl.col("t").shift(-1).fill_null(span) - pl.col("t"))
