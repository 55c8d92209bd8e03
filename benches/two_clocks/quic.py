"""Compares QUIC in virtual time with the same code on UDP sockets: the same downloads.

The simulator runs quinn-proto over the bearer in virtual time. `airpath measure` runs it over
sockets of the two namespaces of `airpath link`, with the same bearer in real time.
"""

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath.quantities import rate, seconds
from airpath.run import execute

CASES = Path(__file__).with_suffix(".toml")

_PROGRAM = [sys.executable, "-m", "airpath"]

_REQUEST = "100 B"

_SCENARIO = """\
format = 1
name = "two clocks"
[bearer]
preset = "wired"
"""

_ATTEMPTS = 3
"""An invalid run is repeated up to this number of attempts; the best attempt counts."""


@dataclass(frozen=True, slots=True)
class Case:
    """A download over a link."""

    name: str
    rate: float
    """Bits per second."""
    round_trip: float
    """Seconds."""
    queue: int
    """Packets."""
    bytes: int
    congestion: str

    @property
    def title(self) -> str:
        """The link as text."""
        return f"{rate(self.rate)}, {seconds(self.round_trip)}, queue of {self.queue}"

    @property
    def link(self) -> dict[str, Any]:
        """The link, as overrides of the scenario."""
        both = {
            f"bearer.{direction}.{key}": value
            for direction in ("downlink", "uplink")
            for key, value in (("rate", f"{self.rate:.0f} bit/s"), ("delay", f"{self.round_trip / 2 * 1e3:.6g} ms"))
        }
        return both | {"bearer.downlink.queue.packets": self.queue}

    @property
    def flow(self) -> str:
        """The download, as a table of the scenario."""
        words = ["[[flow]]", 'kind = "download"', 'transport = "quic-quinn"', f'request = "{_REQUEST}"']
        return "\n".join([*words, f'bytes = "{self.bytes} B"', f'quic = {{ congestion = "{self.congestion}" }}'])


@dataclass(frozen=True, slots=True)
class Compared:
    """A case under both clocks."""

    case: Case
    simulated_s: float
    real_s: float
    lost: tuple[int, int]
    """Packets declared lost, simulated and real."""
    late_s: float
    """The lateness of the link."""
    valid: bool
    """Whether the lateness was within the budget, without overruns."""

    @property
    def difference(self) -> float:
        """The relative difference of the simulated duration from the real one."""
        return self.simulated_s / self.real_s - 1


def load_cases(only: Iterable[str] = ()) -> list[Case]:
    """Return the cases, or those with these names."""
    cases = [Case(**each) for each in tomllib.loads(CASES.read_text())["case"]]
    return [case for case in cases if not only or case.name in only]


def compare(cases: Sequence[Case], *, links: int, report: Callable[[str], None]) -> list[Compared]:
    """Run the cases under both clocks, `links` of them at the same time."""

    def run(case: Case) -> Compared:
        attempts = [_compared(case)]
        while len(attempts) < _ATTEMPTS and not attempts[-1].valid:
            attempts.append(_compared(case))
        best = min(attempts, key=lambda each: (not each.valid, each.late_s))
        report(f"{case.name}: {best.simulated_s:.3f} s and {best.real_s:.3f} s")
        return best

    with ThreadPoolExecutor(links) as pool:
        return list(pool.map(run, cases))


def table(compared: Sequence[Compared]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["case", "bytes", "controller", "simulated (s)", "real (s)", "difference", "lost simulated", "lost real"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for each in compared:
        difference = f"{100 * each.difference:+.2f} %".replace("-", "−") + ("" if each.valid else ", invalid")
        cells = [each.case.title, f"{each.case.bytes:,}", each.case.congestion, f"{each.simulated_s:.3f}"]
        lines.append(f"| {' | '.join([*cells, f'{each.real_s:.3f}', difference, *map(str, each.lost)])} |")
    return lines


def verdict(compared: Sequence[Compared]) -> str:
    """Return a summary of the table."""
    differences = [abs(each.difference) for each in compared]
    words = f"{len(compared)} cases: the median difference is {100 * statistics.median(differences):.2f} %, "
    words += f"the largest {100 * max(differences):.2f} %."
    invalid = sum(not each.valid for each in compared)
    return words + (f" {invalid} cases are invalid, as the host was too busy." if invalid else "")


def _compared(case: Case) -> Compared:
    (simulated,) = execute(_SCENARIO + case.flow, set=case.link, threads=1)["flows"]
    with tempfile.TemporaryDirectory(prefix="airpath-") as temporary:
        link, result = Path(temporary) / "link.toml", Path(temporary) / "result"
        link.write_text(_SCENARIO, encoding="utf-8")
        serve = [*_PROGRAM, "measure", "serve", "--listen", "0.0.0.0"]
        overrides = [word for key, value in case.link.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        budget = f"{max(case.round_trip / 50, 0.001) * 1e3:g} ms"
        line = [*_PROGRAM, "link", str(link), *overrides, "--serve", shlex.join(serve), "--out", str(result)]
        line += ["--budget", budget, "--no-status", "--no-log", "--", *_PROGRAM, "measure", "bulk", "server"]
        line += ["--transport", "quic-quinn", "--congestion", case.congestion, "--request", _REQUEST]
        line += ["--bytes", f"{case.bytes} B", "--format", "json"]
        done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
        (real,) = json.loads(done.stdout)["flows"]
        emulation = json.loads((result / "summary.json").read_text())["emulation"]
    return Compared(
        case,
        simulated["duration_s"],
        real["duration_s"],
        (simulated["retransmitted_packets"], real["retransmitted_packets"]),
        emulation["lateness"]["p99_s"],
        emulation["lateness"]["valid"],
    )
