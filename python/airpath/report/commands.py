"""How to make a report again: the commands, as they are typed."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from airpath.plot.selection import Drawn


def commands(runs: Sequence[Drawn], out: Path, command: str | None) -> list[str]:
    """Return the commands that run each scenario again and make the report."""
    lines = [_run(run) for run in runs]
    folders = " ".join(shlex.quote(str(run.result.path)) for run in runs)
    lines.append(command or f"airpath report {folders} -o {shlex.quote(str(out))}")
    return lines


def _run(run: Drawn) -> str:
    folder = run.result.path
    words = ["airpath", "run", str(folder / "scenario.toml"), "--out", str(folder)]
    if run.result.repetitions.height > 1:
        words += ["--repeat", str(run.result.repetitions.height)]
    if run.result.captures():
        words.append("--capture")
    return shlex.join(words)
