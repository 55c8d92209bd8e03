"""The figures of flows that share a bearer: goodput, shares, and what others wait."""

from collections.abc import Sequence
from statistics import fmean

from airpath.study.metrics import Flow, Inputs, Metric


def _goodput(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the delivered bytes of the first flow over the seconds from its start, in kbit/s."""
    return 8e-3 * flows[0]["delivered_bytes"] / inputs["seconds"]


def _added_delay(flows: Sequence[Flow], _: Inputs) -> float:
    """Return how many ms the 95th percentile of the pings is above the least round trip.

    Returns:
        The mean over the ping flows; `nan` if one has no answer.
    """
    pings = [flow for flow in flows if flow["kind"] == "ping"]
    if any(flow["delay_p95_s"] is None for flow in pings):
        return float("nan")
    return 1e3 * fmean(flow["delay_p95_s"] - flow["delay_min_s"] for flow in pings)


def _share(flows: Sequence[Flow], inputs: Inputs) -> float:
    """Return the rate of the first of two flows as a percentage of the sum.

    A rate counts from the start of its flow to the end of the run, `seconds` after the first start.
    """
    end = flows[0]["start_s"] + inputs["seconds"]
    first, second = (flow["delivered_bytes"] / (end - flow["start_s"]) for flow in flows)
    return 100 * first / (first + second)


def _file_time(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean time of the transactions; `nan` if none was complete."""
    times = [flow["delay_mean_s"] for flow in flows if flow["kind"] == "transactions"]
    return fmean(time if time is not None else float("nan") for time in times)


def _video_rate(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean rate of a video over HTTP in kbit/s.

    Segments that never arrived count as 0.
    """
    videos = [flow for flow in flows if flow["kind"] == "adaptive"]
    return fmean((each["quality_bps"] or 0.0) * each["segments_received"] / each["segments"] for each in videos) / 1e3


SHARING_METRICS = {
    metric.name: metric
    for metric in (
        Metric("goodput", "kbit/s", 2, _goodput, ("seconds",)),
        Metric("added-delay-95", "ms", 1, _added_delay),
        Metric("share", "%", 1, _share, ("seconds",)),
        Metric("file-time", "s", 2, _file_time),
        Metric("video-rate", "kbit/s", 1, _video_rate),
    )
}
"""The metrics by name."""
