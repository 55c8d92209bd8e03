"""The connections of a repetition as a qlog file, for qvis and other readers of qlog 0.3.

A trace is one end of one connection: its packets, and the state of its sender. Formats:
draft-ietf-quic-qlog-main-schema-02 (JSON, `qlog_version` 0.3) and
draft-ietf-quic-qlog-quic-events-01, whose event names qvis reads. Times are milliseconds since the
start of the run.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from airpath.files import replacing
from airpath.plot.selection import median_repetition
from airpath.result import Result

_NANOSECONDS = 1e6
"""In a millisecond."""
_METRICS = {
    "congestion_window": "congestion_window",
    "slow_start_threshold": "ssthresh",
    "in_flight": "bytes_in_flight",
    "round_trip": "latest_rtt",
    "smoothed_round_trip": "smoothed_rtt",
    "pacing_rate": "pacing_rate",
}
"""Columns of the table `tcp`, and the keys of `recovery:metrics_updated`."""
_TIMES = {"latest_rtt", "smoothed_rtt"}
_STATES = {
    "fast-retransmit": "recovery",
    "timeout": "slow_start",
    "recovery-end": "congestion_avoidance",
    "undo": "congestion_avoidance",
}
"""Triggers of the table `tcp` that change the congestion state, and the new state."""
_TRIGGERS = {"timeout": "persistent_congestion", "congestion-experienced": "ECN"}


class NoConnectionsError(Exception):
    """The event log has no connections."""


def qlog(result: Result, path: Path, *, repetition: int | None = None) -> Path:
    """Write the connections of one repetition as a qlog file.

    Args:
        result: The result.
        path: The file, JSON.
        repetition: The repetition; by default the median one.

    Returns:
        `path`.

    Raises:
        NoConnectionsError: No flow of the repetition has a connection of TCP or QUIC.
        NotLoggedError: The run did not log the table `tcp` or `packets`.
        OSError: The file cannot be written.
    """
    number = median_repetition(result) if repetition is None else repetition
    traces = list(_traces(result, number))
    if not traces:
        raise NoConnectionsError(
            f"{result.path}: repetition {number} has no connections; run a scenario with a flow over TCP or QUIC"
        )
    title = str(result.summary["scenario"])
    head = {"qlog_format": "JSON", "qlog_version": "0.3", "title": f"{title}, repetition {number}"}
    with replacing(path) as partial:
        partial.write_text(json.dumps({**head, "traces": traces}), encoding="utf-8")
    return path


def _traces(result: Result, number: int) -> Iterator[dict[str, Any]]:
    """Yield a trace for each end of each connection."""
    own = pl.col("repetition") == number
    senders = result.scan("tcp").filter(own).collect().sort("time", maintain_order=True)
    steps = result.scan("packets").filter(own & pl.col("step").is_in(["sent", "received"])).collect()
    steps = steps.sort("time", maintain_order=True)
    flows = [row for row in result.summary["flows"] if row["repetition"] == number]
    known = {row["flow"]: row for row in flows}
    for flow in sorted(set(senders["flow"])):
        # Connection k of a page has the number of the page plus k times the number of flows.
        row = known[flow % len(flows)]
        title = row["name"] if flow in known else f"{row['name']}, connection {flow // len(flows)}"
        packets = steps.filter(flow=flow)
        ends = (("server", "server"), (row["mobile"], "client"))
        for component, kind in ends:
            # Either interface of a mobile may carry packets of its flow.
            interfaces = [component, f"{component}-second"]
            events = [
                *_packets(packets.filter(pl.col("component").is_in(interfaces))),
                *_sender(senders.filter(flow=flow, component=component)),
            ]
            # Equal times keep this order: what an end receives comes before what follows from it.
            events.sort(key=lambda event: event["time"])
            yield {
                "title": f"{title}, {component}",
                # words: allow vantage (key of qlog)
                "vantage_point": {"name": component, "type": kind},
                "common_fields": {
                    "time_format": "relative",
                    "reference_time": 0,
                    "protocol_type": [_protocol(row)],
                    "group_id": str(flow),
                },
                "events": events,
            }


def _protocol(row: dict[str, Any]) -> str:
    """Return the protocol of a flow."""
    return "QUIC" if row.get("tcp", {}).get("profile") == "quic-quinn" else "TCP"


def _packets(packets: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the packets that an end sent or received."""
    columns = ("time", "step", "packet", "size", "offset", "length", "ack")
    for time, step, packet, size, offset, length, ack in packets.select(*columns).rows():
        data: dict[str, Any] = {
            # The log has the packets of a flow without their encryption levels.
            "header": {"packet_type": "unknown", "packet_number": packet},
            "raw": {"length": size},
        }
        # Of TCP, where it is sent: stream and acknowledgement as frames of QUIC.
        frames = [{"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}] if length else []
        if ack:
            frames.append({"frame_type": "ack", "acked_ranges": [[0, ack - 1]]})
        if frames:
            data["frames"] = frames
        yield _event(time, f"transport:packet_{step}", data)


def _sender(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a sender as they change, and its states."""
    before: dict[str, Any] = {}
    for row in rows.iter_rows(named=True):
        values = {key: row[column] for column, key in _METRICS.items()}
        changed = {key: value for key, value in values.items() if value is not None and before.get(key) != value}
        if changed:
            before |= changed
            data = {key: value / _NANOSECONDS if key in _TIMES else value for key, value in changed.items()}
            yield _event(row["time"], "recovery:metrics_updated", data)
        state = _STATES.get(row["trigger"])
        if state is not None or row["trigger"] in _TRIGGERS:
            data = {"new": state or "recovery"}
            if row["trigger"] in _TRIGGERS:
                data["trigger"] = _TRIGGERS[row["trigger"]]
            yield _event(row["time"], "recovery:congestion_state_updated", data)


def _event(time: int, name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"time": time / _NANOSECONDS, "name": name, "data": data}
