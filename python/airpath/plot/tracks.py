"""The state of each mobile over time, as tracks: its radio connection, and its proxy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import thin
from airpath.plot.values import largest, smallest
from airpath.quantities import seconds
from airpath.result import Result

_TIME = "on the time axis of the run"


@dataclass(frozen=True)
class _Log:
    """The aspects that one figure draws."""

    title: str
    read: str
    """How to read it."""
    subject: str
    missing: str
    """Why there is nothing to draw."""
    names: dict[str, str]
    """The aspects in the order of their tracks, with titles that fit into the margin."""
    unit: float = 1
    """Numbers are drawn in this unit."""


_RADIO = _Log(
    "Radio log",
    f"The state of the radio connection, {_TIME}. A band is a state, with its name where it fits; "
    "a line is a number. Grey: nothing is carried.",
    "radio connection",
    "no bearer reported a state of a radio connection",
    {
        "mode": "mode",
        "cell": "cell",
        "carrier-to-interference": "C/I (dB)",
        "scheme": "scheme",
        "slots": "slots",
        "tbf": "TBF",
        "rrc": "RRC",
        "link": "link",
    },
)
_PROXY = _Log(
    "Proxy",
    f"What the proxy keeps for each mobile, {_TIME}, in kB: what may be unacknowledged towards it (budget), what is "
    "(used), and what waits (queue).",
    "proxy",
    "no proxy reported the state of a mobile",
    {"budget": "budget", "outstanding": "used", "queue": "queue"},
    unit=1e3,
)
_QUIET = {"idle", "none", "disconnected", "no-coverage"}
"""States in which nothing is carried; drawn grey."""
_USUAL = {"transfer", "connected", "cell-dch"}
"""States in which data flows; drawn in the same colour in all tracks."""
_MOST_USERS = 4
_MOST_BANDS = 400
_BINS = 500
_LETTERS = 130
"""Approximate number of letters across the width of a figure."""
_BAND = 17
_LINE = {"carrier-to-interference": 52, "slots": 26, "budget": 40, "outstanding": 40, "queue": 40}
_GAP = 7
_HEAD = 20


@dataclass(frozen=True)
class _Track:
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
        return self.name.removesuffix(f" {self.direction}") + {"down": " ↓", "up": " ↑"}.get(self.direction or "", "")


@dataclass(frozen=True)
class _Group:
    """The tracks of one mobile of one run."""

    title: str
    tracks: list[_Track]
    span: float


def tracks(results: Result | Sequence[Result], *, repetition: int | None = None) -> go.Figure:
    """Draw the radio log by mobile.

    Mode, cell, C/I, coding scheme, slots and link states on the time axis of the run.

    Args:
        results: One result, or several, whose tracks are drawn below each other.
        repetition: The repetition; by default the median one.

    Raises:
        NotLoggedError: A run did not log its radio.
        NothingToDrawError: No bearer reported a state.
    """
    return tracks_of(drawn(results, repetition))


def proxy_tracks(results: Result | Sequence[Result], *, repetition: int | None = None) -> go.Figure:
    """Draw what a proxy keeps for each mobile: budget, outstanding bytes and queue.

    Args:
        results: One result, or several, whose tracks are drawn below each other.
        repetition: The repetition; by default the median one.

    Raises:
        NotLoggedError: A run did not log the states of its mobiles.
        NothingToDrawError: There is no proxy with a mobile.
    """
    return _figure(drawn(results, repetition), _PROXY)


def tracks_of(runs: Sequence[Drawn]) -> go.Figure:
    """Draw the radio log of selected runs.

    Raises:
        NotLoggedError: A run did not log its radio.
        NothingToDrawError: No bearer reported a state.
    """
    return _figure(runs, _RADIO)


def _figure(runs: Sequence[Drawn], log: _Log) -> go.Figure:
    groups, notes = _groups(runs, log)
    span = max(run.span for run in runs)
    total = sum(_HEAD + sum(track.height + _GAP for track in group.tracks) for group in groups)
    figure = blank(total + 66, span=span, top=22)
    top, number = 0, 0
    for group in groups:
        figure.add_annotation(
            text=f"<b>{group.title}</b>",
            x=0,
            xref="paper",
            xanchor="left",
            y=1 - top / total,
            yref="paper",
            yanchor="top",
            showarrow=False,
            font={"size": 12},
        )
        top += _HEAD
        for track in group.tracks:
            domain = (max(1 - (top + track.height) / total, 0.0), 1 - top / total)
            number += 1
            draw = _draw_steps if track.steps else _draw_bands
            draw(figure, track, number, domain, group.span)
            top += track.height + _GAP
    last = "" if number == 1 else str(number)
    figure.update_layout({"showlegend": False, "barmode": "overlay", "bargap": 0})
    figure.update_layout({"xaxis": {"anchor": f"y{last}", "range": [0, span]}})
    words = "; ".join(f"{group.title}: {_words(group)}" for group in groups)
    return captioned(figure, Caption(log.title, log.read, f"State by {log.subject}. {words}.", notes))


def _groups(runs: Sequence[Drawn], log: _Log) -> tuple[list[_Group], list[str]]:
    groups: list[_Group] = []
    notes: list[str] = []
    for run in runs:
        rows = run.events("states").filter(pl.col("aspect").is_in(list(log.names)))
        rows = rows.select("t", "component", "user", "direction", "aspect", "name", "number").collect()
        users = rows.group_by("component", "user").len().sort("len", descending=True)
        most = max(_MOST_USERS // len(runs), 1)
        if users.height > most:
            notes.append(f"Of {users.height} mobiles, the {most} whose states changed most are drawn.")
        for component, user, _ in users.head(most).sort("component", "user").rows():
            own = rows.filter(component=component, user=user).sort("t", maintain_order=True)
            name = run.user(user) if len(runs) == 1 else f"{run.label} · {run.user(user)}"
            groups.append(_Group(name, _tracks_of(own, log), run.span))
    if not groups:
        raise NothingToDrawError(log.missing)
    return groups, notes


def _tracks_of(rows: pl.DataFrame, log: _Log) -> list[_Track]:
    found = []
    for aspect, title in log.names.items():
        of_aspect = rows.filter(aspect=aspect)
        directions = of_aspect["direction"].unique().sort().to_list()
        for direction in directions:
            own = of_aspect.filter(pl.col("direction").eq_missing(pl.lit(direction, pl.String)))
            name = title if direction is None else f"{title} {direction}"
            steps = aspect in _LINE
            if steps:
                kept = own.select("t", number=pl.col("number") / log.unit).drop_nulls()
            else:
                value = pl.coalesce("name", pl.col("number").cast(pl.Int64).cast(pl.String))
                kept = own.select("t", name=value).filter(pl.col("name").ne_missing(pl.col("name").shift()))
            if kept.height > 0:
                found.append(_Track(name, kept, direction, _LINE.get(aspect, _BAND), steps))
    return found


def _draw_bands(figure: go.Figure, track: _Track, number: int, domain: tuple[float, float], span: float) -> None:
    """Draw a track of named states: a bar for each, coloured by its name."""
    frame = _bands(track.rows, span)
    names = [name for name in frame["name"].unique(maintain_order=True) if name not in (_QUIET | _USUAL)]
    colours = {name: theme.state(0) for name in _USUAL} | {name: theme.state(at) for at, name in enumerate(names, 1)}
    letter = span / _LETTERS
    figure.add_trace(
        go.Bar(
            orientation="h",
            base=frame["t"].round(4).to_list(),
            x=frame["length"].round(4).to_list(),
            y=[0] * frame.height,
            width=1,
            xaxis="x",
            yaxis=_axis("y", number),
            marker={"color": [colours.get(name, theme.GRID).light for name in frame["name"]], "line": {"width": 0}},
            # A name that does not fit is shown on hover only.
            text=[
                name if length > letter * (len(name) + 1) else ""
                for name, length in frame.select("name", "length").rows()
            ],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"size": 10, "color": theme.INK.light},
            textangle=0,
            constraintext="none",
            customdata=[[name, seconds(length)] for name, length in frame.select("name", "length").rows()],
            hovertemplate=f"%{{customdata[0]}} from %{{base:.3f}} s for %{{customdata[1]}}<extra>{track.name}</extra>",
            name=track.name,
        )
    )
    axis = {"range": [-0.5, 0.5], "tickmode": "array", "tickvals": [0], "ticktext": [track.label], "showgrid": False}
    _place(figure, number, domain, axis)


def _draw_steps(figure: go.Figure, track: _Track, number: int, domain: tuple[float, float], span: float) -> None:
    """Draw a track of numbers: a stepped line."""
    rows = thin(track.rows, "number", _BINS)
    low, high = float(smallest(track.rows["number"])), float(largest(track.rows["number"]))
    colour = {"up": theme.UP, "down": theme.DOWN}.get(track.direction or "", theme.INK)
    figure.add_trace(
        go.Scatter(
            x=[*rows["t"].round(4).to_list(), round(span, 4)],
            y=[*rows["number"].round(2).to_list(), round(float(rows["number"][-1]), 2)],
            mode="lines",
            line={"shape": "hv", "width": 1, "color": colour.light},
            xaxis="x",
            yaxis=_axis("y", number),
            name=track.name,
            hovertemplate=f"%{{y}} at %{{x:.3f}} s<extra>{track.name}</extra>",
        )
    )
    ends = sorted({low, high})
    margin = max(high - low, 1.0) * 0.12
    axis = {"range": [low - margin, high + margin], "tickmode": "array", "tickvals": ends}
    labels = {"ticktext": [f"{end:.3g}" for end in ends], "tickfont": {"size": 9}}
    _place(figure, number, domain, axis | labels)
    figure.add_annotation(
        text=track.label,
        x=0,
        xref="paper",
        xanchor="right",
        xshift=-24,
        y=sum(domain) / 2,
        yref="paper",
        showarrow=False,
        font={"size": 11, "color": theme.MUTED.light},
    )


def _bands(rows: pl.DataFrame, span: float) -> pl.DataFrame:
    """Return the start and length of each state.

    Of many states, those too short to be visible join the one before.
    """
    if rows.height > _MOST_BANDS:
        length = pl.col("t").shift(-1).fill_null(span) - pl.col("t")
        rows = rows.filter((length >= span / _LETTERS / 8) | (pl.int_range(pl.len()) == 0))
        rows = rows.filter(pl.col("name").ne_missing(pl.col("name").shift()))
    return rows.with_columns(length=pl.col("t").shift(-1).fill_null(span) - pl.col("t"))


def _axis(letter: str, number: int) -> str:
    return letter if number == 1 else f"{letter}{number}"


def _place(figure: go.Figure, number: int, domain: tuple[float, float], axis: dict[str, Any]) -> None:
    """Place a track's axis."""
    shape = {"domain": list(domain), "zeroline": False, "ticks": "", "fixedrange": True}
    figure.update_layout({_axis("y", number).replace("y", "yaxis"): shape | axis})


def _words(group: _Group) -> str:
    """Return the tracks of a mobile as text: for each the states that lasted longest."""
    parts = []
    for track in group.tracks:
        if track.steps:
            low, high = smallest(track.rows["number"]), largest(track.rows["number"])
            parts.append(f"{track.name} from {low:.3g} to {high:.3g}")
            continue
        frame = _bands(track.rows, group.span).group_by("name").agg(pl.col("length").sum()).sort("length", "name")
        longest = [f"{name} {seconds(length)}" for name, length in frame.reverse().head(3).rows()]
        parts.append(f"{track.name} {', '.join(longest)}")
    return "; ".join(parts)
