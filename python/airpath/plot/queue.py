"""What waits in front of each link and bearer."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner, scatter
from airpath.plot.units import bytes_unit
from airpath.plot.values import numbers
from airpath.quantities import size
from airpath.result import Result

_READ = (
    "Bytes that wait, the newcomer included, each time that a packet comes in. A queue that never empties adds its "
    "length over the rate to every round trip."
)
_MOST_QUEUES = 6


def queue(results: Result | Sequence[Result], *, repetition: int | None = None, bins: int = BINS) -> go.Figure:
    """Draw the backlog of the queues over time: of one result its fullest six, of several the fullest one of each.

    Args:
        results: One result, or several to be overlaid.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points.

    Raises:
        NotLoggedError: A run kept no `packets` table.
        NothingToDrawError: No packet ever waited behind another.
    """
    runs = drawn(results, repetition)
    thinner = Thinner(bins)
    queues = [(run, each) for run in runs for each in _fullest(run, _MOST_QUEUES if len(runs) == 1 else 1)]
    if not queues:
        raise NothingToDrawError("no packet ever waited behind another")
    scale, unit = bytes_unit(max(each["largest"] for _, each in queues))
    figure = blank(260, y_title=f"backlog ({unit})", span=max(run.span for run in runs))
    figure.update_yaxes(rangemode="tozero")
    users = {each["user"] for _, each in queues}
    words = []
    for number, (run, each) in enumerate(queues):
        name = _name(run, each, of_user=len(users) > 1, of_run=len(runs) > 1)
        index = run.index if len(runs) > 1 else number
        by_direction = len(runs) == 1 and len(users) == 1
        colour = theme.direction(each["direction"]) if by_direction else theme.series(index)
        rows = thinner(_backlog(run, each), "backlog_bytes", name)
        style = {"color": colour.light, "width": 1.4, "dash": theme.dash(index)}
        x, y = numbers(rows["t"]), numbers(rows["backlog_bytes"], scale)
        figure.add_trace(scatter(x, y, mode="lines", name=name, line=style, hovertemplate="%{x} s: %{y}"))
        words.append(f"{name}, up to {size(each['largest'])} in {each['packets']:,} packets")
    figure.update_layout(showlegend=True)
    alt = f"Backlog over time: {'; '.join(words)}."
    return captioned(figure, Caption("Queue", _READ, alt, thinner.notes()))


def _fullest(run: Drawn, most: int) -> list[dict[str, Any]]:
    """Return the queues that held most, by component, direction and user; those where nothing ever waited are none."""
    return (
        run.events("packets")
        .filter(pl.col("step") == "queued")
        .group_by("component", "direction", "user")
        .agg(largest=pl.col("backlog_bytes").max(), packets=pl.col("backlog_packets").max())
        .filter(pl.col("packets") > 1)
        .sort(["largest", "component", "direction", "user"], descending=[True, False, False, False])
        .head(most)
        .collect()
        .to_dicts()
    )


def _backlog(run: Drawn, queue: dict[str, Any]) -> pl.DataFrame:
    of_queue = [pl.col(key) == queue[key] for key in ("component", "direction", "user")]
    queued = run.events("packets").filter(pl.col("step") == "queued", *of_queue)
    return queued.select("t", "backlog_bytes").collect().sort("t", maintain_order=True)


def _name(run: Drawn, queue: dict[str, Any], *, of_user: bool, of_run: bool) -> str:
    parts = [f"{queue['component']}, {queue['direction']}"]
    if of_run:
        parts.insert(0, f"{run.label}:")
    if of_user:
        parts.append(f"to {run.user(queue['user'])}" if queue["direction"] == "down" else run.user(queue["user"]))
    return " ".join(parts)
