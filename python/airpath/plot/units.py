"""The unit of an axis: one that keeps its numbers short. Bytes are never mixed with bits."""

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def bytes_unit(largest: float) -> tuple[float, str]:
    """Return the factor from bytes to the unit, and the unit."""
    return _unit(largest, "B")


def rate_unit(largest: float) -> tuple[float, str]:
    """Return the factor from bit/s to the unit, and the unit."""
    return _unit(largest, "bit/s")


def seconds_unit(largest: float) -> tuple[float, str]:
    """Return the factor from seconds to the unit, and the unit."""
    return (1.0, "s") if largest >= 10 else (1e3, "ms")


def _unit(largest: float, name: str) -> tuple[float, str]:
    for factor, prefix in _PREFIXES:
        if largest >= 2 * factor:
            return 1 / factor, prefix + name
    return 1.0, name
