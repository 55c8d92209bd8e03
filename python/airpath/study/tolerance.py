"""When a figure agrees with print."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """A range that is itself what was printed, from the lowest to the highest: `1 to 5`."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The number that stands for it where there is room for one."""
        return (self.low + self.high) / 2

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Within(Range):
    """One figure of which print tells no more than that it lies in a range: `within 26 to 33`."""

    def __str__(self) -> str:
        return f"within {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean that was printed with how far what it was taken over scatters: `205 ± 103`."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:g} ± {self.deviation:g}"


Published = float | Range | Spread
"""A printed figure."""


def middle_of(published: Published) -> float:
    """Return one number for a printed figure."""
    match published:
        case Range():
            return published.middle
        case Spread():
            return published.mean
        case _:
            return published


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from print a figure may lie; one of the three is given."""

    relative: float | None = None
    """As a share of the published value."""
    absolute: float | None = None
    """In the metric's unit."""
    factor: float | None = None
    """As a ratio either way."""

    def admits(self, ours: float, published: Published) -> bool:
        """Return whether our figure is near enough.

        Near a number, or within the spread that was printed with it. In a range, if that is itself what was printed. If
        print tells only that one figure lies in a range, near any number in it: which one it was nobody knows, so that
        ours differs for certain only if it is far from all of them.
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
"""One measure for all figures of all studies, beside what each study admits."""
