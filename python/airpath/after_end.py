"""What a scenario plans for times after the end of its run."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from airpath.quantities import parse_time, seconds


@dataclass(frozen=True, slots=True)
class Late:
    """A change, flow or freeze of a scenario, and the runs that ended before it."""

    words: str
    first: float
    """The first of its times that is after the end of a run, in seconds."""
    last: float
    """The last of its times."""
    runs: int
    """All runs of the scenario."""
    late: int
    """Runs that ended before the last of its times."""
    end: float
    """The latest end of these."""
    is_over: bool
    """Whether that run ended at the `duration` of the scenario."""

    def text(self, cause: str, runs: str) -> str:
        """Return what happened, in words.

        Args:
            cause: What ends a run before its duration is over.
            runs: What a run is called.
        """
        at = f"at {seconds(self.first)}" if self.first == self.last else f"from {seconds(self.first)} on"
        some = "" if self.late == self.runs else f" in {self.late} of {self.runs} {runs}s"
        which = "the run" if self.runs == 1 else "the last of them" if some else f"the last {runs}"
        why = "at its `duration`" if self.is_over else cause
        return f"{self.words} {at} has no effect{some}: {which} ended {why}, {seconds(self.end)}"


def late_in(resolved: dict[str, Any], ends: Sequence[float]) -> list[Late]:
    """Return the changes, flows and freezes of a scenario.

    Args:
        resolved: The scenario with every value resolved, or the parts of it that are used.
        ends: The end of each run, in seconds.
    """
    found = []
    duration = parse_time(resolved["duration"]) if "duration" in resolved else math.inf
    for words, times in _planned(resolved):
        late = [end for end in ends if times.last >= end]
        first = times.at_or_after(min(late)) if late else math.inf
        end = max(late, default=0.0)
        found.append(Late(words, first, times.last, len(ends), len(late), end, end >= duration))
    return found


def merged(found: Iterable[Late]) -> list[Late]:
    """Return one for each change, flow and freeze of several scenarios."""
    sums: dict[str, Late] = {}
    for each in found:
        before = sums.get(each.words)
        if before is None:
            sums[each.words] = each
            continue
        latest = max(before, each, key=lambda late: late.end)
        first, last = min(before.first, each.first), max(before.last, each.last)
        runs, late = before.runs + each.runs, before.late + each.late
        sums[each.words] = Late(each.words, first, last, runs, late, latest.end, latest.is_over)
    return list(sums.values())


@dataclass(frozen=True, slots=True)
class Times:
    """Times at equal distances, in seconds from the start of the run."""

    first: float
    step: float = 0.0
    number: int = 1

    @property
    def last(self) -> float:
        """The last of them."""
        return self.first + (self.number - 1) * self.step

    def at_or_after(self, time: float) -> float:
        """Return the first of them that is not before `time`; the last one is not."""
        if self.first >= time or self.step == 0:
            return self.first
        return self.first + math.ceil((time - self.first) / self.step) * self.step


def _planned(resolved: dict[str, Any]) -> Iterator[tuple[str, Times]]:
    """Yield what a scenario plans for times from the start of the run, in words."""
    for index, change in enumerate(resolved.get("change", [])):
        yield f"change.{index}", Times(parse_time(change["at"]))
    for key, flow, times in flows_of(resolved):
        yield f"{key} (`{flow.get('name', flow['kind'])}`)", times
        for number, freeze in enumerate(flow.get("freeze", [])):
            yield f"{key}.freeze.{number}", Times(parse_time(freeze["from"]))


def flows_of(resolved: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Times]]:
    """Yield the path and content of each table of flows, with their starts."""
    mobiles = {each["name"]: each["count"] for each in resolved.get("mobile", [])}
    for index, flow in enumerate(resolved.get("flow", [])):
        # The name is that of a group or of one of its mobiles.
        of_mobiles = mobiles.get(flow["mobile"], 1) if "mobile" in flow else sum(mobiles.values())
        times = Times(parse_time(flow["start"]), parse_time(flow["stagger"]), flow["count"] * of_mobiles)
        yield f"flow.{index}", flow, times
