"""Sums over the connections of several traces: time by cause, bytes, retransmissions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from airpath.trace.causes import CAUSES

if TYPE_CHECKING:
    from airpath.trace.data import TraceData


def compare(traces: Sequence["TraceData"]) -> pl.DataFrame:
    """Return the figures of traces side by side: one row per figure, one column per trace.

    The figures are sums over all connections and QUIC flows of a trace: number, seconds in total
    and by cause, bytes in each direction, and retransmitted segments. The bytes of a QUIC flow are
    UDP payload. Its retransmissions are encrypted: those of a trace with QUIC alone are null.

    Args:
        traces: The traces; a trace with a `flow` has only these connections.
    """
    names = ["connections", "seconds", *(each.name for each in CAUSES), "bytes down", "bytes up", "retransmitted"]
    columns = {f"trace {number}": _sums(trace) for number, trace in enumerate(traces, 1)}
    return pl.DataFrame({"figure": names} | columns, strict=False)


def labels(traces: Sequence["TraceData"]) -> list[str]:
    """Return a unique name for each trace.

    The name of its file or folder, with more of its path where needed.
    """
    paths = [trace.sources.arguments[0] for trace in traces]
    for parts in range(1, max(len(each.split("/")) for each in paths) + 1):
        names = ["/".join(each.rstrip("/").split("/")[-parts:]) for each in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{name}, {number}" for number, name in enumerate(paths, 1)]


def note_on_quic(traces: Sequence["TraceData"]) -> str | None:
    """Return what the figures of QUIC flows do not count; `None` without such flows."""
    if not any(trace.quic.height for trace in traces):
        return None
    return (
        "bytes of QUIC flows are UDP payload, acknowledgements and retransmissions included, those of TCP connections "
        "only the data; retransmissions of QUIC are encrypted and not counted"
    )


def _sums(trace: "TraceData") -> list[float | None]:
    quic = trace.quic.with_columns(duration_s=(pl.col("last") - pl.col("first")) / 1e9)
    columns = ["duration_s", *(each.column for each in CAUSES)]
    flows = pl.concat([trace.connections.select(columns), quic.select(columns)])
    by_sender = trace.directions.group_by("from").agg(pl.col("unique_bytes").sum())
    sent = {end: float(quic[f"{end}_bytes"].sum()) for end in ("client", "server")}
    for sender, total in by_sender.rows():
        sent[str(sender)] += float(total)
    only_quic = quic.height > 0 and trace.connections.height == 0
    return [
        float(flows.height),
        float(flows["duration_s"].sum()),
        *(float(flows[each.column].sum()) for each in CAUSES),
        sent["server"],
        sent["client"],
        None if only_quic else float(trace.directions["retransmissions"].sum()),
    ]
