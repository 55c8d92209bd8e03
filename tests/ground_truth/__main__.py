"""The ground truth of causes: runs all scenarios, compares, prints docs/trace-causes.md's tables.

    .venv/bin/python tests/ground_truth [--peer] [--radio] [--work FOLDER] [--only NAME]
    .venv/bin/python tests/ground_truth kernel [--help]

The analyser is the example `causes` of airpath-trace, which cargo builds.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from analyser import analyser, pieces
from compare import Confusion, compare
from kernels import command as kernel
from radio_log import write
from scenarios import Case, cases
from truth import truth

import airpath


def judge(case: Case, work: Path, program: Path, radio: bool, peer: bool) -> Confusion:
    """Runs a scenario, analyses the sender's capture and compares."""
    folder = work / case.name
    airpath.run(case.scenario, out=folder, capture=True)
    end = "mobile" if case.scenario["flow"][0]["kind"] == "upload" else "server"
    inputs = [folder / "captures" / f"0000-{end}.pcapng"]
    if radio:
        inputs.append(work / f"{case.name}.csv")
        write(folder, inputs[-1])
    if peer:
        other = "server" if end == "mobile" else "mobile"
        inputs.append(folder / "captures" / f"0000-{other}.pcapng")
    return compare(truth(folder, end), pieces(program, *inputs))


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--radio", action="store_true", help="let the analyser have the radio's log, too")
    parser.add_argument("--peer", action="store_true", help="let the analyser have the other end's capture, too")
    parser.add_argument("--work", type=Path, help="keep the runs in this folder")
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    arguments = parser.parse_args()
    program = analyser()
    halves = {False: Confusion(), True: Confusion()}
    shares: dict[bool, list[float]] = {False: [], True: []}
    lines = ["| scenario | seconds | same cause |", "| --- | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as temporary:
        for case in cases():
            if arguments.only not in case.name:
                continue
            work = arguments.work or Path(temporary)
            confusion = judge(case, work, program, arguments.radio, arguments.peer)
            halves[case.held_out].add(confusion)
            shares[case.held_out].append(confusion.agreement())
            lines.append(f"| {case.name} | {confusion.total():.1f} | {100 * confusion.agreement():.1f} % |")
    out = sys.stdout.write
    for held_out, name in ((False, "developed with"), (True, "held out")):
        if shares[held_out]:
            whole, mean = 100 * halves[held_out].agreement(), 100 * float(np.mean(shares[held_out]))
            out(f"\n{name}, {len(shares[held_out])} scenarios: same cause {whole:.1f} % of the time, ")
            out(f"mean of the scenarios {mean:.1f} %\n\n{halves[held_out].table()}\n")
            out(f"\n{halves[held_out].calibration_table()}\n")
    out("\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["kernel"]:
        kernel.main(sys.argv[2:])
    else:
        main()
