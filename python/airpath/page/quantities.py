"""Sizes and times of page files as numbers."""

from airpath.quantities import parse_size

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def bytes_of(text: str) -> int:
    """Return a size in bytes, as the core writes it: `40 kB`."""
    return parse_size(text)


def seconds_of(text: str) -> float:
    """Return a time in seconds, as the core writes it: `20 ms`."""
    number, _, unit = text.partition(" ")
    return float(number) * _SECONDS[unit]
