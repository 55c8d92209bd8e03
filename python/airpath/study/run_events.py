"""What a figure of a run shows: intervals of its log, found by rules.

A rule names the intervals. The first of them is what the figure is about; of several of a kind it
is the longest of the run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from airpath.result import Result
from airpath.study import air_interface
from airpath.study.sender import PROXY

_AROUND_S = 15.0
"""The delay of `gap-and-delay` is at most this far from its gap."""
_SUCCESSIVE_S = 30.0
"""Gaps are successive if at most this time is between them."""
_LOWEST_SCHEME = "cs-1"
_PROLONGED_S = 10.0
"""Least time in that scheme."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A part of the time of a run, in seconds."""

    name: str
    start: float
    end: float

    @property
    def length(self) -> float:
        """Its length."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Event:
    """A rule that finds intervals in a run."""

    intervals: tuple[str, ...]
    """The names of the intervals that it finds."""
    rule: str
    """What it finds, to complete "the first repetition that has"."""
    find: Callable[[Result], list[Interval]]
    """Returns the intervals of a run with one repetition; none if it does not have the event."""


def _longest(found: Sequence[Interval]) -> list[Interval]:
    return [max(found, key=lambda each: each.length)] if found else []


def _gaps(result: Result) -> list[air_interface.Gap]:
    """Return the gaps of downloads; other flows have none."""
    if any("duration_s" not in flow for flow in result.summary["flows"]):
        return []
    return [gap for observation in air_interface.observe(result) for gap in observation.gaps]


def _slow_start(result: Result) -> list[Interval]:
    """Return the longest gap after which TCP is in slow start, and this slow start."""
    slow = [gap for gap in _gaps(result) if gap.slow_start > 0]
    if not slow:
        return []
    gap = max(slow, key=lambda each: each.end - each.start)
    return [
        Interval("slow start", gap.restart, gap.restart + gap.slow_start),
        Interval("gap", gap.start, gap.end),
    ]


def _successive_gaps(result: Result) -> list[Interval]:
    """Return the longest time that two successive gaps and what is between them take."""
    pairs = [(one, other) for one, other in pairwise(_gaps(result)) if other.start - one.end <= _SUCCESSIVE_S]
    return _longest([Interval("successive gaps", one.start, other.end) for one, other in pairs])


def _lowest_scheme(result: Result) -> list[Interval]:
    """Return the longest prolonged time in CS-1 without a gap in which TCP sends segments again."""
    down = pl.col("direction") == "down"
    states = result.scan("states").filter(down & (pl.col("aspect") == "scheme")).sort("time", maintain_order=True)
    rows = states.select(pl.col("time") / 1e9, "name", "number").collect().rows()
    changes = [(time, name or f"cs-{number:.0f}") for time, name, number in rows]
    end = max((row["simulated_s"] for row in result.summary["repetitions"]), default=0.0)
    again = result.scan("packets").filter((pl.col("step") == "sent") & down & pl.col("retransmission"))
    times = again.select(pl.col("time") / 1e9).collect()["time"].to_list()
    gaps = _gaps(result)
    found = [
        Interval("CS-1", start, until)
        for (start, scheme), (until, _) in pairwise([*changes, (end, "")])
        if scheme == _LOWEST_SCHEME
        and until - start >= _PROLONGED_S
        and any(start <= time < until for time in times)
        and not any(gap.start < until and start < gap.end for gap in gaps)
    ]
    return _longest(found)


def _recovery(result: Result) -> list[Interval]:
    """Return the longest recovery of a download that duplicate acknowledgements began."""
    tcp = result.scan("tcp").filter(pl.col("direction") == "down").sort("time", maintain_order=True)
    if any(link["component"] == PROXY for link in result.summary["links"]):
        tcp = tcp.filter(pl.col("component") == PROXY)
    kinds = pl.col("trigger").is_in(["fast-retransmit", "recovery-end", "timeout"])
    rows = tcp.filter(kinds).select(pl.col("time") / 1e9, "trigger").collect().rows()
    return _longest(
        [
            Interval("recovery", begun, ended)
            for (begun, first), (ended, second) in pairwise(rows)
            if (first, second) == ("fast-retransmit", "recovery-end")
        ]
    )


def arrivals(result: Result) -> list[tuple[float, int]]:
    """Return the time in seconds and the number of each datagram of the first flow that arrives."""
    arrived = result.scan("app").filter((pl.col("step") == "arrived") & (pl.col("flow") == 0)).sort("time")
    return arrived.select(pl.col("time") / 1e9, "sequence").collect().rows()


def gap_and_delay(arrived: Sequence[tuple[float, int]]) -> list[Interval]:
    """Return the longest time between arrivals in which datagrams were lost, and a delay near it.

    The delay is the longest time between arrivals in which none was lost. A datagram that overtakes
    another counts as none lost.
    """
    gaps, delays = [], []
    for (earlier, previous), (later, number) in pairwise(arrived):
        lost = number > previous + 1
        (gaps if lost else delays).append(Interval("gap" if lost else "delay", earlier, later))
    if not gaps:
        return []
    gap = max(gaps, key=lambda each: each.length)
    start, end = gap.start - _AROUND_S, gap.end + _AROUND_S
    return [gap, *_longest([each for each in delays if start <= each.start and each.end <= end])]


EVENTS = {
    "slow-start": Event(
        ("slow start", "gap"),
        "a gap that lets the timer of TCP expire; of several the longest",
        _slow_start,
    ),
    "successive-gaps": Event(
        ("successive gaps",),
        f"two gaps at most {_SUCCESSIVE_S:.0f} s apart; of several pairs the longest",
        _successive_gaps,
    ),
    "lowest-scheme": Event(
        ("CS-1",),
        f"{_PROLONGED_S:.0f} s or more in CS-1 without a gap, with retransmissions of TCP; of several the longest",
        _lowest_scheme,
    ),
    "recovery": Event(
        ("recovery",),
        "a recovery from a loss that duplicate acknowledgements report; of several the longest",
        _recovery,
    ),
    "gap-and-delay": Event(
        ("gap", "delay"),
        "a time without arrivals in which datagrams are lost; of several the longest, and the longest delay near it",
        lambda result: gap_and_delay(arrivals(result)),
    ),
}
"""The rules by name."""
