"""The distribution of the latencies of terminals and mail."""

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS
from airpath.plot.traces import scatter
from airpath.plot.units import seconds_unit
from airpath.plot.values import largest, numbers

_KINDS = ("terminal", "mail")


def latency_share(results: Results, *, bins: int = BINS) -> go.Figure:
    """Draw the distribution of the latencies of terminals and mail: of one result by kind.

    Raises:
        NotLoggedError: A run did not log the `app` table.
        NothingToDrawError: There is neither a terminal nor mail with a complete response.
    """
    runs = drawn(results)
    pooled = [(name, values) for run in runs for name, values in _latencies(run, by_kind=len(runs) == 1)]
    longest = max((largest(values) for _, values in pooled), default=0.0)
    if longest == 0:
        raise NothingToDrawError("the run has neither a terminal nor mail with a complete response")
    scale, unit = seconds_unit(longest)
    figure = blank(280, x_title=f"latency ({unit})", y_title="share at most (%)")
    figure.update_yaxes(range=[0, 101])
    shortest = min(values[0] for _, values in pooled)
    if longest > 20 * shortest > 0:
        figure.update_xaxes(type="log")
    else:
        figure.update_xaxes(rangemode="tozero")
    words = []
    for index, (name, values) in enumerate(pooled):
        points = min(values.len(), bins)
        share = pl.Series([(place + 1) / points for place in range(points)])
        at = pl.Series([values[max(round(each * values.len()) - 1, 0)] for each in share])
        style = {"color": theme.series(index).light, "width": 2, "dash": theme.dash(index), "shape": "hv"}
        label = f"{name} ({values.len():,})"
        trace = scatter(numbers(at, scale), numbers(share, 100), name=label, mode="lines+markers", line=style)
        marker = {"size": 4} if points < 3 else {"size": 1}
        figure.add_trace(trace.update(hovertemplate="%{y} % within %{x}", showlegend=True, marker=marker))
        words.append(f"{name}, half within {at[(points - 1) // 2] * scale:.4g} {unit}")
    read = (
        "The share of interactions that were complete within the time on the axis: from the action of the user to the "
        "last byte of its display. A line further left is better."
    )
    return captioned(figure, Caption("Interaction times", read, f"Share by latency: {'; '.join(words)}."))


def _latencies(run: Drawn, *, by_kind: bool) -> list[tuple[str, pl.Series]]:
    """Return the sorted latencies of all repetitions, in seconds, by kind or of the run."""
    flows = {flow["flow"] for flow in run.flows if flow["kind"] in _KINDS}
    if not flows:
        return []
    rows = run.result.scan("app").filter((pl.col("step") == "arrived") & pl.col("flow").is_in(flows))
    delays = rows.select("repetition", "flow", "sequence", latency=pl.col("delay") / 1e9).collect()
    if not by_kind:
        return [(run.label, delays["latency"].sort())] if delays.height else []
    scripts = run.result.scripts.select("repetition", "flow", pl.col("first").alias("sequence"), "kind")
    joined = delays.with_columns(pl.col("repetition", "flow", "sequence").cast(pl.Int64)).sort("sequence")
    joined = joined.join_asof(
        scripts.sort("sequence"), on="sequence", by=["repetition", "flow"], check_sortedness=False
    )
    return [
        (kind, own["latency"].sort())
        for (kind,), own in sorted(joined.group_by("kind"), key=lambda each: str(each[0][0]))
    ]
