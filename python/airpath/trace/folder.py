"""The input of a trace in a result folder: its captures, or else its event log."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from airpath.result import NotLoggedError, UnreadableResultError, load
from airpath.tables import TRANSFERS, direction_of
from airpath.trace.event_log import Log
from airpath.trace.event_log import of_result as logged


@dataclass(frozen=True)
class Captured:
    """The captures of one repetition of a run."""

    near: Path
    """The capture at the end that sends most data."""
    far: Path
    """The capture at the other end."""


def chosen(folder: Path, repetition: int | None) -> int:
    """Return the repetition to analyse: `repetition`, or the median one by default, as in reports.

    Raises:
        UnreadableResultError: The folder is no result, or lacks the repetition.
    """
    from airpath.plot.selection import median_repetition

    result = load(folder)
    if repetition is None:
        return median_repetition(result)
    number = len(result.summary["repetitions"])
    if all(row["repetition"] != repetition for row in result.summary["repetitions"]):
        raise UnreadableResultError(
            f"{folder}: has no repetition {repetition}", next_step=f"it has {number}, numbered from 0"
        )
    return repetition


def has_proxy(folder: Path) -> bool:
    """Return whether the path of a run has a proxy, which ends its connections."""
    return "proxy" in tomllib.loads(load(folder).scenario)


def recorded(folder: Path, repetition: int) -> Captured | Log:
    """Return the captures of a result folder or, if there are none, the packets of its event log.

    Args:
        folder: The result folder.
        repetition: The repetition.

    Raises:
        UnreadableResultError: The folder is no result, or has neither for that repetition, or has
            the event log of a run with a proxy.
    """
    server, mobile = (folder / "captures" / f"{repetition:04}-{end}.pcapng" for end in ("server", "mobile"))
    if server.is_file() and mobile.is_file():
        return Captured(server, mobile) if _goes_down(folder, repetition) else Captured(mobile, server)
    if has_proxy(folder):
        # No end of the log receives what the proxy absorbs, or sends what it creates.
        raise UnreadableResultError(
            f"{folder}: a proxy ends the connections of this run, and its two sides are read from captures",
            next_step="run it again with `--capture`",
        )
    try:
        return logged(folder, repetition)
    except NotLoggedError:
        raise UnreadableResultError(
            f"{folder}: has neither captures nor a packet log of repetition {repetition}",
            next_step="run it again with `--capture` or with the packet log on, or name a capture file",
        ) from None


def _goes_down(folder: Path, repetition: int) -> bool:
    """Return whether TCP carried at least as many bytes to the mobiles as from them."""
    sums = {"down": 0, "up": 0}
    for flow in load(folder).summary["flows"]:
        if flow["repetition"] == repetition and flow["kind"] in TRANSFERS:
            sums[direction_of(flow)] += flow["bytes"]
    return sums["down"] >= sums["up"]
