"""Distribution of the delays of datagrams and pings: the bins of a histogram, and the deviation."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from statistics import fmean, pstdev

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "delays"
"""The key of the delays in a flow."""

_BIN_S = 0.1
_BINS = 10


def observe(result: Result) -> list[Sequence[float]]:
    """Return the delays of each flow of the summary, in seconds, sorted; lost packets have none."""
    import polars as pl

    arrived = result.scan("app").filter(pl.col("step") == "arrived").sort("delay")
    delays: dict[tuple[int, int], list[float]] = {}
    for repetition, flow, delay in arrived.select("repetition", "flow", pl.col("delay") / 1e9).collect().rows():
        delays.setdefault((repetition, flow), []).append(delay)
    return [delays.get((flow["repetition"], flow["flow"]), []) for flow in result.summary["flows"]]


def _share(low: float, high: float) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the percentage of delays of at least `low` and below `high`."""

    def formula(flows: Sequence[Flow], _: Inputs) -> float:
        delays = sorted(each for flow in flows for each in flow[KEY])
        return 100 * (bisect_left(delays, high) - bisect_left(delays, low)) / len(delays)

    return formula


def _deviation(flows: Sequence[Flow], _: Inputs) -> float:
    return 1e3 * pstdev(each for flow in flows for each in flow[KEY])


def _relative_deviation(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the standard deviation of the delays as a percentage of their mean."""
    delays = [each for flow in flows for each in flow[KEY]]
    return 100 * pstdev(delays) / fmean(delays)


DELAY_METRICS = {
    name: Metric(name, "%", 1, _share(low, high), observer_name=KEY)
    for name, low, high in (
        *((f"delays-of-{100 * at}-to-{100 * (at + 1)}-ms", at * _BIN_S, (at + 1) * _BIN_S) for at in range(_BINS)),
        ("delays-of-a-second-or-more", _BINS * _BIN_S, float("inf")),
    )
} | {
    "ping-deviation": Metric("ping-deviation", "ms", 1, _deviation, observer_name=KEY),
    "relative-ping-deviation": Metric("relative-ping-deviation", "%", 1, _relative_deviation, observer_name=KEY),
}
"""The metrics by name."""
