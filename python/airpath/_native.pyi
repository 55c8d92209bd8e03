"""The Rust core, as Python sees it. No logic lives there: it parses, simulates, writes.

Every text that goes in or comes out is TOML or JSON; the classes and frames of `airpath` are made from it in Python.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__version__: str
"""The version of the Cargo workspace, which is the version of the package."""

class ScenarioError(Exception):
    """A scenario, preset or override that cannot be used. `str()` says what is wrong, where, and what to do next."""

    message: str
    """What is wrong, without the place."""
    help: str | None
    """What to do next, where that is known."""
    file: str | None
    """The name that was given for the text, or a preset; `None` for an override."""
    line: int | None
    """The line in `file`, counted from 1; `None` where no single line is at fault."""
    field: str | None
    """The dotted path of the field, as in `fixed.rate`."""

class LinkError(Exception):
    """A link that could not be made or kept. `str()` says what is wrong and what to do next."""

class MeasureError(Exception):
    """A measurement that could not be made. The message says with whom, why, and what to do next."""

class TraceError(Exception):
    """A capture that could not be analysed. The message names the file, says why, and what to do next."""

class ResultError(OSError):
    """A result that could not be written: the disk is full, the folder not writable. The message says what was kept."""

def run(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    seed: int | None,
    repeat: int,
    out: str | None,
    capture: bool,
    log: bool,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> str:
    """Run a scenario and return the text of its `summary.json`.

    Args:
        text: The scenario, as TOML.
        name: Its file name, for messages; relative paths in the scenario are relative to its folder.
        sets: Overrides, each a dotted path and a value, applied in order.
        seed: The seed, in place of the scenario's.
        repeat: How many repetitions to run; repetition `i` draws from streams of its own.
        out: The result folder, or `None` to write nothing.
        capture: Whether to write pcapng captures of both ends.
        log: Whether to write the event tables that the scenario asks for.
        threads: How many repetitions run at once; `None` for as many as there are cores.
        progress: Called with the repetitions done and the repetitions in all.

    Raises:
        ScenarioError: The scenario cannot be used; nothing was written.
        ResultError: The result could not be written in full; what was written is kept and says that it is partial.

    Ctrl-C ends the run early: the summary then has `complete: false` and `stopped: "interrupted"`.
    """

def link(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    seed: int | None,
    command: list[str],
    *,
    serve: str | None,
    out: str | Path | None,
    log: bool,
    capture: bool,
    record: str | Path | None,
    precise: bool | None,
    budget: str,
    device: str | None,
    offload: bool,
    mtu: int,
    parameters: list[tuple[str, str]],
    status: bool,
) -> str:
    """Run a command on an emulated link until it ends, and return how it was, as JSON.

    It has `exit` (`code`, `signal` or `not-executed`), `number` (exit code, signal, or error of the system),
    `lateness`, `overruns` and `summary`, as in `summary.json`. This process must have one thread only; without
    privileges it is in a user namespace of its own afterwards.

    Args:
        text: The scenario, as TOML.
        name: Its file name, for messages.
        sets: Overrides, each a dotted path and a value, applied in order.
        seed: The seed, in place of the scenario's.
        command: The command, run at the mobile.
        serve: A line for the shell, run at the server's end; without it the outside lies there.
        out: The result folder, or `None` to write nothing.
        log: Whether to write the event tables that the scenario asks for.
        capture: Whether to write pcapng captures of both ends.
        record: Where to write what the link delivered, with `.down` and `.up` added.
        precise: Whether to watch the clock while packets are on their way; `None` for what suits the host's cores.
        budget: The lateness that 99 % of the packets must not exceed, as in `"2 ms"`.
        device: `tun` or `veth`; `None` for the better one that the host has.
        offload: Whether the kernel may hand over TCP in large segments.
        mtu: The largest IP packet, in bytes.
        parameters: Kernel parameters of both ends, by their names in sysctl(8).
        status: Whether to keep a status line on the terminal.

    Raises:
        ScenarioError: The scenario cannot be used; nothing was run.
        ResultError: The result could not be written in full.
        LinkError: The link could not be made or kept.
    """

def measure(request: str, out: str | None, progress: Callable[[int, int], None] | None) -> str:
    """Measure over real sockets and return the text of `summary.json`.

    Args:
        request: What to measure against whom, as JSON: `airpath_measure::Request`.
        out: The result folder, or `None` to write nothing.
        progress: Called with how much of how much is done.

    Raises:
        ValueError: The request makes no sense.
        MeasureError: There is no responder, or it refuses.
        ResultError: The result could not be written.

    Ctrl-C ends it early: the summary then has `complete: false` and `stopped: "interrupted"`.
    """

def serve(listen: str | None, started: Callable[[list[str]], None]) -> None:
    """Answer measurements until a signal ends it.

    Args:
        listen: An address with or without a port; by default the loopback addresses.
        started: Called with the addresses on which it listens.

    Raises:
        MeasureError: The address cannot be listened on.
    """

def doctor() -> str:
    """Return what this host allows, as JSON; it takes about half a second. This process must have one thread only.

    It has `laboratory` and `outside`, whether links of either kind work, and `checks`, each with `name`, `status`
    (`ok`, `limited` or `missing`), `finding`, `meaning` (for links) and `next_step` (`None` where all is well).
    """

def replay(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    recordings: list[tuple[int, int, list[Any], list[Any], list[Any]]],
    out: str | None,
    log: bool,
) -> str:
    """Put what entered a network on it again and return the text of the new `summary.json`.

    Args:
        text: The scenario of the recordings, as TOML.
        name: Its file name, for messages.
        sets: Overrides, each a dotted path and a value, applied in order.
        recordings: Of each repetition its number; when it ended; the packets that entered, each with time, whether it
            goes up, number, size, ECN field, flow, user, and how many had been received at the same time before;
            for each of these the TCP header (offset, length, ack, window, flags, retransmission) or `None`; and the
            changes that were made: time, component, user or `None`, and the change as JSON. Those that the scenario
            itself has are left out.
        out: The result folder, or `None` to write nothing.
        log: Whether to write the event tables that the scenario asks for.

    Raises:
        ScenarioError: The scenario cannot be used; nothing was written.
        ResultError: The result could not be written in full.
        ValueError: The recordings do not fit the scenario.
    """

def trace_figures() -> list[tuple[str, str]]:
    """Return the figures of each direction of a connection: their names, and kinds as those of columns."""

def trace(
    files: list[Path],
    *,
    peer: Path | None,
    one_clock: bool,
    log: tuple[str, list[tuple[str, str, tuple[bool, int, int] | None]], dict[str, bytes]] | None,
    log_ends: bool,
    radio: list[tuple[str | None, str, dict[str, str]]],
    flow: str | None,
    causes: bool,
    exchanges: bool,
    observations: bool,
    line: Callable[[str], object] | None,
) -> tuple[str, dict[str, list[tuple[str, str, Any, bytes | None]]], str | None]:
    """Analyse captures.

    Returns how they were read, as JSON; the tables by name, for `airpath.trace.columns`; and an HTTP Archive, if
    exchanges were asked for.

    Args:
        files: Captures, in the order of their times; `-` is standard input.
        peer: A capture of the same traffic at the other end.
        one_clock: Whether one clock made both captures.
        log: An event log instead of files, as `airpath.trace.event_log` has it.
        log_ends: Whether that is told from both ends.
        radio: Radio logs: the mobile's address or `None`, the log as CSV, and which columns hold what.
        flow: Which connections, `None` for all.
        causes: Whether their time is put down to causes.
        exchanges: Whether what was said on them is read: HTTP, TLS, QUIC.
        observations: Whether there are tables of their segments.
        line: Called with the line of JSON of each connection when it ends; there are no tables then.

    Raises:
        TraceError: A file cannot be read, is no capture or has no TCP in it, or there is no such connection.

    Ctrl-C ends it early, with what there is until then.
    """

def resolve(text: str, name: str, sets: list[tuple[str, str]]) -> str:
    """Return the scenario as TOML with the overrides applied and the presets filled in.

    Raises:
        ScenarioError: The scenario cannot be used.
    """

def files(text: str, name: str, sets: list[tuple[str, str]]) -> list[Path]:
    """Return the files that the scenario names, which must be there as long as it is run.

    Raises:
        ScenarioError: The scenario cannot be used.
    """

def presets() -> str:
    """Return the presets as a JSON list.

    Each has `name`, `title`, `kind`, `text` and `parameters`; of these each has `key`, `value` (as TOML) and `source`.
    """

def preset(name: str) -> str:
    """Return one preset, by name or by the path of a file, as JSON in the form of `presets`.

    Raises:
        ScenarioError: There is no such preset, or its file cannot be used.
    """
