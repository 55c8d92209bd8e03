"""Delays of datagrams and pings: the bins of a histogram, quantiles, the deviation, and bursts."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, pstdev

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "delays"
"""The key of the delays in a flow: a sequence of (number, seconds) in order of the numbers."""

_BIN_S = 0.1
_BINS = 10
_SAME_MS = 0.01


def observe(result: Result) -> list[Sequence[tuple[int, float]]]:
    """Return the delays of each flow of the summary, by packet; lost packets have none."""
    import polars as pl

    arrived = result.scan("app").filter(pl.col("step") == "arrived").sort("sequence")
    delays: dict[tuple[int, int], list[tuple[int, float]]] = {}
    columns = arrived.select("repetition", "flow", "sequence", pl.col("delay") / 1e9)
    for repetition, flow, sequence, delay in columns.collect().rows():
        delays.setdefault((repetition, flow), []).append((sequence, delay))
    return [delays.get((flow["repetition"], flow["flow"]), []) for flow in result.summary["flows"]]


def _share(low: float, high: float) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the percentage of delays of at least `low` and below `high`."""

    def formula(flows: Sequence[Flow], _: Inputs) -> float:
        delays = sorted(_delays(flows))
        return 100 * (bisect_left(delays, high) - bisect_left(delays, low)) / len(delays)

    return formula


def _quantile(percent: int) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of a quantile of the delays in ms, interpolated between two delays."""

    def formula(flows: Sequence[Flow], _: Inputs) -> float:
        delays = sorted(_delays(flows))
        place = (len(delays) - 1) * percent / 100
        below = int(place)
        above = min(below + 1, len(delays) - 1)
        return 1e3 * (delays[below] + (delays[above] - delays[below]) * (place - below))

    return formula


def _largest_rise(flows: Sequence[Flow], _: Inputs) -> float:
    """Return by how many ms a delay is above the one before it, at most."""
    pairs = [pair for flow in flows for pair in pairwise(flow[KEY])]
    return 1e3 * max(later - earlier for (_, earlier), (_, later) in pairs)


def _share_of_falls(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the percentage of delays that are `fall` ms below the one before, within 0.01 ms."""
    pairs = [pair for flow in flows for pair in pairwise(flow[KEY])]
    falls = [1e3 * (earlier - later) for (_, earlier), (_, later) in pairs]
    return 100 * sum(abs(fall - inputs["fall"]) < _SAME_MS for fall in falls) / len(falls)


def _delays(flows: Sequence[Flow]) -> list[float]:
    return [delay for flow in flows for _, delay in flow[KEY]]


def _deviation(flows: Sequence[Flow], _: Inputs) -> float:
    return 1e3 * pstdev(_delays(flows))


def _deviation_of_first(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the standard deviation of the delays of the first datagrams of bursts."""
    return 1e3 * pstdev(delay for flow in flows for number, delay in flow[KEY] if number % inputs["burst"] == 0)


def _deviation_of_later(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the standard deviation of the times between arrivals of the datagrams of a burst.

    They are sent at once, so that it is the difference of their delays.
    """
    pairs = [pair for flow in flows for pair in pairwise(flow[KEY])]
    return 1e3 * pstdev(
        later - sooner for (first, sooner), (number, later) in pairs if number == first + 1 and number % inputs["burst"]
    )


def _train_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the mean rate of trains of datagrams that are sent at once, in kbit/s.

    The rate of a train is its bytes over the time from its departure until its last datagram has
    arrived. A train counts if all of its datagrams arrive.
    """
    trains: dict[tuple[int, int], list[float]] = {}
    size = int(inputs["burst"])
    for index, flow in enumerate(flows):
        for number, delay in flow[KEY]:
            trains.setdefault((index, number // size), []).append(delay)
    bits = 8 * size * inputs["payload"]
    return fmean(1e-3 * bits / max(delays) for delays in trains.values() if len(delays) == size)


def _relative_deviation(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the standard deviation of the delays as a percentage of their mean."""
    delays = _delays(flows)
    return 100 * pstdev(delays) / fmean(delays)


DELAY_METRICS = (
    {
        name: Metric(name, "%", 1, _share(low, high), observer_name=KEY)
        for name, low, high in (
            *((f"delays-of-{100 * at}-to-{100 * (at + 1)}-ms", at * _BIN_S, (at + 1) * _BIN_S) for at in range(_BINS)),
            ("delays-of-a-second-or-more", _BINS * _BIN_S, float("inf")),
        )
    }
    | {
        name: Metric(name, "ms", 1, _quantile(percent), observer_name=KEY)
        for name, percent in ((f"delay-quantile-{percent}", percent) for percent in (5, 25, 50, 75, 90, 95))
    }
    | {
        "delay-deviation": Metric("delay-deviation", "ms", 1, _deviation, observer_name=KEY),
        "deviation-of-first": Metric("deviation-of-first", "ms", 1, _deviation_of_first, ("burst",), KEY),
        "deviation-of-later": Metric("deviation-of-later", "ms", 1, _deviation_of_later, ("burst",), KEY),
        "train-rate": Metric("train-rate", "kbit/s", 1, _train_rate, ("burst", "payload"), KEY),
        "ping-deviation": Metric("ping-deviation", "ms", 1, _deviation, observer_name=KEY),
        "largest-rise": Metric("largest-rise", "ms", 1, _largest_rise, observer_name=KEY),
        "share-of-falls": Metric("share-of-falls", "%", 1, _share_of_falls, ("fall",), KEY),
        "relative-ping-deviation": Metric("relative-ping-deviation", "%", 1, _relative_deviation, observer_name=KEY),
    }
)
"""The metrics by name."""
