"""Traces beside each other: where the time of each went, in sum."""

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


def labels(traces: Sequence["Trace"]) -> list[str]:
    """Return a name for each trace that no other has: that of its file or folder, with its place where needed."""
    given = [trace.sources.given[0] for trace in traces]
    for parts in range(1, max(len(each.split("/")) for each in given) + 1):
        names = ["/".join(each.rstrip("/").split("/")[-parts:]) for each in given]
        if len(set(names)) == len(names):
            return names
    return [f"{name}, {number}" for number, name in enumerate(given, 1)]


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
