"""The queued bytes in front of each link and bearer."""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter
from airpath.plot.units import bytes_unit
from airpath.plot.values import numbers
from airpath.quantities import size

_READ = (
    "Queued bytes at each arrival, the new packet included, as a level until the next, and zero when the last packet "
    "has left. "
    "A queue that never empties adds its length divided by the rate to every round trip."
)
_QUEUE = ["component", "direction", "user"]
_MOST_QUEUES = 6
_WORTH_DRAWING = 0.1
"""A queue whose maximum is below this share of the largest one is not drawn."""


def queue(results: Results, *, repetition: int | None = None, bins: int = BINS) -> go.Figure:
    """Draw the backlog of the queues over time.

    Of one result its fullest six, of several the fullest one of each.

    Args:
        results: One result, or several to be overlaid.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points.

    Raises:
        NotLoggedError: A run did not log the `packets` table.
        NothingToDrawError: No packet ever waited behind another.
    """
    runs = drawn(results, repetition)
    thinner = Thinner(bins)
    queues = [(run, each) for run in runs for each in fullest_queues(run, _MOST_QUEUES if len(runs) == 1 else 1)]
    if not queues:
        raise NothingToDrawError("no packet ever waited behind another")
    fullest = max(each["largest"] for _, each in queues)
    if len(runs) == 1:
        queues = [(run, each) for run, each in queues if each["largest"] >= _WORTH_DRAWING * fullest]
    scale, unit = bytes_unit(fullest)
    figure = blank(260, y_title=f"backlog ({unit})", span=max(run.span for run in runs))
    figure.update_yaxes(rangemode="tozero")
    users = {each["user"] for _, each in queues} - {-1}
    words = []
    for number, (run, each) in enumerate(queues):
        name = _name(run, each, of_user=len(users) > 1, of_run=len(runs) > 1)
        index = run.index if len(runs) > 1 else number
        by_direction = len(runs) == 1 and len(users) <= 1
        colour = theme.direction(each["direction"]) if by_direction else theme.series(index)
        rows = thinner(backlog_of(run, each), "backlog_bytes", name)
        style = {"color": colour.light, "width": 1.4, "dash": theme.dash(index), "shape": "hv"}
        x, y = numbers(rows["t"]), numbers(rows["backlog_bytes"], scale)
        figure.add_trace(scatter(x, y, mode="lines", name=name, line=style, hovertemplate="%{x} s: %{y}"))
        words.append(f"{name}, up to {size(each['largest'])} in {each['packets']:,} packets")
    figure.update_layout(showlegend=True)
    alt = f"Backlog over time: {'; '.join(words)}."
    return captioned(figure, Caption("Queue", _READ, alt, thinner.notes()))


def fullest_queues(run: Drawn, most: int) -> list[dict[str, Any]]:
    """Return the queues with the highest backlog; queues that were always empty are left out."""
    return (
        _steps(run)
        .filter(pl.col("step") == "queued")
        .group_by(_QUEUE)
        .agg(largest=pl.col("backlog_bytes").max(), packets=pl.col("backlog_packets").max())
        .filter(pl.col("packets") > 1)
        .sort(["largest", *_QUEUE], descending=[True, False, False, False])
        .head(most)
        .collect()
        .to_dicts()
    )


def backlog_of(run: Drawn, queue: dict[str, Any]) -> pl.DataFrame:
    """Return the backlog at each arrival, and 0 when the last packet has left."""
    steps = _steps(run).filter(*(pl.col(key) == queue[key] for key in _QUEUE)).collect()
    came = steps.filter(step="queued")
    left = steps.filter(pl.col("step") != "queued").join(came.select("packet"), on="packet", how="semi")
    change = pl.when(pl.col("step") == "queued").then(1).otherwise(-1)
    # At the same time, departures come before arrivals.
    ordered = pl.concat([left, came]).sort("t", maintain_order=True).with_columns(inside=change.cum_sum())
    waits = pl.when(pl.col("step") == "queued").then("backlog_bytes").when(pl.col("inside") == 0).then(0)
    return ordered.select("t", backlog_bytes=waits).drop_nulls()


def _steps(run: Drawn) -> pl.LazyFrame:
    """Return the steps of packets at links and bearers.

    `user` is -1 where all users share a queue.
    """
    own = run.result.radio_totals["component"].unique().to_list()
    user = pl.when(pl.col("component").is_in(own)).then("user").otherwise(-1)
    steps = run.events("packets").filter(pl.col("step").is_in(["queued", "delivered", "dropped"]))
    return steps.with_columns(user=user)


def _name(run: Drawn, queue: dict[str, Any], *, of_user: bool, of_run: bool) -> str:
    parts = [f"{queue['component']}, {queue['direction']}"]
    if of_run:
        parts.insert(0, f"{run.label}:")
    if of_user and queue["user"] >= 0:
        parts.append(f"to {run.user(queue['user'])}" if queue["direction"] == "down" else run.user(queue["user"]))
    return " ".join(parts)
