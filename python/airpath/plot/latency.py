"""The latencies of terminals, mail and transactions, over time and as a distribution."""

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import Drawn, NothingToDrawError, Results, drawn, flows_of
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter
from airpath.plot.units import seconds_unit
from airpath.plot.values import largest, numbers

KINDS = ("terminal", "mail", "transactions")
"""The kinds of flows whose user waits for responses."""

_NOTHING = "the run has no terminal, mail or transaction with a complete response"


def latency(results: Results, *, repetition: int | None = None, bins: int = BINS) -> go.Figure:
    """Draw how long each response of terminals, mail and transactions took, over time.

    Args:
        results: One result, or several to be overlaid.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points.

    Raises:
        NotLoggedError: A run did not log the `app` table.
        NothingToDrawError: There is no such flow with a complete response.
    """
    runs = drawn(results, repetition)
    chosen, notes = flows_of(runs, KINDS)
    seen = [(label, _responses(run, flow["flow"])) for run, flow, label in chosen]
    seen = [(label, responses) for label, responses in seen if responses.height]
    if not seen:
        raise NothingToDrawError(_NOTHING)
    scale, unit = seconds_unit(max(largest(responses["latency"]) for _, responses in seen))
    figure = blank(260, y_title=f"time ({unit})", span=max(run.span for run in runs))
    figure.update_yaxes(rangemode="tozero")
    thinner = Thinner(bins)
    words = []
    for index, (label, responses) in enumerate(seen):
        kept = thinner(responses, "latency", label)
        style = {"color": theme.series(index).light, "width": 1, "dash": theme.dash(index)}
        x, y = numbers(kept["t"]), numbers(kept["latency"], scale)
        trace = scatter(x, y, name=label, mode="lines+markers", line=style, marker={"size": 4})
        figure.add_trace(trace.update(hovertemplate=f"complete at %{{x}} s: %{{y}} {unit}"))
        half = responses["latency"].sort()[(responses.height - 1) // 2] * scale
        words.append(f"{label}, {responses.height:,} responses, half within {half:.4g} {unit}")
    figure.update_layout(showlegend=len(seen) > 1)
    read = (
        "Each dot is an interaction, at the time at which it was complete: how long the user waited from the action to "
        "the last byte of the response."
    )
    alt = f"Interaction times over time: {'; '.join(words)}."
    return captioned(figure, Caption("Interactions", read, alt, notes + thinner.notes()))


def _responses(run: Drawn, flow: int) -> pl.DataFrame:
    """Return the completed responses of a flow of the drawn repetition, in seconds."""
    own = (pl.col("repetition") == run.repetition) & (pl.col("flow") == flow) & (pl.col("step") == "arrived")
    rows = run.result.scan("app").filter(own & pl.col("delay").is_not_null()).sort("time", maintain_order=True)
    return rows.select(t=pl.col("time") / 1e9, latency=pl.col("delay") / 1e9).collect()


def latency_share(results: Results, *, bins: int = BINS) -> go.Figure:
    """Draw the distribution of the latencies of terminals, mail and transactions.

    Those of one result by kind.

    Raises:
        NotLoggedError: A run did not log the `app` table.
        NothingToDrawError: There is no such flow with a complete response.
    """
    runs = drawn(results)
    pooled = [(name, values) for run in runs for name, values in _latencies(run, by_kind=len(runs) == 1)]
    longest = max((largest(values) for _, values in pooled), default=0.0)
    if longest == 0:
        raise NothingToDrawError(_NOTHING)
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
    flows = {flow["flow"]: flow["kind"] for flow in run.flows if flow["kind"] in KINDS}
    if not flows:
        return []
    rows = run.result.scan("app").filter((pl.col("step") == "arrived") & pl.col("flow").is_in(list(flows)))
    delays = rows.select("repetition", "flow", "sequence", latency=pl.col("delay") / 1e9).collect()
    if not by_kind:
        return [(run.label, delays["latency"].sort())] if delays.height else []
    scripts = run.result.scripts.select("repetition", "flow", pl.col("first").alias("sequence"), "kind")
    joined = delays.with_columns(pl.col("repetition", "flow", "sequence").cast(pl.Int64)).sort("sequence")
    joined = joined.join_asof(
        scripts.sort("sequence"), on="sequence", by=["repetition", "flow"], check_sortedness=False
    )
    # A transaction has no script, which would name the kind of its exchanges.
    joined = joined.with_columns(pl.col("kind").fill_null(pl.col("flow").replace_strict(flows)))
    return [
        (kind, own["latency"].sort())
        for (kind,), own in sorted(joined.group_by("kind"), key=lambda each: str(each[0][0]))
    ]
