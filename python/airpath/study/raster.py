"""A figure of single packets: each datagram that arrives is a vertical line.

`[[raster]]` of `study.toml` defines it. Rows do not have the times of single packets, so the report
simulates the first repetition of the case for it.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.result import Result
from airpath.run import execute
from airpath.suggest import did_you_mean
from airpath.toml_table import Table

_AROUND_S = 15.0
"""Time shown before and after the longest gap."""
_HEIGHT = 200
_READ = (
    "Each vertical line is a datagram that arrives. The bars are the longest gap of the run, in which datagrams are "
    "lost, and the longest delay near it, in which none is."
)


@dataclass(frozen=True, slots=True)
class Raster:
    """A figure of the text that shows single packets, and the case that it shows."""

    label: str
    """Its number in the text."""
    text: str
    experiment: str
    scenario: Path
    set: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Interval:
    """The time between two arrivals, in seconds."""

    start: float
    end: float
    lost: int
    """Datagrams that were sent between the two and did not arrive."""

    @property
    def length(self) -> float:
        """Its length."""
        return self.end - self.start


def read_raster(table: Table, cases: Mapping[str, Mapping[tuple[str, ...], tuple[Path, Mapping[str, Any]]]]) -> Raster:
    """Read a `[[raster]]`.

    Args:
        table: The table: `label`, `text`, `experiment`, and `case`, the values of its axes in
            their order.
        cases: Of each experiment its cases by the values of their axes: scenario and overrides.

    Raises:
        StudyError: It is invalid.
    """
    label = table.take("label", str)
    table.label = f"raster '{label}'"
    text, experiment, case = table.take("text", str), table.take("experiment", str), tuple(table.take("case", list))
    table.finish()
    if experiment not in cases:
        raise table.error(f"no experiment '{experiment}'{did_you_mean(experiment, cases)}", "experiment")
    known = cases[experiment]
    if case not in known:
        choices = "; ".join(", ".join(each) for each in known)
        raise table.error(f"'{experiment}' has no case '{', '.join(map(str, case))}', but {choices}", "case")
    return Raster(label, text, experiment, *known[case])


def draw(raster: Raster, seed: int) -> go.Figure:
    """Simulate the case once and draw the arrivals around its longest gap.

    Raises:
        NothingToDrawError: Fewer than three datagrams arrive.
    """
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        execute(raster.scenario, set=dict(raster.set), seed=seed, out=Path(folder), capture=False, log=True)
        return _draw(raster, _arrivals(Result(folder)))


def _arrivals(result: Result) -> list[tuple[float, int]]:
    """Return the time in seconds and the number of each datagram of the first flow that arrives."""
    import polars as pl

    arrived = result.scan("app").filter((pl.col("step") == "arrived") & (pl.col("flow") == 0)).sort("time")
    return arrived.select(pl.col("time") / 1e9, "sequence").collect().rows()


def intervals(arrivals: Sequence[tuple[float, int]]) -> list[Interval]:
    """Return the times between arrivals; a datagram that overtakes another counts as none lost."""
    return [
        Interval(earlier, later, max(number - previous - 1, 0))
        for (earlier, previous), (later, number) in pairwise(arrivals)
    ]


def _draw(raster: Raster, arrivals: Sequence[tuple[float, int]]) -> go.Figure:
    between = intervals(arrivals)
    if len(between) < 2:
        raise NothingToDrawError(f"{raster.label}: only {len(arrivals)} datagrams arrive")
    gap = max(between, key=lambda each: (each.lost > 0, each.length))
    start, end = gap.start - _AROUND_S, gap.end + _AROUND_S
    near = [each for each in between if start <= each.start and each.end <= end and not each.lost]
    delay = max(near, key=lambda each: each.length, default=None)
    times = [time for time, _ in arrivals if start <= time <= end]
    figure = blank(_HEIGHT, x_title="time (s)")
    figure.add_trace(
        go.Scatter(
            x=[x for time in times for x in (time, time, None)],
            y=[y for _ in times for y in (0, 1, None)],
            mode="lines",
            name="a datagram arrives",
            line={"color": theme.SERIES[0].light, "width": 1},
            hovertemplate="%{x:.2f} s<extra></extra>",
        )
    )
    named = [(name, each) for name, each in (("gap" if gap.lost else "longest time", gap), ("delay", delay)) if each]
    for name, each in named:
        line = {"color": theme.INK.light, "width": 2}
        figure.add_shape(type="line", x0=each.start, x1=each.end, y0=1.12, y1=1.12, line=line)
        words = f"{name} {each.length:.2f} s"
        middle = (each.start + each.end) / 2
        figure.add_annotation(x=middle, y=1.12, yanchor="bottom", text=words, showarrow=False)
    figure.update_xaxes(range=[start, end])
    figure.update_yaxes(visible=False, range=[0, 1.45])
    lengths = " and ".join(f"a {name} of {each.length:.2f} s" for name, each in named)
    alt = f"{raster.text}: {len(times)} arrivals from {start:.0f} to {end:.0f} s, with {lengths}."
    return captioned(figure, Caption(f"{raster.label}: {raster.text}", _READ, alt))
