"""Simulate, emulate and analyse Internet protocols over GSM, GPRS, UMTS, HSDPA, LTE, NR and Wi-Fi.

    import airpath

    result = airpath.run("examples/hs-dsch.toml", seed=7)
    result.flows                      # a Polars frame, one row per flow
    result.settings                   # the TCP settings of these flows
    result.packets.to_pandas()        # every packet, with its time in nanoseconds

    airpath.run("examples/hs-dsch.toml", vary={"bearer.bler": [0.01, 0.1]}, repeat=10).flows
    airpath.trace("capture.pcapng").connections
    airpath.link("gprs", ["curl", "http://server:8000/"], serve="python3 -m http.server 8000")

The import is fast: each name is loaded when it is first used.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airpath._native import LinkError, MeasureError, ResultError, ScenarioError, TraceError, __version__
    from airpath.compare import Comparison, IncomparableError, RuleError, compare
    from airpath.link import Linked, link
    from airpath.preset import Parameter, Preset, preset, presets
    from airpath.replay import replay
    from airpath.result import NotLoggedError, Result, UnreadableResultError, load
    from airpath.run import resolve
    from airpath.simulate import run
    from airpath.sweep import Plan, PlanError, SweepFolderError, SweepResult, make_plan, read_plan, sweep
    from airpath.trace import Trace, trace

__all__ = [
    "Comparison",
    "IncomparableError",
    "LinkError",
    "Linked",
    "MeasureError",
    "NotLoggedError",
    "Parameter",
    "Plan",
    "PlanError",
    "Preset",
    "Result",
    "ResultError",
    "RuleError",
    "ScenarioError",
    "SweepFolderError",
    "SweepResult",
    "Trace",
    "TraceError",
    "UnreadableResultError",
    "__version__",
    "compare",
    "link",
    "load",
    "make_plan",
    "preset",
    "presets",
    "read_plan",
    "replay",
    "resolve",
    "run",
    "sweep",
    "trace",
]

_LATE_MODULES = frozenset({"plot", "report", "study"})

_NAMES = {
    "_native": ("LinkError", "MeasureError", "ResultError", "ScenarioError", "TraceError", "__version__"),
    "compare": ("Comparison", "IncomparableError", "RuleError", "compare"),
    "link": ("Linked", "link"),
    "preset": ("Parameter", "Preset", "preset", "presets"),
    "replay": ("replay",),
    "result": ("NotLoggedError", "Result", "UnreadableResultError", "load"),
    "run": ("resolve",),
    "simulate": ("run",),
    "sweep": ("Plan", "PlanError", "SweepFolderError", "SweepResult", "make_plan", "read_plan", "sweep"),
    "trace": ("Trace", "trace"),
}
"""The public names of each module."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name in _LATE_MODULES:
        return import_module(f"airpath.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'airpath' has no attribute '{name}'")
    value = getattr(import_module(f"airpath.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATE_MODULES})


class _Package(ModuleType):
    """Keeps `airpath.run` the function when the module of the same name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
