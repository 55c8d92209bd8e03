"""One emulated link with its two programs, and their measurements."""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from airpath.link import error_in
from airpath.run import override_texts
from airpath.scenario import read_scenario

_PROGRAM = (sys.executable, "-m", "airpath")
_ENDS = (sys.executable, "-m", "airpath.realtime.ends")


class RealtimeError(Exception):
    """A link could not be set up or failed, or a transfer over it did not finish."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A download, with the field names of a flow in a summary.

    Times count from the client's SYN.
    """

    bytes: int
    connect_s: float
    """Until the connection was open at the client."""
    first_byte_s: float
    duration_s: float
    """Until the last byte was at the receiving application."""
    acknowledged_s: float
    """Until the sender had the acknowledgement of the last byte."""
    data_packets: int
    """Segments with payload that the sender sent."""
    retransmitted_packets: int
    delivery_rate_bps: int = 0
    """The kernel's last delivery rate sample."""
    gains: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of BBR: the share of time with each pacing gain, in 256ths."""
    probes: tuple[tuple[float, float], ...] = ()
    """Of BBR: seconds of each ProbeRTT that ended, from its begin and from when at most four
    segments were in flight."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The transfers over a link, and how well the host kept the link's time."""

    transfers: tuple[Transfer, ...]
    late_s: float
    """99 % of the packets left the link at most this late."""
    overruns: int
    """Packets that the kernel dropped before they entered the link, because the host was too
    slow."""
    valid: bool
    """Whether the lateness was within the budget, without overruns."""


class Links:
    """Running links of several threads, which another thread can end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._is_ended = False

    def add(self, process: "subprocess.Popen[str]") -> None:
        """Add a link; end it if the others were ended."""
        with self._lock:
            self._processes.add(process)
            if self._is_ended:
                process.terminate()

    def remove(self, process: "subprocess.Popen[str]") -> None:
        """Remove a link that has ended."""
        with self._lock:
            self._processes.discard(process)

    def end(self) -> None:
        """End all, and those that start later: their measurements raise `RealtimeError`."""
        with self._lock:
            self._is_ended = True
            for process in self._processes:
                process.terminate()


def measure(
    scenario: str | Path | Mapping[str, Any],
    *,
    bytes: int,
    request: int = 0,
    count: int = 1,
    downloads: int = 1,
    uploads: int = 0,
    stagger: float = 0.0,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    congestion: str | None = None,
    sysctl: Mapping[str, Any] | None = None,
    budget: str = "2 ms",
    out: Path | None = None,
    capture: bool = False,
    log: bool = False,
    timeout: float = 600,
    links: "Links | None" = None,
) -> Measured:
    """Set up a link, download over it with the kernel's TCP, and measure at both ends.

    Args:
        scenario: The link, as for `airpath.run`; its flows are ignored.
        bytes: Size of the download.
        request: Size of the client's request.
        count: Number of rounds, in sequence over the same link, each with new connections.
        downloads: Number of downloads at the same time in a round.
        uploads: Number of uploads of the same size at the same time; they are not measured.
        stagger: From the start of each download or upload of a round to the next, in seconds.
        set: Overrides of the scenario by dotted path.
        seed: The seed of the link's random streams, in place of the scenario's.
        congestion: Congestion control of the senders; by default that of the namespace.
        sysctl: Kernel parameters in both namespaces.
        budget: The run is invalid if more than 1 % of packets leave the link later than this.
        out: Keep the result folder here.
        capture: Whether to capture packets at both ends, in `out`, and to log events.
        log: Whether to log events, in `out`.
        timeout: Limit of the whole measurement, in seconds.
        links: Running links, among which this one is, so that another thread can end it.

    Raises:
        RealtimeError: The link failed, or a transfer did not finish.
    """
    with tempfile.TemporaryDirectory(prefix="airpath-") as temporary:
        folder = Path(temporary)
        link = folder / "link.toml"
        link.write_text(read_scenario(scenario)[0], encoding="utf-8")
        result = out or folder / "result"
        size = ["--bytes", str(bytes), "--request", str(request)]
        server_log, client_log = folder / "server.jsonl", folder / "client.jsonl"
        server = [*_ENDS, "serve", *size, "--log", str(server_log)]
        server += [] if congestion is None else ["--congestion", congestion]
        # The kernel caches thresholds and round trips per destination; each transfer must start
        # without them.
        parameters = {"net.ipv4.tcp_no_metrics_save": 1} | dict(sysctl or {})
        line = [
            *_PROGRAM,
            "link",
            str(link),
            *_options("--set", override_texts(set)),
            *_options("--sysctl", parameters.items()),
            *([] if seed is None else ["--seed", str(seed)]),
            *["--serve", shlex.join(server), "--out", str(result), "--budget", budget, "--no-status"],
            *(["--capture"] if capture else [] if log else ["--no-log"]),
            "--",
            *[*_ENDS, "fetch", *size, "--rounds", str(count), "--downloads", str(downloads)],
            *["--uploads", str(uploads), "--stagger", str(stagger)],
            *([] if congestion is None else ["--congestion", congestion]),
            *["--log", str(client_log), "--server-log", str(server_log)],
        ]
        _run(line, timeout, links)
        emulation = json.loads((result / "summary.json").read_text())["emulation"]
        server_lines = {line["port"]: line for line in _lines(server_log, count * downloads)}
        clients = sorted(_lines(client_log, count * downloads), key=lambda line: line["began"])
        transfers = tuple(_transfer(bytes, line, server_lines[line["port"]]) for line in clients)
        lateness = emulation["lateness"]
        return Measured(transfers, late_s=lateness["p99_s"], overruns=emulation["overruns"], valid=lateness["valid"])


@cache
def obstacle() -> str | None:
    """Return why this host cannot make a link, in one line; `None` if it can."""
    if not sys.platform.startswith("linux"):
        return "links need Linux"
    line = [*_PROGRAM, "link", "wired", "--serve", f"{shlex.quote(sys.executable)} -m http.server 8000", "--", "true"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    return None if done.returncode == 0 else _message(done.stderr)


def _run(line: Sequence[str], timeout: float, links: Links | None) -> None:
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        if links is not None:
            links.add(process)
        try:
            _, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise RealtimeError(f"the transfer did not finish within {timeout:g} s") from None
        finally:
            if links is not None:
                links.remove(process)
            process.kill()
    if process.returncode != 0:
        raise RealtimeError(_message(errors))


def _message(text: str) -> str:
    """Return the last error on standard error, or its last line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return error_in(text) or (lines[-1] if lines else "the link ended without a message")


def _options(name: str, pairs: Any) -> list[str]:
    return [word for key, value in pairs for word in (name, f"{key}={value}")]


def _lines(path: Path, count: int) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    if len(lines) != count:
        raise RealtimeError(f"{len(lines)} of {count} transfers finished at the {path.stem}")
    return [json.loads(line) for line in lines]


def _transfer(size: int, client: Mapping[str, Any], server: Mapping[str, Any]) -> Transfer:
    began = client["began"]
    return Transfer(
        bytes=size,
        connect_s=client["connected"] - began,
        first_byte_s=client["first_byte"] - began,
        duration_s=client["ended"] - began,
        acknowledged_s=server["acknowledged"] - began,
        data_packets=server["data_packets"],
        retransmitted_packets=server["retransmitted_packets"],
        delivery_rate_bps=server["delivery_rate_bps"],
        gains=server["gains"],
        probes=tuple((whole, held) for whole, held in server["probes"]),
    )
