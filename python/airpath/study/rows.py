"""The rows of a study: published beside ours."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from airpath.study.interval import Interval, mean_interval
from airpath.study.metrics import Metric
from airpath.study.tolerance import UNIFORM, Published, Tolerance


@dataclass(frozen=True, slots=True)
class Real:
    """A figure of one case under the real clock: the kernel's TCP over an emulated link."""

    samples: tuple[float, ...] = field(repr=False)
    """Download by download."""
    late_s: float
    """99 % of the packets left the link less late than this."""
    valid: bool
    """Whether that is little enough for the figure to mean something."""

    @property
    def interval(self) -> Interval:
        """The mean over the downloads, with its 95 % interval."""
        return mean_interval(self.samples)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one case."""

    experiment: str
    case: dict[str, str]
    """The value of each axis."""
    metric: str
    """What the figure is called."""
    kind: Metric
    """What it is: its unit and formula."""
    published: Published | None
    """What the study printed; `None` where it printed nothing."""
    tolerance: Tolerance
    """How far from print it may lie."""
    samples: tuple[float, ...] = field(repr=False)
    """Ours, repetition by repetition."""
    alike: tuple[float, ...] = field(default=(), repr=False)
    """Simulated with TCP as the kernel's, if the real clock was asked for."""
    real: Real | None = None
    """The same under the real clock, if that was asked for."""

    @property
    def interval(self) -> Interval:
        """Ours: the mean over the repetitions, with its 95 % interval."""
        return mean_interval(self.samples)

    @property
    def agrees(self) -> bool | None:
        """Whether ours is near enough to what was published; `None` where nothing was."""
        return None if self.published is None else self.tolerance.admits(self.interval.mean, self.published)

    @property
    def agrees_uniformly(self) -> bool | None:
        """The same by the measure that all studies share: within 15 %, or in what was printed as range or spread."""
        return None if self.published is None else UNIFORM.admits(self.interval.mean, self.published)

    @property
    def difference(self) -> float | None:
        """By how much the mean, simulated with the kernel's TCP, differs from the real one, as a share of this."""
        return None if self.real is None else mean_interval(self.alike).mean / self.real.interval.mean - 1


class Rows:
    """The rows of a run, to be looked up."""

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

    def like(self, row: Row, replaced: Mapping[str, str]) -> Row:
        """Return the row that differs from this one in the given values: of its case, its experiment or its metric.

        Raises:
            LookupError: There is none, or more than one.
        """
        case = row.case | {axis: value for axis, value in replaced.items() if axis not in ("experiment", "metric")}
        found = self.select(replaced.get("experiment", row.experiment), replaced.get("metric", row.metric), case)
        if len(found) > 1:
            raise LookupError(f"more than one row of '{row.metric}' has {case}")
        return found[0]

    def series(self, experiment: str, metric: str, case: Mapping[str, str], along: str) -> list[list[Row]]:
        """Return the rows that `select` finds, those that differ along one axis alone together.

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
