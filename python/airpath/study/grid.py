"""Published values as a study prints them: lists nested as the axes of a table are."""

from collections.abc import Iterator
from math import prod
from typing import Any

from airpath.study.table import Table
from airpath.study.tolerance import Published, Range, Spread, Within

PREDICT = "predict"
"""In the place of a published value: the study printed none, ours is a prediction."""


def flattened(table: Table, key: str, value: Any, shape: tuple[int, ...]) -> Iterator[Published | None]:
    """Yield published values in the order of the cases: nested as the axes are, `predict` for all below it.

    Raises:
        StudyError: They are not nested so, or one of them is neither a number nor a range.
    """
    if value == PREDICT:
        yield from [None] * prod(shape)
    elif not shape:
        yield _published(table, key, value)
    elif not isinstance(value, list) or len(value) != shape[0]:
        raise table.error(f"the published values of '{key}' must be lists nested as the axes are: {shape[0]} here")
    else:
        for each in value:
            yield from flattened(table, key, each, shape[1:])


def _published(table: Table, key: str, value: Any) -> Published:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        found = _of_words(value)
        if found is not None:
            return found
    raise table.error(
        f"a published value of '{key}' is neither a number, a range as '26 to 33' or 'within 26 to 33', "
        f"a mean with its spread as '205 ± 103', nor '{PREDICT}': {value!r}"
    )


def _of_words(words: str) -> Published | None:
    """Return the range, or the mean with its spread, that words say; `None` if they say neither."""
    bounds = words.removeprefix("within ")
    try:
        if "±" in words:
            mean, deviation = map(float, words.split("±"))
            return Spread(mean, deviation) if deviation >= 0 else None
        low, high = map(float, bounds.split(" to "))
    except ValueError:
        return None
    if low > high:
        return None
    return Range(low, high) if bounds == words else Within(low, high)
