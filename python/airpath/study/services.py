"""The figures of services: videos and remote terminals."""

import statistics
from collections.abc import Callable, Sequence

from airpath.study.metrics import Flow, Inputs, Metric


def _videos(flows: Sequence[Flow]) -> list[Flow]:
    """Return the flows that are videos."""
    return [flow for flow in flows if flow["kind"] in ("stream", "adaptive")]


def _stall_share(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the share of stalls in the time after the start-up; all of it if none began."""
    return 100 * statistics.fmean(
        1.0 if flow["stall_share"] is None else flow["stall_share"] for flow in _videos(flows)
    )


def _startup(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean start-up time; `nan` if no video began."""
    times = [flow["startup_s"] for flow in _videos(flows) if flow["startup_s"] is not None]
    return statistics.fmean(times) if times else float("nan")


def _repeated(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the media bytes that the server sent again as a percentage of those sent once."""
    return 100 * statistics.fmean(flow["retransmitted_share"] or 0.0 for flow in flows)


def _lost(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the packets that never arrived, retransmissions included."""
    return 100 * sum(flow["lost"] for flow in flows) / sum(flow["sent"] for flow in flows)


def _played(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the percentage of the video that could be displayed.

    By frames with RTP, by segments with HTTP.
    """
    return 100 * statistics.fmean(map(_share_played, _videos(flows)))


def _share_played(flow: Flow) -> float:
    if flow["kind"] == "adaptive":
        return flow["segments_received"] / flow["segments"]
    return flow["frames_decodable"] / flow["frames"]


def _media_rate(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the mean rate of the media that arrived; `nan` if none did."""

    def of(flow: Flow) -> float:
        if flow["kind"] == "adaptive":
            return flow["quality_bps"] if flow["quality_bps"] is not None else float("nan")
        return flow["video_bps"] * flow["received"] / flow["sent"] if flow["received"] else float("nan")

    return statistics.fmean(map(of, _videos(flows))) / 1e3


def _opening(key: str) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of a figure of the times to open a file."""
    return lambda flows, _: statistics.fmean(flow["exchange"]["open"][key] for flow in flows)


SERVICE_METRICS = {
    metric.name: metric
    for metric in (
        Metric("startup-time", "s", 2, _startup),
        Metric("stalls", "1", 2, lambda flows, _: sum(flow["stalls"] for flow in _videos(flows))),
        Metric("stall-share", "%", 2, _stall_share),
        Metric("repeated-media", "%", 2, _repeated),
        Metric("media-lost", "%", 2, _lost),
        Metric("media-played", "%", 1, _played),
        Metric("media-rate", "kbit/s", 1, _media_rate),
        Metric("open-time", "s", 2, _opening("p50_s")),
        Metric("longest-open-time", "s", 2, _opening("max_s")),
    )
}
"""The metrics by name. `media-lost` and `repeated-media` are those of RTP."""
