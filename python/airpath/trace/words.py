"""A connection in words: a sentence, the figures of a page, a row of a table; and what is said of the files."""

from collections.abc import Iterable, Mapping
from typing import Any

from airpath.quantities import count, seconds

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


def ends(flow: Row) -> str:
    """Return the two ends of a connection, the one that opened it first."""
    return f"{flow['client']} → {flow['server']}"


def longest_first(connections: Iterable[Row]) -> list[Row]:
    """Return connections in the order in which they are worth a look: those that took longest first."""
    return sorted(connections, key=lambda flow: (-flow["duration_s"], flow["connection"]))


def summary(reading: Row, connections: int) -> str:
    """Return what there was, in a sentence."""
    frames = sum(file["frames"] for file in reading["files"])
    names = ", ".join(file["name"] for file in reading["files"])
    times = [(file["first"], file["last"]) for file in reading["files"] if file["first"] is not None]
    span = (max(last for _, last in times) - min(first for first, _ in times)) / 1e9 if times else 0.0
    flows = "1 connection" if connections == 1 else f"{connections:,} connections"
    return f"{names}: {count(frames)} frames in {seconds(span)}, {flows}"


def remarks(reading: Row) -> list[str]:
    """Return what should be known of how the files were read."""
    said = [
        f"{file['name']}: {file['ending']}; what comes before is told of" for file in reading["files"] if file["ending"]
    ]
    passed = [
        f"{reading['passed_over'][cause]:,} {words}"
        for cause, words in _PASSED_OVER.items()
        if reading["passed_over"].get(cause)
    ]
    if passed:
        said.append(f"passed over: {', '.join(passed)}")
    if reading["interrupted"]:
        said.append("interrupted: what was read until then is told of")
    return said
