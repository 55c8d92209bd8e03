"""Units and meanings of the columns of a result's tables."""

import re

_UNITS = {"per_s": "1/s", "s": "s", "bps": "bit/s", "bytes": "B"}
_SUFFIX = re.compile(r"(?:^|_)(per_s|s|bps|bytes)$")


def unit_of(figure: str) -> str | None:
    """Return the unit in the name of a figure of a summary; `None` for counts, shares and texts."""
    match = _SUFFIX.search(figure)
    return match and _UNITS[match[1]]


def event_columns(table: str) -> dict[str, tuple[str | None, str]]:
    """Return the columns of an event table: their units (`None` as above), and what they contain.

    The files of the table have the same in their metadata.
    """
    from airpath import _native

    return {name: (unit, description) for name, unit, description in dict(_native.event_columns())[table]}
