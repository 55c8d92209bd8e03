"""Measures trace analysers on the same captures in turns, and prints a table in Markdown.

    cargo build --release -p airpath-trace --example analyse
    cargo run -r -p airpath-benches --bin airpath-synthetic -- flows-1000.pcap
    cargo run -r -p airpath-benches --bin airpath-synthetic -- --flows 100000 flows-100000.pcap
    python benches/traces.py [--rounds 3] [--tshark-packets 500000] CAPTURE…

airpath does the work of `airpath trace --format jsonl` on one thread and on two, with causes and
without. tcptrace writes its long output with round trips. tshark gets the first packets only: its
memory grows with them, and it takes about forty microseconds per packet. A missing program is
skipped with a line on stderr. The figure is the processor time (user and system), the minimum of
the rounds.

A second table has the speed-up of two threads over one by elapsed time (minimum of the rounds), and
the throughput of two parallel processes relative to one, which is its upper limit on this machine.
"""

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LINES = {1: "airpath, one thread", 2: "airpath, two threads"}
CAUSES = {1: "airpath with causes, one thread", 2: "airpath with causes, two threads"}


@dataclass(frozen=True)
class Cost:
    """The cost of a run: processor seconds, elapsed seconds, and kilobytes."""

    seconds: float
    elapsed: float
    kilobytes: int


def run(command: list[str]) -> Cost:
    """Runs a command to its end; discards its output."""
    begin = time.monotonic()
    with Path(os.devnull).open("wb") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} ended with {process.returncode}: {' '.join(command)}")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss)


def at_once(command: list[str]) -> float:
    """Seconds until two runs of a command, begun together, have both ended."""
    begin = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    statuses = [process.wait() for process in running]
    if any(statuses):
        sys.exit(f"one of two did not end well: {' '.join(command)}")
    return time.monotonic() - begin


def packets(capture: Path, most: int, cut: Path | None = None) -> int:
    """How many packets a capture (little-endian pcap) has, up to `most`; those go to `cut`."""
    count, at = 0, 24
    with capture.open("rb") as file:
        file.seek(at)
        while count < most and len(header := file.read(16)) == 16:
            (kept,) = struct.unpack_from("<I", header, 8)
            at += 16 + kept
            file.seek(at)
            count += 1
        if cut is not None:
            file.seek(0)
            with cut.open("wb") as out:
                left = at
                while left > 0 and (block := file.read(min(left, 1 << 20))):
                    out.write(block)
                    left -= len(block)
    return count


def programs(examples: Path) -> dict[str, list[str]]:
    """The commands of the installed analysers, by name; the capture is their last argument."""
    fields = [
        "tcp.analysis.retransmission",
        "tcp.analysis.ack_rtt",
        "tcp.analysis.bytes_in_flight",
        "tcp.analysis.flags",
    ]
    there = {
        LINES[1]: [str(examples / "analyse"), "--threads=1"],
        LINES[2]: [str(examples / "analyse"), "--threads=2"],
        CAUSES[1]: [str(examples / "analyse"), "--threads=1", "--causes"],
        CAUSES[2]: [str(examples / "analyse"), "--threads=2", "--causes"],
        "tcptrace": ["tcptrace", "-n", "-l", "-r"],
        "tshark": ["tshark", "-n", "-T", "fields", *(word for field in fields for word in ("-e", field)), "-r"],
    }
    for name in list(there):
        if shutil.which(there[name][0]) is None:
            print(f"{name} is left out: there is no {there[name][0]}", file=sys.stderr)
            del there[name]
    return there


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("captures", nargs="+", type=Path, metavar="CAPTURE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tshark-packets", type=int, default=500_000)
    parser.add_argument("--examples", type=Path, default=ROOT / "target" / "release" / "examples")
    arguments = parser.parse_args()
    commands = programs(arguments.examples)
    speed_ups: list[str] = []
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| capture | program | packets | processor s | elapsed s | packets a µs of processor | memory, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for capture in arguments.captures:
        with tempfile.TemporaryDirectory() as folder:
            cut = Path(folder) / "cut.pcap"
            few = packets(capture, arguments.tshark_packets, cut)
            inputs = {
                name: (cut, few) if name == "tshark" else (capture, packets(capture, sys.maxsize)) for name in commands
            }
            costs: dict[str, list[Cost]] = {name: [] for name in commands}
            both: dict[str, list[float]] = {name: [] for name in (LINES[1], CAUSES[1]) if name in commands}
            for turn in range(arguments.rounds):
                for name, command in commands.items():
                    # Runs of a minute and more are measured once.
                    if turn == 0 or name != "tshark":
                        costs[name].append(run([*command, str(inputs[name][0])]))
                for name, times in both.items():
                    times.append(at_once([*commands[name], str(capture)]))
        for name, seen in costs.items():
            least = min(cost.seconds for cost in seen)
            memory = max(cost.kilobytes for cost in seen) / 1000
            elapsed = min(cost.elapsed for cost in seen)
            count = inputs[name][1]
            figures = f"{count} | {least:.2f} | {elapsed:.2f} | {count / least / 1e6:.2f} | {memory:.0f}"
            print(f"| {capture.name} | {name} | {figures} |")
        for one, two in (names.values() for names in (LINES, CAUSES) if names[1] in both):
            alone = min(cost.elapsed for cost in costs[one])
            shared = min(cost.elapsed for cost in costs[two])
            speed_up = f"{alone:.2f} | {shared:.2f} | {alone / shared:.2f} | {2 * alone / min(both[one]):.2f}"
            speed_ups.append(f"| {capture.name} | {one.removesuffix(', one thread')} | {speed_up} |")
    print("\n| capture | program | one thread, s | two threads, s | times faster | two processes at once |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(speed_ups))


if __name__ == "__main__":
    main()
