"""Rows over many repetitions: a study's averages, maxima and minima over a batch of transfers, or over an axis.

A study that repeats a measurement 32 times prints its largest figure, too. One such figure says nothing about how far
it scatters, so the repetitions are taken in batches of that size: each gives a maximum, and these have an interval.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from airpath.study.grid import PREDICT, flattened
from airpath.study.metrics import Metric
from airpath.study.rows import Row, Rows
from airpath.study.table import Table
from airpath.study.tolerance import Published
from airpath.suggest import did_you_mean

Take = Literal["mean", "highest", "lowest"]
_TAKE: dict[Take, Callable[[Sequence[float]], float]] = {"mean": statistics.fmean, "highest": max, "lowest": min}

ALL = "all"
"""The value of an axis in a row that is taken over it."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A figure made of the repetitions of rows of an experiment."""

    experiment: str
    name: str
    metric: Metric
    take: Take
    of: int
    """Repetitions of each case in a batch."""
    over: str | None
    """The axis whose rows are taken together; none: each row by itself."""
    published: dict[tuple[str, ...], Published | None]
    """By the values of the other axes, in their order."""

    def rows(self, rows: Rows, values: Mapping[str, Sequence[str]]) -> list[Row]:
        """Return its rows, made of those of an experiment with these axes."""
        made = []
        for others, published in self.published.items():
            fixed = dict(zip((axis for axis in values if axis != self.over), others, strict=True))
            members = rows.select(self.experiment, self.metric.name, fixed)
            case = {axis: fixed.get(axis, ALL) for axis in values}
            samples = self._samples([row.samples for row in members])
            tolerance = members[0].tolerance
            made.append(Row(self.experiment, case, self.name, self.metric, published, tolerance, samples))
        return made

    def _samples(self, members: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Return a figure a batch. With too few repetitions for two batches, these are smaller."""
        repetitions = min(map(len, members))
        of = min(self.of, repetitions // 2)
        return tuple(
            _TAKE[self.take]([each for member in members for each in member[first : first + of]])
            for first in range(0, repetitions - of + 1, of)
        )


def read_aggregate(table: Table, experiment: str, values: Mapping[str, Sequence[str]], metric: Metric) -> Aggregate:
    """Return what an `[[experiment.aggregate]]` says.

    Raises:
        StudyError: It cannot be used.
    """
    name = table.take("name", str)
    table.where += f": experiment '{experiment}': aggregate '{name}'"
    take = table.take("take", str)
    if take not in get_args(Take):
        raise table.error(f"'take' is not '{take}'{did_you_mean(take, get_args(Take))}")
    of = table.take("of", int, 1)
    if of < 1:
        raise table.error("'of' is less than one repetition")
    over = table.take("over", str, None)
    if over is not None and over not in values:
        raise table.error(f"there is no axis '{over}' to take rows over{did_you_mean(over, values)}")
    others = [each for axis, each in values.items() if axis != over]
    grid = table.take("published", object, PREDICT)
    flat = flattened(table, "published", grid, tuple(map(len, others)))
    published = dict(zip(product(*others), flat, strict=True))
    table.finish()
    return Aggregate(experiment, name, metric, take, of, over, published)
