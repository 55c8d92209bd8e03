"""Compares the simulator's profile linux-6 with the kernel: the same downloads under both clocks.

Each case is simulated, and run over an emulated link with the kernel's TCP, with the same seeds.
The compared figure is the time from the client's SYN to the last byte at the receiving application;
of several downloads at the same time their mean.
"""

import statistics
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clocks import best_attempt, chosen, difference, medians, percent, run_seeds, summary

from airpath import realtime
from airpath.quantities import rate, seconds, size
from airpath.run import execute

CASES = Path(__file__).with_suffix(".toml")

_SCENARIO = """\
format = 1
name = "two clocks"

[bearer]
preset = "wired"

[[flow]]
kind = "download"
"""

_SPREAD = 0.05
"""The range of the round trips of a case's seeds, as a share of the case's.

A deterministic path gives one value, which a change of a per cent in the round trip can move far:
it decides which packet meets a full queue, and whether a mark comes before or after a reduction.
"""

_SEND_BUFFER, _FIRST_BUFFER, _RECEIVE_BUFFER = 4_194_304, 131_072, 6_291_456
"""The largest send buffer of a socket, and the first and the largest receive buffer, in bytes.

They are defaults of `tcp_wmem` and `tcp_rmem`.
"""

_FIRST_WINDOW, _RECEIVE_WINDOW = _FIRST_BUFFER * 160 // 256 - 1460, _RECEIVE_BUFFER * 160 // 256
"""The receive window of the kernel: the share of payload in the memory of full packets.

Since Linux 6.6 the share is measured (`tcp_measure_rcv_mss`); it is 160/256 on the interfaces of
a link. The profile has the fixed half of earlier versions. The first buffer has room for one
segment more (`tcp_init_buffer_space`).
"""

_FAST = 20e6
"""A link faster than this, in bits per second, runs alone: it needs all processors."""

MOST = 0.25
"""A relative difference of medians above this limit needs an explanation."""

ATTEMPTS = 3
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
    seeds: int
    loss: float = 0.0
    sack: bool = True
    timestamps: bool = True
    outage: float = 0.0
    """Seconds for which nothing is sent, from the third second on."""
    handover: float = 0.0
    """The same; the packets that wait at its start are lost."""
    codel: bool = False
    """Whether CoDel manages the queue towards the client, with the settings of RFC 8289."""
    policed: float = 0.0
    """Bits per second of a policer towards the client."""
    burst: int = 0
    """Its burst, in bytes."""
    ecn: bool = False
    """Whether TCP uses ECN, and the queue marks."""
    downloads: int = 1
    """Downloads at the same time."""
    uploads: int = 0
    """Uploads of the same size at the same time."""
    stagger: float = 0.05
    """Seconds from the start of each of these to that of the next."""
    send_buffer: int = 16_384
    """Bytes of the kernel's send buffer at first. The simulator has none."""
    bbr: bool = False
    """Whether bbr.py runs it with BBR, too."""

    def __str__(self) -> str:
        """The case in reports."""
        return self.name

    @property
    def scenario(self) -> str:
        """The scenario without the overrides below."""
        flows = f'bytes = "{self.bytes} B"\nstagger = "{self.stagger:g} s"\n'
        text = f"{_SCENARIO}{flows}count = {self.downloads}\n"
        text += f'[[flow]]\nkind = "upload"\n{flows}count = {self.uploads}\n' if self.uploads else ""
        text += f'[[change]]\nat = "3 s"\noutage = "{self.outage:g} s"\n' if self.outage else ""
        lost = f'[[change]]\nat = "3 s"\nhandover = "{self.handover:g} s"\nbuffer = "discard"\n'
        return text + (lost if self.handover else "")

    @property
    def title(self) -> str:
        """The link as text."""
        words = [rate(self.rate), seconds(self.round_trip), "CoDel" if self.codel else f"queue of {self.queue}"]
        words += [f"policer of {rate(self.policed)} and {size(self.burst)}"] if self.policed else []
        words += [f"{100 * self.loss:g} % loss"] if self.loss else []
        words += [f"outage of {seconds(self.outage)}"] if self.outage else []
        words += [f"handover of {seconds(self.handover)}"] if self.handover else []
        words += [f"{self.downloads} downloads"] if self.downloads > 1 else []
        words += [f"{self.uploads} upload{'s' if self.uploads > 1 else ''}"] if self.uploads else []
        words += [f"send buffer of {self.send_buffer / 2**20:g} MiB"] if self.send_buffer >= 2**20 else []
        return ", ".join(words)

    @property
    def options(self) -> str:
        """TCP as text."""
        absent = [name for name, there in (("SACK", self.sack), ("timestamps", self.timestamps)) if not there]
        words = "CUBIC" if self.congestion == "cubic" else "Reno"
        words += " with ECN" if self.ecn else ""
        return words + (f" without {' and '.join(absent)}" if absent else "")

    def link(self, seed: int) -> dict[str, Any]:
        """The link of a seed, as overrides of the scenario."""
        from_middle = (seed - 0.5) / self.seeds - 0.5
        delay_ms = self.round_trip / 2 * (1 + _SPREAD * from_middle) * 1e3
        both = {
            f"bearer.{direction}.{key}": value
            for direction in ("downlink", "uplink")
            for key, value in (("rate", f"{self.rate:.0f} bit/s"), ("delay", f"{delay_ms:.6g} ms"))
        }
        policer = {
            "bearer.downlink.policer.rate": f"{self.policed:.0f} bit/s",
            "bearer.downlink.policer.burst": f"{self.burst} B",
        }
        managed = {"bearer.downlink.queue.discipline": "codel", "bearer.downlink.queue.ecn": self.ecn}
        return (
            both
            | {"bearer.downlink.queue.packets": self.queue, "bearer.downlink.loss": self.loss}
            | (managed if self.codel else {})
            | (policer if self.policed else {})
        )

    @property
    def tcp(self) -> dict[str, Any]:
        """TCP in the simulator, as overrides of the scenario."""
        return {
            "tcp.congestion.algorithm": {"reno": "new-reno"}.get(self.congestion, self.congestion),
            "tcp.selective_acknowledgement": self.sack,
            "tcp.timestamps": self.timestamps,
            "tcp.ecn": self.ecn,
            "tcp.receive_buffer.initial": f"{_FIRST_WINDOW} B",
            "tcp.receive_buffer.maximum": f"{_RECEIVE_WINDOW} B",
        }

    @property
    def sysctl(self) -> dict[str, str]:
        """TCP in the kernel: the profile's defaults, and the settings of the case."""
        return {
            "net.ipv4.tcp_rmem": f"4096 {_FIRST_BUFFER} {_RECEIVE_BUFFER}",
            "net.ipv4.tcp_wmem": f"4096 {self.send_buffer} {max(_SEND_BUFFER, self.send_buffer)}",
            "net.ipv4.tcp_sack": str(int(self.sack)),
            "net.ipv4.tcp_timestamps": str(int(self.timestamps)),
            # 1: initiates and accepts ECN; 2: only accepts it.
            "net.ipv4.tcp_ecn": "1" if self.ecn else "2",
        }

    @property
    def is_fast(self) -> bool:
        """Whether it must run alone."""
        return self.rate > _FAST


@dataclass(frozen=True, slots=True)
class Transfer:
    """The downloads of a run."""

    duration_s: float
    """Their mean."""
    retransmitted: int
    """Packets of all of them."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A case under both clocks, seed by seed."""

    case: Case
    simulated: tuple[Transfer, ...]
    real: tuple[Transfer, ...]
    late_s: float
    """The lateness of the latest run."""
    valid: bool
    """Whether all runs were valid: lateness within the budget, no overruns."""

    @property
    def retransmitted(self) -> tuple[float, float]:
        """Mean numbers of retransmitted packets, simulated and real."""
        simulated, real = (
            statistics.fmean(each.retransmitted for each in runs) for runs in (self.simulated, self.real)
        )
        return simulated, real

    @property
    def by_seed(self) -> float:
        """The median over the seeds of the absolute relative difference from the real duration."""
        pairs = zip(self.simulated, self.real, strict=True)
        return statistics.median(abs(simulated.duration_s / real.duration_s - 1) for simulated, real in pairs)


def load_cases(only: Iterable[str] = (), file: Path = CASES) -> list[Case]:
    """Return the cases of a file, or those with these names."""
    cases = [Case(**each) for each in tomllib.loads(file.read_text())["case"]]
    return chosen(cases, only, lambda case: case.name)


def compare(
    cases: Sequence[Case], *, links: int, report: Callable[[str], None] = lambda _: None, keep: Path | None = None
) -> list[Compared]:
    """Run the cases under both clocks.

    Args:
        cases: The cases.
        links: The number of links that run at the same time.
        report: Called with a line of text after each run over a link.
        keep: The folder for the links' results; by default they are deleted.

    Raises:
        RealtimeError: A transfer did not finish.
    """
    real = run_seeds(
        cases,
        lambda case, seed: _real(case, seed, keep),
        links=links,
        seeds=lambda case: case.seeds,
        report=report,
        show=lambda measured: f"{_transfer(measured).duration_s:.2f} s",
        is_fast=lambda case: case.is_fast,
        duration=lambda case: case.bytes / case.rate,
    )
    return [_compared(case, runs) for case, runs in zip(cases, real, strict=True)]


def table(compared: Sequence[Compared]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["case", "bytes", "TCP", "seeds", "simulated (s)", "real (s)", "difference", "by seed"]
    heads += ["range simulated", "range real", "retransmitted simulated", "retransmitted real"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for each in compared:
        simulated, real = medians(each)
        deviation = percent(each, digits=1)
        durations = ([run.duration_s for run in runs] for runs in (each.simulated, each.real))
        ranges = (f"{min(times):.2f} to {max(times):.2f}" for times in durations)
        cells = [each.case.title, f"{each.case.bytes:,}", each.case.options, str(each.case.seeds)]
        cells += [f"{simulated:.2f}", f"{real:.2f}", deviation if each.valid else f"{deviation}, invalid"]
        cells += [f"{100 * each.by_seed:.1f} %", *ranges, *(f"{packets:.1f}" for packets in each.retransmitted)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def verdict(compared: Sequence[Compared]) -> str:
    """Return a summary of the table."""
    beyond = [each.case.title for each in compared if abs(difference(each)) > MOST]
    invalid = sum(not each.valid for each in compared)
    words = f"{len(compared)} cases: {summary(compared, digits=1)}"
    if beyond:
        words += f" Beyond {100 * MOST:.0f} %: {'; '.join(beyond)}."
    if invalid:
        words += (
            f" {invalid} cases are invalid, as the host was too busy: packets were later than a fiftieth of the round "
            "trip, or the kernel dropped packets before the link."
        )
    return words


def _compared(case: Case, real: Sequence[realtime.Measured]) -> Compared:
    return Compared(
        case,
        simulated=tuple(_simulated(case, seed) for seed in range(1, case.seeds + 1)),
        real=tuple(map(_transfer, real)),
        late_s=max(each.late_s for each in real),
        valid=all(each.valid for each in real),
    )


def _transfer(measured: realtime.Measured) -> Transfer:
    return Transfer(
        statistics.fmean(each.duration_s for each in measured.transfers),
        sum(each.retransmitted_packets for each in measured.transfers),
    )


def _real(case: Case, seed: int, keep: Path | None) -> realtime.Measured:
    # A lateness below a fiftieth of the round trip does not change the result noticeably.
    budget = f"{max(case.round_trip / 50, 0.001) * 1e3:g} ms"

    def attempt() -> realtime.Measured:
        return realtime.measure(
            case.scenario,
            bytes=case.bytes,
            downloads=case.downloads,
            uploads=case.uploads,
            stagger=case.stagger,
            set=case.link(seed),
            seed=seed,
            congestion=case.congestion,
            sysctl=case.sysctl,
            budget=budget,
            out=None if keep is None else keep / f"{case.name}-{seed}",
            capture=keep is not None,
        )

    return best_attempt(attempt, badness, most=ATTEMPTS)


def badness(measured: realtime.Measured) -> tuple[bool, float, float]:
    """Return what orders attempts, the best first."""
    return not measured.valid, measured.overruns, measured.late_s


def _simulated(case: Case, seed: int) -> Transfer:
    """Run the downloads in the simulator."""
    summary = execute(
        case.scenario,
        set={**case.link(seed), **case.tcp},
        seed=seed,
        threads=1,
    )
    downloads = [flow for flow in summary["flows"] if flow["kind"] == "download"]
    return Transfer(
        statistics.fmean(flow["duration_s"] for flow in downloads),
        sum(flow["retransmitted_packets"] for flow in downloads),
    )
