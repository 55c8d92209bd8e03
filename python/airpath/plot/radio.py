"""The radio by user: air time, share of repeated PDUs, and level (C/I, CQI, MCS, coding scheme)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.radio_terms import Terms, by_technology, terms_of
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn
from airpath.plot.template import Caption, blank, captioned, ramp
from airpath.plot.values import largest
from airpath.quantities import seconds

_CELLS = 500
"""Maximal number of cells of a track."""
_MOST_TRACKS = 48
_GAP = 46
_MOST_LETTERS = 11
_FEWEST_LETTERS = 4
"""Letters of an ellipsis and a direction, and one more: a shortened name has a word, too."""
_REPEATED = "repeated PDUs"
_ARROWS = {"down": "↓", "up": "↑"}


@dataclass(frozen=True)
class _Kind:
    """A group of tracks, one for each user."""

    title: str
    value: pl.Expr
    colours: tuple[theme.Colour, ...]
    most: float
    unit: str


@dataclass(frozen=True)
class _Track:
    direction: str
    name: str
    label: str
    """The part of the name that differs between the tracks."""
    terms: Terms


def radio(results: Results, *, repetition: int | None = None, cells: int = _CELLS) -> go.Figure:
    """Draw the radio's tracks by user.

    Air time used, share of PDUs repeated, and level, on the time axis of the run.

    Args:
        results: One result, or several, whose tracks are drawn below each other.
        repetition: The repetition; by default the median one.
        cells: Into how many cells of time a track is cut at most; each is a whole number of TTIs
            long.

    Raises:
        NotLoggedError: A run did not log the `radio` table.
        NothingToDrawError: Nothing was sent over a radio.
    """
    runs = drawn(results, repetition)
    span = max(run.span for run in runs)
    tracks, frame, notes = _tracks(runs)
    # A whole number of TTIs, so that no TTI is split between cells.
    tti = largest(frame["duration"]) / 1e9
    width = max(ceil(span / cells / tti), 1) * tti
    binned = _binned(frame, width)
    kinds = _kinds(binned, tracks)
    height = 18 if len(tracks) <= 12 else 11
    group = height * len(tracks) + _GAP
    total = group * len(kinds) - _GAP
    figure = blank(total + 80, span=span, top=36)
    columns = int(span / width) + 1
    for number, kind in enumerate(kinds):
        top = 1 - number * group / total
        _draw(figure, kind, number, tracks, binned, (columns, width), (top - height * len(tracks) / total, top))
    figure.update_layout(showlegend=False)
    last = "" if len(kinds) == 1 else str(len(kinds))
    figure.update_layout({"xaxis": {"anchor": f"y{last}", "range": [0, span]}})
    words = "; ".join(_words(track, frame.filter(track=index)) for index, track in enumerate(tracks))
    notes.append(f"Each column covers {seconds(width)}.")
    return captioned(figure, Caption("Radio", _read(kinds, tracks), f"Radio use by user: {words}.", notes))


def _tracks(runs: Sequence[Drawn]) -> tuple[list[_Track], pl.DataFrame, list[str]]:
    """Return the tracks, the events of all with the number of their track, and notes."""
    key = ["component", "direction", "user"]
    tracks: list[_Track] = []
    frames: list[pl.DataFrame] = []
    found = 0
    for run in runs:
        events = run.events("radio").select("t", "duration", *key, "pdus", "repeated", "level").collect()
        directions = events["direction"].n_unique()
        groups = sorted(events.group_by(key), key=lambda group: (*tuple(map(str, group[0][:2])), group[0][2]))
        found += len(groups)
        if len(groups) > _MOST_TRACKS // len(runs):
            groups = sorted(groups, key=lambda group: -group[1]["duration"].sum())[: _MOST_TRACKS // len(runs)]
            groups.sort(key=lambda group: group[0][2])
        for (component, direction, user), rows in groups:
            name = run.user(user) + (f" {direction}" if directions > 1 else "")
            label = run.user(user)
            if len(runs) > 1:
                name = f"{run.label} · {name}" if len(groups) > 1 else run.label
                label = f"{run.label} {label}" if len({group[0][2] for group in groups}) > 1 else run.label
            label += f" {_ARROWS.get(direction, direction)}" if directions > 1 else ""
            frames.append(rows.with_columns(track=pl.lit(len(tracks), pl.Int64)))
            tracks.append(_Track(direction, name, label, terms_of(run, str(component))))
    if not tracks:
        raise NothingToDrawError("nothing was sent over a radio")
    notes = [f"Of {found} users, the {len(tracks)} that used most air time are drawn."] if found > len(tracks) else []
    return tracks, pl.concat(frames), notes


def _binned(frame: pl.DataFrame, width: float) -> pl.DataFrame:
    """Return the sums of each track in each cell of time."""
    return frame.group_by("track", cell=(pl.col("t") / width + 1e-9).floor().cast(pl.Int64)).agg(
        airtime=pl.col("duration").sum() / 1e9 / width,
        # Blocks with nothing but status reports have no PDUs.
        repeated=pl.when(pl.col("pdus").sum() > 0).then(pl.col("repeated").sum() / pl.col("pdus").sum()),
        level=pl.col("level").cast(pl.Float64).mean(),
    )


def _kinds(binned: pl.DataFrame, tracks: Sequence[_Track]) -> list[_Kind]:
    """Return the groups of tracks that have values."""
    upward = all(track.direction == "up" for track in tracks)
    airtime = theme.AIRTIME_UP_RAMP if upward else theme.AIRTIME_RAMP
    kinds = [_Kind("air time", pl.col("airtime") * 100, airtime, 100.0, "%")]
    if largest(binned["repeated"]) > 0:
        most = max(5.0, (binned["repeated"].quantile(0.99) or 0.0) * 100)
        kinds.append(_Kind(_REPEATED, pl.col("repeated") * 100, theme.REPAIR_RAMP, most, "%"))
    highest = largest(binned["level"])
    if highest > 0:
        terms = [track.terms for track in tracks]
        title = by_technology(terms, {each.name: each.level for each in terms})
        kinds.append(_Kind(title, pl.col("level"), theme.LEVEL_RAMP, highest, ""))
    return kinds


def _read(kinds: Sequence[_Kind], tracks: Sequence[_Track]) -> str:
    """Return how to read the groups of tracks that are drawn."""
    terms = [track.terms for track in tracks]
    parts = [
        "One track per mobile and direction; the scale at the right of each group has its colours. "
        "Air time: the share of TTIs in which the mobile has a block, however large; blank: none."
    ]
    titles = {kind.title for kind in kinds}
    if _REPEATED in titles:
        parts.append(f"Repeated PDUs: the share {by_technology(terms, {t.name: t.repeated for t in terms})}.")
    if level := next((kind.title for kind in kinds[1:] if kind.title != _REPEATED), None):
        parts.append(
            f"{level[0].upper()}{level[1:]}: the mean over the blocks; a higher one carries more bits per block."
        )
    return " ".join(parts)


def _draw(
    figure: go.Figure,
    kind: _Kind,
    number: int,
    tracks: Sequence[_Track],
    binned: pl.DataFrame,
    grid: tuple[int, float],
    domain: tuple[float, float],
) -> None:
    columns, width = grid
    rows = []
    for index in range(len(tracks)):
        values = binned.filter(track=index).select("cell", value=kind.value.round(1))
        every = pl.DataFrame({"cell": pl.Series(range(columns), dtype=pl.Int64)})
        rows.append(every.join(values, on="cell", how="left").sort("cell")["value"].to_list())
    axis = "" if number == 0 else str(number + 1)
    bar = {
        "orientation": "h",
        "x": 1,
        "xanchor": "right",
        "y": domain[1],
        "yanchor": "bottom",
        "len": 0.22,
        "thickness": 7,
        "ypad": 4,
        "ticksuffix": kind.unit and f" {kind.unit}",
        # Two ticks fit into the column of a paper, without turning them.
        "nticks": 2,
        "tickangle": 0,
        "ticklabelposition": "outside top",
        "tickfont": {"size": 10},
        "outlinewidth": 0,
    }
    figure.add_trace(
        go.Heatmap(
            z=rows,
            x0=width / 2,
            dx=width,
            y=list(range(len(tracks))),
            yaxis=f"y{axis}",
            xaxis="x",
            zmin=0,
            zmax=kind.most,
            colorscale=ramp(kind.colours),
            ygap=2,
            hoverongaps=False,
            colorbar=bar,
            name=kind.title,
            hovertemplate=f"%{{x:.3f}} s, %{{y}}: %{{z}} {kind.unit}<extra>{kind.title}</extra>",
        )
    )
    names = {
        "tickmode": "array",
        "tickvals": list(range(len(tracks))),
        "ticktext": _short([track.label for track in tracks]),
        "tickfont": {"size": 10},
    }
    figure.update_layout(
        {
            f"yaxis{axis}": {
                "domain": [max(domain[0], 0), domain[1]],
                "autorange": "reversed",
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                **names,
            }
        }
    )
    figure.add_annotation(
        text=f"<b>{kind.title}</b>",
        x=0,
        xref="paper",
        xanchor="left",
        y=domain[1],
        yref="paper",
        yanchor="bottom",
        showarrow=False,
        font={"size": 12},
    )


def _words(track: _Track, rows: pl.DataFrame) -> str:
    pdus = int(rows["pdus"].sum())
    share = int(rows["repeated"].sum()) / max(pdus, 1)
    return f"{track.name}, {rows.height:,} TTIs, {pdus:,} PDUs, {share:.1%} of them repeated"


def _short(names: Sequence[str]) -> list[str]:
    """Return names that fit into the margin, different if possible.

    Of long ones the last words, or else all but their middle.
    """

    def last_words(name: str) -> str:
        parts = [f"…{name[word.start() :]}" for word in re.finditer(r"(?<=[\s-])[^\s-]", name)]
        return next((part for part in parts if len(part) <= _MOST_LETTERS and len(part) > _FEWEST_LETTERS), name)

    def shortened(tail: int) -> list[str]:
        head = _MOST_LETTERS - 1 - tail
        return [name if len(name) <= _MOST_LETTERS else f"{name[:head]}…{name[-tail:]}" for name in names]

    by_word = [name if len(name) <= _MOST_LETTERS else last_words(name) for name in names]
    candidates = [by_word] if max(map(len, by_word), default=0) <= _MOST_LETTERS else []
    return max([*candidates, *map(shortened, (7, 6, 5, 4, 8, 9))], key=lambda labels: len(set(labels)))
