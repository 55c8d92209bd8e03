"""A connection in words: a sentence, the figures of a page, a row of a table; and what is said of the files."""

from collections.abc import Iterable, Mapping
from typing import Any

from airpath.quantities import count, seconds
from airpath.trace.causes import of_name, seconds_of, shares

Row = Mapping[str, Any]

_PASSED_OVER = {
    "corrupt_record": "corrupt records",
    "cut_record": "records that were cut off at the file's end",
    "unknown_link_type": "frames of an unknown link layer",
    "cut_short": "frames of which too little was captured",
    "malformed": "frames with malformed headers",
    "too_deep": "frames with too many tunnels in each other",
}
"""What is worth a remark of what was passed over. That there is other traffic than IP in a capture is not."""


_NOT_LOST = {"path-rate", "application", "closing"}
"""Causes that are nobody's fault: a full link, applications with nothing to send, a transfer that is over."""


_ODD_AHEAD_S = 86_400.0
"""More seconds than this between two frames are remarked upon: networks are not silent for a day."""
_ODD_BACK_S = 1.0
"""So is a step back of more than this: several interfaces of a capture are less out of order."""
_SMALL = 0.01
"""Causes with less of the time than this share are summed up in a sentence, where there are several."""


def ends(flow: Row) -> str:
    """Return the two ends of a connection, the one that opened it first."""
    return f"{flow['client']} → {flow['server']}"


def ended(flow: Row) -> str:
    """Return how a connection ended."""
    return "reset" if flow["reset"] else str(flow["ending"])


def sentence(flow: Row) -> str:
    """Return where the time of a connection went, the longest part first, with shares that add up to 100 %."""
    totals = seconds_of(flow)
    whole = sum(totals.values())
    small = {name: total for name, total in totals.items() if total < _SMALL * whole}
    parts = {of_name(name).words: total for name, total in totals.items() if len(small) < 2 or name not in small}
    if len(small) > 1:
        parts["of other causes"] = sum(small.values())
    share = shares(parts)
    ordered = sorted(parts.items(), key=lambda part: (part[0] == "of other causes", -part[1]))
    said = [f"{seconds(total)} {words} ({percent(share[words])})" for words, total in ordered]
    return f"{seconds(flow['duration_s'])}: {', '.join(said)}." if said else f"{seconds(flow['duration_s'])}."


def main_cause(flow: Row) -> str:
    """Return the cause that took longest, with its share of the time."""
    totals = seconds_of(flow)
    if not totals:
        return "–"
    longest = max(totals, key=lambda name: totals[name])
    return f"{of_name(longest).words}, {percent(shares(totals)[longest])}"


def percent(share: float) -> str:
    """Return a share that may have been rounded away."""
    return f"{share:.0f}\u00a0%" if share else "<\u00a01\u00a0%"


def lost(flow: Row) -> float:
    """Return the seconds for which neither the path at its rate nor the applications account."""
    return sum(total for name, total in seconds_of(flow).items() if name not in _NOT_LOST)


def worst_first(connections: Iterable[Row]) -> list[Row]:
    """Return connections in the order in which they are worth a look: those that lost most time first."""
    return sorted(connections, key=lambda flow: (-lost(flow), -flow["duration_s"], flow["connection"]))


def longest_first(connections: Iterable[Row]) -> list[Row]:
    """Return connections in the order of their length."""
    return sorted(connections, key=lambda flow: (-flow["duration_s"], flow["connection"]))


def summary(reading: Row, connections: int) -> str:
    """Return what there was, in a sentence."""
    frames = sum(file["frames"] for file in reading["files"])
    names = ", ".join(file["name"] for file in reading["files"])
    times = [(file["first"], file["last"]) for file in reading["files"] if file["first"] is not None]
    span = (max(last for _, last in times) - min(first for first, _ in times)) / 1e9 if times else 0.0
    flows = "1 connection" if connections == 1 else f"{connections:,} connections"
    return f"{names}: {count(frames)} {_what(reading)} in {length(span)}, {flows}"


def _what(reading: Row) -> str:
    """Return what was counted: an event log has no frames."""
    return "frames" if any(file["link_type"] is not None for file in reading["files"]) else "segments"


def length(span: float) -> str:
    """Return how long a capture is: seconds in hours, days or years where it is long."""
    for unit, of in (("years", 365.25 * 86_400), ("days", 86_400.0), ("h", 3_600.0)):
        if span >= 2 * of:
            return f"{span / of:.3g} {unit}"
    return seconds(span)


def _steps(file: Row) -> list[str]:
    """Return what is odd about the times of a capture."""
    said = []
    ahead, back = file["ahead"], file["back"]
    if ahead and ahead["s"] > _ODD_AHEAD_S:
        said.append(
            f"{file['name']}: {length(ahead['s'])} lie between frames {ahead['frame'] - 1} and {ahead['frame']}: "
            "a time stamp is damaged, or captures of different times were put together"
        )
    if back and back["s"] > _ODD_BACK_S:
        said.append(
            f"{file['name']}: frame {back['frame']} is stamped {length(back['s'])} before the one that precedes it: "
            "a time stamp is damaged, the clock was set, or captures were put together out of order"
        )
    return said


def _shortcomings(reading: Row) -> list[str]:
    """Return what the capture lacks, with what that means and how to capture without it."""
    said = [
        f"{file['name']}: the capturing host dropped {file['dropped']:,} packets; they look like losses and were none"
        for file in reading["files"]
        if file["dropped"]
    ]
    lacks = reading["shortcomings"]
    if lacks["unseen_bytes"]:
        said.append(
            f"{lacks['unseen_bytes']:,} bytes were acknowledged that are not in the capture: the capturing host "
            "dropped packets, or they went another way; they look like losses and were none"
        )
    if lacks["options_cut"]:
        said.append(
            f"the options of {lacks['options_cut']:,} segments are cut off or malformed: what they acknowledge "
            "selectively and their timestamps are not known; capture with a longer snap length (tcpdump -s 128)"
        )
    if lacks["super_segments"]:
        said.append(
            f"{lacks['super_segments']:,} segments are longer than the other end takes: the capturing host's interface "
            "cuts them, or put them together, and the packets on the network were more and smaller "
            "(ethtool -K DEVICE tso off gso off gro off before capturing)"
        )
    return said


def remarks(reading: Row) -> list[str]:
    """Return what should be known of how the files were read."""
    said = [
        f"{file['name']}: {file['ending']}; what comes before is told of" for file in reading["files"] if file["ending"]
    ]
    for file in reading["files"]:
        said += _steps(file)
    passed = [
        f"{reading['skipped'][cause]:,} {words}"
        for cause, words in _PASSED_OVER.items()
        if reading["skipped"].get(cause)
    ]
    if passed:
        said.append(f"passed over: {', '.join(passed)}")
    said += _shortcomings(reading)
    if reading["interrupted"]:
        said.append("interrupted: what was read until then is told of")
    return said
