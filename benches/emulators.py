"""Runs emulators with the same workloads in turns, and prints their errors and cost in Markdown.

    python benches/emulators.py [--peers FOLDER] [--rounds 3] [--quick] [--only WORD]

airpath is measured as `airpath link`, with `--precise` and without. mahimahi (`mm-delay`,
`mm-loss`, `mm-link`, which are set-user-ID root) and rattan are searched on the path and in a
folder, by default `target/peers`. A peer that is missing or needs root is skipped with a line on
stderr. A bare pair of virtual Ethernet interfaces shows the cost of the end points.
`docs/performance.md` defines the figures.

A figure is the best of the rounds, with their median in parentheses, because the noise of a shared
machine only adds time.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contenders import Airpath, Bare, Conditions, Contender, Mahimahi, MeasurementError, Outcome, Rattan, Work

ROOT = Path(__file__).resolve().parent.parent

DELAY_MS = 20
RATE_MBPS = 12
PACKET_BYTES = 1500
PACKET_GAP_S = PACKET_BYTES * 8 / (RATE_MBPS * 1e6)
SETTLED_S = 2.0
"""At the beginning of a stream the queue fills: these packets do not count."""

Figures = dict[str, float]


@dataclass(frozen=True)
class Column:
    """A figure: its name in the table, how it is printed, and whether more is better."""

    title: str
    digits: int = 3
    more: bool = False


@dataclass
class Test:
    """A kind of work, its figures, and its contenders."""

    name: str
    title: str
    conditions: Conditions
    work: Work
    read: Callable[[Outcome], Figures]
    columns: dict[str, Column]
    contenders: Sequence[Contender]


def main() -> None:
    """Looks for the contenders, runs all tests in turns, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=ROOT / "target" / "peers", help="folder with the peers' programs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a fifth of the time: to see that all works")
    parser.add_argument("--only", metavar="WORD", help="only the tests whose name has this word in it")
    arguments = parser.parse_args()
    scale = 0.2 if arguments.quick else 1.0

    tests = plan(build_probe(), arguments.peers, scale)
    tests = [test for test in tests if (arguments.only or "") in test.name]
    if shutil.which("iperf3") is None:
        print("iperf3 is not there: what needs it is left out", file=sys.stderr)
        tests = [test for test in tests if "iperf3" not in test.work.client]
    absent = {each.name: each.missing() for test in tests for each in test.contenders}
    for name, why in absent.items():
        if why:
            print(f"{name} is left out: {why}", file=sys.stderr)
    found: dict[tuple[str, str], list[Figures]] = {}
    print(f"Load average before: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores.")
    for number in range(arguments.rounds):
        for test in tests:
            for contender in test.contenders:
                if absent[contender.name] or contender.cannot(test.conditions):
                    continue
                print(f"round {number + 1}: {test.name}, {contender.name}", file=sys.stderr)
                try:
                    figures = test.read(contender.run(test.conditions, test.work))
                except (MeasurementError, OSError, subprocess.CalledProcessError, ValueError, LookupError) as error:
                    print(f"{test.name}, {contender.name}: no figures: {error}", file=sys.stderr)
                    continue
                found.setdefault((test.name, contender.name), []).append(figures)
    for test in tests:
        print(f"\n{test.title}\n")
        print(table(test, found))
    print(f"\nLoad average after: {os.getloadavg()[0]:.1f}.")


def build_probe() -> Path:
    """Builds the end points; where they are."""
    command = ["cargo", "build", "--release", "--quiet", "-p", "airpath-benches", "--bin", "airpath-probe"]
    subprocess.run(command, cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(metadata, cwd=ROOT, check=True, capture_output=True, text=True)
    return Path(json.loads(done.stdout)["target_directory"]) / "release" / "airpath-probe"


def plan(probe: Path, peers: Path, scale: float) -> list[Test]:
    """All tests; times are to be multiplied by `scale`."""
    airpath = Path(sys.executable).parent / "airpath"
    precise, sleeping = Airpath(airpath, "--precise"), Airpath(airpath, "--no-precise")
    cut = Airpath(airpath, "--no-precise", "--no-offload")
    rivals: list[Contender] = [Mahimahi(peers), Rattan(peers)]
    both: list[Contender] = [precise, sleeping, *rivals]

    def seconds(length: float) -> float:
        return max(round(length * scale, 1), 1.0)

    delay = Conditions(delay_ms=DELAY_MS)
    slow = Conditions(rate_mbps=RATE_MBPS, queue_packets=50)
    fast = Conditions(delay_ms=1, rate_mbps=4992, queue_packets=4000, loss=1e-6)
    echo = Work([str(probe), "ping", "HOST", "9000", str(int(1000 * scale))], [str(probe), "answer", "9000"])
    blast = seconds(8) + SETTLED_S
    stream = Work(
        [str(probe), "count", "HOST", "9001", str(blast)],
        [str(probe), "blast", "9001", str(1.2 * RATE_MBPS), str(PACKET_BYTES), str(blast + 0.5)],
    )

    def tcp(length: float, *options: str, watch: tuple[float, float] | None = None) -> Work:
        client = ["iperf3", "--client", "HOST", "--port", "5301", "--time", f"{length:.0f}", "--json", *options]
        return Work(client, ["iperf3", "--server", "--one-off", "--port", "5301"], watch)

    quarter = seconds(6) / 4
    middle = (quarter, 3 * quarter)
    throughput = {
        "down_mbps": Column("Mbit/s", 0, more=True),
        "cpu_per_gbps": Column("CPU, % of a core a Gbit/s", 1),
    }
    quiet = {"cpu": Column("CPU, % of a core", 2)}
    return [
        Test(
            "baseline",
            "End points without an emulator, the same datagrams: delay of one way, ms",
            Conditions(),
            echo,
            lambda outcome: delays(outcome, 0),
            DELAYS,
            [Bare()],
        ),
        Test(
            "delay",
            f"Delay of one way less the nominal {DELAY_MS} ms, datagrams of 200 bytes, ms",
            delay,
            echo,
            lambda outcome: delays(outcome, DELAY_MS),
            DELAYS | LATENESS,
            both,
        ),
        Test(
            "rate",
            f"{RATE_MBPS} Mbit/s, packets of {PACKET_BYTES} bytes offered at 120 %",
            slow,
            stream,
            deliveries,
            DELIVERIES | LATENESS,
            both,
        ),
        *(
            Test(
                f"throughput {way}",
                f"Rate, delay of 1 ms, loss and queue together: TCP {way}",
                fast,
                tcp(seconds(6), *options, watch=middle),
                bulk,
                throughput,
                [sleeping, cut, precise, *rivals],
            )
            for way, options in (("down", ["--reverse"]), ("up", []))
        ),
        Test(
            "busy",
            f"TCP over {RATE_MBPS} Mbit/s: processor time of the emulator",
            slow,
            tcp(seconds(6), "--reverse", watch=middle),
            bulk,
            {"down_mbps": Column("Mbit/s", 2, more=True)} | quiet,
            [sleeping, cut, precise, *rivals],
        ),
        Test(
            "idle",
            "Nothing to carry: processor time of the emulator",
            slow,
            Work(["sleep", str(seconds(4))], watch=(seconds(4) / 4, seconds(4) * 3 / 4)),
            share,
            quiet,
            both,
        ),
    ]


DELAYS = {
    "p50": Column("p50"),
    "p90": Column("p90"),
    "p99": Column("p99"),
    "min": Column("least", more=True),
    "read_p50": Column("p50 at the program"),
    "change": Column("change between round trips"),
}
LATENESS = {"late_p50": Column("own account: late p50, ms"), "late_p99": Column("p99, ms")}
DELIVERIES = {
    "p50": Column("late p50, ms"),
    "p99": Column("late p99, ms"),
    "rate_error": Column("rate error, %", 4),
}


def rows(output: str, words: int) -> list[list[int]]:
    """The probe's lines of numbers; some emulators print other lines around them."""
    split = (line.split() for line in output.splitlines())
    found = [[int(word) for word in line] for line in split if len(line) == words and all(map(str.isdigit, line))]
    if len(found) < 10:
        raise ValueError(f"only {len(found)} datagrams came")
    return found


def delays(outcome: Outcome, nominal_ms: float) -> Figures:
    """Errors of the one-way delays, and the mean change between round trips, in ms."""
    errors: list[float] = []
    programs: list[float] = []
    round_trips: list[float] = []
    for sent, at_kernel, at_program, kernel, program in rows(outcome.output, 5):
        # The time of the responding program does not count: the reverse delay starts when it has
        # the packet.
        errors += [(at_kernel - sent) / 1e6 - nominal_ms, (kernel - at_program) / 1e6 - nominal_ms]
        programs += [(at_program - sent) / 1e6 - nominal_ms, (program - at_program) / 1e6 - nominal_ms]
        round_trips.append((at_kernel - sent + kernel - at_program) / 1e6)
    changes = [abs(after - before) for before, after in itertools.pairwise(round_trips)]
    return {
        **{f"p{each}": percentile(errors, each) for each in (50, 90, 99)},
        "min": min(errors),
        "read_p50": percentile(programs, 50),
        "change": statistics.fmean(changes),
        **lateness(outcome),
    }


def deliveries(outcome: Outcome) -> Figures:
    """Lateness of a full link's packets in ms, and the error of its rate in per cent."""
    times = [kernel / 1e9 for kernel, _ in rows(outcome.output, 2)]
    steady = [time for time in times if time >= times[0] + SETTLED_S]
    late = [1e3 * (time - steady[0] - number * PACKET_GAP_S) for number, time in enumerate(steady)]
    late = [each - min(late) for each in late]
    rate = (len(steady) - 1) * PACKET_GAP_S / (steady[-1] - steady[0])
    return {
        "p50": percentile(late, 50),
        "p99": percentile(late, 99),
        "rate_error": 100 * (rate - 1),
        **lateness(outcome),
    }


def bulk(outcome: Outcome) -> Figures:
    """The throughput of TCP, and its cost."""
    report = json.loads(outcome.output[outcome.output.index("{\n") :])
    mbps = report["end"]["sum_received"]["bits_per_second"] / 1e6
    figures = {"down_mbps": mbps, **share(outcome)}
    if "cpu" in figures:
        figures["cpu_per_gbps"] = figures["cpu"] * 1e3 / mbps
    return figures


def share(outcome: Outcome) -> Figures:
    """The emulator's share of a core, in per cent."""
    return {} if outcome.cpu is None else {"cpu": 100 * outcome.cpu}


def lateness(outcome: Outcome) -> Figures:
    """The lateness of packets in ms, as the emulator reports it."""
    emulation = outcome.summary.get("emulation")
    if not isinstance(emulation, dict):
        return {}
    return {f"late_p{each}": 1e3 * emulation["lateness"][f"p{each}_s"] for each in (50, 99)}


def percentile(values: Sequence[float], per_cent: int) -> float:
    """The percentile of the values."""
    return sorted(values)[min(len(values) * per_cent // 100, len(values) - 1)]


def table(test: Test, found: dict[tuple[str, str], list[Figures]]) -> str:
    """A test's table: a line a contender."""
    titles = ["", *(column.title for column in test.columns.values())]
    lines = ["| " + " | ".join(titles) + " |", "| --- " * len(titles) + "|"]
    for contender in test.contenders:
        rounds = found.get((test.name, contender.name), [])
        cells = [
            best(column, [figures[key] for figures in rounds if key in figures]) for key, column in test.columns.items()
        ]
        lines.append("| " + " | ".join([contender.name, *cells]) + " |")
    return "\n".join(lines)


def best(column: Column, values: list[float]) -> str:
    """The best of the rounds and their median; a figure with a sign is best near zero."""
    if not values:
        return "–"
    value = max(values) if column.more else min(values, key=abs)
    return f"{value:.{column.digits}f} ({statistics.median(values):.{column.digits}f})"


if __name__ == "__main__":
    main()
