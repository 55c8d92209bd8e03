"""Presets of bearers, environments and proxies: parameters, each with its source."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any


@dataclass(frozen=True, slots=True, repr=False)
class Parameter:
    """One parameter of a preset."""

    key: str
    """Its dotted path below `[bearer]`, `[conditions]` or `[proxy]`."""
    value: str
    """Its value as TOML, with its unit."""
    source: str | None
    """Its source: a study and table, a specification and clause, or the reason of a choice. `None`
    for `model`."""

    def __repr__(self) -> str:
        return f"<parameter {self.key} = {self.value}>"


@dataclass(frozen=True, slots=True, repr=False)
class Preset:
    """Parameters that a scenario can name: `bearer.preset = "hs-dsch-384"`."""

    name: str
    title: str
    kind: str
    parameters: tuple[Parameter, ...]
    text: str
    """The preset's TOML, to copy and change; the path of a file works wherever a name does."""

    def __repr__(self) -> str:
        return f"<{self.kind} preset {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        from airpath.notebook import table

        rows = [(each.key, each.value, each.source or "") for each in self.parameters]
        return table(self.name, f": {self.title}", ("parameter", "value", "source"), rows, most=len(rows))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Preset":
        """Make a preset from the form in which the Rust core gives it."""
        parameters = tuple(Parameter(each["key"], each["value"], each["source"]) for each in data["parameters"])
        return cls(data["name"], data["title"], data["kind"], parameters, data["text"])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, the inverse of `from_dict`."""
        parameters = [{"key": each.key, "value": each.value, "source": each.source} for each in self.parameters]
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "parameters": parameters,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """What a bearer carries, simulated: one mobile alone, without a fixed network."""

    round_trip: float
    """Mean round trip in seconds of 20 echo requests of 56 B of data, about a second apart, two
    seconds after a first one: in a connection, if the bearer has one."""
    idle_round_trip: float
    """The same of that first one, in ten runs: with the set-up of an idle mobile's connection."""
    down: float
    """Throughput of a download in its first 30 s, in bit/s."""
    up: float
    """The same of an upload."""


def figures(name: str) -> Figures | None:
    """Simulate the figures of a bearer's preset; `None` if it needs further keys."""
    from airpath._native import ScenarioError
    from airpath.run import execute

    def flows(duration: str, *flow: dict[str, Any], repeat: int = 1) -> list[dict[str, Any]]:
        scenario = {"format": 1, "duration": duration, "bearer": {"preset": name}, "flow": list(flow)}
        return execute(scenario, log=False, repeat=repeat)["flows"]

    # Not a multiple of the cycles and frames of a radio.
    later = {"kind": "ping", "interval": "1.037 s", "requests": 20, "start": "2 s"}
    try:
        idle = {"kind": "ping", "name": "idle", "requests": 1, "phase": "1 s"}
        pings = flows("60 s", idle, later, repeat=10)
        ((down,), (up,)) = (flows("30 s", {"kind": kind, "bytes": "1 GB"}) for kind in ("download", "upload"))
    except ScenarioError:
        return None
    first, connected = (fmean(ping["delay_mean_s"] for ping in pings if ping["flow"] == flow) for flow in (0, 1))
    return Figures(connected, first, down["throughput_bps"], up["throughput_bps"])


STORED_FIGURES = Path(__file__).with_name("preset_figures.json")
"""The figures of the presets of bearers, which take many seconds to simulate: by name, digest of
the preset's text and figures. A test compares them with a simulation."""


def all_figures(bearers: Iterable[Preset]) -> dict[str, Figures | None]:
    """Return the figures of several bearers' presets; those of a changed preset are simulated."""
    stored: dict[str, Any] = json.loads(STORED_FIGURES.read_text(encoding="utf-8"))
    known: dict[str, Figures | None] = {}
    changed = []
    for each in bearers:
        found = stored.get(each.name)
        if found is None or found["digest"] != _digest(each):
            changed.append(each.name)
        else:
            known[each.name] = Figures(**found["figures"]) if found["figures"] else None
    return known | (simulated_figures(changed) if changed else {})


def simulated_figures(names: Iterable[str]) -> dict[str, Figures | None]:
    """Simulate the figures of several bearers' presets, side by side on the processors."""
    from concurrent.futures import ThreadPoolExecutor

    names = list(names)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip(names, pool.map(figures, names), strict=True))


def stored_text(bearers: Iterable[Preset]) -> str:
    """Simulate the figures of presets, and return the text of their file."""
    known = {each.name: each for each in bearers}
    records = {
        name: {"digest": _digest(known[name]), "figures": asdict(found) if found else None}
        for name, found in simulated_figures(known).items()
    }
    return json.dumps(records, indent=1) + "\n"


def _digest(preset: Preset) -> str:
    return sha256(preset.text.encode()).hexdigest()[:16]


def common_names() -> dict[str, str]:
    """Return common names of technologies, such as `gprs`, each with the preset it selects."""
    from airpath import _native

    return dict(_native.common_names())


def presets() -> list[Preset]:
    """Return the presets of airpath, in their order."""
    from airpath import _native

    return [Preset.from_dict(each) for each in json.loads(_native.presets())]


def preset(name: str | Path) -> Preset:
    """Return one preset, by name or from a file.

    Raises:
        ScenarioError: There is no such preset, or the file cannot be used.
    """
    from airpath import _native

    return Preset.from_dict(json.loads(_native.preset(str(name))))
