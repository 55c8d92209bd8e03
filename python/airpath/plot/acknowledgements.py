"""Acknowledged data and round trips of a TCP sender, derived from its packets.

A simulated sender logs its state. The state of a real program is unknown. The packets of its link
show which acknowledgements reached the sender, and so which round trips it could measure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from airpath.result import Result
from airpath.tables import TRANSFERS, direction_of

_FLOW = ["repetition", "flow"]


def received_acknowledgements(packets: pl.LazyFrame, flows: Iterable[Mapping[str, Any]]) -> pl.LazyFrame:
    """Return the acknowledged offset and receive window at each ACK that reached a sender.

    Args:
        packets: Events of packets, with `t` in seconds.
        flows: The transfers of the summary.

    Returns:
        `repetition`, `flow`, `t`, `acknowledged` and `peer_window`, the last two in bytes; of each
        flow by time.
    """
    back = _directions(flows).with_columns(
        direction=pl.when(pl.col("direction") == "down").then(pl.lit("up")).otherwise(pl.lit("down"))
    )
    sent = packets.filter((pl.col("step") == "sent") & pl.col("ack").is_not_null())
    sent = sent.join(back, on=[*_FLOW, "direction"], how="semi")
    received = packets.filter(pl.col("step") == "received").select("repetition", "packet", "t")
    arrived = sent.drop("t").join(received, on=["repetition", "packet"]).sort("t", "packet")
    return arrived.select(
        *_FLOW, "t", acknowledged=pl.col("ack").cum_max().over(_FLOW).clip(lower_bound=0), peer_window="window"
    )


def round_trips(packets: pl.LazyFrame, flows: Iterable[Mapping[str, Any]]) -> pl.LazyFrame:
    """Return the round trips that each sender could measure, as tcptrace does.

    An acknowledgement measures a round trip if its last segment was sent once (Karn's rule, RFC
    6298 §3). It measures none if it also covers a retransmission that was sent later than this
    segment.

    Args:
        packets: Events of packets, with `t` in seconds.
        flows: The transfers of the summary.

    Returns:
        `repetition`, `flow`, `t` and `round_trip`, in seconds; of each flow by time.
    """
    rows = list(flows)
    before = pl.col("acknowledged").shift(1, fill_value=0).over(_FLOW)
    advances = (
        received_acknowledgements(packets, rows)
        .with_columns(before=before)
        .filter(pl.col("acknowledged") > pl.col("before"))
    )
    data = packets.filter((pl.col("step") == "sent") & (pl.col("length") > 0))
    data = data.join(_directions(rows), on=[*_FLOW, "direction"], how="semi")
    data = data.with_columns(end=pl.col("offset") + pl.col("length"))
    once = data.filter(~pl.col("retransmission")).select(*_FLOW, "end", sent="t").sort("end")
    again = data.filter("retransmission").select(*_FLOW, "end", again="t").sort("end")
    advances = advances.sort("acknowledged")
    near = {"by": _FLOW, "check_sortedness": False}
    # A retransmission is acknowledged by the first acknowledgement that reaches its end.
    covered = again.join_asof(advances, left_on="end", right_on="acknowledged", strategy="forward", **near)
    latest = covered.group_by(*_FLOW, "acknowledged").agg(pl.col("again").max())
    last = advances.join_asof(once, left_on="acknowledged", right_on="end", strategy="backward", **near)
    covering = last.filter(pl.col("end") > pl.col("before")).join(latest, on=[*_FLOW, "acknowledged"], how="left")
    clear = covering.filter(pl.col("again").is_null() | (pl.col("again") < pl.col("sent")))
    return clear.sort("t", "acknowledged").select(*_FLOW, "t", round_trip=pl.col("t") - pl.col("sent"))


def tcp_round_trips(result: Result) -> pl.LazyFrame:
    """Return `repetition` and `round_trip`, in seconds, of all transfers.

    As logged, else derived from packets.

    Raises:
        NotLoggedError: The run has no `tcp` table, or its senders did not log and it has no
            `packets` table.
    """
    logged = result.scan_radio_senders()
    if logged.head(1).collect().height:
        known = logged.filter(pl.col("round_trip").is_not_null())
        return known.select("repetition", round_trip=pl.col("round_trip") / 1e9)
    flows = [flow for flow in result.summary["flows"] if flow["kind"] in TRANSFERS]
    packets = result.scan("packets").with_columns(t=pl.col("time") / 1e9)
    return round_trips(packets, flows).select("repetition", "round_trip")


def _directions(flows: Iterable[Mapping[str, Any]]) -> pl.LazyFrame:
    """Return the direction of each transfer's data."""
    rows = [{"repetition": row["repetition"], "flow": row["flow"], "direction": direction_of(row)} for row in flows]
    return pl.LazyFrame(rows, schema={"repetition": pl.Int32, "flow": pl.Int32, "direction": pl.String})
