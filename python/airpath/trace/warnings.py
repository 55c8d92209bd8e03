"""All warnings about the captures of a trace.

Damaged files, odd time stamps, shortcomings of the capturing host, one direction only, captures of
two ends as a sequence, the same end twice, a radio log that does not fit, addresses that may
change.
"""

import tomllib
from itertools import pairwise
from typing import TYPE_CHECKING

from airpath.quantities import number_of, seconds
from airpath.result import load
from airpath.trace.connection_rows import one_direction
from airpath.trace.format import Row, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.trace.data import TraceData

_SKIPPED = {
    "corrupt_record": ("corrupt record", "corrupt records"),
    "unknown_link_type": ("frame of an unknown link layer", "frames of an unknown link layer"),
    "cut_short": ("frame that was captured too short", "frames that were captured too short"),
    "malformed": ("frame with a malformed header", "frames with malformed headers"),
    "too_deep": ("frame with too many nested tunnels", "frames with too many nested tunnels"),
}
"""The causes of skipped records that are reported, for one and for several.

The end of a cut file is reported elsewhere. Traffic other than IP is not reported."""

_ODD_AHEAD_S = 86_400.0
"""A gap of more seconds than this between two frames is reported."""
_ODD_BACK_S = 1.0
"""A step back in time of more seconds than this is reported; interfaces of one capture differ by
less."""
_TWICE = 0.25
"""Two captures of one transfer in a sequence contain half of the data segments again. From this
share of segments that were acknowledged before, a sequence counts as two ends. A choice."""
_ONE_WAY_NS = 5 * 10**9
"""Connections of two captures whose starts differ by more nanoseconds are different ones."""


def warnings_of(trace: "TraceData") -> list[str]:
    """Return all warnings about the captures of a trace."""
    import polars as pl

    reading, alone = trace.reading, one_direction(trace)
    if alone:
        unseen = trace.directions.filter(pl.col("connection").is_in(list(alone)))["unseen_bytes"].sum()
        lacks = reading["shortcomings"]
        lacks = lacks | {"unseen_bytes": max(0, lacks["unseen_bytes"] - unseen)}
        reading = reading | {"shortcomings": lacks}
    own = [*_directions(alone), *_sequence(trace), *_same_ends(trace), *_radio(trace), *_migration(trace)]
    return [*own, *file_warnings(reading)]


def _migration(trace: "TraceData") -> list[str]:
    """Return a warning if QUIC flows of a run can change their address with their bearer."""
    run = trace.sources.run
    if run is None or trace.quic.is_empty():
        return []
    steering = tomllib.loads(load(run).scenario).get("steering", {})
    if steering.get("addresses") != "two":
        return []
    return [
        f"{run}: a QUIC flow that changes its bearer has another address from then on (connection migration), and its "
        "datagrams with that address are not analysed: later times and causes are those of the bearer where it began"
    ]


def _radio(trace: "TraceData") -> list[str]:
    """Return a warning if the radio log that the caller named explains nothing of the capture."""
    sources = trace.sources
    if sources.radio_name is None:
        return []
    inferred = "silent times below are inferred from the packets"
    if not sources.radio:
        return [
            f"{sources.radio_name}: the log has no time in which the radio carried nothing or delayed packets, so it "
            f"is not used; {inferred}"
        ]
    clients = {address for row in trace.connections.iter_rows(named=True) for address in _addresses(row)}
    logs = [log for log in sources.radio if log[0] is None or log[0] in clients]
    if not logs:
        known = ", ".join(str(log[0]) for log in sources.radio)
        return [f"{sources.radio_name}: the log belongs to {known}, which the capture does not have; {inferred}"]
    if sources.run is None:
        return []
    times = [(int(begin), int(end)) for log in logs for begin, end in _times(log[1])]
    seen = [(file["first"], file["last"]) for file in trace.reading["files"] if file["first"] is not None]
    if times and seen and not _overlap(times, seen):
        apart = min(begin for begin, _ in times) - min(first for first, _ in seen)
        return [
            f"{sources.radio_name}: no time of the log is in the capture; it begins {seconds(abs(apart) / 1e9)} "
            f"{'after' if apart > 0 else 'before'} the capture: name the run that the capture belongs to; {inferred}"
        ]
    return []


def _addresses(flow: Row) -> tuple[str, str]:
    return flow["client_address"], flow["server_address"]


def _times(log: str) -> list[list[str]]:
    """Return the begin and the end of each row of a log in airpath's format."""
    return [line.split(",", 2)[:2] for line in log.splitlines()[1:] if line]


def _overlap(times: "Sequence[tuple[int, int]]", others: "Sequence[tuple[int, int]]") -> bool:
    """Return whether an interval overlaps the time from the first of the others to the last."""
    first, last = min(begin for begin, _ in others), max(end for _, end in others)
    return any(begin < last and first < end for begin, end in times)


def warnings_of_all(traces: "Sequence[TraceData]") -> list[str]:
    """Return the warnings about traces that are compared."""
    texts = [warning for trace in traces for warning in warnings_of(trace)]
    for other in traces[1:]:
        if _is_other_end(traces[0], other):
            names = [trace.reading["files"][0]["name"] for trace in (traces[0], other)]
            texts.append(
                f"{names[0]} and {names[1]} seem to have the same connections, captured at two ends; "
                f"for losses and delays between them: airpath trace {names[0]} --peer {names[1]}"
            )
    return texts


def _is_other_end(trace: "TraceData", other: "TraceData") -> bool:
    """Return whether two captures seem to be of one traffic at two ends.

    All connections of one are in the other too, at slightly different times. Connections of
    different runs may have equal addresses and equal times.
    """
    import polars as pl

    if trace.sources.run is not None or other.sources.run is not None:
        return False
    columns = ("client", "server", "start")
    fewer = min(trace.connections.height, other.connections.height)
    same = trace.connections.select(columns).join(other.connections.select(columns), on=columns[:2])
    apart = (pl.col("start") - pl.col("start_right")).abs()
    near = same.filter((apart > 0) & (apart < _ONE_WAY_NS))
    return 0 < fewer <= near.height


def _directions(alone: dict[int, str]) -> list[str]:
    """Return warnings about connections that are captured in one direction only."""
    texts = []
    for end in ("client", "server"):
        numbers = [number for number, captured in alone.items() if captured == end]
        if numbers:
            texts.append(
                f"{named(numbers)}: only segments from the {end} are in the capture, so the causes of the time cannot "
                "be determined; capture both directions, as with both directions of a mirror port"
            )
    return texts


def _sequence(trace: "TraceData") -> list[str]:
    """Return a warning if the files of a sequence overlap, as captures of two ends do."""
    files = [file for file in trace.reading["files"] if file["first"] is not None]
    if len(files) < 2:
        return []
    later = next((pair for pair in pairwise(files) if pair[1]["first"] < pair[0]["last"]), None)
    data, twice = (int(trace.directions[name].sum()) for name in ("data_segments", "spurious_acknowledged"))
    if data and twice > _TWICE * data:
        first, second = (later or files)[:2]
        return [
            f"{twice:,} of {data:,} data segments are in the files a second time, so {first['name']} and "
            f"{second['name']} seem to be captures of two ends, and the figures below are wrong; "
            f"for two ends: airpath trace {first['name']} --peer {second['name']}"
        ]
    if later is None:
        return []
    first, second = later
    overlap = (first["last"] - second["first"]) / 1e9
    return [
        f"{second['name']} begins {seconds(overlap)} before the end of {first['name']}: give files in the order of "
        "their times, a capture of the other end as --peer, and captures of several interfaces merged by mergecap"
    ]


def _same_ends(trace: "TraceData") -> list[str]:
    """Return a warning if the capture of the other end has the same times."""
    delays = trace.one_way.drop_nulls("delay_max_ns")
    if trace.sources.peer is None or not delays.height or delays["delay_max_ns"].max() or delays["delay_min_ns"].min():
        return []
    return [
        f"all one-way delays are 0: {trace.sources.peer} seems to be a copy of the first capture, or from the same "
        "end; name the capture of the other end as --peer"
    ]


def file_warnings(reading: Row) -> list[str]:
    """Return warnings about the files: damage, time stamps, skipped records, shortcomings."""
    texts = [reading["note"]] if reading.get("note") else []
    for file in reading["files"]:
        texts += [*_end_warnings(file), *_time_warnings(file)]
    skipped = [
        f"{number:,} {one if number == 1 else several}"
        for cause, (one, several) in _SKIPPED.items()
        if (number := reading["skipped"].get(cause))
    ]
    if skipped:
        texts.append(f"skipped: {', '.join(skipped)}")
    texts += _shortcomings(reading)
    if reading["interrupted"]:
        texts.append("interrupted: the frames read until then are analysed")
    return texts


def _end_warnings(file: Row) -> list[str]:
    """Return a warning about a capture that is incomplete or without packets."""
    frames, what = file["frames"], file["ending"]
    if frames == 0 and file["link_type"] is None:
        return [f"{file['name']}: {what or 'it has no packets'}, so it adds nothing to the analysis"]
    if not what:
        return []
    before = "the frame before is" if frames == 1 else f"the {frames:,} frames before are"
    return [f"{file['name']}: {what}; {before} analysed, copy the file again for the rest"]


def _time_warnings(file: Row) -> list[str]:
    """Return warnings about the time stamps of a capture."""
    texts = []
    ahead, back = file["ahead"], file["back"]
    if ahead and ahead["s"] > _ODD_AHEAD_S:
        texts.append(
            f"{file['name']}: frames {ahead['frame'] - 1} and {ahead['frame']} are {seconds(ahead['s'])} apart: a time "
            "stamp is damaged, or captures of different times were merged"
        )
    if back and back["s"] > _ODD_BACK_S:
        texts.append(
            f"{file['name']}: frame {back['frame']} is {seconds(back['s'])} earlier than the frame before it: a time "
            "stamp is damaged, the clock was set, or captures were merged out of order"
        )
    return texts


def _shortcomings(reading: Row) -> list[str]:
    """Return warnings about the capture's shortcomings: the effect, and how to avoid them."""
    texts = [
        f"{file['name']}: the capturing host dropped {number_of(file['dropped'], 'packet')}; the analysis may count "
        "them as lost"
        for file in reading["files"]
        if file["dropped"]
    ]
    lacks = reading["shortcomings"]
    if lacks["unseen_bytes"]:
        texts.append(
            f"{lacks['unseen_bytes']:,} acknowledged bytes are not in the capture: the capturing host dropped packets, "
            "or they took another route; the analysis may count them as lost"
        )
    if lacks["options_cut"]:
        texts.append(
            f"the options of {lacks['options_cut']:,} segments are cut off or malformed: their SACK blocks and "
            "timestamps are unknown; capture with a longer snap length (tcpdump -s 128)"
        )
    if lacks["super_segments"]:
        texts.append(
            f"{lacks['super_segments']:,} segments are longer than the peer's MSS: segmentation or receive offload of "
            "the capturing host's interface; the packets on the network were smaller, and the causes are computed for "
            "those (to capture them: ethtool -K DEVICE tso off gso off gro off)"
        )
    return texts
