"""Rows over many repetitions.

Averages, maxima and minima over a batch of transfers, or over an axis.

A study that repeats a measurement 32 times may publish the maximum. A single maximum has no
interval. So the repetitions are split into batches of that size; the maxima of the batches have an
interval.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from airpath.statistics import without_nan
from airpath.study.grid import PREDICT, flattened
from airpath.study.metrics import Metric
from airpath.study.rows import Row, Rows
from airpath.study.tolerance import Published
from airpath.suggest import did_you_mean
from airpath.toml_table import Table

Take = Literal["mean", "highest", "lowest"]
_TAKE: dict[Take, Callable[[Sequence[float]], float]] = {"mean": statistics.fmean, "highest": max, "lowest": min}

ALL = "all"
"""The value of the axis `over` in an aggregate's row."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A mean, maximum or minimum over the repetitions of rows of an experiment."""

    experiment: str
    name: str
    metric: Metric
    take: Take
    batch: int
    """Repetitions of each case in a batch (`of` in the file)."""
    over: str | None
    """The axis over which rows are combined; `None`: each row by itself."""
    published: dict[tuple[str, ...], Published | None]
    """The published figure for each combination of the other axes' values, in the axes' order."""

    def rows(self, rows: Rows, values: Mapping[str, Sequence[str]]) -> list[Row]:
        """Return its rows.

        Args:
            rows: The measured rows of the experiment.
            values: The values of each axis of the experiment.
        """
        made = []
        for others, published in self.published.items():
            fixed = dict(zip((axis for axis in values if axis != self.over), others, strict=True))
            members = rows.select(self.experiment, self.metric.name, fixed)
            case = {axis: fixed.get(axis, ALL) for axis in values}
            samples = self._samples([without_nan(row.samples) for row in members])
            made.append(
                Row(
                    experiment=self.experiment,
                    case=case,
                    metric=self.name,
                    definition=self.metric,
                    published=published,
                    tolerance=members[0].tolerance,
                    samples=samples,
                )
            )
        return made

    def _samples(self, members: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Return one figure per batch.

        Batches are smaller where the repetitions do not suffice for two.
        """
        repetitions = min(map(len, members))
        batch = min(self.batch, repetitions // 2)
        return tuple(
            _TAKE[self.take]([each for member in members for each in member[first : first + batch]])
            for first in range(0, repetitions - batch + 1, batch)
        )


def read_aggregate(table: Table, experiment: str, values: Mapping[str, Sequence[str]], metric: Metric) -> Aggregate:
    """Read an `[[experiment.aggregate]]`.

    Args:
        table: The table.
        experiment: The experiment's name.
        values: The values of each axis of the experiment.
        metric: The metric that it aggregates.

    Raises:
        StudyError: It is invalid.
    """
    name = table.take("name", str)
    table.label = f"experiment '{experiment}': aggregate '{name}'"
    take = table.take("take", str)
    if take not in get_args(Take):
        raise table.error(
            f"'take' must be one of {', '.join(get_args(Take))}, not '{take}'{did_you_mean(take, get_args(Take))}",
            "take",
        )
    batch = table.take("of", int, 1)
    if batch < 1:
        raise table.error(f"'of' must be at least 1 repetition, not {batch}", "of")
    over = table.take("over", str, None)
    if over is not None and over not in values:
        raise table.error(f"there is no axis '{over}' in this experiment{did_you_mean(over, values)}", "over")
    others = [each for axis, each in values.items() if axis != over]
    grid = table.take("published", object, PREDICT)
    flat = flattened(table, "published", grid, tuple(map(len, others)))
    published = dict(zip(product(*others), flat, strict=True))
    table.finish()
    return Aggregate(experiment, name, metric, take, batch, over, published)
