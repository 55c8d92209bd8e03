"""Time–sequence plots for xplot, as `tcptrace -S` makes them.

One file per direction. Vertical lines with arrows are segments, the lower staircase is the
acknowledged data, the upper one the end of the receiver's window. `R` marks retransmissions, `O`
segments out of order, `S` SACK blocks, `D` DSACK blocks, `3` third duplicate acknowledgements, `Z`
closed windows. The SYN is at 0, the first byte of data at 1.

Format: the manual page xplot(1) of xplot.org (T. Shepard, 1990).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.files import write_text
from airpath.trace.figures.view import SENDERS, other

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_NEW, _AGAIN, _ACKNOWLEDGED, _WINDOW, _SELECTIVE = "white", "red", "green", "yellow", "purple"
"""The colours of tcptrace."""


def xplot(trace: "TraceData", folder: Path) -> list[Path]:
    """Write a time–sequence plot of each direction that carried data: `NUMBER-SENDER.xpl`.

    Args:
        trace: The trace.
        folder: The folder for the files; created if it does not exist.

    Returns:
        The files.

    Raises:
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    segments, blocks = trace.observations(), trace.selective()
    written = []
    for flow in trace.connections.iter_rows(named=True):
        own = segments.filter(connection=flow["connection"])
        for sender in SENDERS:
            if own.filter((pl.col("from") == sender) & (pl.col("length_bytes") > 0)).height == 0:
                continue
            path = folder / f"{flow['connection']}-{sender}.xpl"
            reported = blocks.filter((pl.col("connection") == flow["connection"]) & (pl.col("from") == other(sender)))
            write_text(path, "\n".join(_lines(flow, own, reported, sender)) + "\n")
            written.append(path)
    return written


def _lines(flow: dict[str, Any], segments: pl.DataFrame, blocks: pl.DataFrame, sender: str) -> Iterator[str]:
    source, destination = (flow[sender], flow[other(sender)])
    yield from ("timeval unsigned", "title", f"{source}_==>_{destination} (time sequence graph)")
    yield from ("xlabel", "time", "ylabel", "sequence number")
    for segment in segments.filter(pl.col("from") == sender).iter_rows(named=True):
        yield from _segment(segment)
    yield from _answers(segments.filter(pl.col("from") == other(sender)))
    for block in blocks.iter_rows(named=True):
        time = _time(block["time"])
        yield from (_SELECTIVE, f"line {time} {block['left'] + 1} {time} {block['right'] + 1}")
        yield from (f"rtext {time} {block['right'] + 1}", "D" if block["duplicate"] else "S")
    yield "go"


def _segment(segment: dict[str, Any]) -> Iterator[str]:
    time, begin = _time(segment["time"]), segment["offset"] + 1
    end = begin + segment["length_bytes"]
    again, events = segment["retransmission"] is not None, segment["events"].split()
    colour = _AGAIN if again else _NEW
    for letter, name, shape in (("S", "SYN", "diamond"), ("F", "FIN", "box"), ("R", "RST", "box")):
        if letter in segment["flags"]:
            yield from ("orange", f"{shape} {time} {end}", f"atext {time} {end}", name)
    if segment["length_bytes"] == 0:
        return
    yield from (colour, f"darrow {time} {begin}", f"uarrow {time} {end}", f"line {time} {begin} {time} {end}")
    if again:
        yield from (f"atext {time} {end}", "R")
    elif "out_of_order" in events:
        yield from (f"atext {time} {end}", "O")


def _answers(answers: pl.DataFrame) -> Iterator[str]:
    """Yield the staircases of the acknowledged data and of the window's end."""
    before: tuple[str, int, int] | None = None
    duplicates = 0
    for answer in answers.drop_nulls("acknowledged").iter_rows(named=True):
        time, acknowledged = _time(answer["time"]), answer["acknowledged"] + 1
        edge = acknowledged + answer["window_bytes"]
        if before is not None:
            since, was, was_edge = before
            for colour, old, new in ((_ACKNOWLEDGED, was, acknowledged), (_WINDOW, was_edge, edge)):
                yield from (colour, f"line {since} {old} {time} {old}")
                yield f"line {time} {old} {time} {new}" if new != old else f"dtick {time} {new}"
        duplicates = duplicates + 1 if "duplicate_ack" in answer["events"].split() else 0
        if duplicates == 3:
            yield from (_ACKNOWLEDGED, f"atext {time} {acknowledged}", "3")
        if answer["window_bytes"] == 0 and "R" not in answer["flags"]:
            yield from (_WINDOW, f"atext {time} {edge}", "Z")
        before = (time, acknowledged, edge)


def _time(nanoseconds: int) -> str:
    return f"{nanoseconds // 10**9}.{nanoseconds % 10**9 // 1000:06}"
