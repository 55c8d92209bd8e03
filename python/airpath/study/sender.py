"""Figures of a capture at the sender: start-up, groups of acknowledgements, and loss recovery."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, nan
from statistics import fmean

from airpath.result import Result
from airpath.study.metrics import HEADERS, Flow, Inputs, Metric

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


def _cycles_to_product(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the cycle in which an acknowledgement lets the window reach rate times round trip.

    The first cycle ends with the acknowledgement of what was sent at first. Each later one ends
    with that of what was sent until the cycle before it ended (hsdpa-sim, equation 2). `nan` if the
    transfer ends before.
    """
    product = inputs["rate_bps"] * inputs["rtt_s"] / 8

    def of(flow: Flow) -> float:
        # A row has what was sent before its acknowledgement arrived.
        rows = [
            (acknowledged, sent, window)
            for (_, acknowledged, sent), (_, window) in zip(flow[KEY].progress, flow[KEY].windows, strict=True)
            if acknowledged > 0
        ]
        cycle, end = 1, rows[0][1] if rows else 0
        for (acknowledged, _, window), (_, sent_later, _) in pairwise(rows):
            if window >= product:
                return cycle
            if acknowledged >= end:
                cycle, end = cycle + 1, sent_later
        return nan

    return fmean(map(of, flows))


def _first_round_trip_utilisation(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the percentage of the rate that the data of the first round trip use, with headers."""

    def of(flow: Flow) -> float:
        _, seconds = flow[KEY].round_trips[0]
        acknowledged = next(each for _, each, _ in flow[KEY].progress if each > 0)
        packets = ceil(acknowledged / inputs["segment"])
        return 100 * 8 * (acknowledged + HEADERS * packets) / seconds / inputs["rate_bps"]

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


def _rate(flows: Sequence[Flow], start: float, seconds: float) -> float:
    """Return the data acknowledged from `start` for `seconds`, in kbit/s.

    `nan` if a transfer ends before.
    """

    def of(flow: Flow) -> float:
        if flow["start_s"] + flow["duration_s"] < start + seconds:
            return nan
        return (_acknowledged_at(flow, start + seconds) - _acknowledged_at(flow, start)) * 8e-3 / seconds

    return fmean(map(of, flows))


def _acknowledged_at(flow: Flow, at: float) -> int:
    return max((acknowledged for time, acknowledged, _ in flow[KEY].progress if time <= at), default=0)


def _rate_before(flows: Sequence[Flow], inputs: Inputs) -> float:
    return _rate(flows, inputs["changed"] - inputs["seconds"], inputs["seconds"])


def _rate_after(flows: Sequence[Flow], inputs: Inputs) -> float:
    return _rate(flows, inputs["changed"] + inputs["settled"], inputs["seconds"])


def _outstanding_at_change(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the bytes that are sent and not acknowledged at the last change before, in kB."""

    def of(flow: Flow) -> float:
        before = [sent - acknowledged for time, acknowledged, sent in flow[KEY].progress if time <= inputs["changed"]]
        return before[-1] / 1e3 if before else nan

    return fmean(map(of, flows))


def _drain(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the seconds from when all was sent to when all was acknowledged."""

    def of(flow: Flow) -> float:
        _, total, _ = flow[KEY].progress[-1]
        # A row has what was sent before its acknowledgement arrived.
        sent = next(time for time, _, sent in flow[KEY].progress if sent >= total)
        return flow[KEY].progress[-1][0] - sent

    return fmean(map(of, flows))


SENDER_METRICS = {
    name: Metric(name, unit, decimals, formula, inputs, observer_name=KEY)
    for name, unit, decimals, formula, inputs in (
        ("time-to-product", "s", 2, _time_to_product, ("product",)),
        ("cycles-to-product", "1", 1, _cycles_to_product, ("rate_bps", "rtt_s")),
        ("first-round-trip-utilisation", "%", 1, _first_round_trip_utilisation, ("rate_bps", "segment")),
        ("acknowledgements-in-a-group", "1", 2, _group, ()),
        ("full-round-trip", "s", 2, _full_round_trip, ("outstanding",)),
        ("repair-time", "s", 2, _repair, ()),
        ("mobile-round-trip", "s", 2, _mobile_round_trip, ()),
        ("longest-mobile-round-trip", "s", 2, _longest_mobile_round_trip, ()),
        ("recovery-time", "s", 2, _recovery, ("restored",)),
        ("rate-before", "kbit/s", 2, _rate_before, ("changed", "seconds")),
        ("rate-after", "kbit/s", 2, _rate_after, ("changed", "settled", "seconds")),
        ("outstanding-at-change", "kB", 1, _outstanding_at_change, ("changed",)),
        ("drain-time", "s", 2, _drain, ()),
        ("late-openings", "1", 2, lambda flows, _: flows[-1][KEY].openings - 1, ()),
    )
}
"""The metrics by name. `late-openings` counts retransmitted SYN segments."""
