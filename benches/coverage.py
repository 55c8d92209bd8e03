"""How often the 95 % interval of a mean covers it: of a number of repetitions, and of `within`.

    python benches/coverage.py [--runs 10000]

The samples are the times of downloads over some bearers, and their mean is that of all runs. Each
interval has repetitions of its own; with `within` as many as a sweep takes.
"""

import argparse
from collections.abc import Sequence
from math import sqrt
from statistics import fmean, quantiles, stdev

from airpath.run import execute
from airpath.statistics import RunningMean, mean_interval, student_t

DOWNLOADS = (("gprs", "5 kB"), ("gprs", "100 kB"), ("umts", "50 kB"), ("hs-dsch-384", "200 kB"))
NUMBERS = (10, 30, 100)
WITHIN, LEAST, MOST = 0.05, 10, 1000


def main() -> None:
    """Print the share of the intervals that cover the mean, for each download."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    for preset, size in DOWNLOADS:
        overrides = {"flow.bytes": size, "bearer.bler": 0.1} if preset.startswith("hs") else {"flow.bytes": size}
        times = [flow["duration_s"] for flow in execute(preset, set=overrides, repeat=runs)["flows"]]
        mean = fmean(times)
        middle, last = (quantiles(times, n=100)[share - 1] / mean for share in (50, 99))
        fixed = ", ".join(f"{_fixed(times, number):.1%} of {number}" for number in NUMBERS)
        covered, number = _within(times)
        print(
            f"{size} over {preset}: deviation {stdev(times) / mean:.1%}, median {middle:.2f} and 99 % {last:.2f} of "
            f"the mean; covered by {fixed} repetitions; {covered:.1%} with {number:.1f} of them, within {WITHIN:.0%}"
        )


def _fixed(samples: Sequence[float], number: int) -> float:
    """Return the share of the intervals of this number of samples that cover the mean of all."""
    mean = fmean(samples)
    parts = [mean_interval(samples[first : first + number]) for first in range(0, len(samples) - number + 1, number)]
    return sum(part.low <= mean <= part.high for part in parts) / len(parts)


def _within(samples: Sequence[float]) -> tuple[float, float]:
    """Return the same for intervals that end when they are narrow enough, and their samples."""
    mean = fmean(samples)
    cases = covered = start = 0
    while start + MOST < len(samples):
        case, count = RunningMean(), LEAST
        while count:
            for sample in samples[start + case.n : start + case.n + count]:
                case.add(sample)
            count = 0 if case.is_within(WITHIN) else min(LEAST // 2, MOST - case.n)
        half = student_t(case.n - 1) * sqrt(case.squares / (case.n - 1) / case.n)
        cases, covered, start = cases + 1, covered + (abs(case.mean - mean) <= half), start + case.n
    return covered / cases, start / cases


if __name__ == "__main__":
    main()
