"""Means of repetitions with their confidence intervals, by Student's t."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import polars as pl

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int
    """Number of samples."""


def mean_interval(samples: Sequence[float]) -> Interval:
    """Return the mean of independent samples and its 95 % interval by Student's t.

    Raises:
        ValueError: There are fewer than two samples, so that their deviation is unknown.
    """
    n = len(samples)
    if n < 2:
        raise ValueError("an interval needs at least two repetitions")
    mean = fmean(samples)
    half = student_t(n - 1) * stdev(samples) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def repetition_means(rows: Frame, figures: str | Sequence[str], by: Sequence[str] = ("repetition",)) -> Frame:
    """Return the mean of figures in each repetition, over its rows that have a value; else null.

    Args:
        rows: Such as those of flows, each with its repetition.
        figures: Numeric columns.
        by: The columns of the groups, with that of the repetition. Groups are in the order of their
            first rows.
    """
    import polars as pl

    return rows.group_by(by, maintain_order=True).agg(pl.col(figures).cast(pl.Float64).mean())


def mean_intervals(rows: "pl.LazyFrame", figure: str, by: Sequence[str]) -> "pl.DataFrame":
    """Return the mean of a figure by group, with its 95 % interval if there are two repetitions.

    A repetition counts once, with its mean.

    Args:
        rows: Such as those of flows, each with its `repetition`.
        figure: A numeric column.
        by: The columns of the groups, which the frame has before `mean`, `low`, `high` and `n`.
    """
    import polars as pl

    means = repetition_means(rows, figure, (*by, "repetition")).drop_nulls(figure)
    ordered = pl.col(figure).sort_by("repetition")
    samples = means.group_by(by, maintain_order=True).agg(ordered).collect()
    intervals = [mean_interval(each) if len(each) > 1 else None for each in samples[figure].to_list()]
    return samples.select(
        *by,
        mean=pl.col(figure).list.mean(),
        low=pl.Series([each and each.low for each in intervals], dtype=pl.Float64),
        high=pl.Series([each and each.high for each in intervals], dtype=pl.Float64),
        n=pl.col(figure).list.len(),
    )


def without_nan(samples: Sequence[float]) -> tuple[float, ...]:
    """Return the samples of the repetitions that have a value; `nan` marks one without."""
    return tuple(sample for sample in samples if not math.isnan(sample))


def paired_difference(samples: Sequence[float], others: Sequence[float]) -> Interval:
    """Return the mean of `samples - others` with its interval, repetition by repetition.

    Two cases use the same random streams in the same repetition, so the deviation of their
    differences is smaller than that of either case. The interval needs only that the repetitions
    are independent. A repetition in which either sample is `nan` is left out.

    Raises:
        ValueError: Fewer than two repetitions have both samples.
    """
    return mean_interval(without_nan([a - b for a, b in zip(samples, others, strict=False)]))


class RunningMean:
    """Mean and deviation of samples (Welford, Technometrics 4, 1962)."""

    __slots__ = ("mean", "n", "squares")

    def __init__(self) -> None:
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """Add a sample."""
        self.n += 1
        difference = value - self.mean
        self.mean += difference / self.n
        self.squares += difference * (value - self.mean)

    def is_within(self, share: float) -> bool:
        """Whether half the 95 % interval is at most this share of the mean."""
        if self.n < 2:
            return False
        half = student_t(self.n - 1) * math.sqrt(self.squares / (self.n - 1) / self.n)
        return half <= share * abs(self.mean)


@cache
def student_t(degrees: int) -> float:
    """Return t so that P(|T| > t) = 5 % for Student's T with `degrees` degrees of freedom."""
    low, high = 0.0, 13.0  # t is 12.706 at one degree of freedom, and falls with more
    while high - low > 1e-9:
        middle = (low + high) / 2
        if _within(middle, degrees) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """Return P(|T| < t) by the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(theta)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    if odd:
        return 2 / math.pi * (theta + math.sin(theta) * total)
    return math.sin(theta) * total
