"""One emulated link with its two programs, and what they measured."""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from airpath.run import override_texts, read_scenario

_PROGRAM = (sys.executable, "-m", "airpath")
_ENDS = (sys.executable, "-m", "airpath.realtime.ends")


class RealtimeError(Exception):
    """A link could not be made or kept, or a transfer over it did not come to its end."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A download, with the names that a flow of a summary has; times count from the client's SYN."""

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


@dataclass(frozen=True, slots=True)
class Measured:
    """What a link and its transfers were like."""

    transfers: tuple[Transfer, ...]
    late_s: float
    """99 % of the packets left the link less late than this."""
    valid: bool
    """Whether that was within the budget."""


def measure(
    scenario: str | Path | Mapping[str, Any],
    *,
    bytes: int,
    request: int = 0,
    count: int = 1,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    congestion: str | None = None,
    sysctl: Mapping[str, Any] | None = None,
    budget: str = "2 ms",
    out: Path | None = None,
    capture: bool = False,
    timeout: float = 600,
) -> Measured:
    """Make a link, download over it with the kernel's TCP, and return what was measured at both ends.

    Args:
        scenario: The link, as for `airpath.run`; its flows are left aside.
        bytes: Size of the download.
        request: Bytes that the client sends first, to ask for it.
        count: How many downloads, one after the other over the same link, each with a connection of its own.
        set: Overrides of the scenario by dotted path.
        seed: The seed of all chance on the link, in place of the scenario's.
        congestion: Congestion control of the sender; by default what the namespace has.
        sysctl: Parameters of the kernel in both namespaces.
        budget: The run is invalid if more than 1 % of packets leave the link later than this.
        out: Keep the result folder here.
        capture: Whether to capture packets at both ends, in `out`.
        timeout: Give up after so many seconds.

    Raises:
        RealtimeError: It did not come to its end.
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
        # A kernel remembers the thresholds and round trips of a destination; each transfer is to be a first one.
        parameters = {"net.ipv4.tcp_no_metrics_save": 1} | dict(sysctl or {})
        line = [
            *_PROGRAM,
            "link",
            str(link),
            *_options("--set", override_texts(set)),
            *_options("--sysctl", parameters.items()),
            *([] if seed is None else ["--seed", str(seed)]),
            *["--serve", shlex.join(server), "--out", str(result), "--budget", budget, "--no-status"],
            "--capture" if capture else "--no-log",
            "--",
            *[*_ENDS, "fetch", *size, "--count", str(count)],
            *["--log", str(client_log), "--server-log", str(server_log)],
        ]
        _run(line, timeout)
        lateness = json.loads((result / "summary.json").read_text())["emulation"]["lateness"]
        ends = zip(_lines(client_log, count), _lines(server_log, count), strict=True)
        transfers = tuple(_transfer(bytes, client, server) for client, server in ends)
        return Measured(transfers, late_s=lateness["p99_s"], valid=lateness["valid"])


@cache
def obstacle() -> str | None:
    """Return why no link can be made on this host, in one line; `None` where one can."""
    if not sys.platform.startswith("linux"):
        return "links need Linux"
    line = [*_PROGRAM, "link", "wired", "--serve", f"{shlex.quote(sys.executable)} -m http.server 8000", "--", "true"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    return None if done.returncode == 0 else _last_words(done.stderr)


def _run(line: Sequence[str], timeout: float) -> None:
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RealtimeError(f"the transfer was not done after {timeout:g} s") from None
    if done.returncode != 0:
        raise RealtimeError(_last_words(done.stderr))


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else "the link ended without a word"


def _options(name: str, pairs: Any) -> list[str]:
    return [word for key, value in pairs for word in (name, f"{key}={value}")]


def _lines(path: Path, count: int) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    if len(lines) != count:
        raise RealtimeError(f"{len(lines)} of {count} transfers came to their end at the {path.stem}")
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
    )
