"""The rows of a study: published beside ours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airpath.statistics import Interval, mean_interval, without_nan
from airpath.study.errors import StudyError
from airpath.study.metrics import Metric
from airpath.study.tolerance import UNIFORM, Property, Published, Tolerance

RowKey = tuple[str, tuple[str, ...], str]
"""Identifies a row: its experiment, the values of its axes, its metric."""


def row_key(experiment: str, case: Mapping[str, str], metric: str) -> RowKey:
    """Return the key of the row of a metric in a case."""
    return experiment, tuple(case.values()), metric


def require_two_values(samples: Sequence[float], case: str, metric: str) -> None:
    """Check that at least two repetitions of a case have a value of a metric.

    Raises:
        StudyError: They do not, so the mean has no interval.
    """
    found = len(without_nan(samples))
    if found < 2:
        raise StudyError(
            f"{case}: only {found} of {len(samples)} repetitions have a value of '{metric}'",
            next_step="an interval needs two: raise the number of repetitions with --repeat",
        )


@dataclass(frozen=True, slots=True)
class Emulated:
    """A figure of one case under the real clock: the kernel's TCP over an emulated link."""

    samples: tuple[float, ...] = field(repr=False)
    """One value per download; `nan` where it has none."""
    late_s: float
    """99 % of the packets left the link at most this late."""
    overruns: int
    """Packets that the kernel dropped before they entered the link."""
    valid: bool
    """Whether the lateness was within the budget, without overruns."""

    @property
    def interval(self) -> Interval:
        """The mean over the downloads, with its 95 % interval."""
        return mean_interval(without_nan(self.samples))


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one case."""

    experiment: str
    case: dict[str, str]
    """The value of each axis."""
    metric: str
    """The name of the figure: that of its metric, aggregate or difference."""
    definition: Metric
    """The metric's unit and formula."""
    published: Published | None
    """The published figure; `None` where the study published none."""
    tolerance: Tolerance
    """How far from the published figure ours may lie."""
    samples: tuple[float, ...] = field(repr=False)
    """Ours, one value per repetition; `nan` where it has none."""
    control: tuple[float, ...] = field(default=(), repr=False)
    """With the real clock: simulated with a TCP configured like the kernel's."""
    emulated: Emulated | None = None
    """With the real clock: the figure over an emulated link."""

    @property
    def key(self) -> RowKey:
        """Identifies the row in its study."""
        return row_key(self.experiment, self.case, self.metric)

    @property
    def interval(self) -> Interval:
        """Ours: the mean over the repetitions, with its 95 % interval."""
        return mean_interval(without_nan(self.samples))

    @property
    def control_interval(self) -> Interval:
        """The mean of the control over the repetitions, with its 95 % interval."""
        return mean_interval(without_nan(self.control))

    @property
    def agrees(self) -> bool | None:
        """Whether ours is within the tolerance of the published figure.

        `None` where none was published.
        """
        return self._agrees_within(self.tolerance)

    @property
    def agrees_uniformly(self) -> bool | None:
        """The same with the tolerance that all studies share.

        15 %, or inside a published range or spread.
        """
        return self._agrees_within(UNIFORM)

    def _agrees_within(self, tolerance: Tolerance) -> bool | None:
        match self.published:
            case None | Property(published=None):
                return None
            case published:
                return tolerance.admits(self.interval.mean, published)

    @property
    def difference(self) -> float | None:
        """The relative difference of the control's mean from the emulated mean.

        `None` without the real clock.
        """
        return None if self.emulated is None else self.control_interval.mean / self.emulated.interval.mean - 1


class Rows:
    """The rows of a run, for lookups."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def select(self, experiment: str, metric: str, case: Mapping[str, str]) -> list[Row]:
        """Return the rows of a metric whose case has these values, in the study's order.

        Raises:
            LookupError: There is none.
        """
        found = [
            row
            for row in self._rows
            if (row.experiment, row.metric) == (experiment, metric) and case.items() <= row.case.items()
        ]
        if not found:
            raise LookupError(f"no row of '{metric}' in '{experiment}' has {dict(case)}")
        return found

    def counterpart(self, row: Row, replaced: Mapping[str, str]) -> Row:
        """Return the row that equals this one except for the replaced values.

        Args:
            row: A row of these.
            replaced: New values of axes of its case; the keys `experiment` and `metric` replace
                these.

        Raises:
            LookupError: There is none, or more than one.
        """
        case = row.case | {axis: value for axis, value in replaced.items() if axis not in ("experiment", "metric")}
        found = self.select(replaced.get("experiment", row.experiment), replaced.get("metric", row.metric), case)
        if len(found) > 1:
            raise LookupError(f"more than one row of '{row.metric}' has {case}")
        return found[0]

    def series(self, experiment: str, metric: str, case: Mapping[str, str], along: str) -> list[list[Row]]:
        """Return the rows that `select` finds in groups.

        The rows of a group differ only in the axis `along`.

        Raises:
            LookupError: There is none, or they have no such axis.
        """
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in self.select(experiment, metric, case):
            if along not in row.case:
                raise LookupError(f"'{experiment}' has no axis '{along}'")
            key = tuple(value for axis, value in row.case.items() if axis != along)
            groups.setdefault(key, []).append(row)
        return list(groups.values())
