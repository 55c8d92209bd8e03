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


@dataclass(frozen=True, slots=True)
class Property:
    """A published yes or no, and our threshold for a yes: `yes, at most 20`."""

    published: bool | None
    """`None` if the study does not judge this case."""
    limit: float
    at_most: bool
    """Whether a yes needs a figure of at most `limit`, or of at least `limit`."""

    def holds(self, ours: float) -> bool:
        """Return whether our figure means yes."""
        return ours <= self.limit if self.at_most else ours >= self.limit

    @property
    def threshold(self) -> str:
        """The condition for a yes."""
        return f"{'at most' if self.at_most else 'at least'} {self.limit:g}"

    def __str__(self) -> str:
        return f"{'predict' if self.published is None else yes_or_no(self.published)}, {self.threshold}"


def yes_or_no(holds: bool) -> str:
    """Return the word for an answer."""
    return "yes" if holds else "no"


Published = float | Range | Spread | Property
"""A published figure."""


def middle_of(published: Published) -> float:
    """Return one number for a published figure; the threshold of a property."""
    match published:
        case Range():
            return published.middle
        case Spread():
            return published.mean
        case Property():
            return published.limit
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
        it. So ours agrees within the tolerance of any of them. A property has no tolerance.
        """
        match published:
            case Within(low=low, high=high):
                return low <= ours <= high or self.admits(ours, low) or self.admits(ours, high)
            case Range(low=low, high=high):
                return low <= ours <= high
            case Spread(mean=mean, deviation=deviation):
                return abs(ours - mean) <= deviation or self.admits(ours, mean)
            case Property():
                return published.holds(ours) == published.published
        if self.factor is not None:
            return published / self.factor <= ours <= published * self.factor
        room = self.absolute if self.absolute is not None else (self.relative or 0.0) * abs(published)
        return abs(ours - published) <= room


UNIFORM = Tolerance(relative=0.15)
"""The tolerance that all studies share, besides their own."""
