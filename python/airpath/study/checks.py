"""Checks of a study's findings, computed from its rows.

No check has a threshold of its own. It uses the 95 % interval of a difference, the tolerance of a
metric, or a published figure. A change is the paired difference between the last row along an axis
and the first, with its interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airpath.statistics import Interval, paired_difference
from airpath.study.rows import Row, Rows


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects the rows of an experiment by metric and by values of the case."""

    experiment: str
    metric: str
    case: dict[str, str]


@dataclass(frozen=True, slots=True)
class FindingDefinition:
    """A conclusion of the study, and the check that decides whether it holds."""

    id: str
    text: str
    check: str
    rows: tuple[Selector, ...]
    along: str | None
    """The axis along which rows form a series."""
    than: tuple[dict[str, str], ...]
    """Replacements in a row's case, `experiment` or `metric` that yield the row it is compared
    with."""
    published: float | None = None
    """The published figure for `reaches`, in the unit of the rows."""

    @property
    def experiments(self) -> set[str]:
        """The experiments whose rows it uses."""
        compared = {each["experiment"] for each in self.than if "experiment" in each}
        return compared | {row.experiment for row in self.rows}


def falls(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each series ends below its start, and no step rises by its interval."""
    return all(_goes(_samples(series), -1) for series in _series(finding, rows))


def rises(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each series ends above its start, and no step falls by its interval."""
    return all(_goes(_samples(series), +1) for series in _series(finding, rows))


def changes_less(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each series changes less than each series it is compared with.

    The largest change within its interval must be smaller than the smallest change within the
    other's interval.
    """
    return all(
        _largest(_change(series)) < _smallest(_change([rows.counterpart(row, replaced) for row in series]))
        for series in _series(finding, rows)
        for replaced in finding.than
    )


def exceeds(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row lies above those that it is compared with."""
    return all(difference.low > 0 for difference in _differences(finding, rows))


def not_below(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether no row lies below one it is compared with, by the difference's interval."""
    return all(difference.high >= 0 for difference in _differences(finding, rows))


def within_tolerance(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row lies within its tolerance of the rows it is compared with."""
    return all(
        row.tolerance.admits(row.interval.mean, rows.counterpart(row, replaced).interval.mean)
        for each in finding.rows
        for row in rows.select(each.experiment, each.metric, each.case)
        for replaced in finding.than
    )


def agrees(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether each row with a published figure agrees with it."""
    return all(
        row.agrees is not False for each in finding.rows for row in rows.select(each.experiment, each.metric, each.case)
    )


def reaches(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether the interval of each row lies at or above the published figure."""
    if finding.published is None:
        raise LookupError("the check 'reaches' needs the published figure: add 'published' to the finding")
    return all(
        row.interval.low >= finding.published
        for each in finding.rows
        for row in rows.select(each.experiment, each.metric, each.case)
    )


def gap_closes(finding: FindingDefinition, rows: Rows) -> bool:
    """Return whether the relative difference to the compared rows falls, as in `falls`."""
    return all(
        _goes([_gaps(row, rows.counterpart(row, replaced)) for row in series], -1)
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
    "within-tolerance": within_tolerance,
    "agrees": agrees,
}
"""The checks by their names in `study.toml`."""


def _series(finding: FindingDefinition, rows: Rows) -> list[list[Row]]:
    if finding.along is None:
        raise LookupError("this check needs an axis: add 'along' to the finding")
    return [
        series
        for each in finding.rows
        for series in rows.series(each.experiment, each.metric, each.case, finding.along)
    ]


def _differences(finding: FindingDefinition, rows: Rows) -> list[Interval]:
    return [
        paired_difference(row.samples, rows.counterpart(row, replaced).samples)
        for each in finding.rows
        for row in rows.select(each.experiment, each.metric, each.case)
        for replaced in finding.than
    ]


def _goes(series: Sequence[Sequence[float]], sign: int) -> bool:
    """Return whether a series rises (`sign` 1) or falls (-1), and no step does the opposite."""
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
