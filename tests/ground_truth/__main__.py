"""The ground truth of causes: runs all scenarios, compares, prints docs/trace-causes.md's tables.

    .venv/bin/python tests/ground_truth [--peer] [--radio] [--every] [--work FOLDER] [--only NAME]
    .venv/bin/python tests/ground_truth kernel [--help]

The analyser is the example `causes` of airpath-trace, which cargo builds.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from analyser import analyser, pieces
from compare import Confusion, compare
from kernels import command as kernel
from radio_log import write
from scenarios import Case, cases
from truth import truth

import airpath


@dataclass(frozen=True)
class Inputs:
    """What the analyser has besides the sender's capture."""

    radio: bool
    peer: bool

    def __str__(self) -> str:
        """In words."""
        return ", ".join(["sender"] + ["both ends"] * self.peer + ["radio log"] * self.radio)


EVERY = tuple(Inputs(radio, peer) for radio in (False, True) for peer in (False, True))


def judge(case: Case, work: Path, program: Path, kinds: Sequence[Inputs]) -> list[Confusion]:
    """Runs a scenario, analyses the sender's capture with all kinds of inputs, and compares."""
    folder = work / case.name
    airpath.run(case.scenario, out=folder, capture=True)
    end, other = ("mobile", "server") if case.scenario["flow"][0]["kind"] == "upload" else ("server", "mobile")
    log = work / f"{case.name}.csv"
    write(folder, log)
    true = truth(folder, end)
    confusions = []
    for kind in kinds:
        inputs = [folder / "captures" / f"0000-{end}.pcapng"]
        inputs += [log] * kind.radio + [folder / "captures" / f"0000-{other}.pcapng"] * kind.peer
        confusions.append(compare(true, pieces(program, *inputs)))
    return confusions


@dataclass
class Result:
    """The sum over scenarios with one kind of inputs."""

    halves: dict[bool, Confusion] = field(default_factory=lambda: {False: Confusion(), True: Confusion()})
    shares: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    lines: list[str] = field(default_factory=lambda: ["| scenario | seconds | same cause |", "| --- | ---: | ---: |"])

    def add(self, case: Case, confusion: Confusion) -> None:
        """Adds a scenario."""
        self.halves[case.held_out].add(confusion)
        self.shares[case.held_out].append(confusion.agreement())
        self.lines.append(f"| {case.name} | {confusion.total():.1f} | {100 * confusion.agreement():.1f} % |")

    def print(self) -> None:
        """Prints the tables."""
        out = sys.stdout.write
        for held_out, name in ((False, "developed with"), (True, "held out")):
            if shares := self.shares[held_out]:
                whole, mean = 100 * self.halves[held_out].agreement(), 100 * float(np.mean(shares))
                out(f"\n{name}, {len(shares)} scenarios: same cause {whole:.1f} % of the time, ")
                out(f"mean of the scenarios {mean:.1f} %\n\n{self.halves[held_out].table()}\n")
                out(f"\n{self.halves[held_out].calibration_table()}\n")
        out("\n" + "\n".join(self.lines) + "\n")


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--radio", action="store_true", help="let the analyser have the radio's log, too")
    parser.add_argument("--peer", action="store_true", help="let the analyser have the other end's capture, too")
    parser.add_argument("--every", action="store_true", help="all four combinations of these, from one run each")
    parser.add_argument("--work", type=Path, help="keep the runs in this folder")
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    arguments = parser.parse_args()
    program = analyser()
    kinds = EVERY if arguments.every else [Inputs(arguments.radio, arguments.peer)]
    results = [Result() for _ in kinds]
    with tempfile.TemporaryDirectory() as temporary:
        for case in cases():
            if arguments.only not in case.name:
                continue
            for result, confusion in zip(
                results, judge(case, arguments.work or Path(temporary), program, kinds), strict=True
            ):
                result.add(case, confusion)
    for kind, result in zip(kinds, results, strict=True):
        sys.stdout.write(f"\n# {kind}\n")
        result.print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["kernel"]:
        kernel.main(sys.argv[2:])
    else:
        main()
