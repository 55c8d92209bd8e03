"""The state of each mobile over time, as tracks: its radio connection, and its proxy."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go
import polars as pl

from airpath.plot.radio_terms import Terms, terms_of
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.track import BAND, GAP, HEAD, MOST_BANDS, Stack, Track

_TIME = "on the time axis of the run"
_RESOURCES = "slots"
"""The aspect whose name and meaning depend on the technology."""
_MEANINGS = {
    "rrc": "RRC: the connection, which is set up in promotion",
    "drx": "DRX: in short and long cycles the mobile listens from time to time only",
    "wait": "wait: why data cannot be sent at once",
    "harq": "HARQ: harq-repeat while a block is sent again",
    "tbf": "TBF: the temporary block flow, without which nothing is carried",
    "cell-group": "cell group: the cells that carry the downlink, master LTE and secondary NR",
    "link": "link: the acknowledged link of the RLC or RLP",
}
"""What a track of an aspect means, for readers of the caption."""


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
    f"The state of the radio connection of each mobile, {_TIME}. A band is a state, with its name where it fits, or "
    "in the legend; a line across a band is a brief state; a stepped line is a number, with its least and highest "
    "value. Grey is the state at rest: idle, disconnected, no coverage; in the tracks wait and HARQ, none: no wait, "
    "no retransmission.",
    "radio connection",
    "no bearer reported a state of a radio connection",
    {
        "mode": "mode",
        "cell": "cell",
        "carrier-to-interference": "C/I (dB)",
        "scheme": "scheme",
        _RESOURCES: "slots",
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
    aspects: list[str]
    terms: Terms


def tracks(
    results: Results,
    *,
    repetition: int | None = None,
    aspects: Collection[str] | None = None,
    window: tuple[float, float] | None = None,
) -> go.Figure:
    """Draw the radio log by mobile.

    Mode, cell, C/I, coding scheme, resources (timeslots, codes, resource blocks) and link states on
    the time axis of the run.

    Args:
        results: One result, or several, whose tracks are drawn below each other.
        repetition: The repetition; by default the median one.
        aspects: The aspects of the table `states` to draw; by default all.
        window: Start and end of the time to draw, in seconds; by default the whole run.

    Raises:
        NotLoggedError: A run did not log its radio.
        NothingToDrawError: No bearer reported a state.
    """
    names = {aspect: name for aspect, name in _RADIO.names.items() if aspects is None or aspect in aspects}
    return _figure(drawn(results, repetition), replace(_RADIO, names=names), window)


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
    own = rows.with_columns(t=pl.col("t") - start).sort("t", maintain_order=True).collect()
    components = own["component"].unique().to_list()
    return _tracks_of(own, _RADIO, terms_of(run, components[0] if components else ""), 0.0, span)


def _figure(runs: Sequence[Drawn], log: _Log, window: tuple[float, float] | None = None) -> go.Figure:
    start, span = window or (0.0, max(run.span for run in runs))
    groups, notes = _groups(runs, log, start, span)
    total = sum(HEAD + sum(track.height + GAP for track in group.tracks) for group in groups)
    figure = blank(total + 84, span=span, top=40)
    figure.update_xaxes(range=[start, span])
    stack = Stack(figure, total, start)
    for group in groups:
        stack.heading(group.title)
        for track in group.tracks:
            stack.track(track, group.span)
    stack.finish()
    stack.legend([each for group in groups for track in group.tracks for each in track.unnamed(span, start)])
    words = "; ".join(
        f"{group.title}: {'; '.join(track.words(group.span) for track in group.tracks)}" for group in groups
    )
    read = " ".join([log.read, *_meanings(groups)])
    return captioned(figure, Caption(log.title, read, f"State by {log.subject}. {words}.", notes))


def _meanings(groups: Sequence[_Group]) -> list[str]:
    """Return what the tracks of a radio log mean whose names are terms of a technology."""
    aspects = {aspect for group in groups for aspect in group.aspects}
    terms = {group.terms for group in groups if _RESOURCES in group.aspects and group.terms.resources_read}
    found = [f"{each.resources}: {each.resources_read}" for each in sorted(terms, key=lambda each: each.name)]
    found += [meaning for aspect, meaning in _MEANINGS.items() if aspect in aspects]
    if any(
        track.name.startswith(f"{_RADIO.names[aspect]} %")
        for aspect in _SHARED
        for group in groups
        for track in group.tracks
    ):
        found.append("wait % and HARQ %: the share of the time, where states are many and short")
    return [f"{'; '.join(found)}."] if found else []


def _groups(runs: Sequence[Drawn], log: _Log, start: float, end: float) -> tuple[list[_Group], list[str]]:
    groups: list[_Group] = []
    notes: list[str] = []
    for run in runs:
        rows = run.events("states").filter(pl.col("aspect").is_in(list(log.names)) & (pl.col("t") <= end))
        rows = rows.select("t", "component", "user", "direction", "aspect", "name", "number").collect()
        users = rows.group_by("component", "user").len().sort("len", descending=True)
        most = max(_MOST_USERS // len(runs), 1)
        if users.height > most:
            notes.append(f"Of {users.height} mobiles, the {most} whose states changed most are drawn.")
        for component, user, _ in users.head(most).sort("component", "user").rows():
            own = rows.filter(component=component, user=user).sort("t", maintain_order=True)
            name = run.user(user) if len(runs) == 1 else f"{run.label} · {run.user(user)}"
            terms = terms_of(run, component)
            until = min(run.span, end)
            found = _tracks_of(own, log, terms, start, until)
            groups.append(_Group(name, found, until, own["aspect"].unique().to_list(), terms))
    if not groups:
        raise NothingToDrawError(log.missing)
    return groups, notes


def _tracks_of(rows: pl.DataFrame, log: _Log, terms: Terms, start: float, end: float) -> list[Track]:
    """Return the tracks of a mobile from `start` to `end`, with the last values before."""
    found = []
    for aspect, usual in log.names.items():
        title = terms.resources if aspect == _RESOURCES else usual
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
            before = kept.filter(pl.col("t") <= start).tail(1).with_columns(t=pl.lit(start))
            kept = pl.concat([before, kept.filter(pl.col("t") > start)])
            if aspect in _SHARED and kept.height > MOST_BANDS:
                name = name.replace(title, f"{title} %", 1)
                found.append(Track(name, _share(kept, start, end), direction, _SHARE, steps=True))
            elif kept.height > 0:
                found.append(Track(name, kept, direction, _LINE.get(aspect, BAND), steps))
    return found


def _share(rows: pl.DataFrame, start: float, end: float) -> pl.DataFrame:
    """Return the share of each cell of time, in per cent, in states other than `none`.

    The last state lasts until the end.
    """
    waits, time = (pl.col("name") != "none").cast(pl.Float64), pl.col("t")
    states = rows.select(
        "t", waits=waits, before=(waits * (time.shift(-1).fill_null(end) - time)).cum_sum().shift(fill_value=0.0)
    )
    width = (end - start) / _CELLS
    edges = pl.DataFrame({"edge": [start + width * cell for cell in range(_CELLS + 1)]})
    waited = pl.col("before") + (pl.col("edge") - time) * pl.col("waits")
    sums = edges.join_asof(states.sort("t"), left_on="edge", right_on="t").select("edge", sum=waited.fill_null(0.0))
    share = 100 / width * (pl.col("sum").shift(-1) - pl.col("sum"))
    return sums.select(t="edge", number=share).head(_CELLS)
