"""airpath: Internet protocols on cellular paths.

    import airpath

    result = airpath.run("examples/hs-dsch.toml", seed=7)
    result.flows                      # a Polars frame, one row per flow
    result.packets.to_pandas()        # every packet, with its time in nanoseconds

The import is fast: Polars and the Rust core are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from airpath.compare import Comparison, IncomparableError, RuleError, compare
from airpath.link import Linked, link
from airpath.preset import Parameter, Preset, preset, presets
from airpath.replay import replay
from airpath.result import NotLoggedError, Result, UnreadableResultError, load
from airpath.run import resolve, run
from airpath.sweep import Plan, PlanError, SweepFolderError, SweepResult, make_plan, read_plan, sweep
from airpath.trace import Trace, trace

if TYPE_CHECKING:
    from airpath._native import LinkError, MeasureError, ResultError, ScenarioError, TraceError, __version__

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

_FROM_NATIVE = frozenset({"LinkError", "MeasureError", "ResultError", "ScenarioError", "TraceError", "__version__"})
_LATE_MODULES = frozenset({"plot", "report", "study"})


def __getattr__(name: str) -> Any:
    """Load names of the Rust core and modules with heavy dependencies at their first use."""
    if name in _LATE_MODULES:
        return import_module(f"airpath.{name}")
    if name not in _FROM_NATIVE:
        raise AttributeError(f"module 'airpath' has no attribute '{name}'")
    from airpath import _native

    return getattr(_native, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATE_MODULES})
