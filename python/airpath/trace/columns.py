"""Converts the core's columns to frames."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from airpath.trace.tables import TABLES

Columns = Sequence[tuple[str, str, Any, bytes | None]]
"""Name, kind, values, and an optional mask with one byte per row: 1 for a value, 0 for a missing
one.

Whole and real numbers are the bytes of an array in native byte order, flags are single bytes, texts
a list."""

_KINDS = {"whole": ("q", pl.Int64), "real": ("d", pl.Float64), "flag": ("b", pl.Boolean)}


def table(name: str, tables: Mapping[str, Columns]) -> pl.DataFrame:
    """Return one of the core's tables as a frame; a table that is missing has no rows."""
    types = {column: getattr(pl, kind) for column, kind in TABLES[name].items()}
    if name not in tables:
        return pl.DataFrame(schema=types)
    return pl.DataFrame([_series(*column) for column in tables[name]]).cast(pl.Schema(types))


def _series(name: str, kind: str, values: Any, present: bytes | None) -> pl.Series:
    if kind == "text":
        return pl.Series(name, values, dtype=pl.String)
    code, dtype = _KINDS[kind]
    series = pl.Series(name, array(code, values)).cast(dtype)
    if present is None:
        return series
    missing = pl.Series(array("b", present)) == 0
    return series.to_frame().select(pl.when(~missing).then(pl.col(name)).alias(name)).to_series()
