"""Compares QUIC in virtual time with the same code on UDP sockets: downloads under both clocks.

Each case is simulated, and run over an emulated link by `airpath measure`, with the same seeds. The
compared figure is the time from the client's first datagram to the last byte at the receiving
application. Both sides have the same adapter of quinn-proto, so a difference is that of the clocks.
"""

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clocks import best_attempt, chosen, medians, percent, run_seeds, summary
from kernel import ATTEMPTS

from airpath.quantities import rate, seconds
from airpath.run import execute

CASES = Path(__file__).with_suffix(".toml")

_SCENARIO = """\
format = 1
name = "two clocks"

[bearer]
preset = "wired"

[[flow]]
kind = "download"
transport = "quic-quinn"
"""

_AIRPATH = (sys.executable, "-m", "airpath")

_FAST = 20e6
"""A link faster than this, in bits per second, runs alone: it needs all processors."""

_TIMEOUT = 600
"""Limit of a link, in seconds."""


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
    seeds: int = 1
    loss: float = 0.0
    codel: bool = False
    """Whether CoDel manages the queue towards the client, with the settings of RFC 8289."""

    def __str__(self) -> str:
        """The case in reports."""
        return self.name

    @property
    def scenario(self) -> str:
        """The scenario without the overrides below."""
        return f'{_SCENARIO}bytes = "{self.bytes} B"\nquic = {{ congestion = "{self.congestion}" }}\n'

    @property
    def title(self) -> str:
        """The link as text."""
        words = [rate(self.rate), seconds(self.round_trip), "CoDel" if self.codel else f"queue of {self.queue}"]
        return ", ".join(words + ([f"{100 * self.loss:g} % loss"] if self.loss else []))

    @property
    def link(self) -> dict[str, Any]:
        """The link, as overrides of the scenario."""
        both = {
            f"bearer.{direction}.{key}": value
            for direction in ("downlink", "uplink")
            for key, value in (("rate", f"{self.rate:.0f} bit/s"), ("delay", f"{self.round_trip / 2 * 1e3:g} ms"))
        }
        queue = {"bearer.downlink.queue.packets": self.queue, "bearer.downlink.loss": self.loss}
        return both | queue | ({"bearer.downlink.queue.discipline": "codel"} if self.codel else {})

    @property
    def is_fast(self) -> bool:
        """Whether it must run alone."""
        return self.rate > _FAST


@dataclass(frozen=True, slots=True)
class Run:
    """A download."""

    duration_s: float
    lost: int
    """Packets that the sender declared lost."""
    valid: bool = True
    """Whether the host kept the link's time."""
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A case under both clocks, seed by seed."""

    case: Case
    simulated: tuple[Run, ...]
    real: tuple[Run, ...]

    @property
    def valid(self) -> bool:
        """Whether all links were in time."""
        return all(run.valid for run in self.real)


def load_cases(only: Iterable[str] = ()) -> list[Case]:
    """Return the cases, or those with these names."""
    cases = [Case(**each) for each in tomllib.loads(CASES.read_text())["case"]]
    return chosen(cases, only, lambda case: case.name)


def compare(cases: Sequence[Case], *, links: int, report: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Run the cases under both clocks.

    Raises:
        RuntimeError: A download over a link did not finish.
    """
    real = run_seeds(
        cases,
        _real,
        links=links,
        seeds=lambda case: case.seeds,
        report=report,
        is_fast=lambda case: case.is_fast,
    )
    return [
        Row(case, tuple(_simulated(case, seed) for seed in range(1, case.seeds + 1)), runs)
        for case, runs in zip(cases, real, strict=True)
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["case", "bytes", "congestion control", "seeds", "simulated (s)", "real (s)", "difference"]
    heads += ["lost, simulated", "lost, real"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for row in rows:
        simulated, real = medians(row)
        deviation = percent(row) + ("" if row.valid else ", invalid")
        cells = [row.case.title, f"{row.case.bytes:,}", row.case.congestion, str(row.case.seeds)]
        cells += [f"{simulated:.3f}", f"{real:.3f}", deviation]
        cells += [f"{statistics.fmean(run.lost for run in runs):.1f}" for runs in (row.simulated, row.real)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def verdict(rows: Sequence[Row]) -> str:
    """Return a summary of the table."""
    invalid = sum(not row.valid for row in rows)
    words = f"{len(rows)} cases: {summary(rows)}"
    return words + (f" {invalid} cases are invalid, as the host was too busy." if invalid else "")


def _real(case: Case, seed: int) -> Run:
    return best_attempt(lambda: _attempt(case, seed), lambda run: (not run.valid, run.late_s, 0), most=ATTEMPTS)


def _attempt(case: Case, seed: int) -> Run:
    # A lateness below a fiftieth of the round trip does not change the result noticeably.
    budget = f"{max(case.round_trip / 50, 0.001) * 1e3:g} ms"
    with tempfile.TemporaryDirectory(prefix="airpath-") as temporary:
        folder = Path(temporary)
        scenario, link, measured = folder / "link.toml", folder / "link", folder / "measured"
        scenario.write_text(case.scenario, encoding="utf-8")
        overrides = [word for key, value in case.link.items() for word in ("--set", f"{key}={_text(value)}")]
        line = [*_AIRPATH, "link", str(scenario), *overrides, "--seed", str(seed), "--budget", budget]
        line += [
            "--serve",
            shlex.join([*_AIRPATH, "measure", "serve", "--listen", "0.0.0.0"]),
            "--out",
            str(link),
            "--no-log",
            "--no-status",
        ]
        line += ["--", *_AIRPATH, "measure", "bulk", "server", "--transport", "quic-quinn", "--quiet"]
        line += ["--bytes", f"{case.bytes} B", "--congestion", case.congestion, "--out", str(measured)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
        if done.returncode != 0:
            raise RuntimeError(f"{case.name}: {done.stderr.strip()}")
        flow = json.loads((measured / "summary.json").read_text())["flows"][0]
        emulation = json.loads((link / "summary.json").read_text())["emulation"]
    lateness = emulation["lateness"]
    is_valid = lateness["valid"] and not emulation["overruns"]
    return Run(flow["duration_s"], flow["retransmitted_packets"], is_valid, lateness["p99_s"])


def _simulated(case: Case, seed: int) -> Run:
    flow = execute(case.scenario, set=case.link, seed=seed, threads=1)["flows"][0]
    return Run(flow["duration_s"], flow["retransmitted_packets"])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
