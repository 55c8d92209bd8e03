"""The conditions of runs: scenario, seed, versions, TCP settings; and their differences."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airpath.plot.selection import Drawn
from airpath.report.tables import Cell, Table

_MOST_DIFFERENCES = 40


@dataclass(frozen=True)
class Details:
    """TCP or QUIC settings, and the flows that have them."""

    transport: str
    flows: str
    settings: list[tuple[str, str]]


def headline(runs: Sequence[Drawn]) -> str:
    """Return the conditions in a line; where the runs differ, in the order of the runs."""
    parts = []
    for name, values in _rows(runs).items():
        if name in ("seed", "airpath", "bearer", "TCP", "QUIC", "repetitions"):
            parts.append(f"{name} {' against '.join(dict.fromkeys(values))}")
    return ", ".join(parts)


def conditions(runs: Sequence[Drawn]) -> Table:
    """Return the conditions with one column per run."""
    rows = [[Cell(name, number=False), *(Cell(each, number=False) for each in v)] for name, v in _rows(runs).items()]
    caption = "Conditions of the runs. The same scenario and seed give the same result on any machine."
    return Table("Conditions", caption, ["", *(run.label for run in runs)], rows)


def _rows(runs: Sequence[Drawn]) -> dict[str, list[str]]:
    rows = {
        "seed": [str(run.result.summary["seed"]) for run in runs],
        "airpath": [str(run.result.summary["airpath"]) for run in runs],
        "bearer": [_bearer(run) for run in runs],
        "TCP": [_profiles(run, is_quic=False) for run in runs],
        "QUIC": [_profiles(run, is_quic=True) for run in runs],
        "repetitions": [f"{run.result.repetitions.height:,}" for run in runs],
        "drawn over time": [_which(run) for run in runs],
        "result folder": ["–" if run.result.is_temporary else str(run.result.path) for run in runs],
    }
    if all(run.result.repetitions.height == 1 for run in runs):
        del rows["drawn over time"]
    if set(rows["QUIC"]) == {"–"}:
        del rows["QUIC"]
    elif set(rows["TCP"]) == {"–"}:
        del rows["TCP"]
    return rows


def scenario_differences(runs: Sequence[Drawn]) -> Table | None:
    """Return the keys in which the scenarios differ.

    `None` if there is one run, or nothing differs.
    """
    scenarios = [dict(_flat("", tomllib.loads(run.result.scenario))) for run in runs]
    keys = list(dict.fromkeys(key for scenario in scenarios for key in scenario))
    different = [key for key in keys if len({scenario.get(key, "–") for scenario in scenarios}) > 1 and key != "name"]
    if len(runs) < 2 or not different:
        return None
    rows = [
        [Cell(key, number=False), *(Cell(scenario.get(key, "–"), number=False) for scenario in scenarios)]
        for key in different[:_MOST_DIFFERENCES]
    ]
    hidden = len(different) - len(rows)
    notes = [f"And {hidden} keys more; the scenarios below have them all."] if hidden else []
    caption = "The keys of the scenarios whose values differ between the runs."
    return Table("Differences of the scenarios", caption, ["key", *(run.label for run in runs)], rows, notes)


def tcp_details(runs: Sequence[Drawn]) -> list[Details]:
    """Return each distinct set of TCP or QUIC settings, with the flows that have it."""
    users: dict[str, list[str]] = {}
    for run in runs:
        for flow in run.flows:
            if flow.get("tcp"):
                name = flow["name"] if len(runs) == 1 else f"{run.label}: {flow['name']}"
                users.setdefault(json.dumps(flow["tcp"]), []).append(name)
    return [
        Details(
            "QUIC" if "quic" in json.loads(text) else "TCP",
            _named(names),
            [(key.replace("_", " ").replace(".", ", "), value) for key, value in _flat("", json.loads(text))],
        )
        for text, names in users.items()
    ]


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield nested tables and lists as dotted keys with their values as text."""
    match value:
        case Mapping():
            for key, each in value.items():
                yield from _flat(f"{prefix}.{key}" if prefix else str(key), each)
        case list() if any(isinstance(each, Mapping) for each in value):
            for index, each in enumerate(value):
                yield from _flat(f"{prefix}.{index}", each)
        case list():
            yield prefix, ", ".join(map(str, value))
        case bool():
            yield prefix, "on" if value else "off"
        case _:
            yield prefix, "none" if value is None else str(value)


def _which(run: Drawn) -> str:
    if run.result.repetitions.height < 2:
        return "the only repetition"
    return f"repetition {run.repetition}, the median one by throughput"


def _bearer(run: Drawn) -> str:
    """Return the model of the bearer, or of both."""
    scenario = tomllib.loads(run.result.scenario)
    bearers = [scenario[key] for key in ("bearer", "second_bearer") if key in scenario]
    return " and ".join(str(each.get("preset") or each.get("model") or "–") for each in bearers) or "–"


def _profiles(run: Drawn, *, is_quic: bool) -> str:
    """Return profile and congestion control; of a link, kernel and default of its namespaces."""
    settings = [flow["tcp"] for flow in run.flows if flow.get("tcp")]
    return ", ".join(dict.fromkeys(_profile(each) for each in settings if ("quic" in each) == is_quic)) or "–"


def _profile(tcp: Mapping[str, Any]) -> str:
    profile, algorithm = str(tcp.get("profile", "custom")), (tcp.get("congestion") or {}).get("algorithm")
    return f"{profile} ({algorithm})" if algorithm else profile


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
