"""How the delays of datagrams and pings are distributed: the bars of a histogram, and their deviation."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from statistics import pstdev

from airpath.result import Result
from airpath.study.metrics import Flow, Given, Metric

KEY = "delays"
"""Where in a flow its delays stand."""

_BAR_S = 0.1
_BARS = 10


def observe(result: Result) -> list[Sequence[float]]:
    """Return the delays of each flow of the summary, in seconds, rising; without those of what was lost."""
    import polars as pl

    arrived = result.scan("app").filter(pl.col("step") == "arrived").sort("delay")
    delays: dict[tuple[int, int], list[float]] = {}
    for repetition, flow, delay in arrived.select("repetition", "flow", pl.col("delay") / 1e9).collect().rows():
        delays.setdefault((repetition, flow), []).append(delay)
    return [delays.get((flow["repetition"], flow["flow"]), []) for flow in result.summary["flows"]]


def _share(low: float, high: float) -> Callable[[Sequence[Flow], Given], float]:
    """Return the formula of the share of datagrams that were delayed by so much: above one, up to the other."""

    def formula(flows: Sequence[Flow], _: Given) -> float:
        delays = sorted(each for flow in flows for each in flow[KEY])
        return 100 * (bisect_left(delays, high) - bisect_left(delays, low)) / len(delays)

    return formula


def _deviation(flows: Sequence[Flow], _: Given) -> float:
    return 1e3 * pstdev(each for flow in flows for each in flow[KEY])


DELAY_METRICS = {
    name: Metric(name, "%", 1, _share(low, high), observed=KEY)
    for name, low, high in (
        *((f"delays-of-{100 * bar}-to-{100 * (bar + 1)}-ms", bar * _BAR_S, (bar + 1) * _BAR_S) for bar in range(_BARS)),
        ("delays-of-a-second-or-more", _BARS * _BAR_S, float("inf")),
    )
} | {"ping-deviation": Metric("ping-deviation", "ms", 1, _deviation, observed=KEY)}
"""By name."""
