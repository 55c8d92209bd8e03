"""Columns as plain numbers for figures."""

from math import ceil, log10
from typing import Any

import polars as pl


def numbers(values: pl.Series, scale: float = 1.0) -> list[Any]:
    """Return values for a figure: scaled, rounded to six significant digits of the largest."""
    scaled = values.cast(pl.Float64) * scale
    most = largest(scaled.abs())
    if most <= 0:
        return scaled.to_list()
    return scaled.round(max(6 - ceil(log10(most)), 0)).to_list()


def largest(values: pl.Series) -> float:
    """Return the largest value, 0 if there is none."""
    return _number(values.max())


def smallest(values: pl.Series) -> float:
    """Return the smallest value, 0 if there is none."""
    return _number(values.min())


def average(values: pl.Series) -> float:
    """Return the mean, 0 if there is no value."""
    return _number(values.mean())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
