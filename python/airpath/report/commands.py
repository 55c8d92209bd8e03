"""The shell commands that reproduce a report."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from airpath.plot.selection import Drawn


def commands(runs: Sequence[Drawn], out: Path, command: str | None) -> list[str]:
    """Return the commands that run each scenario again and make the report, or the given one."""
    if command is not None:
        return [command]
    lines = [_run(run) for run in runs]
    folders = " ".join(shlex.quote(str(run.result.path)) for run in runs)
    lines.append(f"airpath report {folders} -o {shlex.quote(str(out))}")
    return lines


def _run(run: Drawn) -> str:
    folder = run.result.path
    if "emulation" in run.result.summary:
        return _link(run)
    words = ["airpath", "run", str(folder / "scenario.toml"), "--out", str(folder)]
    if (repeat := run.result.repetitions.height + len(run.result.left_out)) > 1:
        words += ["--repeat", str(repeat)]
    if run.result.captures():
        words.append("--capture")
    return shlex.join(words)


def _link(run: Drawn) -> str:
    folder, emulation = run.result.path, run.result.summary["emulation"]
    if "configuration" in emulation:
        return shlex.join(["airpath", "proxy", "run", str(folder / "scenario.toml"), "--out", str(folder)])
    words = ["airpath", "link", str(folder / "scenario.toml"), "--out", str(folder), "--mtu", str(emulation["mtu"])]
    for key, value in emulation["parameters"]:
        words += ["--sysctl", f"{key}={value}"]
    if run.result.captures():
        words.append("--capture")
    words.append("--precise" if emulation["precise"] else "--no-precise")
    for port in emulation.get("host_ports", ()):
        words += ["--host-port", str(port)]
    if emulation["serve"] is not None:
        words += ["--serve", emulation["serve"]]
    return shlex.join([*words, "--", *emulation["command"]])
