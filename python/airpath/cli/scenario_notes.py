"""Notes about settings of a scenario that have no effect in a run."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
_USERS = ("flow", "mobile", "second_bearer", "steering", "proxy")
"""The tables on which it depends whether a flow uses another one."""
_LAST_FLOW = "with its last flow"
"""What ends a simulation before its duration is over."""
_COMMAND = "with its command"
"""What ends a link."""
BROWSER = "with its browser"
"""What ends the link of a page load."""
_UNUSED_BY_LINKS = {
    "flow": "[[flow]]",
    "tcp": "[tcp]",
    "quic": "[quic]",
    "steering": "[steering]",
    "duration": "`duration`",
}
"""What only simulated runs use, by the first key."""
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
    for text in (*_unused(given, resolved), *_unmarked(resolved)):
        note(text)
    _print_late(late_in(resolved, ends), _LAST_FLOW, "repetition")


def note_without_effect_in_sweep(plan: "Plan", ends: Mapping[int, Sequence[float]]) -> None:
    """Print a note about each setting of a plan that had no effect in its runs.

    Args:
        plan: The plan.
        ends: The ends of the runs in seconds, by case.
    """
    from airpath.sweep.kinds import LinkCommand, PageLoad, Simulation

    match plan.work:
        case Simulation():
            _note_unused_in_sweep(plan)
            cause = _LAST_FLOW
        case LinkCommand() | PageLoad():
            note_unused_by_link(plan.text, [*plan.fixed, *plan.columns])
            cause = _COMMAND if isinstance(plan.work, LinkCommand) else BROWSER
        case _:  # the runs of a study
            return
    if not any(key in f"{plan.text}{plan.columns}{plan.fixed}" for key in _LATE_KEYS):
        return
    found: list[Late] = []
    for case, resolved in _resolved(plan, sorted(ends), _TIMED):
        times = resolved if cause == _LAST_FLOW else {"change": resolved.get("change", [])}
        found += late_in(times, ends[case])
    _print_late(merged(found), cause, "run")


def note_unused_by_link(scenario: str, keys: Iterable[str]) -> None:
    """Print a note that names what of a scenario a link does not use.

    Args:
        scenario: The scenario, as TOML.
        keys: The dotted paths of the overrides.
    """
    found = {key.partition(".")[0] for key in keys}
    with suppress(ValueError):  # reported where the scenario is read
        found |= {*tomllib.loads(scenario)}
    unused = [words for key, words in _UNUSED_BY_LINKS.items() if key in found]
    if unused:
        listed = ", ".join(unused[:-1]) + (" and " if unused[1:] else "") + unused[-1]
        note(f"a link does not use {listed} of the scenario: real programs make the traffic, with the kernel's TCP")


def note_late_on_link(
    scenario: tuple[str, str], overrides: list[tuple[str, str]], ends: Sequence[float], *, cause: str = _COMMAND
) -> None:
    """Print a note about each change that comes after the end of links.

    Args:
        scenario: The text and the name of the scenario.
        overrides: The settings laid over it.
        ends: The ends of the links, in seconds.
        cause: What ended them.
    """
    from airpath import _native

    if "change" in f"{scenario[0]}{overrides}":
        resolved = tomllib.loads(_native.resolve(*scenario, overrides))
        _print_late(late_in({"change": resolved.get("change", [])}, ends), cause, "run")


def _note_unused_in_sweep(plan: "Plan") -> None:
    """Print a note about each setting that has no effect in any case, or not the expected one."""
    keys = f"{plan.text}{plan.columns}{plan.fixed}"
    cases = range(len(plan.cases))
    if any(key in keys for key in _KEYS):
        given = tomllib.loads(plan.text)
        common: dict[str, None] | None = None
        for _, resolved in _resolved(plan, cases, _USERS):
            found = dict.fromkeys(_unused(given, resolved))
            common = {text: None for text in (common or found) if text in found}
            if not common:
                break
        for text in common or ():
            note(text)
    varied = any(value == "prague" for case in plan.cases for value in case)
    if not varied and "prague" not in keys:
        return
    for case, resolved in _resolved(plan, cases):
        for text in _unmarked(resolved):
            note(text if len(cases) == 1 else f"case {case}: {text}")
            return


def _resolved(
    plan: "Plan", cases: Iterable[int], tables: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield cases with their resolved scenarios.

    Args:
        plan: The plan.
        cases: The cases.
        tables: The tables that are read: cases with the same overrides of these share a scenario.
            By default all.
    """
    from airpath import _native

    known: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for case in cases:
        overrides = plan.overrides(case)
        # Most axes are in other tables, and then all cases share one.
        own = tuple(each for each in overrides if tables is None or each[0].partition(".")[0] in tables)
        if own not in known:
            known[own] = tomllib.loads(_native.resolve(plan.text, plan.file, overrides))
        yield case, known[own]


def _print_late(found: Iterable[Late], cause: str, runs: str) -> None:
    """Print what comes after the end, each in a note."""
    late = [each for each in found if each.late]
    for each in late[:_MOST]:
        note(each.text(cause, runs))
    if late[_MOST:]:
        note(f"{len(late) - _MOST} more changes or flows come after the end")


def _unused(given: dict[str, Any], resolved: dict[str, Any]) -> Iterator[str]:
    """Yield a text about each setting of a scenario that no flow uses."""
    # The tables of transports.
    for key in ("tcp", "quic"):
        if key in given and not any(key in flow for flow in resolved["flow"]):
            yield f"no flow uses {key.upper()}: [{key}] of the scenario has no effect"
    for key, _, times in flows_of(resolved):
        if times.step > 0 and times.number == 1:
            yield f"{key}.stagger has no effect: the table has one flow"
    is_used = "steering" in resolved or any(flow.get("bearer") == "second" for flow in resolved["flow"])
    if "second_bearer" in resolved and not is_used:
        yield (
            'no flow uses the second bearer: [second_bearer] has no effect; give a flow `bearer = "second"`, or add '
            "[steering], which selects a bearer for each"
        )
    # A proxy of TCP without connections, and without a queue for other packets.
    proxy = resolved.get("proxy")
    if proxy is not None and "queue" not in proxy and not any("tcp" in flow for flow in resolved["flow"]):
        yield "no flow uses TCP: [proxy] has no effect, because other packets pass it as they are"


def _unmarked(resolved: dict[str, Any]) -> Iterator[str]:
    """Yield a text if a flow has the controller Prague and no queue marks packets."""
    controllers = [flow.get("tcp", {}).get("congestion", {}).get("algorithm") for flow in resolved["flow"]]
    hops = {key: value for key, value in resolved.items() if key != "flow"}
    if "prague" in controllers and not any(map(_marks, _tables(hops))):
        yield (
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
