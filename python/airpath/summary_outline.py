"""What the rules for earlier results read of a `summary.json`, which may be large."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a summary."""

    complete: bool
    repetitions: int
    command: str
    """The command that wrote it: `run`, `replay`, `link`, `measure` or `proxy`."""
    emulation: Mapping[str, Any]
    """Of a link: its programs and settings; else empty."""


def outline_of(folder: Path) -> Outline | None:
    """Return the outline of the summary of a result folder; `None` if it cannot be read.

    The file is parsed once while it stays the same.
    """
    try:
        file = os.path.realpath(folder / "summary.json")
        status = os.stat(file)  # noqa: PTH116 - of the path above
        return _parsed(file, status.st_ino, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return None


@lru_cache(maxsize=4)
def _parsed(file: str, *_: int) -> Outline:
    """Return the outline of a file; the other arguments identify its content."""
    summary = json.loads(Path(file).read_bytes())
    return Outline(
        summary["complete"], len(summary["repetitions"]), command_of(summary), summary.get("emulation") or {}
    )


def command_of(summary: Mapping[str, Any]) -> str:
    """Return the command that wrote a summary."""
    if "measurement" in summary:
        return "measure"
    if "emulation" in summary:
        return "proxy" if "configuration" in summary["emulation"] else "link"
    # A run has a row for each flow, also for one that did not start; a scenario without flows is
    # refused. A replay has packets, and no flows.
    return "run" if summary.get("flows") else "replay"
