"""The profile linux-6 of the simulator held against the running kernel: the same downloads under both clocks.

Each case is simulated, and run over an emulated link with the kernel's TCP, with the same seeds. What is compared is
the time from the client's SYN to the last byte at the receiving application.
"""

import statistics
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath import realtime
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
bytes = "1 B"
"""

_FAST = 20e6
"""Links of more than so many bits per second run alone: they need the processors for themselves."""

MOST = 0.25
"""A median further off than this share has to have a reason that is known."""

_TRIES = 3
"""A run whose packets left too late says little, and is made again; of so many the least late one counts."""


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

    @property
    def scenario(self) -> str:
        """What is not set below."""
        return _SCENARIO + (f'[[change]]\nat = "3 s"\noutage = "{self.outage:g} s"\n' if self.outage else "")

    @property
    def title(self) -> str:
        """The link in words."""
        words = [rate(self.rate), seconds(self.round_trip), f"queue of {self.queue}"]
        words += [f"{100 * self.loss:g} % loss"] if self.loss else []
        words += [f"outage of {seconds(self.outage)}"] if self.outage else []
        return ", ".join(words)

    @property
    def options(self) -> str:
        """TCP in words."""
        absent = [name for name, there in (("SACK", self.sack), ("timestamps", self.timestamps)) if not there]
        return " without ".join(
            [self.congestion.upper() if self.congestion == "cubic" else "Reno", " and ".join(absent)][
                : 1 + bool(absent)
            ]
        )

    @property
    def link(self) -> dict[str, Any]:
        """The link, as overrides of the scenario."""
        both = {
            f"bearer.{direction}.{key}": value
            for direction in ("downlink", "uplink")
            for key, value in (("rate", f"{self.rate:.0f} bit/s"), ("delay", f"{self.round_trip / 2 * 1e3:g} ms"))
        }
        return both | {"bearer.downlink.queue.packets": self.queue, "bearer.downlink.loss": self.loss}

    @property
    def tcp(self) -> dict[str, Any]:
        """TCP in the simulator, as overrides of the scenario."""
        return {
            "tcp.congestion.algorithm": {"reno": "new-reno"}.get(self.congestion, self.congestion),
            "tcp.selective_acknowledgement": self.sack,
            "tcp.timestamps": self.timestamps,
        }

    @property
    def sysctl(self) -> dict[str, str]:
        """TCP in the kernel: what the profile has by default, whatever this host has, and what the case changes."""
        return {
            "net.ipv4.tcp_rmem": "4096 131072 6291456",
            "net.ipv4.tcp_wmem": "4096 16384 4194304",
            "net.ipv4.tcp_sack": str(int(self.sack)),
            "net.ipv4.tcp_timestamps": str(int(self.timestamps)),
        }

    @property
    def is_fast(self) -> bool:
        """Whether it has to run alone."""
        return self.rate > _FAST


@dataclass(frozen=True, slots=True)
class Compared:
    """The durations of a case under both clocks, in seconds, seed by seed."""

    case: Case
    simulated: tuple[float, ...]
    real: tuple[float, ...]
    late_s: float
    """The lateness of the latest run."""
    valid: bool
    """Whether all of them kept to their budget."""

    @property
    def medians(self) -> tuple[float, float]:
        """Simulated and real."""
        return statistics.median(self.simulated), statistics.median(self.real)

    @property
    def by_seed(self) -> float:
        """The median over the seeds of by how much the two differ, either way, as a share of the real one."""
        pairs = zip(self.simulated, self.real, strict=True)
        return statistics.median(abs(simulated / real - 1) for simulated, real in pairs)

    @property
    def difference(self) -> float:
        """How much longer the simulated median is than the real one, as a share of it."""
        simulated, real = self.medians
        return simulated / real - 1


def load_cases(only: Iterable[str] = ()) -> list[Case]:
    """Return the cases, or those with these names."""
    cases = [Case(**each) for each in tomllib.loads(CASES.read_text())["case"]]
    names = set(only)
    unknown = names - {case.name for case in cases}
    if unknown:
        raise SystemExit(f"error: no case {sorted(unknown)[0]}; there is {', '.join(case.name for case in cases)}")
    return [case for case in cases if not names or case.name in names]


def compare(
    cases: Sequence[Case], *, links: int, tell: Callable[[str], None] = lambda _: None, keep: Path | None = None
) -> list[Compared]:
    """Run the cases under both clocks, at most so many links at once.

    Raises:
        RealtimeError: A transfer did not come to its end, or this host is too busy.
    """
    jobs = [(case, seed) for case in cases for seed in range(1, case.seeds + 1)]
    # The longest first, so that none is left alone in the end.
    slow = sorted((job for job in jobs if not job[0].is_fast), key=lambda job: -job[0].bytes / job[0].rate)
    fast = [job for job in jobs if job[0].is_fast]
    real: dict[tuple[str, int], realtime.Measured] = {}

    def run(job: tuple[Case, int]) -> None:
        case, seed = job
        real[case.name, seed] = _real(case, seed, keep)
        tell(f"{case.name}, seed {seed}: {real[case.name, seed].transfers[0].duration_s:.2f} s")

    with ThreadPoolExecutor(links) as pool:
        list(pool.map(run, slow))
    for job in fast:
        run(job)
    return [_compared(case, [real[case.name, seed] for seed in range(1, case.seeds + 1)]) for case in cases]


def table(compared: Sequence[Compared]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["case", "bytes", "TCP", "seeds", "simulated (s)", "real (s)", "difference", "by seed"]
    heads += ["range simulated", "range real"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for each in compared:
        simulated, real = each.medians
        difference = f"{100 * each.difference:+.1f} %".replace("-", "−")
        ranges = (f"{min(times):.2f} to {max(times):.2f}" for times in (each.simulated, each.real))
        cells = [each.case.title, f"{each.case.bytes:,}", each.case.options, str(each.case.seeds)]
        cells += [f"{simulated:.2f}", f"{real:.2f}", difference if each.valid else f"{difference}, late"]
        cells += [f"{100 * each.by_seed:.1f} %", *ranges]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def verdict(compared: Sequence[Compared]) -> str:
    """Return what the table comes to, in a sentence or two."""
    differences = [abs(each.difference) for each in compared]
    beyond = [each.case.title for each in compared if abs(each.difference) > MOST]
    late = sum(not each.valid for each in compared)
    words = f"{len(compared)} cases: the median difference is {100 * statistics.median(differences):.1f} %, "
    words += f"the largest {100 * max(differences):.1f} %."
    if beyond:
        words += f" Beyond {100 * MOST:.0f} %: {'; '.join(beyond)}."
    if late:
        words += f" In {late} cases packets were later than a fiftieth of the round trip: the host was busy."
    return words


def _compared(case: Case, real: Sequence[realtime.Measured]) -> Compared:
    return Compared(
        case,
        simulated=tuple(_simulated(case, seed) for seed in range(1, case.seeds + 1)),
        real=tuple(each.transfers[0].duration_s for each in real),
        late_s=max(each.late_s for each in real),
        valid=all(each.valid for each in real),
    )


def _real(case: Case, seed: int, keep: Path | None) -> realtime.Measured:
    # What is late by less than a fiftieth of a round trip does not show.
    budget = f"{max(case.round_trip / 50, 0.001) * 1e3:g} ms"
    best = None
    for _ in range(_TRIES):
        measured = realtime.measure(
            case.scenario,
            bytes=case.bytes,
            set=case.link,
            seed=seed,
            congestion=case.congestion,
            sysctl=case.sysctl,
            budget=budget,
            out=None if keep is None else keep / f"{case.name}-{seed}",
            capture=keep is not None,
        )
        best = measured if best is None else min(best, measured, key=lambda each: (not each.valid, each.late_s))
        if best.valid:
            break
    assert best is not None
    return best


def _simulated(case: Case, seed: int) -> float:
    """Return the duration in the simulator."""
    summary = execute(
        case.scenario,
        set={**case.link, **case.tcp, "flow.bytes": f"{case.bytes} B"},
        seed=seed,
        repeat=1,
        out=None,
        capture=False,
        log=False,
        threads=1,
        progress=None,
    )
    return summary["flows"][0]["duration_s"]
