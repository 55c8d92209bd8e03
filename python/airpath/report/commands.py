"""The shell commands that reproduce a report."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from airpath.plot.selection import Drawn
from airpath.summary_outline import command_of


def commands(runs: Sequence[Drawn], out: Path, command: str | None) -> list[str]:
    """Return the commands that make each result again, and the report; or the given one.

    Results of `not_again` have none.
    """
    if command is not None:
        return [command]
    lines = [_MAKES[kind](run) for run in runs if (kind := _kind(run)) in _MAKES]
    words = ["airpath", "report", *(str(run.result.path) for run in runs)]
    given = [run.result.label for run in runs]
    if all(given):
        words += [word for label in given if label is not None for word in ("--label", label)]
    lines.append(shlex.join([*words, "-o", str(out)]))
    return lines


def not_again(runs: Sequence[Drawn], command: str | None) -> list[str]:
    """Return a sentence for each result without a command: what of its command is not stored."""
    if command is not None:
        return []
    return [f"{run.label}: {_NOT_STORED[kind]}" for run in runs if (kind := _kind(run)) in _NOT_STORED]


def _kind(run: Drawn) -> str:
    """Return the command that wrote a result: `page`, or as in its outline."""
    return "page" if (run.result.path / "page.json").is_file() else command_of(run.result.summary)


_NOT_STORED = {
    "measure": "the command line of `airpath measure` is not stored; scenario.toml has host and settings.",
    "page": "the command line of `airpath page load` is not stored; page.json has URL and options, scenario.toml the "
    "link.",
    "replay": "the result that was replayed is not stored; `airpath replay RESULT` sends its packets again.",
}


def _run(run: Drawn) -> str:
    folder = run.result.path
    words = ["airpath", "run", str(folder / "scenario.toml"), "--out", str(folder)]
    if (repeat := run.result.repetitions.height + len(run.result.left_out)) > 1:
        words += ["--repeat", str(repeat)]
    if run.result.captures():
        words.append("--capture")
    return shlex.join(words)


def _proxy(run: Drawn) -> str:
    folder = str(run.result.path)
    return shlex.join(["airpath", "proxy", "run", f"{folder}/scenario.toml", "--out", folder])


def _link(run: Drawn) -> str:
    folder, emulation = run.result.path, run.result.summary["emulation"]
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


_MAKES: dict[str, Callable[[Drawn], str]] = {"run": _run, "link": _link, "proxy": _proxy}
