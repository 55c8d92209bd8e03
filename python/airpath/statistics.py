"""Means of repetitions with their confidence intervals, by Student's t."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

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
