"""Bands of a bar of time: wide pieces as they are, narrow ones as stacks of their shares."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from airpath.quantities import seconds
from airpath.trace.causes import CAUSES

COLUMNS = 600
"""Columns of a bar: each is about as wide as a pixel, or wider."""
_WIDE = 3
"""A piece of as many columns or more is drawn as it is."""

Row = dict[str, Any]


def bands(pieces: pl.DataFrame, span: float) -> pl.DataFrame:
    """Return the rectangles that show pieces on a bar from y = -0.5 to 0.5.

    Pieces narrower than a pixel are drawn a pixel wide, one over the other. So adjacent narrow
    pieces are divided into columns, and each column is a stack of the shares of its causes.

    Args:
        pieces: The contiguous pieces of one flow, as `FlowView.pieces`.
        span: The seconds of the whole bar.

    Returns:
        A row for each rectangle: `cause`; `t` and `length`, in seconds; `level`, the middle of its
        height on the y axis, and `height`; `text`, what it shows.
    """
    column = span / COLUMNS
    rows: list[Row] = []
    for is_wide, group in groupby(pieces.iter_rows(named=True), key=lambda row: row["length"] >= _WIDE * column):
        run = list(group)
        rows += [_whole(row) for row in run] if is_wide else _stacks(run, column)
    kinds = {"cause": pl.String, "t": pl.Float64, "length": pl.Float64}
    kinds |= {"level": pl.Float64, "height": pl.Float64, "text": pl.String}
    return pl.DataFrame(rows, schema=kinds)


def _whole(piece: Row) -> Row:
    text = (
        f"{seconds(piece['length'])} from {piece['t']:.3f} s<br>frames {piece['first_frame']} to {piece['last_frame']}"
    )
    return {**{name: piece[name] for name in ("cause", "t", "length")}, "level": 0.0, "height": 1.0, "text": text}


def _stacks(pieces: Sequence[Row], column: float) -> Iterator[Row]:
    """Yield the rectangles of contiguous narrow pieces, column by column."""
    if len(pieces) == 1:
        yield _whole(pieces[0])
        return
    begin, end = pieces[0]["t"], pieces[-1]["t"] + pieces[-1]["length"]
    count = max(1, round((end - begin) / column))
    width, first = (end - begin) / count, 0
    for index in range(count):
        left, right = begin + index * width, begin + (index + 1) * width
        parts: dict[str, float] = {}
        while first < len(pieces) - 1 and pieces[first]["t"] + pieces[first]["length"] <= left:
            first += 1
        for last in range(first, len(pieces)):
            piece = pieces[last]
            if piece["t"] >= right:
                break
            part = min(piece["t"] + piece["length"], right) - max(piece["t"], left)
            parts[piece["cause"]] = parts.get(piece["cause"], 0.0) + max(part, 0.0)
        yield from _stack(parts, left, width)


def _stack(parts: dict[str, float], left: float, width: float) -> Iterator[Row]:
    """Yield one column: the shares of its causes from the bottom, in the order of `CAUSES`."""
    whole, bottom = sum(parts.values()), -0.5
    for cause in CAUSES:
        share = parts.get(cause.name, 0.0) / whole if whole else 0.0
        if not share:
            continue
        text = f"{seconds(parts[cause.name])} of {seconds(width)} from {left:.3f} s"
        yield {
            "cause": cause.name,
            "t": left,
            "length": width,
            "level": bottom + share / 2,
            "height": share,
            "text": text,
        }
        bottom += share
