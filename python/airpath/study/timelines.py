"""When the connections of a page end, as the timelines of gprs-proxy show them (its §VI.C.3)."""

from collections import defaultdict
from collections.abc import Sequence

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "timelines"
"""The key of the observation in a flow."""

_FIN = 0x01


def observe(result: Result) -> list[float]:
    """Return of each flow when the last connection ended that its server closed, in seconds.

    0 without one. A connection ends with its last packet at the mobile.
    """
    import polars as pl

    flows = result.summary["flows"]
    connections = 1 + max(flow["flow"] for flow in flows)
    packets = result.scan("packets").with_columns(pl.col("flow") % connections, connection=pl.col("flow"))
    keys = ["repetition", "flow", "connection"]
    # Only packets that an end point sends have flags.
    fins = packets.filter(pl.col("step") == "sent", (pl.col("flags") & _FIN) != 0)
    first = fins.sort("time", maintain_order=True).group_by(keys, maintain_order=True).first()
    closed = first.filter(pl.col("direction") == "down").select(keys)
    down, up = pl.col("direction") == "down", pl.col("direction") == "up"
    at_mobile = down & (pl.col("step") == "received") | up & (pl.col("step") == "sent")
    ends = packets.filter(at_mobile).join(closed, on=keys).group_by("repetition", "flow").agg(pl.col("time").max())
    last: defaultdict[tuple[int, int], float] = defaultdict(float)
    for repetition, flow, time in ends.collect().rows():
        last[repetition, flow] = time / 1e9
    return [last[flow["repetition"], flow["flow"]] for flow in flows]


def _timeline_time(flows: Sequence[Flow], _: Inputs) -> float:
    """Return the time until the page is loaded and the server's connections have ended.

    Connections that stay open do not count.
    """
    (flow,) = flows
    return max(flow["duration_s"], flow[KEY] - flow["start_s"])


TIMELINE_METRICS = {"timeline-time": Metric("timeline-time", "s", 2, _timeline_time, observer_name=KEY)}
"""The metrics by name."""
