"""Thins the points of a line: of each bin of time the first, last, lowest and highest remain."""

from dataclasses import dataclass, field

import polars as pl

BINS = 1000
"""Bins of time across a figure, about one pixel each."""


@dataclass
class Thinner:
    """Thins the lines of a figure, and records which for the figure's notes."""

    bins: int = BINS
    thinned: list[str] = field(default_factory=list)

    def __call__(self, frame: pl.DataFrame, y: str, name: str) -> pl.DataFrame:
        """Return the rows of `frame`, ordered by `t`, that the line `name` of `y` shows."""
        kept = thin(frame, y, self.bins)
        if kept.height < frame.height:
            self.thinned.append(f"{name} ({kept.height:,} of {frame.height:,} points)")
        return kept

    def notes(self) -> list[str]:
        """Return a note about the thinned lines, if there are any."""
        if not self.thinned:
            return []
        which = "; ".join(self.thinned)
        return [f"Thinned to the extremes of each of {self.bins:,} spans of time: {which}."]


def thin(frame: pl.DataFrame, y: str, bins: int = BINS) -> pl.DataFrame:
    """Return the rows with the first, last, lowest and highest `y` of each bin of `t`.

    Args:
        frame: Rows in the order of their `t`, in seconds.
        y: The column that is drawn.
        bins: Into how many bins of equal length the time is cut; a frame of up to four rows a bin
            stays as it is.
    """
    if frame.height <= 4 * bins:
        return frame
    start, end = frame["t"][0], frame["t"][-1]
    scale = bins / (end - start) if end > start else 0.0
    row = pl.col("row")
    kept = (
        frame.lazy()
        .select(pl.int_range(pl.len()).alias("row"), bin=((pl.col("t") - start) * scale).floor(), y=y)
        .group_by("bin")
        .agg(
            row.first().alias("first"),
            row.last().alias("last"),
            row.get(pl.col("y").arg_min(), null_on_oob=True).alias("lowest"),
            row.get(pl.col("y").arg_max(), null_on_oob=True).alias("highest"),
        )
        .unpivot(["first", "last", "lowest", "highest"])
        .select(pl.col("value").drop_nulls().unique().sort())
        .collect()
    )
    return frame[kept["value"]]


def changes(frame: pl.DataFrame, y: str) -> pl.DataFrame:
    """Return the rows where `y` changes, and the last: the points of a stepped line."""
    changed = pl.col(y).ne_missing(pl.col(y).shift()) | (pl.int_range(pl.len()) == pl.len() - 1)
    return frame.filter(changed | (pl.int_range(pl.len()) == 0))
