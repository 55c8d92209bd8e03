"""The state of each mobile over time, as tracks: its radio connection, and its proxy."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.track import BAND, GAP, HEAD, MOST_BANDS, Stack, Track

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
    "a line is a number. Grey: nothing is carried. Waits and repetitions that are many and short are drawn as their "
    "share of the time, in per cent.",
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
        "cell-group": "cell group",
        "drx": "DRX",
        "wait": "wait",
        "harq": "HARQ",
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
_MOST_USERS = 4
_SHARED = {"wait", "harq"}
"""Aspects whose states are short; many of them are drawn as a share of time."""
_SHARE = 26
"""Pixels of the track of a share."""
_CELLS = 200
"""Cells of time of a share."""
_LINE = {"carrier-to-interference": 52, "slots": 26, "budget": 40, "outstanding": 40, "queue": 40}


@dataclass(frozen=True)
class _Group:
    """The tracks of one mobile of one run."""

    title: str
    tracks: list[Track]
    span: float


def tracks(results: Results, *, repetition: int | None = None) -> go.Figure:
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


def proxy_tracks(results: Results, *, repetition: int | None = None) -> go.Figure:
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


def radio_tracks(run: Drawn, user: int, start: float, span: float) -> list[Track]:
    """Return the radio log of a mobile from `start` for `span` seconds, with times from `start`.

    Raises:
        NotLoggedError: The run did not log its radio.
    """
    rows = run.events("states").filter((pl.col("user") == user) & (pl.col("t") < start + span))
    return _tracks_of(rows.with_columns(t=pl.col("t") - start).sort("t", maintain_order=True).collect(), _RADIO)


def _figure(runs: Sequence[Drawn], log: _Log) -> go.Figure:
    groups, notes = _groups(runs, log)
    span = max(run.span for run in runs)
    total = sum(HEAD + sum(track.height + GAP for track in group.tracks) for group in groups)
    figure = blank(total + 66, span=span, top=22)
    stack = Stack(figure, total)
    for group in groups:
        stack.heading(group.title)
        for track in group.tracks:
            stack.track(track, group.span)
    stack.finish()
    figure.update_layout({"showlegend": False})
    for group in groups:
        unnamed = [f"{track.label}: {', '.join(states)}" for track in group.tracks if (states := track.unnamed(span))]
        if unnamed:
            notes.append(f"Too short for a name, {group.title}: {'; '.join(unnamed)}.")
    words = "; ".join(
        f"{group.title}: {'; '.join(track.words(group.span) for track in group.tracks)}" for group in groups
    )
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


def _tracks_of(rows: pl.DataFrame, log: _Log) -> list[Track]:
    """Return the tracks of a mobile from time zero on, with the last values before."""
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
            before = kept.filter(pl.col("t") <= 0).tail(1).with_columns(t=pl.lit(0.0))
            kept = pl.concat([before, kept.filter(pl.col("t") > 0)])
            if aspect in _SHARED and kept.height > MOST_BANDS:
                found.append(Track(name, _share(kept), direction, _SHARE, steps=True))
            elif kept.height > 0:
                found.append(Track(name, kept, direction, _LINE.get(aspect, BAND), steps))
    return found


def _share(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the share of each cell of time, in per cent, in states other than `none`."""
    last = float(rows["t"].to_list()[-1])
    waits, time = (pl.col("name") != "none").cast(pl.Float64), pl.col("t")
    states = rows.select(
        "t", waits=waits, before=(waits * (time.shift(-1).fill_null(last) - time)).cum_sum().shift(fill_value=0.0)
    )
    edges = pl.DataFrame({"edge": [last * cell / _CELLS for cell in range(_CELLS + 1)]})
    waited = pl.col("before") + (pl.col("edge") - time) * pl.col("waits")
    sums = edges.join_asof(states.sort("t"), left_on="edge", right_on="t").select("edge", sum=waited.fill_null(0.0))
    share = 100 * _CELLS / last * (pl.col("sum").shift(-1) - pl.col("sum"))
    return sums.select(t="edge", number=share).head(_CELLS)
