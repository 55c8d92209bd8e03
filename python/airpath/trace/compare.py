"""Two traces beside each other: where the time of each went."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from airpath.trace.causes import CAUSES

if TYPE_CHECKING:
    from airpath.trace.analysis import Trace


def compare(traces: Sequence["Trace"]) -> pl.DataFrame:
    """Return the figures of traces side by side: one row a figure, one column a trace.

    The figures are sums over all connections of a trace: their number, their seconds in all and by cause, the bytes
    that they carried each way, and the segments that were sent again.

    Args:
        traces: The traces; select one connection of each by its `flow` to compare these alone.
    """
    names = ["connections", "seconds", *(each.name for each in CAUSES), "bytes down", "bytes up", "sent again"]
    columns = {f"trace {number}": _sums(trace) for number, trace in enumerate(traces, 1)}
    return pl.DataFrame({"figure": names} | columns, strict=False)


def _sums(trace: "Trace") -> list[float]:
    flows = trace.connections
    by_sender = trace.directions.group_by("from").agg(pl.col("unique_bytes").sum())
    sent = {str(sender): float(total) for sender, total in by_sender.rows()}
    return [
        float(flows.height),
        float(flows["duration_s"].sum()),
        *(float(flows[each.column].sum()) for each in CAUSES),
        sent.get("server", 0.0),
        sent.get("client", 0.0),
        float(trace.directions["retransmissions"].sum()),
    ]
