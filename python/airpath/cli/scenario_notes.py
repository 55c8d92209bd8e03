"""Notes about settings of a scenario that have no effect in a run."""

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath.cli.messages import note
from airpath.quantities import parse_time, seconds

_KEYS = ("tcp", "quic", "change", "start", "stagger", "freeze", "second_bearer", "proxy")
"""The keys of settings that a note is about."""


def note_without_effect(scenario: Path | dict[str, Any], overrides: dict[str, Any], ends: Sequence[float]) -> None:
    """Print a note about each setting of a scenario that had no effect in its run.

    Args:
        scenario: The file of the scenario, or its content.
        overrides: The settings laid over it.
        ends: The end of each repetition, in seconds; empty if the run was interrupted.
    """
    from airpath.run import resolve

    given = tomllib.loads(scenario.read_text("utf-8")) if isinstance(scenario, Path) else scenario
    # Most scenarios have no such setting, and need not be resolved again.
    if not any(key in f"{given}{overrides}" for key in _KEYS):
        return
    resolved = tomllib.loads(resolve(scenario, set=overrides))
    _note_unused(given, resolved)
    _note_single(resolved)
    _note_second(resolved)
    _note_proxy(resolved)
    _note_unmarked(resolved)
    note_late(resolved, ends)


def note_late(resolved: dict[str, Any], ends: Sequence[float], cause: str = "with its last flow") -> None:
    """Print a note about each change, flow and freeze that comes after the end of a run.

    Args:
        resolved: The scenario with every value resolved, or the parts of it that are used.
        ends: The end of each repetition, in seconds.
        cause: What ended a repetition before its duration was over.
    """
    found = []
    for words, times in _planned(resolved):
        late = [end for end in ends if times.last >= end]
        if not late:
            continue
        first = times.at_or_after(min(late))
        at = f"at {seconds(first)}" if first == times.last else f"from {seconds(first)} on"
        some = "" if len(late) == len(ends) else f" in {len(late)} of {len(ends)} repetitions"
        which = "the run" if len(ends) == 1 else "the last of them" if some else "the last repetition"
        is_over = "duration" in resolved and max(late) >= parse_time(resolved["duration"])
        why = "at its `duration`" if is_over else cause
        found.append(f"{words} {at} has no effect{some}: {which} ended {why}, {seconds(max(late))}")
    for each in found[:_MOST]:
        note(each)
    if found[_MOST:]:
        note(f"{len(found) - _MOST} more changes or flows come after the end")


_MOST = 3
"""Most notes about what comes after the end."""


@dataclass(frozen=True, slots=True)
class _Times:
    """Times at equal distances, in seconds from the start of the run."""

    first: float
    step: float = 0.0
    number: int = 1

    @property
    def last(self) -> float:
        return self.first + (self.number - 1) * self.step

    def at_or_after(self, time: float) -> float:
        """Return the first of them that is not before `time`; the last one is not."""
        if self.first >= time or self.step == 0:
            return self.first
        return self.first + math.ceil((time - self.first) / self.step) * self.step


def _planned(resolved: dict[str, Any]) -> Iterator[tuple[str, _Times]]:
    """Yield what a scenario plans for times from the start of the run, in words."""
    for index, change in enumerate(resolved.get("change", [])):
        yield f"change.{index}", _Times(parse_time(change["at"]))
    for key, flow, times in _flows(resolved):
        yield f"{key} (`{flow.get('name', flow['kind'])}`)", times
        for number, freeze in enumerate(flow.get("freeze", [])):
            yield f"{key}.freeze.{number}", _Times(parse_time(freeze["from"]))


def _flows(resolved: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], _Times]]:
    """Yield the path and content of each table of flows, with their starts."""
    mobiles = {each["name"]: each["count"] for each in resolved.get("mobile", [])}
    for index, flow in enumerate(resolved.get("flow", [])):
        # The name is that of a group or of one of its mobiles.
        of_mobiles = mobiles.get(flow["mobile"], 1) if "mobile" in flow else sum(mobiles.values())
        times = _Times(parse_time(flow["start"]), parse_time(flow["stagger"]), flow["count"] * of_mobiles)
        yield f"flow.{index}", flow, times


def _note_unused(given: dict[str, Any], resolved: dict[str, Any]) -> None:
    """Print a note about the tables of transports that no flow of a scenario uses."""
    for key in ("tcp", "quic"):
        if key in given and not any(key in flow for flow in resolved["flow"]):
            note(f"no flow uses {key.upper()}: [{key}] of the scenario has no effect")


def _note_single(resolved: dict[str, Any]) -> None:
    """Print a note about each `stagger` of a table with one flow."""
    for key, _, times in _flows(resolved):
        if times.step > 0 and times.number == 1:
            note(f"{key}.stagger has no effect: the table has one flow")


def _note_second(resolved: dict[str, Any]) -> None:
    """Print a note if no flow is on the second bearer."""
    is_used = "steering" in resolved or any(flow.get("bearer") == "second" for flow in resolved["flow"])
    if "second_bearer" in resolved and not is_used:
        note(
            'no flow uses the second bearer: [second_bearer] has no effect; give a flow `bearer = "second"`, or add '
            "[steering], which selects a bearer for each"
        )


def _note_proxy(resolved: dict[str, Any]) -> None:
    """Print a note if a proxy of TCP has no connections, and no queue for other packets."""
    proxy = resolved.get("proxy")
    if proxy is not None and "queue" not in proxy and not any("tcp" in flow for flow in resolved["flow"]):
        note("no flow uses TCP: [proxy] has no effect, because other packets pass it as they are")


def _note_unmarked(resolved: dict[str, Any]) -> None:
    """Print a note if a flow has the controller Prague and no queue marks packets."""
    controllers = [flow.get("tcp", {}).get("congestion", {}).get("algorithm") for flow in resolved["flow"]]
    hops = {key: value for key, value in resolved.items() if key != "flow"}
    if "prague" in controllers and not any(map(_marks, _tables(hops))):
        note(
            "no queue of the path marks packets, so prague responds to losses only, as Reno does; give the bottleneck "
            'a queue that marks, such as `queue.discipline = "dualpi2"`'
        )


def _marks(table: dict[str, Any]) -> bool:
    """Return whether a table is that of a queue that marks packets."""
    is_queue = "discipline" in table or "interval" in table  # the latter of a proxy
    return is_queue and (table.get("discipline") == "dualpi2" or table.get("ecn") is True)


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all tables within a value of a scenario."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _tables(each)
    elif isinstance(value, list):
        for each in value:
            yield from _tables(each)
