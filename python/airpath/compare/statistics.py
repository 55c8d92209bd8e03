"""Statistics of two groups of samples. The methods are those of SciPy.

| question | method |
| --- | --- |
| do the samples differ? | Mann–Whitney's test; Wilcoxon's signed-rank test of paired samples |
| does a statistic differ (mean, p95)? | permutation test of that statistic, which is exact at any number of samples |
| by how much? | bootstrap interval of the relative difference (percentiles) |
| how clearly? | Cliff's delta: the share of pairs in which one side is greater, minus the others |
| many tests at once | Holm's correction |
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 2000
"""Resamples of an interval."""
PERMUTATIONS = 9999
"""Permutations of a test, unless there are many tests."""
_PERMUTATIONS_PER_TEST = 400
"""Of many tests, so that the least p-value stays below 1 % after correction: 2 / 400 at most."""
_BATCH = 10_000
"""Permutations in memory at a time."""

STATISTICS = ("mean", "median", "p50", "p90", "p95", "p99", "min", "max")
"""The names of statistics."""

_SEED = 1
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Pair:
    """The samples of both sides; with `is_paired` one of each by repetition, in the same order."""

    base: "np.ndarray"
    new: "np.ndarray"
    is_paired: bool

    @property
    def least_p(self) -> float:
        """The least p-value that this many samples can have in a permutation test."""
        n, m = len(self.base), len(self.new)
        return 2.0 ** (1 - n) if self.is_paired else 2 / math.comb(n + m, n)


def pair_of(base: dict[str, float], new: dict[str, float], *, paired: bool) -> Pair:
    """Return the samples of two sides; `paired` if their repetitions have the same streams."""
    import numpy as np

    common = [name for name in base if name in new]
    if paired and len(common) > 1:
        return Pair(np.array([base[name] for name in common]), np.array([new[name] for name in common]), True)
    return Pair(np.array(list(base.values())), np.array(list(new.values())), False)


def statistic(name: str) -> Callable[..., Any]:
    """Return the function of a statistic along an axis.

    Raises:
        KeyError: There is no such statistic.
    """
    import numpy as np

    if name not in STATISTICS:
        raise KeyError(name)
    if name.startswith("p"):
        quantile = int(name[1:]) / 100
        return lambda samples, axis=-1: np.quantile(samples, quantile, axis=axis)
    return {"mean": np.mean, "median": np.median, "min": np.min, "max": np.max}[name]


def relative(base: float, new: float) -> float | None:
    """Return the difference as a share of the base; `None` without one."""
    return None if base == 0 else (new - base) / abs(base)


def shift_p(pair: Pair) -> float:
    """Return the p-value of Mann–Whitney's or Wilcoxon's test."""
    from scipy import stats

    if len(pair.base) < 2 or len(pair.new) < 2:
        return 1.0
    if not pair.is_paired:
        if _all_equal(pair):
            return 1.0
        return float(stats.mannwhitneyu(pair.base, pair.new).pvalue)
    difference = pair.new - pair.base
    if not difference.any():
        return 1.0
    found: Any = stats.wilcoxon(difference, zero_method="zsplit")
    return float(found.pvalue)


@lru_cache
def least_shift_p(base: int, new: int, *, paired: bool) -> float:
    """Return the least p-value of `shift_p` without ties: that of sides that do not overlap.

    Args:
        base: The number of samples of the base.
        new: The number of samples of the other side.
        paired: Whether the samples are pairs.
    """
    import numpy as np

    return shift_p(Pair(np.zeros(base) if paired else -np.arange(1.0, base + 1), np.arange(1.0, new + 1), paired))


def permutation_p(pair: Pair, name: str, *, tests: int = 1) -> float:
    """Return the two-sided p-value of a permutation test of the difference of a statistic.

    Args:
        pair: The samples.
        name: The statistic.
        tests: The number of tests that the p-value will be corrected for. If they are many, a
            p-value near the least of `PERMUTATIONS` random ones is computed again with more.
    """
    p = _permutation_p(pair, name, PERMUTATIONS)
    more = _PERMUTATIONS_PER_TEST * tests
    return _permutation_p(pair, name, more) if more > PERMUTATIONS and p <= 10 / PERMUTATIONS else p


def _permutation_p(pair: Pair, name: str, permutations: int) -> float:
    import numpy as np
    from scipy import stats

    if len(pair.base) < 2 or len(pair.new) < 2 or _all_equal(pair):
        return 1.0
    compute = statistic(name)
    found = stats.permutation_test(
        (pair.new, pair.base),
        lambda new, base, axis: compute(new, axis=axis) - compute(base, axis=axis),
        permutation_type="samples" if pair.is_paired else "independent",
        n_resamples=permutations,
        batch=_BATCH,
        vectorized=True,
        rng=np.random.default_rng(_SEED),
    )
    return float(found.pvalue)


def interval(pair: Pair, name: str) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the relative difference; `None` without one."""
    import numpy as np

    if len(pair.base) < 2 or len(pair.new) < 2:
        return None
    compute, drawn = statistic(name), np.random.default_rng(_SEED)
    base_rows = drawn.integers(0, len(pair.base), (RESAMPLES, len(pair.base)))
    new_rows = base_rows if pair.is_paired else drawn.integers(0, len(pair.new), (RESAMPLES, len(pair.new)))
    base, new = compute(pair.base[base_rows], axis=1), compute(pair.new[new_rows], axis=1)
    if not np.all(base):
        return None
    low, high = np.quantile((new - base) / np.abs(base), [0.025, 0.975])
    return float(low), float(high)


def cliffs_delta(pair: Pair) -> float:
    """Return Cliff's delta (Psychological Bulletin 114, 1993), from −1 to 1."""
    import numpy as np

    return float(np.sign(pair.new[:, None] - pair.base[None, :]).mean())


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number.

    Holm, Scandinavian Journal of Statistics 6, 1979.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    corrected = [1.0] * len(values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, values[index] * (len(values) - rank)))
        corrected[index] = largest
    return corrected


def fewest_samples(level: float, *, paired: bool) -> int:
    """Return the least number of samples of each side with which a p-value can be below a level.

    Args:
        level: The level, divided by the number of tests that p-values are corrected for.
        paired: Whether the samples are pairs.
    """
    return next(n for n in itertools.count(2) if least_shift_p(n, n, paired=paired) < level)


def needed_samples(pair: Pair, change: float, level: float) -> int | None:
    """Return about how many samples of each side show a relative change of the mean.

    By the normal approximation, with a power of 80 % at this two-sided level, and not less than
    `fewest_samples`; `None` if that cannot be computed.
    """
    import numpy as np
    from scipy import stats

    mean = abs(float(np.mean(pair.base)))
    if len(pair.base) < 2 or len(pair.new) < 2 or mean == 0 or change == 0:
        return None
    if pair.is_paired:
        variance = float(np.var(pair.new - pair.base, ddof=1))
    else:
        variance = float(np.var(pair.base, ddof=1) + np.var(pair.new, ddof=1))
    fewest = fewest_samples(level, paired=pair.is_paired)
    factor = float(stats.norm.ppf(1 - level / 2) + stats.norm.ppf(_POWER))
    return max(fewest, math.ceil(factor**2 * variance / (change * mean) ** 2))


def _all_equal(pair: Pair) -> bool:
    return bool((pair.base == pair.base[0]).all() and (pair.new == pair.base[0]).all())
