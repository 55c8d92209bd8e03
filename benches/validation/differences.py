"""Figures of repetitions, and whether their differences are beyond chance."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dumbbell import Scenario
from programs import Outcome

LARGE = 0.10
"""A relative difference above this limit needs a reason."""
BEYOND_CHANCE = 3.0
"""A difference of means of more than this number of standard errors is not chance."""

Figure = Literal["goodput", "Jain's index", "completion"]


def figures(scenario: Scenario, outcome: Outcome, *, at_sender: bool) -> dict[Figure, float]:
    """Return the compared figures of a repetition: bits per second, an index, or seconds.

    Args:
        scenario: The scenario.
        outcome: What a program reported.
        at_sender: Whether files end with their acknowledgement at the sender.
    """
    if scenario.is_long:
        found: dict[Figure, float] = {"goodput": 8 * sum(outcome.delivered) / scenario.duration}
        if scenario.flows > 1:
            found["Jain's index"] = jain(outcome.delivered)
        return found
    times = outcome.acknowledged if at_sender else outcome.times
    # A file that did not arrive counts with the whole time.
    return {"completion": statistics.fmean(scenario.duration if time is None else time for time in times)}


def jain(shares: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 for equal shares, 1/n if one of n has all."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def deviates(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the difference of two means in standard errors, as a normal deviate.

    Welch's t has few degrees of freedom with few repetitions. Wallace's approximation (1959)
    converts it to the normal deviate of the same probability.
    """
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    parts = [statistics.variance(each) / len(each) for each in (ours, theirs) if len(each) > 1]
    error = sum(parts)
    if error <= (1e-9 * statistics.fmean(theirs)) ** 2:
        return 0.0 if abs(difference) <= 1e-9 * abs(statistics.fmean(theirs)) else math.inf
    sizes = [len(each) for each in (ours, theirs) if len(each) > 1]
    freedom = error**2 / sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    t = abs(difference) / math.sqrt(error)
    return (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))


@dataclass(frozen=True)
class Compared:
    """A figure of a scenario in airpath and in another program."""

    scenario: Scenario
    rival: str
    figure: Figure
    ours: tuple[float, ...]
    """One value for each repetition."""
    theirs: tuple[float, ...]
    repeated: tuple[float, float]
    """The mean shares of retransmissions in both."""
    timeouts: tuple[float, float] | None = None
    """The mean numbers of time-outs in both."""

    @property
    def means(self) -> tuple[float, float]:
        """The means of both."""
        return statistics.fmean(self.ours), statistics.fmean(self.theirs)

    @property
    def difference(self) -> float:
        """The difference of airpath from the other program, relative to that."""
        ours, theirs = self.means
        return ours / theirs - 1 if theirs else (0.0 if ours == 0 else math.inf)

    @property
    def z(self) -> float:
        """The difference in standard errors."""
        return deviates(self.ours, self.theirs)

    @property
    def is_large(self) -> bool:
        """Whether the difference is above the limit, by chance or not."""
        return abs(self.difference) > LARGE

    @property
    def is_beyond(self) -> bool:
        """Whether the difference is large and beyond chance."""
        return self.is_large and self.z > BEYOND_CHANCE
