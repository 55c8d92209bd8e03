"""Published values of a table: lists, nested in the order of its axes."""

from collections.abc import Iterator
from math import prod
from typing import Any

from airpath.study.tolerance import Property, Published, Range, Spread, Within
from airpath.toml_table import Table

PREDICT = "predict"
"""Stands for a value that the study did not publish: ours is a prediction."""


_ANSWERS = {"yes": True, "no": False, PREDICT: None}


def flattened(table: Table, key: str, value: Any, shape: tuple[int, ...]) -> Iterator[Published | None]:
    """Yield the published values in the order of the cases.

    `predict` stands for all values of its level.

    Raises:
        StudyError: The nesting does not match the axes, or a value is invalid.
    """
    if value == PREDICT:
        yield from [None] * prod(shape)
    elif not shape:
        yield _published(table, key, value)
    elif not isinstance(value, list) or len(value) != shape[0]:
        raise table.error(
            f"the published values of '{key}' must be lists nested like the axes",
            "published",
            next_step=f"here a list of {shape[0]} values",
        )
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
        f"a published value of '{key}' must be a number, a range ('26 to 33', 'within 26 to 33'), a mean with its "
        f"spread ('205 ± 103'), a property with our threshold ('yes, at most 20', 'no, at least 8') or '{PREDICT}', "
        f"not {value!r}",
        "published",
    )


def _of_words(words: str) -> Published | None:
    """Parse a range, a mean with its spread, or a property; `None` if the text is none of them."""
    answer, comma, threshold = words.partition(", at ")
    if comma:
        kind, _, limit = threshold.partition(" ")
        try:
            return Property(_ANSWERS[answer], float(limit), {"most": True, "least": False}[kind])
        except (KeyError, ValueError):
            return None
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
