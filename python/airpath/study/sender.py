"""Figures of a capture at the sender: start-up, groups of acknowledgements, and loss recovery."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from statistics import fmean

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "sender"
"""The key of the observation in a flow."""

PROXY = "proxy"
"""The component of the event log."""

_SYN = 0x02
_GROUPED_S = 0.1
"""Acknowledgements at most this far apart form a group: the transmission of one segment takes three
times as long."""


@dataclass(slots=True)
class Observation:
    """Events at a download's sender; times in seconds since the start of the run."""

    windows: list[tuple[float, int]] = field(default_factory=list)
    """Time and congestion window in bytes, at each change."""
    progress: list[tuple[float, int, int]] = field(default_factory=list)
    """Time, bytes acknowledged, and one past the last byte sent, at each change."""
    round_trips: list[tuple[int, float]] = field(default_factory=list)
    """Outstanding data in bytes at the measurement, and the round trip."""
    acknowledgements: list[float] = field(default_factory=list)
    """Times at which acknowledgements arrived."""
    openings: int = 0
    """Number of SYN segments that the client sent."""
    losses: list[float] = field(default_factory=list)
    """Times at which a link lost its segments."""
    repaired: list[float] = field(default_factory=list)
    """Times at which loss recovery ended."""


def observe(result: Result) -> list[Observation]:
    """Return an observation for each flow of a run's summary; each must be a download.

    With a proxy, its end towards the mobile is the sender.
    """
    import polars as pl

    seen: defaultdict[tuple[int, int], Observation] = defaultdict(Observation)
    key = ("repetition", "flow", pl.col("time") / 1e9)
    down, up = (pl.col("direction") == each for each in ("down", "up"))

    def packets(condition: pl.Expr) -> Sequence[tuple[int, int, float]]:
        found = result.scan("packets").filter(condition).sort("time", maintain_order=True)
        return found.select(*key).collect().rows()

    tcp = result.scan("tcp").filter(down).sort("time", maintain_order=True)
    if any(link["component"] == PROXY for link in result.summary["links"]):
        tcp = tcp.filter(pl.col("component") == PROXY)
    round_trip = pl.col("round_trip") / 1e9
    columns = tcp.select(*key, "trigger", "congestion_window", "acknowledged", "outstanding", round_trip)
    for repetition, flow, time, trigger, window, acknowledged, outstanding, measured in columns.collect().rows():
        one = seen[repetition, flow]
        one.windows.append((time, window))
        one.progress.append((time, acknowledged, acknowledged + outstanding))
        if measured is not None:
            one.round_trips.append((outstanding, measured))
        if trigger == "recovery-end":
            one.repaired.append(time)
    for repetition, flow, time in packets(up & (pl.col("step") == "received")):
        seen[repetition, flow].acknowledgements.append(time)
    for repetition, flow, _ in packets(up & (pl.col("step") == "sent") & (pl.col("flags").cast(int) & _SYN != 0)):
        seen[repetition, flow].openings += 1
    for repetition, flow, time in packets(down & (pl.col("cause") == "loss")):
        seen[repetition, flow].losses.append(time)
    return [seen[flow["repetition"], flow["flow"]] for flow in result.summary["flows"]]


def _time_to_product(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the seconds from the SYN until the congestion window reaches a size, or the end."""

    def of(flow: Flow) -> float:
        large = (time for time, window in flow[KEY].windows if window >= inputs["product"])
        return next(large, flow["start_s"] + flow["duration_s"]) - flow["start_s"]

    return fmean(map(of, flows))


def _group(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean number of acknowledgements per group."""
    times: Sequence[float] = [time for flow in flows for time in flow[KEY].acknowledgements]
    groups = 1 + sum(later - earlier > _GROUPED_S for earlier, later in pairwise(times))
    return len(times) / groups


def _full_round_trip(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the longest round trip measured with at least `outstanding` bytes in flight.

    `nan` if there is none.
    """
    measured = (each for flow in flows for each in flow[KEY].round_trips)
    return max((seconds for outstanding, seconds in measured if outstanding >= inputs["outstanding"]), default=nan)


def _repair(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the seconds from the first loss until recovery or the transfer ends.

    `nan` if nothing was lost.
    """

    def of(flow: Flow) -> float:
        if not flow[KEY].losses:
            return nan
        lost = flow[KEY].losses[0]
        end = flow["start_s"] + flow["duration_s"]
        return next((time for time in flow[KEY].repaired if time > lost), end) - lost

    return fmean(map(of, flows))


def _mobile_round_trip(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean round trip that the sender towards the mobile measured."""
    return fmean(seconds for flow in flows for _, seconds in flow[KEY].round_trips)


def _longest_mobile_round_trip(flows: Sequence[Flow], _: Inputs) -> float:
    return max(seconds for flow in flows for _, seconds in flow[KEY].round_trips)


def _recovery(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the seconds from the link's return until all data then sent are acknowledged."""

    def of(flow: Flow) -> float:
        progress = flow[KEY].progress
        sent = max((sent for time, _, sent in progress if time <= inputs["restored"]), default=0)
        return next(time for time, acknowledged, _ in progress if acknowledged >= sent) - inputs["restored"]

    return fmean(map(of, flows))


SENDER_METRICS = {
    name: Metric(name, unit, decimals, formula, inputs, observer_name=KEY)
    for name, unit, decimals, formula, inputs in (
        ("time-to-product", "s", 2, _time_to_product, ("product",)),
        ("acknowledgements-in-a-group", "1", 2, _group, ()),
        ("full-round-trip", "s", 2, _full_round_trip, ("outstanding",)),
        ("repair-time", "s", 2, _repair, ()),
        ("mobile-round-trip", "s", 2, _mobile_round_trip, ()),
        ("longest-mobile-round-trip", "s", 2, _longest_mobile_round_trip, ()),
        ("recovery-time", "s", 2, _recovery, ("restored",)),
        ("late-openings", "1", 2, lambda flows, _: flows[-1][KEY].openings - 1, ()),
    )
}
"""The metrics by name. `late-openings` counts retransmitted SYN segments."""
