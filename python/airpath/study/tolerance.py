"""When a figure agrees with print."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from print a figure may lie; one of the three is given."""

    relative: float | None = None
    """As a share of the published value."""
    absolute: float | None = None
    """In the metric's unit."""
    factor: float | None = None
    """As a ratio either way."""

    def admits(self, ours: float, published: float) -> bool:
        """Return whether our figure is near enough."""
        if self.factor is not None:
            return published / self.factor <= ours <= published * self.factor
        room = self.absolute if self.absolute is not None else (self.relative or 0.0) * abs(published)
        return abs(ours - published) <= room
