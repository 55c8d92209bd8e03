"""Acknowledgements as a mobile sends and as its server receives them, and the queue of the cell."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "mobile"
"""The key of the observation in a flow."""

_CELL = "cell"
"""The component of a radio access in the event log."""


@dataclass(slots=True)
class Observation:
    """A download; times in seconds since the start of the run."""

    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    """Time, and the offset that the mobile acknowledged."""
    confirmed: list[tuple[float, int]] = field(default_factory=list)
    """Time, and the offset of an acknowledgement that the server received."""
    greatest_queue: int = 0
    """Most bytes in the queue of the cell when a packet of the flow arrived there."""


def observe(result: Result) -> list[Observation]:
    """Return an observation for each flow of a run's summary; each must be a download."""
    import polars as pl

    seen: defaultdict[tuple[int, int], Observation] = defaultdict(Observation)
    packets = result.scan("packets")
    up = packets.filter(pl.col("direction") == "up").sort("time", maintain_order=True)
    time = pl.col("time") / 1e9
    # Only the steps with which a packet begins have its header.
    sent = up.filter(pl.col("step") == "sent", pl.col("ack").is_not_null())
    for repetition, flow, at, ack in sent.select("repetition", "flow", time, "ack").collect().rows():
        seen[repetition, flow].acknowledged.append((at, ack))
    headers = up.filter(pl.col("step").is_in(["sent", "created"]), pl.col("ack").is_not_null())
    received = up.filter(pl.col("step") == "received").select("repetition", "flow", "packet", time)
    received = received.join(headers.select("repetition", "packet", "ack"), on=["repetition", "packet"])
    for repetition, flow, at, ack in received.select("repetition", "flow", "time", "ack").collect().rows():
        seen[repetition, flow].confirmed.append((at, ack))
    queued = (pl.col("step") == "queued") & (pl.col("direction") == "down") & (pl.col("component") == _CELL)
    greatest = packets.filter(queued).group_by("repetition", "flow").agg(pl.col("backlog_bytes").max())
    for repetition, flow, backlog in greatest.collect().rows():
        seen[repetition, flow].greatest_queue = backlog
    return [seen[flow["repetition"], flow["flow"]] for flow in result.summary["flows"]]


def _greatest_queue(flows: Sequence[Flow], _: Inputs) -> float:
    return max(flow[KEY].greatest_queue for flow in flows) / 1e3


def _resume(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the seconds from the link's return until the mobile has `volume` bytes more."""

    def of(flow: Flow) -> float:
        acknowledged: list[tuple[float, int]] = flow[KEY].acknowledged
        before = max((ack for time, ack in acknowledged if time <= inputs["restored"]), default=0)
        return next(time for time, ack in acknowledged if ack >= before + inputs["volume"]) - inputs["restored"]

    return max(map(of, flows))


def _early(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the most bytes acknowledged to the server that the mobile had not acknowledged."""

    def of(flow: Flow) -> int:
        times = [time for time, _ in flow[KEY].acknowledged]
        highest = 0
        by_then = [0] + [highest := max(highest, ack) for _, ack in flow[KEY].acknowledged]
        return max((ack - by_then[bisect_right(times, time)] for time, ack in flow[KEY].confirmed), default=0)

    return max(0, *map(of, flows)) if flows else 0


MOBILE_METRICS = {
    metric.name: metric
    for metric in (
        Metric("greatest-queue", "kB", 1, _greatest_queue, observer_name=KEY),
        Metric("resume-time", "s", 2, _resume, ("restored", "volume"), observer_name=KEY),
        Metric("acknowledged-early", "B", 0, _early, observer_name=KEY),
    )
}
"""The metrics by name."""
