"""Compares BBR version 3 with that of picoquic over wired links, both in virtual time.

    python benches/bbr3_peer --peer PROGRAM --source FOLDER [--seeds N] [--constants NAME] [CASE …]

`--peer` is `peer.c`, a program around picoquic's library that runs one download over a link with
the rules of airpath's (docs/bbr3.md has how to build it). `--source` is the folder of picoquic's
source, for the certificate of its tests. Each
case is one download of about 30 s. Its seeds have round trips within 2.5 % of the case's.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from airpath.run import execute

SCENARIO = """\
format = 1
name = "BBR version 3"

[bearer]
preset = "wired"

[[flow]]
kind = "download"
"""

WIRE = 1468
"""Bytes of a full packet with IP header, at both ends."""

SEGMENT = WIRE - 40

SECONDS = 30 * 0.9
"""The bytes of a download take this time at the rate of the link."""

SPREAD = 0.05
"""The range of the round trips of a case's seeds, as a share of the case's."""

STEADY_NS = 5_000_000_000
"""Delays without the start are those of packets that are sent later than this."""

GOODPUT, DELAY = 0.05, 0.15
"""Relative differences that need an explanation."""

LEAST_DELAY_S = 0.0005
"""A difference of delays below this is not reported as relative."""


@dataclass(frozen=True, slots=True)
class Case:
    """A link."""

    rate: float
    """Mbit/s."""
    round_trip: float
    """ms."""
    depth: float
    """The queue, in bandwidth-delay products."""
    loss: float = 0.0
    """Per cent."""

    @property
    def name(self) -> str:
        """The name for the command line."""
        return f"{self.rate:g}M-{self.round_trip:g}ms-{self.depth:g}" + (f"-{self.loss:g}" if self.loss else "")

    @property
    def title(self) -> str:
        """The link as text."""
        loss = f", {self.loss:g} % loss" if self.loss else ""
        return f"{self.rate:g} Mbit/s, {self.round_trip:g} ms, queue of {self.depth:g} BDP{loss}"

    @property
    def queue(self) -> int:
        """Packets that may wait."""
        return max(2, round(self.depth * self.rate * 1e3 * self.round_trip / 8 / WIRE))

    @property
    def bytes(self) -> int:
        """Bytes of the download."""
        return round(self.rate * 1e6 * SECONDS / 8)

    def delay_us(self, seed: int, seeds: int) -> int:
        """The delay of one direction."""
        from_middle = (seed - 0.5) / seeds - 0.5
        return round(self.round_trip / 2 * (1 + SPREAD * from_middle) * 1e3)


CASES = (
    Case(1, 100, 4),
    Case(2, 40, 2),
    Case(2, 200, 1),
    Case(5, 20, 4),
    Case(10, 40, 0.5),
    Case(10, 40, 1),
    Case(10, 40, 4),
    Case(10, 40, 16),
    Case(20, 100, 2),
    Case(20, 300, 2),
    Case(50, 20, 1),
    Case(50, 100, 1),
    Case(1, 100, 4, 1),
    Case(2, 200, 2, 0.1),
    Case(5, 20, 4, 2),
    Case(10, 40, 4, 0.1),
    Case(10, 40, 4, 1),
    Case(10, 40, 4, 2),
    Case(20, 300, 2, 0.1),
    Case(50, 100, 1, 1),
)


@dataclass(frozen=True, slots=True)
class Run:
    """A download."""

    duration: float
    """Seconds from the first data packet entering the link to the last leaving it."""
    sent: int
    delivered: int
    wire: int
    """Bytes of delivered data packets."""
    delay_mean: float
    delay_p95: float
    steady_mean: float
    steady_p95: float

    @property
    def lost(self) -> float:
        """The share of data packets that the queue or the link dropped."""
        return 1 - self.delivered / self.sent


def simulated(case: Case, seed: int, seeds: int, settings: dict[str, object]) -> Run:
    """Run the download with airpath."""
    link: dict[str, object] = {}
    for direction in ("downlink", "uplink"):
        link[f"bearer.{direction}.rate"] = f"{case.rate * 1e6:.0f} bit/s"
        link[f"bearer.{direction}.delay"] = f"{case.delay_us(seed, seeds)} us"
    link |= {
        "bearer.downlink.queue.packets": case.queue,
        "bearer.uplink.queue.packets": 100_000,
        "bearer.downlink.loss": case.loss / 100,
        "flow.bytes": f"{case.bytes} B",
        "tcp.congestion.algorithm": "bbr3",
        "tcp.maximum_segment_size": SEGMENT,
        # No window of the receiver below that of the sender.
        "tcp.receive_buffer.initial": "64 MB",
        "tcp.receive_buffer.maximum": "64 MB",
        "tcp.receive_buffer.first_offer": "unlimited",
    }
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        execute(SCENARIO, set=link | settings, seed=seed, threads=1, out=Path(folder) / "r", log=True)
        return figures(Path(folder) / "r")


def figures(folder: Path) -> Run:
    """Return the figures of a run with an event log."""
    packets = pl.scan_parquet(folder / "events" / "packets" / "*.parquet")
    data = packets.filter(
        (pl.col("direction") == "down") & (pl.col("size") > 1000) & pl.col("component").str.contains("bearer")
    )
    passed = (
        data.group_by("packet")
        .agg(
            pl.col("time").min().alias("entered"),
            pl.col("time").filter(pl.col("step") == "delivered").first().alias("left"),
            pl.col("size").first(),
        )
        .collect()
    )
    delivered = passed.drop_nulls().sort("entered")
    entered = [int(time) for time in delivered["entered"]]
    left = [int(time) for time in delivered["left"]]
    waits = [leaves - enters for enters, leaves in zip(entered, left, strict=True)]
    least, begin = min(waits), min(int(time) for time in passed["entered"])
    steady = [wait for enters, wait in zip(entered, waits, strict=True) if enters >= begin + STEADY_NS]
    return Run(
        duration=(max(left) - begin) / 1e9,
        sent=len(passed),
        delivered=len(delivered),
        wire=int(delivered["size"].sum()),
        delay_mean=(statistics.fmean(waits) - least) / 1e9,
        delay_p95=(quantile(waits) - least) / 1e9,
        steady_mean=(statistics.fmean(steady) - least) / 1e9,
        steady_p95=(quantile(steady) - least) / 1e9,
    )


def quantile(values: Sequence[int]) -> float:
    """Return the value that 95 % are at most."""
    return sorted(values)[round(0.95 * (len(values) - 1))]


def peer(case: Case, seed: int, seeds: int, arguments: argparse.Namespace) -> Run:
    """Run the download with picoquic."""
    numbers = [case.rate * 1e6, case.delay_us(seed, seeds), case.queue, case.loss / 100, case.bytes, seed]
    command = [str(arguments.peer), str(arguments.source), *(f"{number:.10g}" for number in numbers)]
    command += [arguments.algorithm, arguments.options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    keys = ("duration", "sent", "delivered", "wire", "delay_mean", "delay_p95", "steady_mean", "steady_p95")
    return Run(*(found[key] for key in keys))


def mean(runs: Sequence[Run], field: str) -> float:
    """Return the mean of a figure over the seeds."""
    return statistics.fmean(getattr(run, field) for run in runs)


def table(cases: Sequence[Case], ours: list[list[Run]], theirs: list[list[Run]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["case", "used, airpath", "picoquic", "difference", "lost, airpath", "picoquic"]
    heads += ["delay, mean, airpath (ms)", "picoquic", "difference", "95 %, airpath (ms)", "picoquic", "difference"]
    heads += ["mean after 5 s, airpath (ms)", "picoquic", "difference"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    # The payload of a byte on the link, without retransmissions.
    shares = [
        max(case.bytes / run.wire for case, runs in zip(cases, side, strict=True) for run in runs)
        for side in (ours, theirs)
    ]
    for case, *both in zip(cases, ours, theirs, strict=True):
        used = [
            case.bytes * 8 / share / statistics.fmean(run.duration for run in runs) / (case.rate * 1e6)
            for runs, share in zip(both, shares, strict=True)
        ]
        cells = [case.title, *(f"{100 * each:.1f} %" for each in used), relative(used[0], used[1], GOODPUT)]
        cells += [f"{100 * mean(runs, 'lost'):.2f} %" for runs in both]
        for field in ("delay_mean", "delay_p95", "steady_mean"):
            delays = [mean(runs, field) for runs in both]
            cells += [f"{1e3 * each:.1f}" for each in delays] + [relative(delays[0], delays[1], DELAY, LEAST_DELAY_S)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def relative(ours: float, theirs: float, most: float, least: float = 0.0) -> str:
    """Return the difference as text, in bold where it is too large."""
    difference = ours / theirs - 1 if theirs else 0.0
    text = f"{100 * difference:+.0f} %" if most > GOODPUT else f"{100 * difference:+.1f} %"
    return f"**{text}**" if abs(difference) > most and abs(ours - theirs) > least else text


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a case, such as 10M-40ms-4; default: all")
    parser.add_argument("--peer", type=Path, required=True, help="the program around picoquic")
    parser.add_argument("--source", type=Path, required=True, help="the folder of picoquic's source")
    parser.add_argument("--options", default="", help="options of picoquic's controller, such as R")
    parser.add_argument("--algorithm", default="bbr", help="picoquic's controller")
    parser.add_argument("--constants", default="draft-06", choices=("draft-06", "linux"), help="those of airpath")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="further settings of airpath")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="downloads at the same time")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(c.name for c in CASES)}")
    cases = [case for case in CASES if not arguments.cases or case.name in arguments.cases]
    settings: dict[str, object] = {"tcp.congestion.bbr3_constants": arguments.constants}
    settings |= dict(each.split("=", 1) for each in arguments.set)
    seeds = range(1, arguments.seeds + 1)
    with ThreadPoolExecutor(arguments.threads) as pool:
        ours = [[pool.submit(simulated, case, seed, len(seeds), settings) for seed in seeds] for case in cases]
        theirs = [[pool.submit(peer, case, seed, len(seeds), arguments) for seed in seeds] for case in cases]
        results = [[[run.result() for run in runs] for runs in side] for side in (ours, theirs)]
    print("\n".join(table(cases, results[0], results[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
