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
    types = pl.Schema({column: getattr(pl, kind) for column, kind in TABLES[name].items()})
    # The core has the rows of QUIC flows in a table of their own.
    parts = [tables[each] for each in (name, f"quic_{name}") if each in tables]
    frames = [_complete(pl.DataFrame([_series(*column) for column in part]), types) for part in parts]
    return pl.concat(frames) if frames else pl.DataFrame(schema=types)


def _complete(frame: pl.DataFrame, types: pl.Schema) -> pl.DataFrame:
    """Return a frame with the types of its table; a column that it lacks has no values."""
    missing = [pl.lit(None).alias(name) for name in types if name not in frame.columns]
    return frame.with_columns(missing).select(types.names()).cast(types)


def _series(name: str, kind: str, values: Any, present: bytes | None) -> pl.Series:
    if kind == "text":
        return pl.Series(name, values, dtype=pl.String)
    code, dtype = _KINDS[kind]
    series = pl.Series(name, array(code, values)).cast(dtype)
    if present is None:
        return series
    missing = pl.Series(array("b", present)) == 0
    return series.to_frame().select(pl.when(~missing).then(pl.col(name)).alias(name)).to_series()
