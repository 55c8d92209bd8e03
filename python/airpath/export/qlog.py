"""The connections of a repetition as a qlog file, for qvis and other readers of qlog 0.3.

A trace is one end of one connection: its packets, and the state of its sender. Formats:
draft-ietf-quic-qlog-main-schema-02 (JSON, `qlog_version` 0.3) and
draft-ietf-quic-qlog-quic-events-01, whose event names qvis reads. Times are milliseconds since the
start of the run.
"""

import heapq
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from airpath.export.connections import OPPOSITE, End, connections
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
    "congestion-experienced": "congestion_avoidance",
}
"""Triggers of the table `tcp` that change the congestion state, and the new state."""
_TRIGGERS = {"timeout": "persistent_congestion", "congestion-experienced": "ECN"}
_PROBES = {"tail-probe", "window-probe"}
_REPEATS = {*_PROBES, "timeout"}
"""Triggers of the table `tcp` at which a sender repeats bytes."""
_FIELDS = {
    "padding": ("payload_length",),
    "reset_stream": ("stream_id", "error_code", "final_size"),
    "stop_sending": ("stream_id", "error_code"),
    "crypto": ("offset", "length"),
    "stream": ("stream_id", "offset", "length"),
    "max_data": ("maximum",),
    "max_stream_data": ("stream_id", "maximum"),
    "max_streams": ("stream_type", "maximum"),
    "data_blocked": ("limit",),
    "stream_data_blocked": ("stream_id", "limit"),
    "streams_blocked": ("stream_type", "limit"),
    "new_connection_id": ("sequence_number", "retire_prior_to", "connection_id"),
    "retire_connection_id": ("sequence_number",),
    "connection_close": ("error_space", "error_code", "trigger_frame_type"),
}
"""Keys of the values of a frame in the column `frames` of the table `quic`."""
_TEXTS = {"stream_type", "connection_id", "error_space"}
_EXTENSIONS = {"immediate_ack": 0x1F}
"""Types of frames that qlog does not have."""
_UDP_OVER_IP = 28
"""Bytes of the headers of IPv4 and UDP in front of a QUIC packet."""


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
    for connection in connections(result, number):
        if connection.protocol == "QUIC":
            own = partial(_quic_packets, _datagrams(connection.quic), connection.quic.filter(step="lost"))
        else:
            numbers = _numbers(connection.packets)
            own = partial(_segments, numbers, _frames(connection.packets, numbers))
        for end in connection.ends:
            events = [*own(end), *_sender(end.senders)]
            # Equal times keep this order: what an end receives comes before what follows from it.
            events.sort(key=lambda event: event["time"])
            yield {
                "title": f"{connection.title}, {end.title}",
                # words: allow vantage (key of qlog)
                "vantage_point": {"name": end.component, "type": end.kind},
                "common_fields": {
                    "time_format": "relative",
                    "reference_time": 0,
                    "protocol_type": [connection.protocol],
                    "group_id": connection.group,
                },
                "events": events,
            }


def _numbers(packets: pl.DataFrame) -> dict[int, int]:
    """Return the number of each packet of a connection over TCP, by that of the run.

    Each end numbers what it sends, from 0, as in QUIC: a packet that is sent again has another. A
    middlebox between the ends may send a copy, which has the number of its original, or packets of
    its own, whose numbers follow those of the end.
    """
    sent = packets.filter(step="sent")
    rank = pl.int_range(pl.len()).over("direction")
    numbers: dict[int, int] = dict(sent.select("packet", rank.alias("number")).rows())
    following = {"down": sent.filter(direction="down").height, "up": sent.filter(direction="up").height}
    originals: dict[tuple[str, int, int], int] = {}
    columns = ("step", "direction", "packet", "offset", "length")
    for step, direction, packet, offset, length in packets.filter(pl.col("step") != "received").select(*columns).rows():
        payload = (direction, offset, length)
        if step == "created" and not (length and payload in originals):
            numbers[packet] = following[direction]
            following[direction] += 1
        elif step == "created":
            numbers[packet] = originals[payload]
        else:
            originals[payload] = numbers[packet]
    return numbers


def _frames(packets: pl.DataFrame, numbers: dict[int, int]) -> dict[int, list[dict[str, Any]]]:
    """Return stream and acknowledgement of each segment of TCP as frames of QUIC.

    An acknowledgement has the packet numbers of the other end that have arrived, and whose bytes
    are before the acknowledgement number. It leaves out those of acknowledgements that arrived
    before, as ends of QUIC do.
    """
    frames: dict[int, list[dict[str, Any]]] = {}
    ends: dict[int, int] = {}
    arrived: dict[str, list[tuple[int, int]]] = {"down": [], "up": []}
    unconfirmed: dict[str, set[int]] = {"down": set(), "up": set()}
    carried: dict[int, set[int]] = {}
    columns = ("step", "direction", "packet", "offset", "length", "ack")
    for step, direction, packet, offset, length, ack in packets.select(*columns).rows():
        pending = unconfirmed[OPPOSITE[direction]]
        if step == "received":
            pending -= carried.pop(packet, set())
            if packet in ends:
                heapq.heappush(arrived[direction], (ends[packet], numbers[packet]))
            continue
        own: list[dict[str, Any]] = []
        if length:
            ends[packet] = offset + length
            own.append({"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length})
        waiting = arrived[OPPOSITE[direction]]
        while ack and waiting and waiting[0][0] <= ack:
            pending.add(heapq.heappop(waiting)[1])
        if pending:
            carried[packet] = set(pending)
            own.append({"frame_type": "ack", "acked_ranges": _ranges(sorted(pending))})
        if own:
            frames[packet] = own
    return frames


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Return the ranges, first and last, of rising numbers."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _segments(numbers: dict[int, int], frames: dict[int, list[dict[str, Any]]], end: End) -> Iterator[dict[str, Any]]:
    """Yield the segments that an end of TCP considered lost, sent and received."""
    yield from _losses(end, numbers)
    for time, step, packet, size in end.packets.select("time", "step", "packet", "size").rows():
        data: dict[str, Any] = {
            # TCP has no packet types.
            "header": {"packet_type": "unknown", "packet_number": numbers[packet]},
            "raw": {"length": size},
        }
        if packet in frames:
            data["frames"] = frames[packet]
        yield _event(time, f"transport:packet_{step}", data)


def _datagrams(quic: pl.DataFrame) -> dict[int, list[dict[str, Any]]]:
    """Return the packets of QUIC in each datagram, by its number, as data of qlog's events."""
    datagrams: dict[int, list[dict[str, Any]]] = {}
    columns = ("packet", "packet_type", "packet_number", "size", "frames")
    for datagram, kind, number, size, frames in quic.filter(step="sent").select(*columns).rows():
        data: dict[str, Any] = {
            "header": {"packet_type": kind, "packet_number": number},
            "raw": {"length": size},
            "datagram_id": datagram,
        }
        if frames is not None:
            data["frames"] = [_frame(frame) for frame in frames.split("; ")]
        datagrams.setdefault(datagram, []).append(data)
    return datagrams


def _frame(text: str) -> dict[str, Any]:
    """Return a frame of QUIC from its text in the log."""
    name, *values = text.split(" ")
    if name == "ack":
        ranges = [[int(number) for number in each.split("-")] for each in values]
        return {"frame_type": name, "acked_ranges": sorted(ranges)}
    if name in _EXTENSIONS:
        return {"frame_type": "unknown", "raw_frame_type": _EXTENSIONS[name]}
    fields = {
        key: value if key in _TEXTS else int(value) for key, value in zip(_FIELDS.get(name, ()), values, strict=False)
    }
    return {"frame_type": name, **fields} | ({"fin": True} if values[-1:] == ["fin"] else {})


def _quic_packets(datagrams: dict[int, list[dict[str, Any]]], lost: pl.DataFrame, end: End) -> Iterator[dict[str, Any]]:
    """Yield the packets that an end of QUIC received, declared lost and sent."""
    columns = ("time", "packet", "size")
    for step in ("received", "sent"):
        if step == "sent":
            for time, kind, number in (
                lost.filter(component=end.component).select("time", "packet_type", "packet_number").rows()
            ):
                yield _event(time, "recovery:packet_lost", {"header": {"packet_type": kind, "packet_number": number}})
        for time, datagram, size in end.packets.filter(step=step).select(*columns).rows():
            # An answer of the end point itself, such as a version negotiation, has no number.
            unknown = {"header": {"packet_type": "unknown"}, "raw": {"length": size - _UDP_OVER_IP}}
            for data in datagrams.get(datagram, [unknown]):
                yield _event(time, f"transport:packet_{step}", data)


def _losses(end: End, numbers: dict[int, int]) -> Iterator[dict[str, Any]]:
    """Yield each packet that an end of TCP considered lost, when it sent its bytes again.

    A tail loss probe and a window probe repeat bytes that are not considered lost.
    """
    triggers = {time: trigger for time, trigger in end.senders.select("time", "trigger").rows() if trigger in _REPEATS}
    latest: dict[int, int] = {}
    columns = ("time", "packet", "offset", "length", "retransmission")
    sent = end.packets.filter(pl.col("step") == "sent", pl.col("length") > 0)
    for time, packet, offset, _, again in sent.select(*columns).rows():
        trigger = triggers.get(time)
        before = latest.get(offset)
        latest[offset] = packet
        if again and before is not None and trigger not in _PROBES:
            data: dict[str, Any] = {"header": {"packet_type": "unknown", "packet_number": numbers[before]}}
            if trigger == "timeout":
                data["trigger"] = "pto_expired"
            yield _event(time, "recovery:packet_lost", data)


def _sender(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a sender as they change, and its states."""
    before: dict[str, Any] = {}
    before_state: str | None = None
    for row in rows.iter_rows(named=True):
        values = {key: row[column] for column, key in _METRICS.items()}
        changed = {key: value for key, value in values.items() if value is not None and before.get(key) != value}
        if changed:
            before |= changed
            data = {key: value / _NANOSECONDS if key in _TIMES else value for key, value in changed.items()}
            yield _event(row["time"], "recovery:metrics_updated", data)
        state = _STATES.get(row["trigger"], before_state)
        if state != before_state:
            data = {"new": state} | ({} if before_state is None else {"old": before_state})
            if row["trigger"] in _TRIGGERS:
                data["trigger"] = _TRIGGERS[row["trigger"]]
            yield _event(row["time"], "recovery:congestion_state_updated", data)
            before_state = state


def _event(time: int, name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"time": time / _NANOSECONDS, "name": name, "data": data}
