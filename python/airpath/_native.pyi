"""The interface of the Rust core.

Texts are TOML or JSON; `airpath` makes its classes and frames from them in Python.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__version__: str
"""The version of the Cargo workspace, which is the version of the package."""

class ScenarioError(Exception):
    """A scenario, preset or override is invalid.

    `str()` has the fault, the place and the next step.
    """

    message: str
    """The fault, without the place."""
    help: str | None
    """The next step; `None` if it is unknown."""
    file: str | None
    """The name of the text or preset; `None` for an override."""
    line: int | None
    """The line in `file`, counted from 1; `None` if no single line is at fault."""
    field: str | None
    """The dotted path of the field, as in `fixed.rate`."""

class LinkError(Exception):
    """A link could not be set up, or failed. `str()` has the fault and the next step."""

class MeasureError(Exception):
    """A measurement failed. `str()` has the fault and the next step."""

    message: str
    """The peer and the cause."""
    next_step: str | None
    """The next step; `None` if it is unknown."""

class TraceError(Exception):
    """A capture could not be analysed. `str()` has the fault and the next step."""

    message: str
    """The file and the cause."""
    next_step: str | None
    """The next step; `None` if it is unknown."""

class ResultError(OSError):
    """A result could not be written: disk full, folder not writable.

    The message names the remaining files.
    """

def run(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    seed: int | None,
    first: int,
    repeat: int,
    out: str | None,
    capture: bool,
    log: bool,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[bytes, str]:
    """Run a scenario and return the content of its `summary.json`.

    The second result has the outcomes in it alone, as JSON: `complete`, `stopped`, and `outcome`
    and `cause` of each of the `flows`.

    Args:
        text: The scenario, as TOML.
        name: Its file name, for messages; relative paths in the scenario are relative to its
            folder.
        sets: Overrides, each a dotted path and a value, applied in order.
        seed: The seed, in place of the scenario's.
        first: The first repetition.
        repeat: The number of repetitions; each has its own random streams.
        out: The result folder, or `None` to write nothing.
        capture: Whether to write pcapng captures of both ends.
        log: Whether to write the event tables that the scenario enables.
        threads: The number of parallel repetitions; `None` for the number of cores.
        progress: Called with the repetitions done and the repetitions in all.

    Raises:
        ScenarioError: The scenario is invalid; nothing was written.
        ResultError: The result could not be written in full; the written part is kept, marked as
            partial.

    Ctrl-C ends the run early: the summary then has `complete: false` and `stopped: "interrupted"`.
    """

def run_rows(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    seed: int | None,
    first: int,
    repeat: int,
    check: Callable[[int, int], None] | None,
) -> tuple[tuple[str, str, str], list[float]]:
    """Run repetitions of a scenario on this thread; return rows as JSON lines, and their ends.

    The rows of flows, of views of pages, and of objects of these; as in `summary.json`, but without
    TCP settings. The ends are in seconds.

    Args:
        text: The scenario, as TOML.
        name: Its file name, for messages.
        sets: Overrides, each a dotted path and a value, applied in order.
        seed: The seed, in place of the scenario's.
        first: The first repetition.
        repeat: The number of repetitions.
        check: Called all the time; its exception ends the run, and so does a signal. `None` is
            faster, and nothing ends the run.

    Raises:
        ScenarioError: The scenario is invalid.
        KeyboardInterrupt: A signal came.
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
    budget: str | None,
    device: str | None,
    offload: bool,
    mtu: int,
    parameters: list[tuple[str, str]],
    hosts: list[str],
    host_ports: list[int],
    host_relay: int,
    mptcp: bool,
    status: bool,
    watched: bool,
) -> str:
    """Run a command on an emulated link until it ends, and return its outcome as JSON.

    It has `exit` (`code`, `signal` or `not-executed`), `number` (exit code, signal, or error of the
    system), `lateness`, `transmission_period_s` (of the bearer), `overruns` and `summary`, as in
    `summary.json`. This process must have one thread only; without privileges it is in a new user
    namespace afterwards.

    Args:
        text: The scenario, as TOML.
        name: Its file name, for messages.
        sets: Overrides, each a dotted path and a value, applied in order.
        seed: The seed, in place of the scenario's.
        command: The command, run at the mobile.
        serve: A shell command, run at the server's end; without it the outside is there.
        out: The result folder, or `None` to write nothing.
        log: Whether to write the event tables that the scenario enables.
        capture: Whether to write pcapng captures of both ends.
        record: Path for the delivered packets, with `.down` and `.up` added.
        precise: Whether to poll the clock while packets are in flight; `None` for the default of
            the host's cores.
        budget: The lateness that 99 % of the packets must not exceed, as in `"2 ms"`; `None` for
            half a TTI of the bearer, at least 2 ms.
        device: `tun` or `veth`; `None` for the better one on this host.
        offload: Whether the kernel may hand over TCP in large segments.
        mtu: The largest IP packet, in bytes.
        parameters: Kernel parameters of both ends, by their names in sysctl(8).
        hosts: Further names of the server, each with an address of its own; each once.
        host_ports: Ports of the host that the mobile reaches at the server's address.
        host_relay: Descriptor of the socket to their relay (`airpath.sidecar.host_ports`).
        mptcp: Whether MPTCP uses the second interface of the mobile.
        status: Whether to keep a status line on the terminal.
        watched: Whether the control socket reports the state of the radio.

    Raises:
        ScenarioError: The scenario is invalid; nothing was run.
        ResultError: The result could not be written in full.
        LinkError: The link could not be set up, or failed.
    """

def measurement(request: str) -> str:
    """Return the `scenario.toml` of the result of a measurement.

    Raises:
        ValueError: The request is invalid.
    """

def measure(
    request: str,
    out: str | None,
    progress: Callable[[int, int], None] | None,
    ready: Callable[[str], None] | None,
) -> str:
    """Measure over real sockets and return the text of `summary.json`.

    Args:
        request: The measurement and the peer, as JSON: `airpath_measure::Request`.
        out: The result folder, or `None` to write nothing.
        progress: Called with the steps that are done and the total.
        ready: Called with a note when another program can start.

    Raises:
        ValueError: The request is invalid.
        MeasureError: There is no responder, or it refuses.
        ResultError: The result could not be written.

    Ctrl-C ends it early: the summary then has `complete: false` and `stopped: "interrupted"`.
    """

def serve(listen: str | None, started: Callable[[list[str]], None]) -> None:
    """Respond to measurements until a signal ends it.

    Args:
        listen: An address with or without a port; by default the loopback addresses.
        started: Called with the addresses on which it listens.

    Raises:
        MeasureError: The address cannot be listened on.
    """

def proxy_run(file: str, *, out: str | None, log: bool, capture: bool, take_over: bool) -> str:
    """Run a live proxy until a signal or another process ends it; return its outcome as JSON.

    This process must have one thread only, and has no privileges afterwards.

    Raises:
        ScenarioError: The configuration is wrong.
        LinkError: The proxy cannot be set up, or failed.
        ResultError: The result could not be written.
    """

def proxy_check(file: str) -> str:
    """Check what a live proxy needs on this host, as JSON. Nothing is changed."""

def proxy_configuration(file: str) -> str:
    """Return the configuration of a live proxy with all keys: `scenario.toml` of its result.

    Raises:
        ScenarioError: The configuration is invalid.
    """

def doctor() -> str:
    """Check what emulated links need on this host, as JSON; it takes about half a second.

    This process must have one thread only.

    It has `testbed` and `outside`, whether links of either kind work, and `checks`, each with
    `name`, `status` (`ok`, `limited` or `missing`), `finding`, `meaning` (for links) and
    `next_step` (`None` where all is well).
    """

def replay(
    text: str,
    name: str,
    sets: list[tuple[str, str]],
    recordings: list[tuple[int, int, list[Any], list[Any], list[Any], str | None]],
    out: str | None,
    log: bool,
) -> str:
    """Send recorded packets through a network again and return the text of the new `summary.json`.

    Args:
        text: The scenario of the recordings, as TOML.
        name: Its file name, for messages.
        sets: Overrides, each a dotted path and a value, applied in order.
        recordings: For each repetition: its number; its end; the packets that entered, each with
            time, whether it goes up, number, size, ECN field, flow, user, and the number of packets
            received before it at the same time; for each packet the TCP header (offset, length,
            ack, window, flags, retransmission) or `None`; the changes: time, component, user or
            `None`, and the change as JSON; and the file of whole TCP headers, if there is one. The
            scenario's own changes are ignored.
        out: The result folder, or `None` to write nothing.
        log: Whether to write the event tables that the scenario enables.

    Raises:
        ScenarioError: The scenario is invalid; nothing was written.
        ResultError: The result could not be written in full.
        ValueError: The recordings do not match the scenario.
    """

def trace_causes() -> list[tuple[str, bool]]:
    """Return the causes of elapsed time, in the order of their columns.

    Their names, and whether their time is avoidable.
    """

def trace_figures() -> list[tuple[str, str]]:
    """Return the figures of a connection's direction.

    Their names, and their kinds as of columns.
    """

def trace(
    files: list[Path],
    *,
    peer: Path | None,
    one_clock: bool,
    log: tuple[str, list[tuple[str, str, tuple[bool, int, int] | None]], dict[str, bytes]] | None,
    log_ends: bool,
    radio: list[tuple[str | None, str, dict[str, str]]],
    flow: list[str],
    causes: bool,
    exchanges: bool,
    observations: bool,
    line: Callable[[str], object] | None,
) -> tuple[str, dict[str, list[tuple[str, str, Any, bytes | None]]], str | None]:
    """Analyse captures.

    Returns how they were read, as JSON; the tables by name, for `airpath.trace.columns`; and an
    HTTP Archive with `exchanges`.

    Args:
        files: Captures, in the order of their times; `-` is standard input.
        peer: A capture of the same traffic at the other end.
        one_clock: Whether both captures have the same clock.
        log: An event log instead of files, as `airpath.trace.event_log.Log`.
        log_ends: Whether it is analysed from both ends.
        radio: Radio logs: the mobile's address or `None`, the log as CSV, and its column map.
        flow: Selects connections, those of each selector; an empty list for all.
        causes: Whether to attribute their time to causes.
        exchanges: Whether to analyse HTTP, TLS and QUIC.
        observations: Whether to return the tables of their segments.
        line: Called with a line of JSON for each connection when it ends; there are no tables then.

    Raises:
        TraceError: A file is unreadable, is no capture or has no TCP, or the connection does not
            exist.

    Ctrl-C ends it early; it returns the analysis until then.
    """

def resolve(text: str, name: str, sets: list[tuple[str, str]]) -> str:
    """Return the scenario as TOML with the overrides applied and the presets filled in.

    Raises:
        ScenarioError: The scenario is invalid.
    """

def files(text: str, name: str, sets: list[tuple[str, str]]) -> list[Path]:
    """Return the files that the scenario names; they must exist during the run.

    Raises:
        ScenarioError: The scenario is invalid.
    """

def states_with_effect() -> list[tuple[str, str]]:
    """Return the radio states that carry nothing, as pairs of aspect and name."""

def resource_blocks(bandwidth: str, spacing: str | None) -> int | None:
    """Return the resource blocks of a carrier of LTE, or with a subcarrier spacing of NR.

    Returns:
        Their number; `None` if the standard has no such carrier.
    """

def event_columns() -> list[tuple[str, list[tuple[str, str | None, str]]]]:
    """Return the columns of each table of the event log: name, unit and description."""

def common_names() -> list[tuple[str, str]]:
    """Return common names of radio technologies, each with the preset that it selects."""

def presets() -> str:
    """Return the presets as a JSON list.

    Each has `name`, `title`, `kind`, `text` and `parameters`; of these each has `key`, `value` (as
    TOML) and `source`.
    """

def preset(name: str) -> str:
    """Return one preset, by name or by the path of a file, as JSON in the form of `presets`.

    Raises:
        ScenarioError: There is no such preset, or its file cannot be used.
    """

def pages() -> list[str]:
    """Return the names of the web pages that are part of airpath."""

def page(name: str) -> str:
    """Return one web page, by name or by the path of its file, as JSON.

    It has the keys of a page file, and `bytes` and `compressed_bytes` of all objects.

    Raises:
        ScenarioError: There is no such page, or its file cannot be used.
    """
