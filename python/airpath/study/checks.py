"""Checks of a study's findings, computed from its rows.

No check has a threshold of its own: each asks whether a 95 % interval leaves any doubt, whether figures lie within the
tolerance of their metric, or whether they come up to a printed one. A change is the paired difference between the last
row along an axis and the first, with its interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airpath.study.interval import Interval, paired_difference
from airpath.study.rows import Row, Rows


@dataclass(frozen=True, slots=True)
class Selector:
    """Rows of an experiment: those of a metric whose case has these values."""

    experiment: str
    metric: str
    case: dict[str, str]


@dataclass(frozen=True, slots=True)
class FindingDefinition:
    """A sentence of the study, and the check that the rows must pass for it to hold."""

    id: str
    text: str
    check: str
    rows: tuple[Selector, ...]
    along: str | None
    """The axis along which the check looks."""
    than: tuple[dict[str, str], ...]
    """What to replace in a row's case, or its `experiment` or `metric`, to find the row that it is compared with."""
    published: float | None = None
    """The printed figure that `reaches` needs, in the unit of the rows."""

    @property
    def experiments(self) -> set[str]:
        """The experiments that it needs."""
        compared = {each["experiment"] for each in self.than if "experiment" in each}
        return compared | {row.experiment for row in self.rows}


def falls(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each series ends below its beginning, and no step on the way goes up for certain."""
    return all(_goes(_samples(series), -1) for series in _series(finding, rows))


def rises(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each series ends above its beginning, and no step on the way goes down for certain."""
    return all(_goes(_samples(series), +1) for series in _series(finding, rows))


def changes_less(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each series changes less, either way, than each series that it is compared with.

    The largest change that the one interval allows must be smaller than the smallest that the other does.
    """
    return all(
        _largest(_change(series)) < _smallest(_change([rows.like(row, replaced) for row in series]))
        for series in _series(finding, rows)
        for replaced in finding.than
    )


def exceeds(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row lies above those that it is compared with."""
    return all(difference.low > 0 for difference in _differences(finding, rows))


def not_below(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether no row lies for certain below one that it is compared with."""
    return all(difference.high >= 0 for difference in _differences(finding, rows))


def alike(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row lies within its metric's tolerance of those that it is compared with."""
    return all(
        row.tolerance.admits(row.interval.mean, rows.like(row, replaced).interval.mean)
        for each in finding.rows
        for row in rows.select(each.experiment, each.metric, each.case)
        for replaced in finding.than
    )


def agrees(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row for which something was published agrees with that."""
    return all(
        row.agrees is not False for each in finding.rows for row in rows.select(each.experiment, each.metric, each.case)
    )


def reaches(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row comes up to a printed figure: nothing below it lies in its interval."""
    if finding.published is None:
        raise LookupError("this check needs the printed figure: give it as 'published'")
    return all(
        row.interval.low >= finding.published
        for each in finding.rows
        for row in rows.select(each.experiment, each.metric, each.case)
    )


def gap_closes(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether the gap to the rows compared with, as a share of these, falls along the axis as in `falls`."""
    return all(
        _goes([_gaps(row, rows.like(row, replaced)) for row in series], -1)
        for series in _series(finding, rows)
        for replaced in finding.than
    )


CHECKS: dict[str, Callable[[FindingDefinition, Rows], bool]] = {
    "falls": falls,
    "rises": rises,
    "changes-less": changes_less,
    "exceeds": exceeds,
    "not-below": not_below,
    "gap-closes": gap_closes,
    "reaches": reaches,
    "alike": alike,
    "agrees": agrees,
}
"""By the name that `study.toml` uses."""


def _series(finding: FindingDefinition, rows: Rows) -> list[list[Row]]:
    if finding.along is None:
        raise LookupError("this check looks along an axis: name it with 'along'")
    return [
        series
        for each in finding.rows
        for series in rows.series(each.experiment, each.metric, each.case, finding.along)
    ]


def _differences(finding: FindingDefinition, rows: Rows) -> list[Interval]:
    return [
        paired_difference(row.samples, rows.like(row, replaced).samples)
        for each in finding.rows
        for row in rows.select(each.experiment, each.metric, each.case)
        for replaced in finding.than
    ]


def _goes(series: Sequence[Sequence[float]], sign: int) -> bool:
    """Return whether a series goes up (`sign` 1) or down (-1): the whole of it does, and no step denies it."""
    steps = [_signed(later, earlier, sign) for earlier, later in pairwise(series)]
    return _signed(series[-1], series[0], sign).low > 0 and all(step.high >= 0 for step in steps)


def _signed(later: Sequence[float], earlier: Sequence[float], sign: int) -> Interval:
    return paired_difference(later, earlier) if sign > 0 else paired_difference(earlier, later)


def _samples(series: Sequence[Row]) -> list[Sequence[float]]:
    return [row.samples for row in series]


def _change(series: Sequence[Row]) -> Interval:
    return paired_difference(series[-1].samples, series[0].samples)


def _gaps(row: Row, other: Row) -> list[float]:
    return [a / b - 1 for a, b in zip(row.samples, other.samples, strict=False)]


def _largest(change: Interval) -> float:
    return max(abs(change.low), abs(change.high))


def _smallest(change: Interval) -> float:
    return max(change.low, -change.high, 0.0)
