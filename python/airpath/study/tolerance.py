"""When a figure agrees with print."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """What was printed as a range: `26 to 33`."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The number that stands for it where there is room for one."""
        return (self.low + self.high) / 2

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


Published = float | Range
"""A printed figure."""


def middle_of(published: Published) -> float:
    """Return one number for a printed figure."""
    return published.middle if isinstance(published, Range) else published


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
        """Return whether our figure is near enough: within a printed range, or near its middle."""
        if isinstance(published, Range):
            return published.low <= ours <= published.high or self.admits(ours, published.middle)
        if self.factor is not None:
            return published / self.factor <= ours <= published * self.factor
        room = self.absolute if self.absolute is not None else (self.relative or 0.0) * abs(published)
        return abs(ours - published) <= room
