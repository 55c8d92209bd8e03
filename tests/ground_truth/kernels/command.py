"""Runs all situations, compares, prints docs/trace-causes.md's tables.

.venv/bin/python tests/ground_truth kernel [--work FOLDER] [--only NAME] [--short]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from analyser import analyser
from compare import Confusion

from kernels import review
from kernels.run import missing, run
from kernels.score import VIEWS, judge
from kernels.situations import SITUATIONS, Situation


def main(arguments: list[str]) -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(
        prog="tests/ground_truth kernel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="keep the runs in this folder, and use those that are there")
    parser.add_argument("--only", default="", help="situations whose names contain this")
    parser.add_argument("--short", action="store_true", help="only the situations of `make test`")
    parser.add_argument("--tables", action="store_true", help="also the seconds by true cause and by cause found")
    options = parser.parse_args(arguments)
    wanted = [each for each in SITUATIONS if options.only in each.name and (each.short or not options.short)]
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        _print(wanted, work, options.tables)


def _print(wanted: list[Situation], work: Path, tables: bool) -> None:
    out = sys.stdout.write
    program = analyser()
    whole = {view: Confusion() for view in VIEWS}
    shares: dict[str, list[float]] = {view: [] for view in VIEWS}
    by_situation: dict[str, dict[str, float]] = {}
    lines = ["| situation | seconds | sender | receiver | both |", "| --- | ---: | ---: | ---: | ---: |"]
    for situation in wanted:
        if lacks := missing(situation):
            lines.append(f"| {situation.name} | skipped: needs {', '.join(lacks)} | | | |")
            continue
        folder = run(situation, work)
        cells, longest = [], 0.0
        for view in VIEWS:
            confusion = judge(situation, folder, program, view)
            whole[view].add(confusion)
            shares[view] += [confusion.agreement()] if confusion.total() else []
            mine = by_situation.setdefault(situation.name, {})
            if confusion.total():
                mine[view] = confusion.agreement()
            longest = max(longest, confusion.total())
            cells.append(f"{100 * confusion.agreement():.1f} %" if confusion.total() else "")
            if tables and confusion.total():
                out(f"\n{situation.name}, {view}\n\n{confusion.table()}\n")
        lines.append(f"| {situation.name} | {longest:.1f} | " + " | ".join(cells) + " |")
    for view, confusion in whole.items():
        if confusion.total():
            out(f"\n{view}, {len(wanted)} situations: same cause {100 * confusion.agreement():.1f} % of the time, ")
            out(f"mean of the situations {100 * np.mean(shares[view]):.1f} %, ")
            out(f"queueing and path rate as one {100 * confusion.agreement_of_full():.1f} %\n")
            out(f"\n{confusion.table()}\n\n{confusion.calibration_table()}\n")
    out("\n" + "\n".join(lines) + "\n")
    out(f"\n{review.table(by_situation)}\n")
