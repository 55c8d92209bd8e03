"""What makes the results of a trace doubtful.

One direction only, two ends as a sequence, one end twice.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from airpath.quantities import seconds
from airpath.trace.messages import Row, length, named, warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.trace.data import TraceData

_INITIAL_WINDOW = 10
"""Segments that a sender may send before the first acknowledgement (RFC 6928)."""
_TWICE = 0.25
"""Two captures of one transfer in a sequence contain half of the data segments again. From this
share of segments that were acknowledged before, a sequence counts as two ends. A choice."""
_ONE_WAY_NS = 5 * 10**9
"""Connections of two captures whose starts differ by more nanoseconds are different ones."""


def flows(trace: "TraceData") -> list[dict[str, Any]]:
    """Return the rows of `Trace.connections`, each with what the text needs in addition.

    `captured_end` is the end (`client` or `server`) whose segments alone are in the capture, or
    `None`. `radio_known` is whether a radio log shows that the path has a radio. `closing_ends` is
    the number of ends that sent a FIN.
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


def warnings_of(trace: "TraceData") -> list[str]:
    """Return all warnings about the captures of a trace."""
    import polars as pl

    reading, alone = trace.reading, one_direction(trace)
    if alone:
        unseen = trace.directions.filter(pl.col("connection").is_in(list(alone)))["unseen_bytes"].sum()
        lacks = reading["shortcomings"]
        lacks = lacks | {"unseen_bytes": max(0, lacks["unseen_bytes"] - unseen)}
        reading = reading | {"shortcomings": lacks}
    return [*_directions(alone), *_sequence(trace), *_same_ends(trace), *_radio(trace), *warnings(reading)]


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
            f"{sources.radio_name}: no time of the log is in the capture; it begins {length(abs(apart) / 1e9)} "
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
