"""Inter-arrival times of datagrams, bursts, and the inter-arrival times near handovers."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from statistics import fmean, pstdev

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "arrivals"
"""The key of the observation in a flow."""

_BEFORE_S = 5.0
"""A mobile is near the cell border for this time before a handover."""

_AFTER_S = 10.0
"""Interruptions that begin this long after a handover belong to it."""


@dataclass(slots=True)
class Observation:
    """Arrivals of datagrams at a receiver and handovers of its mobile.

    Seconds since the start of the run.
    """

    arrivals: list[float] = field(default_factory=list)
    handovers: list[float] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    """The levels of the serving cell, decibels over the noise of the receiver, as they change."""


def observe(result: Result) -> list[Observation]:
    """Return an observation for each flow of a run's summary.

    Each repetition must have one mobile.
    """
    import polars as pl

    seen: defaultdict[tuple[int, int], Observation] = defaultdict(Observation)
    arrived = result.scan("app").filter(pl.col("step") == "arrived").sort("time", maintain_order=True)
    for repetition, flow, time in arrived.select("repetition", "flow", pl.col("time") / 1e9).collect().rows():
        seen[repetition, flow].arrivals.append(time)
    handover = (pl.col("aspect") == "mode") & (pl.col("name") == "handover")
    states = result.scan("states").filter(handover).sort("time", maintain_order=True)
    handovers: defaultdict[int, list[float]] = defaultdict(list)
    for repetition, time in states.select("repetition", pl.col("time") / 1e9).collect().rows():
        handovers[repetition].append(time)
    levels: defaultdict[int, list[float]] = defaultdict(list)
    level = result.scan("states").filter(pl.col("aspect") == "level").sort("time", maintain_order=True)
    for repetition, number in level.select("repetition", "number").collect().rows():
        levels[repetition].append(number)
    for flow in result.summary["flows"]:
        observation = seen[flow["repetition"], flow["flow"]]
        observation.handovers = handovers[flow["repetition"]]
        observation.levels = levels[flow["repetition"]]
    return [seen[flow["repetition"], flow["flow"]] for flow in result.summary["flows"]]


def _times(seen: Observation) -> list[float]:
    """Return the inter-arrival times."""
    return [later - earlier for earlier, later in pairwise(seen.arrivals)]


def _deviation(flows: Sequence[Flow], _: Inputs) -> float:
    return 1e3 * fmean(pstdev(_times(flow[KEY])) for flow in flows)


def _bunched(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the percentage of inter-arrival times below half of the sending interval."""
    times = [each for flow in flows for each in _times(flow[KEY])]
    return 100 * sum(each < inputs["interval"] / 2 for each in times) / len(times)


def _peak_rate(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the highest received rate over a window of one sending interval, in kbit/s."""
    most = 0
    for flow in flows:
        arrivals = flow[KEY].arrivals
        most = max(most, *(bisect_left(arrivals, at + inputs["interval"]) - first for first, at in enumerate(arrivals)))
    return 8e-3 * inputs["payload"] * most / inputs["interval"]


def _longest_near(before: bool) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the longest inter-arrival time near a handover, as a mean.

    Args:
        before: Whether to look at the seconds before a handover, or at the same length half-way
            between two.

    Returns:
        The formula; without handovers its value is `nan`.
    """

    def formula(flows: Sequence[Flow], _: Inputs) -> float:
        longest: list[float] = []
        for flow in flows:
            arrivals, handovers = flow[KEY].arrivals, flow[KEY].handovers
            for earlier, handover in pairwise([0.0, *handovers]):
                end = handover if before else (earlier + handover + _BEFORE_S) / 2
                if handover - earlier < 3 * _BEFORE_S:
                    # Both intervals would belong to the same cell border.
                    continue
                first, last = bisect_left(arrivals, end - _BEFORE_S), bisect_right(arrivals, end)
                # The last inter-arrival time is counted up to the end of the interval.
                near = [end - _BEFORE_S, *arrivals[first:last], end]
                longest.append(max(later - sooner for sooner, later in pairwise(near)))
        return 1e3 * fmean(longest) if longest else float("nan")

    return formula


def _gap_at_handover(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean over the handovers of the longest inter-arrival time around each.

    That is the longest that ends in the ten seconds after it, or the first that ends later.
    """
    longest: list[float] = []
    for flow in flows:
        arrivals = flow[KEY].arrivals
        for handover in flow[KEY].handovers:
            first = max(bisect_left(arrivals, handover), 1)
            last = max(bisect_right(arrivals, handover + _AFTER_S), first + 1)
            near = arrivals[first - 1 : last]
            if len(near) > 1:
                longest.append(max(later - sooner for sooner, later in pairwise(near)))
    return fmean(longest) if longest else float("nan")


def _gap_shares(flow: Flow) -> dict[int, float]:
    """Return the shares of the gaps between milliseconds with an arrival, by their length in ms."""
    millis = sorted({int(1e3 * time + 1e-6) for time in flow[KEY].arrivals})
    gaps = Counter(later - sooner for sooner, later in pairwise(millis))
    return {gap: count / gaps.total() for gap, count in gaps.items()}


def _gaps_of(least: int, most: int) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of the largest share of gaps of one length from `least` to `most` ms.

    It is a percentage, a mean over the flows.
    """

    def formula(flows: Sequence[Flow], _: Inputs) -> float:
        shares = [_gap_shares(flow) for flow in flows]
        return 100 * fmean(max(each.get(gap, 0.0) for gap in range(least, most + 1)) for each in shares)

    return formula


def _signal(take: Callable[[Sequence[float]], float]) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of a figure of the pilot's level, in dBm, as a mean over the flows.

    The input `pilot` is the level of the pilot in dBm where the cell is as strong as the noise. The
    formula's value is `nan` if a flow has no levels.
    """

    def formula(flows: Sequence[Flow], inputs: Inputs) -> float:
        return inputs["pilot"] + fmean(take(levels) if (levels := flow[KEY].levels) else nan for flow in flows)

    return formula


ARRIVAL_METRICS = {
    metric.name: metric
    for metric in (
        Metric("inter-arrival-deviation", "ms", 1, _deviation, observer_name=KEY),
        Metric("bunched-arrivals", "%", 2, _bunched, ("interval",), observer_name=KEY),
        Metric("peak-rate", "kbit/s", 1, _peak_rate, ("interval", "payload"), observer_name=KEY),
        Metric("inter-arrival-before-handover", "ms", 1, _longest_near(before=True), observer_name=KEY),
        Metric("inter-arrival-between-handovers", "ms", 1, _longest_near(before=False), observer_name=KEY),
        Metric("gaps-of-5-to-7-ms", "%", 2, _gaps_of(5, 7), observer_name=KEY),
        Metric("gaps-of-8-to-10-ms", "%", 2, _gaps_of(8, 10), observer_name=KEY),
        Metric("gaps-of-10-ms", "%", 2, _gaps_of(10, 10), observer_name=KEY),
        Metric("gaps-of-14-to-16-ms", "%", 2, _gaps_of(14, 16), observer_name=KEY),
        Metric("gap-at-handover", "s", 2, _gap_at_handover, observer_name=KEY),
        Metric("lowest-signal", "dBm", 1, _signal(min), ("pilot",), observer_name=KEY),
        Metric("highest-signal", "dBm", 1, _signal(max), ("pilot",), observer_name=KEY),
    )
}
"""The metrics by name."""
