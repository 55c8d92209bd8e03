"""Published figures, and when ours agrees with one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """A published range, from the lowest to the highest value: `1 to 5`."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Within(Range):
    """One figure, published only as lying in a range: `within 26 to 33`."""

    def __str__(self) -> str:
        return f"within {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean, published with the standard deviation of its samples: `205 ± 103`."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:g} ± {self.deviation:g}"


Published = float | Range | Spread
"""A published figure."""


def middle_of(published: Published) -> float:
    """Return one number for a published figure."""
    match published:
        case Range():
            return published.middle
        case Spread():
            return published.mean
        case _:
            return published


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from the published figure ours may lie; exactly one of the three is set."""

    relative: float | None = None
    """As a share of the published value."""
    absolute: float | None = None
    """In the metric's unit."""
    factor: float | None = None
    """As a ratio, in either direction."""

    def admits(self, ours: float, published: Published) -> bool:
        """Return whether our figure agrees.

        It agrees with a number within the tolerance, with a mean also within its spread, and with a
        range inside of it. A figure that was published as lying within a range may be any number in
        it. So ours agrees within the tolerance of any of them.
        """
        match published:
            case Within(low=low, high=high):
                return low <= ours <= high or self.admits(ours, low) or self.admits(ours, high)
            case Range(low=low, high=high):
                return low <= ours <= high
            case Spread(mean=mean, deviation=deviation):
                return abs(ours - mean) <= deviation or self.admits(ours, mean)
        if self.factor is not None:
            return published / self.factor <= ours <= published * self.factor
        room = self.absolute if self.absolute is not None else (self.relative or 0.0) * abs(published)
        return abs(ours - published) <= room


UNIFORM = Tolerance(relative=0.15)
"""The tolerance that all studies share, besides their own."""
