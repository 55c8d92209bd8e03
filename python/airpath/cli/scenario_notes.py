"""Notes about settings of a scenario that have no effect in a run."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.after_end import Late, flows_of, late_in, merged
from airpath.cli.messages import note

if TYPE_CHECKING:
    from airpath.sweep import Plan

_KEYS = ("tcp", "quic", "change", "start", "stagger", "freeze", "second_bearer", "proxy")
"""The keys of settings that a note is about."""
_LATE_KEYS = ("change", "start", "stagger", "freeze")
"""Those of settings with times."""
_TIMED = ("change", "flow", "mobile", "duration")
"""The tables and keys on which these times depend."""
_LAST_FLOW = "with its last flow"
"""What ends a simulation before its duration is over."""
_MOST = 3
"""Most notes about what comes after the end."""


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


def note_late(resolved: dict[str, Any], ends: Sequence[float], cause: str = _LAST_FLOW) -> None:
    """Print a note about each change, flow and freeze that comes after the end of a run.

    Args:
        resolved: The scenario with every value resolved, or the parts of it that are used.
        ends: The end of each repetition, in seconds.
        cause: What ended a repetition before its duration was over.
    """
    _print_late(late_in(resolved, ends), cause, "repetition")


def note_late_in_sweep(plan: "Plan", ends: Mapping[int, Sequence[float]]) -> None:
    """Print a note about each change, flow and freeze that comes after the end of runs of a sweep.

    Args:
        plan: The plan.
        ends: The ends of the runs in seconds, by case.
    """
    from airpath import _native

    if not any(key in f"{plan.text}{plan.columns}{plan.fixed}{plan.given}" for key in _LATE_KEYS):
        return
    resolved: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    found: list[Late] = []
    for case, own in sorted(ends.items()):
        overrides = plan.overrides(case)
        # Most axes change no time, and then all cases have the same times.
        timed = tuple(each for each in overrides if each[0].partition(".")[0] in _TIMED)
        if timed not in resolved:
            resolved[timed] = tomllib.loads(_native.resolve(plan.text, plan.file, overrides))
        found += late_in(resolved[timed], own)
    _print_late(merged(found), _LAST_FLOW, "run")


def _print_late(found: Iterable[Late], cause: str, runs: str) -> None:
    """Print what comes after the end, each in a note."""
    late = [each for each in found if each.late]
    for each in late[:_MOST]:
        note(each.text(cause, runs))
    if late[_MOST:]:
        note(f"{len(late) - _MOST} more changes or flows come after the end")


def _note_unused(given: dict[str, Any], resolved: dict[str, Any]) -> None:
    """Print a note about the tables of transports that no flow of a scenario uses."""
    for key in ("tcp", "quic"):
        if key in given and not any(key in flow for flow in resolved["flow"]):
            note(f"no flow uses {key.upper()}: [{key}] of the scenario has no effect")


def _note_single(resolved: dict[str, Any]) -> None:
    """Print a note about each `stagger` of a table with one flow."""
    for key, _, times in flows_of(resolved):
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
