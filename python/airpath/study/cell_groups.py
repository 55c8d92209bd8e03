"""The secondary cell group of a mobile with EN-DC: when it is added to the master cell group."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "cell-groups"
"""The key of the observation in a flow."""

_WINDOW_S = 0.1
_BEFORE = 3
"""Windows before a rise at least: the first has the start of the outer loop."""
_RISE = 1.3
"""The factor between a window after the rise, and the mean of those before."""


@dataclass(slots=True)
class Observation:
    """Arrivals of datagrams, and the cell groups of their mobile, in seconds since the start.

    Each repetition must have one mobile.
    """

    arrivals: list[float] = field(default_factory=list)
    groups: list[tuple[float, str]] = field(default_factory=list)


def observe(result: Result) -> list[Observation]:
    """Return an observation for each flow of a run's summary."""
    import polars as pl

    arrivals: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    arrived = result.scan("app").filter(pl.col("step") == "arrived").sort("time", maintain_order=True)
    for repetition, flow, time in arrived.select("repetition", "flow", pl.col("time") / 1e9).collect().rows():
        arrivals[repetition, flow].append(time)
    groups: defaultdict[int, list[tuple[float, str]]] = defaultdict(list)
    states = result.scan("states").filter(pl.col("aspect") == "cell-group").sort("time", maintain_order=True)
    for repetition, time, name in states.select("repetition", pl.col("time") / 1e9, "name").collect().rows():
        groups[repetition].append((time, name))
    flows = [(flow["repetition"], flow["flow"]) for flow in result.summary["flows"]]
    return [Observation(arrivals[repetition, flow], groups[repetition]) for repetition, flow in flows]


def _addition(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean time in ms from the connection, or a release, to the addition."""
    pairs = [pair for flow in flows for pair in pairwise(flow[KEY].groups)]
    times = [later - sooner for (sooner, _), (later, group) in pairs if group == "secondary"]
    return 1e3 * fmean(times) if times else float("nan")


def _rise_of(arrivals: Sequence[float]) -> float:
    """Return the time from the first arrival to the window in which the rate rises."""
    counts: defaultdict[int, int] = defaultdict(int)
    for time in arrivals:
        counts[int((time - arrivals[0]) / _WINDOW_S)] += 1
    for window in range(_BEFORE, max(counts)):
        if counts[window] > _RISE * fmean(counts[before] for before in range(1, window)):
            return window * _WINDOW_S
    return float("nan")


def _rate_rise(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean time in ms from the first arrival to the rise, in steps of 100 ms."""
    return 1e3 * fmean(_rise_of(flow[KEY].arrivals) for flow in flows)


CELL_GROUP_METRICS = {
    "addition-of-nr": Metric("addition-of-nr", "ms", 1, _addition, observer_name=KEY),
    "rate-rise": Metric("rate-rise", "ms", 0, _rate_rise, observer_name=KEY),
}
"""The metrics by name."""
