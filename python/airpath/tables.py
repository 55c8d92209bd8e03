"""The tables of a result and their columns, and the summary's records as flat rows.

This module does not import Polars, so that the command line prints a summary without it. Types are
the names of Polars' classes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

TIME = "Int64"
"""Nanoseconds from the run's origin."""

EVENT_TABLES: dict[str, dict[str, str]] = {
    "packets": {
        "time": TIME,
        "repetition": "Int32",
        "component": "String",
        "step": "String",
        "direction": "String",
        "packet": "Int64",
        "flow": "Int32",
        "user": "Int32",
        "size": "Int32",
        "ecn": "Int8",
        "cause": "String",
        "backlog_packets": "Int32",
        "backlog_bytes": "Int64",
        "offset": "Int64",
        "length": "Int32",
        "ack": "Int64",
        "window": "Int64",
        "flags": "Int16",
        "retransmission": "Boolean",
    },
    "tcp": {
        "time": TIME,
        "repetition": "Int32",
        "component": "String",
        "flow": "Int32",
        "direction": "String",
        "trigger": "String",
        "congestion_window": "Int64",
        "slow_start_threshold": "Int64",
        "in_flight": "Int64",
        "outstanding": "Int64",
        "peer_window": "Int64",
        "acknowledged": "Int64",
        "round_trip": "Int64",
        "smoothed_round_trip": "Int64",
        "retransmission_timeout": "Int64",
        "pacing_rate": "Int64",
        "pacing_gain": "Int32",
    },
    "quic": {
        "time": TIME,
        "repetition": "Int32",
        "component": "String",
        "flow": "Int32",
        "connection": "Int32",
        "direction": "String",
        "step": "String",
        "packet": "Int64",
        "size": "Int32",
        "packet_type": "String",
        "packet_number": "Int64",
        "frames": "String",
    },
    "radio": {
        "time": TIME,
        "repetition": "Int32",
        "component": "String",
        "direction": "String",
        "user": "Int32",
        "duration": "Int64",
        "pdus": "Int32",
        "repeated": "Int32",
        "errored": "Int32",
        "bytes": "Int32",
        "level": "Int16",
        "control": "Int32",
    },
    "states": {
        "time": TIME,
        "repetition": "Int32",
        "component": "String",
        "direction": "String",
        "user": "Int32",
        "aspect": "String",
        "name": "String",
        "number": "Float64",
    },
    "app": {
        "time": TIME,
        "repetition": "Int32",
        "flow": "Int32",
        "step": "String",
        "delivered": "Int64",
        "sequence": "Int32",
        "delay": "Int64",
    },
    "changes": {
        "time": TIME,
        "repetition": "Int32",
        "component": "String",
        "kind": "String",
        "direction": "String",
        "user": "Int32",
        "duration": "Int64",
        "change": "String",
    },
}
"""The event tables and their columns. Times and spans are nanoseconds, sizes and windows bytes."""

TRANSFERS = ("download", "upload", "tcp")
"""The kinds of flows that move bytes over TCP: those of a simulation, and the connections of real
programs."""

VIDEOS = ("stream", "adaptive")
"""The kinds of flows that play a video."""

PROXY = "proxy"
"""The component of a transport-level proxy."""

DROP_CAUSES = (
    "queue-full",
    "queue-management",
    "policer",
    "loss",
    "attempts-exhausted",
    "too-big",
    "handover",
    "decompression",
    "discarded",
)
"""The causes of a loss on a link or bearer, as logged."""

SUMMARY_TABLES: dict[str, dict[str, str]] = {
    "flows": {
        "repetition": "Int64",
        "flow": "Int64",
        "name": "String",
        "kind": "String",
        "mobile": "String",
        "local": "String",
        "remote": "String",
        "direction": "String",
        "start_s": "Float64",
        "outcome": "String",
        "cause": "String",
        "bytes": "Int64",
        "duration_s": "Float64",
        "acknowledged_s": "Float64",
        "connect_s": "Float64",
        "first_byte_s": "Float64",
        "throughput_bps": "Float64",
        "delivered_bytes": "Int64",
        "data_packets": "Int64",
        "data_bytes": "Int64",
        "unique_bytes": "Int64",
        "retransmitted_packets": "Int64",
        "retransmitted_bytes": "Int64",
        "ack_packets": "Int64",
        "timeouts": "Int64",
        "fast_retransmits": "Int64",
        "undone": "Int64",
        "marked_packets": "Int64",
        "ecn_reductions": "Int64",
        "rtt_min_s": "Float64",
        "rtt_mean_s": "Float64",
        "rtt_max_s": "Float64",
        "rtt_samples": "Int64",
        "proxy_rtt_mean_s": "Float64",
        "sent": "Int64",
        "received": "Int64",
        "lost": "Int64",
        "delay_min_s": "Float64",
        "delay_mean_s": "Float64",
        "delay_max_s": "Float64",
        "delay_p50_s": "Float64",
        "delay_p95_s": "Float64",
        "duplicates": "Int64",
        "reordered": "Int64",
        "inter_arrival_mean_s": "Float64",
        "inter_arrival_p50_s": "Float64",
        "inter_arrival_p95_s": "Float64",
        "inter_arrival_max_s": "Float64",
        "gaps": "Int64",
        "gap_mean_s": "Float64",
        "gap_max_s": "Float64",
        "gap_most_lost": "Int64",
        "late_threshold_s": "Float64",
        "late": "Int64",
        "delay_periods": "Int64",
        "delay_period_mean_s": "Float64",
        "delay_period_max_s": "Float64",
        "connections": "String",
        "request_bytes": "Int64",
        "response_bytes": "Int64",
        "connect_mean_s": "Float64",
        "transactions_per_s": "Float64",
        "protocol": "String",
        "opened": "Int64",
        "video_bps": "Int64",
        "discarded": "Int64",
        "repaired": "Int64",
        "retransmitted_share": "Float64",
        "jitter_s": "Float64",
        "frames": "Int64",
        "frames_complete": "Int64",
        "frames_decodable": "Int64",
        "startup_s": "Float64",
        "stalls": "Int64",
        "stall_s": "Float64",
        "stall_max_s": "Float64",
        "stall_share": "Float64",
        "buffer_mean_s": "Float64",
        "buffer_min_s": "Float64",
        "reports": "Int64",
        "adaptation": "String",
        "segments": "Int64",
        "segments_received": "Int64",
        "quality_bps": "Float64",
        "switches": "Int64",
        "codec": "String",
        "mos_scale": "String",
        "r": "Float64",
        "mos": "Float64",
        "mouth_to_ear_s": "Float64",
        "frame_loss": "Float64",
        "first_message_s": "Float64",
        "last_message_s": "Float64",
    },
    "links": {
        "repetition": "Int64",
        "component": "String",
        "direction": "String",
        "offered_packets": "Int64",
        "offered_bytes": "Int64",
        "delivered_packets": "Int64",
        "delivered_bytes": "Int64",
        "queued_packets": "Int64",
        "queued_bytes": "Int64",
    }
    | {f"dropped_{cause.replace('-', '_')}_{unit}": "Int64" for cause in DROP_CAUSES for unit in ("packets", "bytes")},
    "radio": {
        "repetition": "Int64",
        "component": "String",
        "direction": "String",
        "user": "Int64",
        "ttis": "Int64",
        "pdus": "Int64",
        "repeated_pdus": "Int64",
        "errored_pdus": "Int64",
        "bytes": "Int64",
    },
    "mobiles": {
        "repetition": "Int64",
        "component": "String",
        "user": "Int64",
        "mobile": "String",
        "handovers": "Int64",
        "connection_setups": "Int64",
        "link_failures": "Int64",
    },
    "pages": {
        "repetition": "Int64",
        "flow": "Int64",
        "view": "Int64",
        "page": "String",
        "start_s": "Float64",
        "page_time_s": "Float64",
        "first_byte_s": "Float64",
        "objects": "Int64",
        "requests": "Int64",
        "responses": "Int64",
        "cached": "Int64",
        "bytes": "Int64",
        "connections": "Int64",
        "look_ups": "Int64",
        "pipeline_factor": "Float64",
        "pipelining_efficiency": "Float64",
        "pipelining_efficiency_of_reused": "Float64",
        "without_response_s": "Float64",
        "idle_downlink_s": "Float64",
    },
    "objects": {
        "repetition": "Int64",
        "flow": "Int64",
        "view": "Int64",
        "object": "Int64",
        "name": "String",
        "type": "String",
        "origin": "String",
        "source": "String",
        "connection": "Int64",
        "bytes": "Int64",
        "content_bytes": "Int64",
        "found_s": "Float64",
        "queried_s": "Float64",
        "resolved_s": "Float64",
        "requested_s": "Float64",
        "first_byte_s": "Float64",
        "finished_s": "Float64",
    },
    "buffers": {
        "repetition": "Int64",
        "flow": "Int64",
        "time_s": "Float64",
        "buffer_s": "Float64",
        "playing": "Boolean",
    },
    "segments": {
        "repetition": "Int64",
        "flow": "Int64",
        "segment": "Int64",
        "quality": "Int64",
        "rate_bps": "Int64",
        "bytes": "Int64",
        "buffer_s": "Float64",
        "requested_s": "Float64",
        "finished_s": "Float64",
    },
    "scripts": {
        "repetition": "Int64",
        "flow": "Int64",
        "first": "Int64",
        "count": "Int64",
        "kind": "String",
    },
    "repetitions": {
        "repetition": "Int64",
        "simulated_s": "Float64",
        "ended": "String",
        "packets": "Int64",
        "events": "Int64",
    },
    "middleboxes": {
        "repetition": "Int64",
        "component": "String",
        "counter": "String",
        "value": "Int64",
    },
}
"""The tables of `summary.json` and their fixed columns, in order. `flows` has more: one per TCP
setting (`tcp_…`). Names that end in `_s` are seconds, in `_bps` bits per second, in `_bytes`
bytes."""

TCP_SETTING = "tcp_"
"""The columns of `flows` with a setting of TCP begin with this."""

FIGURES = tuple(
    name
    for name, kind in SUMMARY_TABLES["flows"].items()
    if kind in ("Float64", "Int64") and name not in ("repetition", "flow", "start_s")
)
"""The figures of flows: their numeric columns but for numbers of rows and the start."""

MAIN_FIGURES = (
    "duration_s",
    "throughput_bps",
    "first_byte_s",
    "retransmitted_packets",
    "rtt_mean_s",
    "delay_mean_s",
    "delay_p95_s",
    "lost",
    "transactions_per_s",
    "startup_s",
    "stall_s",
    "frames_decodable",
    "quality_bps",
    "switches",
    "mos",
    "mouth_to_ear_s",
    "frame_loss",
    "last_message_s",
)
"""The figures of flows that comparisons and sweeps show by default, as far as they are present."""

MAIN_PAGE_FIGURES = ("page_time_s", "largest_contentful_paint_s")
"""The same for views of pages."""

OPTIONAL_TABLES = ("mobiles", "pages", "objects", "buffers", "segments", "scripts", "middleboxes")
"""Tables that `summary.json` has only if they have rows."""


def is_quic(flow: Mapping[str, Any]) -> bool:
    """Return whether a flow is over QUIC."""
    return "quic" in (flow.get("tcp") or {})


def is_steering_probe(flow: Mapping[str, Any]) -> bool:
    """Return whether a flow is the probes that `[steering]` sends over a bearer."""
    mobile = str(flow["mobile"]).removesuffix("-second")
    return flow["kind"] == "ping" and flow["name"] in (f"steering-{mobile}-first", f"steering-{mobile}-second")


def direction_of(flow: Mapping[str, Any]) -> str:
    """Return the direction of a transfer's data: `down` or `up`."""
    return flow.get("direction") or ("up" if flow["kind"] == "upload" else "down")


def flat_rows(table: str, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of a summary's table as flat rows with the same columns in order.

    A nested value becomes one column per part (`tcp.profile` is `tcp_profile`), a list one text. A
    missing value is `None`; a loss cause without packets is 0.
    """
    flat = [dict(_flatten("", record)) for record in records]
    names = list(SUMMARY_TABLES[table])
    known = set(names)
    for row in flat:
        for name in row:
            if name not in known and not (name in ("tcp", "dropped") and row[name] is None):
                known.add(name)
                names.append(name)
    missing = {name: 0 if name.startswith("dropped_") else None for name in names}
    return [{name: row.get(name, missing[name]) for name in names} for row in flat]


def _flatten(prefix: str, record: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in record.items():
        name = prefix + key.replace("-", "_")
        match value:
            case Mapping():
                yield from _flatten(f"{name}_", value)
            case list():
                yield name, ", ".join(str(each) for each in value)
            case _:
                yield name, value
