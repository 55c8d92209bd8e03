"""Runs airpath, ns-2 and ns-3 on the same workloads in turns, and prints a table in Markdown.

    python benches/compare.py [--peers FOLDER] [--rounds 3] [--slow]

The peers' workloads are in FOLDER, by default `peers` below AIRPATH_SHARED or `../shared`. They are
not part of this repository. They need Debian's packages `ns2` and `libns3-dev`. 5G-LENA's program
`ns3_nr` is run from the build folder or from FOLDER (docs/performance.md has how it was built). A
peer that is missing is left out, with a line on stderr for each workload. The figure is the
processor time (user and system) of the run, as each program measures it, without start-up, parsing
and set-up. It is the minimum of the rounds, because the noise of a shared machine only adds time.
`--slow` adds the cases of ns-3 that take minutes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "benches" / "scenarios"

Figures = dict[str, float]


@dataclass
class Program:
    """One program on one workload."""

    name: str
    command: list[str]
    once: bool = False  # too slow to be run in every round
    figures: Figures = field(default_factory=dict)

    def run(self) -> None:
        """Runs it once and keeps the least of each figure."""
        done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        line = next((line for line in done.stdout.splitlines() if line.startswith("sim=")), None)
        if line is None:
            print(f"{self.name}: no figures\n{done.stderr[-400:]}", file=sys.stderr)
            return
        words = dict(word.split("=", 1) for word in line.split())
        words.setdefault("data_pkts", words.get("pkts", "nan"))
        for key in ("cpu_s", "setup_s", "data_pkts", "events", "sim_s", "peak_kb"):
            if key in words:
                value = float(words[key])
                self.figures[key] = min(value, self.figures.get(key, value))


@dataclass
class Case:
    """One workload and the programs that run it."""

    title: str
    programs: list[Program]


def cases(ours: Callable[..., list[str]], peers: Path, ns3: Path, slow: bool) -> list[Case]:
    """The workloads of the comparison."""
    ns2 = ["ns"]

    def flows(count: int, mbps: int, cc: str, with_ns3: bool) -> Case:
        queue = max(100, int(mbps * 1e6 * 0.044 / 8 / 1500))
        sets = {
            "flow.count": count,
            "fixed.rate": f"{mbps} Mbit/s",
            "fixed.queue.packets": queue,
            "tcp.congestion.algorithm": "cubic" if cc == "cubic" else "new-reno",
        }
        programs = [
            Program("airpath", ours("flows.toml", sets=sets)),
            Program(
                "ns-2", [*ns2, str(peers / "ns2_flows.tcl"), str(count), str(mbps), "20", "10", cc], once=count > 100
            ),
        ]
        if with_ns3:
            options = [f"--flows={count}", f"--mbps={mbps}", "--delay=20", "--sim=10", "--tcp=TcpCubic"]
            programs.append(Program("ns-3", [str(ns3 / "ns3_flows"), *options], once=True))
        return Case(f"{mbps} Mbit/s, 44 ms, {count} flow{'s' * (count > 1)}, {cc}, 10 s", programs)

    def cell(count: int) -> Case:
        """A cell of LTE with 20 MHz and one layer; LENA's mobiles are at 50 to 200 m."""
        lena = [str(ns3 / "ns3_lte"), f"--ues={count}", "--sim=5", "--proto=tcp"]
        programs = [
            Program("airpath", ours("lte-cell.toml", sets={"bearer.mobile.layers": 1, "mobile.0.count": count})),
            Program("ns-3 LENA", lena, once=count > 1),
        ]
        return Case(f"LTE 20 MHz, {count} mobile{'s' * (count > 1)} with full buffers", programs)

    def nr_cell(count: int) -> Case:
        """A cell of NR with 100 MHz and two layers, the most that 5G-LENA 2.3 has."""
        sets = {
            "bearer.preset": "nr-n78-100mhz-sa",
            "bearer.conditions.ci": "45 dB",
            "bearer.mobile.layers": 2,
            "bearer.pdcp.queue.bytes": "40 MB",
            "duration": "10 s",
            "mobile.0.count": count,
        }
        file = next((folder / "ns3_nr" for folder in (ns3, peers) if (folder / "ns3_nr").exists()), ns3 / "ns3_nr")
        lena = [str(file), f"--ues={count}", f"--sim={2 if count == 1 else 1}"]
        programs = [
            Program("airpath", ours("lte-cell.toml", sets=sets)),
            Program("5G-LENA", lena, once=count > 1),
        ]
        return Case(f"NR 100 MHz, {count} mobile{'s' * (count > 1)} with full buffers", programs)

    return [
        Case(
            "16 MB, 384 kbit/s, NewReno, 20 times",
            [
                Program("airpath", ours("thesis.toml", repeat=20)),
                Program("ns-2", [*ns2, str(peers / "ns2_thesis.tcl"), "16000000", "20"]),
                Program("ns-3", [str(ns3 / "ns3_thesis"), "--bytes=16000000", "--tcp=TcpNewReno", "--repeat=20"]),
            ],
        ),
        flows(1, 1000, "cubic", slow),
        flows(1, 1000, "sack", False),
        flows(1, 100, "sack", True),
        flows(10, 100, "sack", slow),
        flows(100, 100, "sack", slow),
        flows(1000, 100, "sack", slow),
        Case("16 MB over HS-DSCH 384, 1 % of TTIs in error", [Program("airpath", ours("hs-dsch.toml"))]),
        Case("the same with 1,000 idle users more", [Program("airpath", ours("hs-dsch-idle.toml"))]),
        Case("cell of 50 users, full buffers, 100 s", [Program("airpath", ours("cell-50.toml"))]),
        cell(1),
        cell(50),
        nr_cell(1),
        nr_cell(50),
    ]


def built() -> Path:
    """Builds our program in the release profile and returns it."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "airpath-benches"], cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    found = subprocess.run(metadata, cwd=ROOT, check=True, capture_output=True, text=True)
    return Path(json.loads(found.stdout)["target_directory"]) / "release" / "airpath-benches"


def main() -> None:
    """Builds, runs, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="folder with the peers' workloads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow", action="store_true")
    arguments = parser.parse_args()

    binary = built()

    def ours(scenario: str, *, repeat: int = 1, sets: dict[str, object] | None = None) -> list[str]:
        options = [word for key, value in (sets or {}).items() for word in ("--set", f"{key}={value}")]
        return [str(binary), "--repeat", str(repeat), *options, str(SCENARIOS / scenario)]

    shared = Path(os.environ.get("AIRPATH_SHARED", ROOT.parent / "shared"))
    peers = arguments.peers or shared / "peers"
    ns3 = ROOT / "target" / "peers"
    if (peers / "build_ns3.sh").exists() and not (ns3 / "ns3_flows").exists():
        subprocess.run(["sh", str(peers.resolve() / "build_ns3.sh"), str(ns3)], check=False, capture_output=True)
    plan = cases(ours, peers, ns3, arguments.slow)
    for case in plan:
        reasons = [(program, obstacle(program, peers)) for program in case.programs]
        for program, reason in reasons:
            if reason is not None:
                print(f"{case.title}: {program.name} is left out: {reason}", file=sys.stderr)
        case.programs = [program for program, reason in reasons if reason is None]
    for number in range(arguments.rounds):
        for case in plan:
            for program in case.programs:
                if number == 0 or not program.once:
                    program.run()
    print("| workload | program | CPU s | set-up s | data packets/s | × real time | peak MB | CPU against airpath |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in plan:
        for program in case.programs:
            print(row(case, program))


def obstacle(program: Program, peers: Path) -> str | None:
    """Return why a program cannot run here; `None` if it can."""
    if not peers.is_dir():
        return None if program.name == "airpath" else f"no folder {peers}; name it with --peers"
    if program.name == "ns-2" and shutil.which("ns") is None:
        return "no program 'ns'; install Debian's package ns2"
    file = Path(program.command[1 if program.name == "ns-2" else 0])
    if file.exists():
        return None
    if program.name == "5G-LENA":
        return f"no file {file}; it needs the sources of 5G-LENA"
    return f"no file {file}" + ("" if program.name == "ns-2" else f"; {peers / 'build_ns3.sh'} builds it")


def _rounded(number: float) -> str:
    """Without decimals from 10 on."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2f}"


def row(case: Case, program: Program) -> str:
    """A line of the table."""
    figures, base = program.figures, case.programs[0].figures
    if "cpu_s" not in figures:
        return f"| {case.title} | {program.name} | – | | | | | |"
    # ns-2 counts processor time in steps of 10 ms.
    cpu = max(figures["cpu_s"], 1e-6)
    # A slow program simulates less time.
    per_second, base_per_second = cpu / figures["sim_s"], base["cpu_s"] / base["sim_s"]
    return (
        f"| {case.title} | {program.name} | {cpu:.3f} | {figures.get('setup_s', 0):.3f} "
        f"| {figures['data_pkts'] / cpu:,.0f} "
        f"| {_rounded(figures['sim_s'] / cpu)} | {figures['peak_kb'] / 1024:.1f} | {per_second / base_per_second:.1f} |"
    )


if __name__ == "__main__":
    main()
