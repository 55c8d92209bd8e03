"""The radio log of a run, on the time axis of a captured connection."""

from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go
import polars as pl

from airpath.plot.selection import Drawn
from airpath.plot.tracks import tracks_of
from airpath.result import load
from airpath.trace.figures.view import FlowView
from airpath.trace.radio_log import origin_of

_TRACK_KEYS = ("component", "user", "direction", "aspect")


@dataclass(frozen=True)
class _Shifted(Drawn):
    """A run on the time axis of a connection."""

    begin: float
    """When the connection began, in seconds of the run."""
    length: float

    def events(self, table: str) -> pl.LazyFrame:
        """Return the events from the connection's start to its end, and the states at its start."""
        rows = super().events(table).with_columns(t=pl.col("t") - self.begin).filter(pl.col("t") <= self.length)
        if table != "states":
            return rows.filter(pl.col("t") >= 0)
        before = rows.filter(pl.col("t") < 0).group_by(*_TRACK_KEYS, maintain_order=True).last()
        columns = rows.collect_schema().names()
        return pl.concat([before.with_columns(t=pl.lit(0.0)).select(columns), rows.filter(pl.col("t") >= 0)])

    @property
    def span(self) -> float:  # type: ignore[override]
        """The connection's seconds."""
        return self.length


def radio_tracks(view: FlowView, run: Path, repetition: int) -> go.Figure:
    """Draw the radio log of a result folder on the time axis of a connection.

    Raises:
        UnreadableResultError: The folder is no result.
        NotLoggedError: The run did not log its radio.
        NothingToDrawError: No bearer reported a state.
    """
    result = load(run)
    begin = (view.flow["start"] - origin_of(result)) / 1e9
    return tracks_of([_Shifted(result, str(result.summary["scenario"]), 0, repetition, begin, view.span)])
