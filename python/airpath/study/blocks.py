"""Transport blocks of an LTE or NR cell: the share of first transmissions in error."""

from collections.abc import Sequence
from dataclasses import dataclass

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "blocks"
"""The key of the observation in a flow."""

_SETTLED_NS = 2_000_000_000
"""Blocks before this time are left out: the outer loop settles."""


@dataclass(frozen=True, slots=True)
class Observation:
    """First transmissions downwards of a repetition, after the outer loop has settled."""

    sent: int
    errored: int


def observe(result: Result) -> list[Observation]:
    """Return an observation for each flow of a run's summary: that of its repetition."""
    import polars as pl

    first = result.scan("radio").filter(
        pl.col("direction") == "down", pl.col("repeated") == 0, pl.col("time") >= _SETTLED_NS
    )
    counts = first.group_by("repetition").agg(pl.len().alias("sent"), (pl.col("errored") > 0).sum().alias("errored"))
    seen = {repetition: Observation(sent, errored) for repetition, sent, errored in counts.collect().rows()}
    return [seen.get(flow["repetition"], Observation(0, 0)) for flow in result.summary["flows"]]


def _first_errors(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the percentage of first transmissions that were in error; `nan` without any."""
    blocks: Observation = flows[0][KEY]
    return 100 * blocks.errored / blocks.sent if blocks.sent else float("nan")


BLOCK_METRICS = {
    "first-block-errors": Metric("first-block-errors", "%", 2, _first_errors, observer_name=KEY),
}
"""The metrics by name."""
