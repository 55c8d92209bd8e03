"""Real programs on an emulated link, from Python."""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from airpath.files import printable, read_text
from airpath.result import Result
from airpath.result_folder import NewResult, summaries_in, written_to
from airpath.run import override_texts
from airpath.scenario import COMMAND_LINE, read_scenario


@dataclass(frozen=True, repr=False)
class Linked:
    """A command that ran on a link."""

    returncode: int
    """As in `subprocess`: its exit code, or its negative signal; 125 if the link could not be set
    up."""
    result: Result
    """The link's result: packets, radio, flows, lateness."""
    stdout: bytes | None
    """The command's standard output, if captured."""
    stderr: bytes | None
    """The standard error of the command, its server and airpath, if captured."""

    def __repr__(self) -> str:
        return f"<airpath.Linked exit code {self.returncode}, {self.result!r}>"

    def _repr_html_(self) -> str:
        return self.result._repr_html_()


def link(
    scenario: str | Path | Mapping[str, Any],
    command: Sequence[str],
    *,
    serve: str | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    capture: bool = False,
    precise: bool | None = None,
    mtu: int = 1500,
    sysctl: Mapping[str, str] | None = None,
    hosts: Sequence[str] = (),
    host_ports: Sequence[int] = (),
    stdin: IO[Any] | int | None = subprocess.DEVNULL,
    capture_output: bool = False,
    timeout: float | None = None,
) -> Linked:
    """Run a command on an emulated link until it ends: `airpath link` in a new process.

    Args:
        scenario: The name of a preset, the path of a preset or scenario, its TOML text, or the same
            as a dictionary.
        command: The program and its arguments, run at the mobile.
        serve: A shell command at the other end, host `server`; without it the outside is there.
        set: Overrides by dotted path.
        seed: The seed, in place of the scenario's.
        out: The result folder; without it a temporary one, which lasts as long as the returned
            result.
        capture: Whether to write pcapng captures of both ends.
        precise: Whether to poll the clock while packets are in flight; by default with three or
            more cores.
        mtu: The largest IP packet, in bytes; below 1280 the link has no IPv6.
        sysctl: Kernel parameters of both ends.
        hosts: Further names of the server, each with an address of its own.
        host_ports: Ports of this host's own localhost, which the mobile reaches at `server`.
        stdin: The command's standard input, as in `subprocess`.
        capture_output: Whether to return the output instead of passing it through.
        timeout: Limit in seconds; then all processes are killed.

    Raises:
        ValueError: `command` is empty, or text. subprocess.TimeoutExpired: It took longer.
        subprocess.CalledProcessError: The link could not be set up, or the command not be executed;
        `stderr` has the reason if it was captured.
    """
    if isinstance(command, str) or not command:
        raise ValueError("command is a list: the program and its arguments, as in ['curl', 'http://server/']")
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="airpath-")
        out = Path(temporary.name) / "link"
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        arguments = [sys.executable, "-m", "airpath", "link", _name(scenario, Path(folder)), "--out", str(out)]
        for key, value in override_texts(set):
            arguments += ["--set", f"{key}={value}"]
        for key, value in (sysctl or {}).items():
            arguments += ["--sysctl", f"{key}={value}"]
        arguments += [word for name in hosts for word in ("--host", name)]
        arguments += [word for port in host_ports for word in ("--host-port", str(port))]
        arguments += ["--mtu", str(mtu), "--no-status"]
        arguments += [] if seed is None else ["--seed", str(seed)]
        arguments += [] if serve is None else ["--serve", serve]
        arguments += ["--capture"] if capture else []
        arguments += [] if precise is None else ["--precise" if precise else "--no-precise"]
        before = summaries_in(Path(out))
        done = _run([*arguments, "--", *command], stdin, timeout, capture_output=capture_output)
    # Without a new summary the result, if there is one, is that of an earlier link.
    if summaries_in(Path(out)) <= before:
        done.check_returncode()
    return Linked(done.returncode, Result(written_to(Path(out)), _temporary=temporary), done.stdout, done.stderr)


def read_link(scenario: str | Path | Mapping[str, Any]) -> tuple[str, str]:
    """Return the TOML text of a link, as for `link`, and its name for messages."""
    if isinstance(scenario, Mapping) or "\n" in str(scenario):
        return read_scenario(scenario)
    path = Path(scenario)
    if path.suffix == ".toml" and path.exists():
        text = read_text(path)
        # Only a preset has a title.
        if not re.search(r"^title\s*=", text, re.MULTILINE):
            return text, printable(scenario)
    return preset_scenario(str(scenario)), COMMAND_LINE


def new_link_result(
    read: tuple[str, str],
    command: Sequence[str],
    *,
    overrides: Sequence[tuple[str, str]],
    seed: int | None,
    serve: str | None,
    mtu: int = 1500,
    sysctl: Mapping[str, str] | None = None,
    capture: bool = False,
    log: bool = True,
) -> NewResult:
    """Return what a link is about to write to its result folder.

    Args:
        read: The text and the name of the link, from `read_link`.
        command: As of `link`, and so the arguments below.
        overrides: Overrides as on the command line.
        seed: The seed, in place of the scenario's.
        serve: The server.
        mtu: The largest IP packet.
        sysctl: Kernel parameters.
        capture: Whether it has captures.
        log: Whether it has event tables.
    """
    from airpath import _native

    resolved = tomllib.loads(_native.resolve(*read, list(overrides))) | ({} if seed is None else {"seed": seed})
    # As in the summary.
    programs = {"command": list(command), "serve": serve, "mtu": mtu, "parameters": list((sysctl or {}).items())}
    return NewResult("link", resolved, capture=capture, log=log, programs=programs)


def preset_scenario(preset: str) -> str:
    """Return the text of a scenario that has only a preset, by name or from a file."""
    return f"format = 1\nname = {json.dumps(Path(preset).stem)}\n\n[bearer]\npreset = {json.dumps(preset)}\n"


_LONGEST_END = 10
"""Seconds in which a link ends its programs after SIGTERM."""


def _run(
    arguments: list[str], stdin: Any, timeout: float | None, *, capture_output: bool
) -> subprocess.CompletedProcess[bytes]:
    """Run a link. After an exception its programs have ended, too."""
    captured = subprocess.PIPE if capture_output else None
    with subprocess.Popen(arguments, stdin=stdin, stdout=captured, stderr=captured) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.terminate()
            try:
                process.wait(_LONGEST_END)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def _name(scenario: str | Path | Mapping[str, Any], folder: Path) -> str:
    """Return the scenario's argument on the command line.

    A text or dictionary is written to a file first.
    """
    if isinstance(scenario, Path) or (isinstance(scenario, str) and "\n" not in scenario):
        return str(scenario)
    text, _ = read_scenario(scenario)
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def error_in(text: str) -> str | None:
    """Return the last error that a command of airpath printed, without its next step."""
    errors = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
    return errors[-1] if errors else None
