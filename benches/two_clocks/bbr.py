"""Compares BBR of the profile linux-6 with the kernel's, as kernel.py compares CUBIC and Reno.

The cases are those of kernel.toml with `bbr = true` and those of bbr.toml, with BBR, and downloads
over cellular bearers. Beside durations and retransmissions, the queueing delay of the packets
towards the client is compared: the time from entering the bearer to leaving it, less the least of
the run. The share of time of each pacing gain, and the lengths of ProbeRTT, are sampled in the
kernel; the simulator has them in its event log.
"""

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import kernel
import polars as pl
from clocks import best_attempt, chosen, medians, percent, run_seeds, summary

from airpath import realtime
from airpath.run import execute

OWN = Path(__file__).with_suffix(".toml")
"""Further cases, in the form of kernel.toml."""

CELLULAR = (
    # A preset of each generation, the bytes of its download, and whether it must run alone.
    ("gsm-csd-9600", 15_000, False),
    ("gprs-4+1", 60_000, False),
    ("egprs-4+1", 150_000, False),
    ("umts-r99-384", 500_000, False),
    ("hsdpa-cat6", 3_000_000, False),
    ("lte-10mhz", 10_000_000, True),
    ("nr-n28-fdd-20mhz", 20_000_000, True),
)

GAINS = {"startup": 739, "drain": 88, "1.25": 320, "0.75": 192, "1": 256}
"""Pacing gains in 256ths, as the kernel reports them; ProbeRTT has 1, too."""

PROBE_WINDOW = (4 * 1448, 4 * 1460)
"""The window of ProbeRTT, with and without timestamps. No other state has it for long at gain 1:
the window is at least six segments, and grows from one after a time-out."""

PROBE_LEAST_S = 0.2
"""ProbeRTT takes at least as long."""

_PAYLOAD = 1000
"""Packets above this size carry data."""

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Run:
    """A download."""

    duration_s: float
    retransmitted: int
    delay_mean_s: float
    delay_p95_s: float
    gains: tuple[float, ...]
    """The share of time of each of `GAINS`."""
    probes: tuple[tuple[float, float], ...]
    """Seconds of each ProbeRTT that ended: from its begin, and from when at most four segments were
    in flight."""


@dataclass(frozen=True, slots=True)
class Row:
    """A case under both clocks, seed by seed."""

    title: str
    bytes: int
    simulated: tuple[Run, ...]
    real: tuple[Run, ...]
    valid: bool

    @staticmethod
    def shares(runs: Sequence[Run]) -> list[float]:
        """The mean shares of time of the gains."""
        return [statistics.fmean(share) for share in zip(*(run.gains for run in runs), strict=True)]


@dataclass(frozen=True, slots=True)
class Download:
    """A download. Each seed has its own link."""

    name: str
    title: str
    scenario: str
    bytes: int
    seeds: int
    round_trip: float
    overrides: Callable[[int], dict[str, Any]]
    sysctl: dict[str, str]
    tcp: dict[str, Any]
    is_fast: bool

    def __str__(self) -> str:
        """The case in reports."""
        return f"{self.title}, {self.bytes:,} bytes"


def downloads(names: Sequence[str], *, seeds: int) -> list[Download]:
    """Return the cases, or those with these names, with `seeds` links each."""
    wired = [case for case in kernel.load_cases() if case.bbr]
    cases = [replace(case, congestion="bbr", seeds=seeds) for case in wired + kernel.load_cases(file=OWN)]
    known = [
        Download(
            case.name,
            case.title + ("" if case.sack else ", without SACK") + ("" if case.timestamps else ", without timestamps"),
            case.scenario,
            case.bytes,
            case.seeds,
            case.round_trip,
            case.link,
            case.sysctl,
            case.tcp,
            case.is_fast,
        )
        for case in cases
    ]
    plain = cases[0]
    for preset, size, is_fast in CELLULAR:
        scenario = f'format = 1\nname = "bbr"\n[bearer]\npreset = "{preset}"\n[[flow]]\nkind = "download"\n'
        scenario += f'bytes = "{size} B"\n'
        tcp = plain.tcp | {"tcp.selective_acknowledgement": True, "tcp.timestamps": True}
        known.append(Download(preset, preset, scenario, size, seeds, 0.2, lambda _: {}, plain.sysctl, tcp, is_fast))
    return chosen(known, names, lambda case: case.name)


def compare(cases: Sequence[Download], *, links: int, report: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Run the cases under both clocks."""
    real = run_seeds(
        cases,
        _real,
        links=links,
        seeds=lambda case: case.seeds,
        report=report,
        show=lambda measured: str(measured[0]),
        is_fast=lambda case: case.is_fast,
    )
    return [
        Row(
            case.title,
            case.bytes,
            simulated=tuple(_simulated(case, seed) for seed in range(1, case.seeds + 1)),
            real=tuple(run for run, _ in measured),
            valid=all(each.valid for _, each in measured),
        )
        for case, measured in zip(cases, real, strict=True)
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["case", "bytes", "seeds", "simulated (s)", "real (s)", "difference", "retransmitted simulated", "real"]
    heads += ["queueing delay, mean, simulated (ms)", "real (ms)", "95 %, simulated (ms)", "real (ms)"]
    heads += [f"share of time (%) with gain {' / '.join(GAINS)}, simulated", "real"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for row in rows:
        simulated, real = medians(row)
        deviation = percent(row, digits=1) + ("" if row.valid else ", invalid")
        cells = [row.title, f"{row.bytes:,}", str(len(row.real)), f"{simulated:.2f}", f"{real:.2f}", deviation]
        cells += [f"{statistics.fmean(run.retransmitted for run in runs):.1f}" for runs in (row.simulated, row.real)]
        for field in ("delay_mean_s", "delay_p95_s"):
            cells += [f"{1e3 * value:.1f}" for value in medians(row, field)]
        cells += [" / ".join(f"{100 * share:.0f}" for share in row.shares(runs)) for runs in (row.simulated, row.real)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def jitter_table(cases: Sequence[Download], means_ms: Sequence[float]) -> list[str]:
    """Return a table of the simulated side with a random delay, as the scheduler of a host adds it.

    Each packet's delay in the fixed network is exponential, with these means in each direction.
    """
    heads = ["case", "mean random delay", "retransmitted", "queueing delay, mean (ms)", "95 % (ms)"]
    heads += [f"share of time (%) with gain {' / '.join(GAINS)}"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for case in cases:
        for mean in means_ms:
            runs = [_simulated(_with_jitter(case, mean), seed) for seed in range(1, case.seeds + 1)]
            cells = [case.title, f"{mean:g} ms", f"{statistics.fmean(run.retransmitted for run in runs):.1f}"]
            delays = [[run.delay_mean_s for run in runs], [run.delay_p95_s for run in runs]]
            cells += [f"{1e3 * statistics.median(each):.1f}" for each in delays]
            cells.append(" / ".join(f"{100 * share:.0f}" for share in Row.shares(runs)))
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def probe_table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table of ProbeRTT, in Markdown, of the cases that have it."""
    heads = ["case", "bytes", "seeds", "probes per download, simulated", "real"]
    heads += ["length, simulated (ms)", "real (ms)", "with four segments, simulated (ms)", "real (ms)"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for row in rows:
        both = [[probe for run in runs for probe in run.probes] for runs in (row.simulated, row.real)]
        if not any(both):
            continue
        cells = [row.title, f"{row.bytes:,}", str(len(row.real))]
        cells += [f"{statistics.fmean(len(run.probes) for run in runs):.1f}" for runs in (row.simulated, row.real)]
        for part in (0, 1):
            cells += [_range([1e3 * probe[part] for probe in probes]) for probes in both]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _range(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def verdict(rows: Sequence[Row]) -> str:
    """Return a summary of the table."""
    invalid = sum(not row.valid for row in rows)
    words = f"{len(rows)} cases: {summary(rows, digits=1)}"
    return words + (f"\n{invalid} cases are invalid, as the host was too busy." if invalid else "")


def _real(case: Download, seed: int) -> tuple[Run, realtime.Measured]:
    def attempt() -> tuple[Run, realtime.Measured]:
        with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
            out = Path(folder) / "result"
            measured = realtime.measure(
                case.scenario,
                bytes=case.bytes,
                set=case.overrides(seed),
                seed=seed,
                congestion="bbr",
                sysctl=case.sysctl,
                budget=f"{max(case.round_trip / 50, 0.001) * 1e3:g} ms",
                out=out,
                log=True,
            )
            transfer = measured.transfers[0]
            # The kernel reports a gain of 0 until the first acknowledgement.
            sampled = [transfer.gains.get(str(gain), 0.0) for gain in GAINS.values()]
            gains = (sampled[0] + transfer.gains.get("0", 0.0), *sampled[1:])
            run = Run(transfer.duration_s, transfer.retransmitted_packets, *delays_of(out), gains, transfer.probes)
        return run, measured

    return best_attempt(attempt, lambda made: kernel.badness(made[1]), most=_ATTEMPTS)


def _with_jitter(case: Download, mean_ms: float) -> Download:
    if mean_ms == 0:
        return case
    delay = {"distribution": "exponential", "minimum": "0 ms", "mean": f"{mean_ms:g} ms"}
    return replace(case, overrides=lambda seed: case.overrides(seed) | {"fixed.delay": delay})


def _simulated(case: Download, seed: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        out = Path(folder)
        options = {**case.overrides(seed), **case.tcp}
        summary = execute(case.scenario, set=options, seed=seed, threads=1, out=out, log=True)
        flow = summary["flows"][0]
        retransmitted = flow["retransmitted_packets"]
        return Run(flow["duration_s"], retransmitted, *delays_of(out), gains_of(out), probes_of(out))


def _sender(folder: Path) -> pl.DataFrame:
    """Return the states of the sender in a simulation, and how long each lasted."""
    events = pl.scan_parquet(folder / "events" / "tcp" / "*.parquet")
    sender = events.filter((pl.col("component") == "server") & (pl.col("direction") == "down"))
    rows = sender.select("time", "pacing_gain", "congestion_window", "in_flight").sort("time").collect()
    return rows.with_columns(pl.col("time").diff().shift(-1).alias("spent"))


def gains_of(folder: Path) -> tuple[float, ...]:
    """Return the share of time of each pacing gain in a simulation."""
    spent = _sender(folder)
    shares = spent.group_by("pacing_gain").agg(pl.col("spent").sum() / spent["spent"].sum())
    share_of = dict(shares.iter_rows())
    return tuple(share_of.get(gain, 0.0) for gain in GAINS.values())


def probes_of(folder: Path) -> tuple[tuple[float, float], ...]:
    """Return the lengths of each ProbeRTT that ended in a simulation, as of `Run.probes`."""
    is_probe = (pl.col("pacing_gain") == GAINS["1"]) & pl.col("congestion_window").is_in(PROBE_WINDOW)
    rows = _sender(folder).with_columns(is_probe.alias("probe")).with_columns(pl.col("probe").rle_id().alias("run"))
    is_low = pl.col("in_flight") <= max(PROBE_WINDOW)
    lengths = (
        rows.filter(pl.col("probe") & (pl.col("run") < rows["run"].max()))
        .group_by("run", maintain_order=True)
        .agg(pl.col("spent").sum().alias("whole"), pl.col("spent").filter(is_low).sum().alias("held"))
    )
    seconds = ((whole / 1e9, held / 1e9) for _, whole, held in lengths.iter_rows())
    return tuple((whole, held) for whole, held in seconds if whole >= PROBE_LEAST_S)


def delays_of(folder: Path) -> tuple[float, float]:
    """Return mean and 95th percentile of the queueing delay of data towards the client."""
    packets = pl.scan_parquet(folder / "events" / "packets" / "*.parquet")
    data = packets.filter((pl.col("direction") == "down") & (pl.col("size") > _PAYLOAD))
    # The bearer of a mobile, or the cell of a shared channel.
    times = data.filter(pl.col("step").is_in(["queued", "delivered"])).select("time", "component", "step", "packet")
    bearer = times.filter(pl.col("component").str.contains("bearer|cell"))
    delay = (
        bearer.group_by("packet")
        .agg(
            pl.col("time").filter(pl.col("step") == "queued").first().alias("entered"),
            pl.col("time").filter(pl.col("step") == "delivered").first().alias("left"),
        )
        .drop_nulls()
        .select((pl.col("left") - pl.col("entered")).alias("delay"))
        .collect()["delay"]
    )
    least = delay.min()
    mean, high = delay.mean(), delay.quantile(0.95)
    if not isinstance(least, int) or not isinstance(mean, float) or high is None:
        raise ValueError(f"{folder}: no data packet passed the bearer")
    return (mean - least) / 1e9, (high - least) / 1e9
