"""Rows of connections, with what sentences and warnings need in addition."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_INITIAL_WINDOW = 10
"""Segments that a sender may send before the first acknowledgement (RFC 6928)."""


def flows(trace: "TraceData") -> list[dict[str, Any]]:
    """Return the rows of `Trace.connections`, each with what the text needs in addition.

    `captured_end` is the end (`client` or `server`) whose segments alone are in the capture, or
    `None`. `radio_known` is whether a radio log shows that the path has a radio. `closing_ends` is
    the number of ends that sent a FIN. In a result folder, `flow_name` is the flow with its mobile,
    and `client_name` the mobile, if it has several; else they are empty, and the client's address.
    """
    import polars as pl

    alone, radio = one_direction(trace), bool(trace.sources.radio)
    ends = dict(trace.directions.group_by("connection").agg((pl.col("fins") > 0).sum()).rows())
    return [
        row
        | {
            "captured_end": alone.get(row["connection"]),
            "radio_known": radio,
            "closing_ends": ends.get(row["connection"], 0),
            "flow_name": known.words if (known := trace.run_flows.of(row)) else "",
            "client_name": known.mobile if known and known.mobile else row["client_address"],
        }
        for row in trace.connections.iter_rows(named=True)
    ]


def one_direction(trace: "TraceData") -> dict[int, str]:
    """Return the connections that are captured in one direction only, with the end that is.

    The other end has no segment in the capture, but the connection shows that it sent some: its
    data was acknowledged, or more data was sent than without an acknowledgement.
    """
    import polars as pl

    columns = ("connection", "from", "segments", "unseen_bytes", "data_segments", "retransmissions")
    rows = trace.directions.select(columns)
    silent = rows.filter(pl.col("segments") == 0)
    if not silent.height:
        return {}
    sending = rows.filter(pl.col("segments") > 0).select(
        "connection", pl.col("from").alias("end"), sent=pl.col("data_segments") - pl.col("retransmissions")
    )
    both = silent.join(sending, on="connection")
    answered = both.filter((pl.col("unseen_bytes") > 0) | (pl.col("sent") > _INITIAL_WINDOW))
    return dict(answered.select("connection", "end").rows())
