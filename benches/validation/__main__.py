"""Compares airpath with ns-2, ns-3 and formulas in random scenarios, and prints the agreement.

    .venv/bin/python benches/validation [--scenarios 30] [--seed 1]... [--repetitions 5]
                                        [--rivals ns-2,ns-3,formulas] [--number N]... [--write]

The exit code is 1 if a difference is above 10 %, beyond chance and without a known reason. A
program that is not installed is skipped with a line on stderr. `kernel` as a further rival compares
with the kernel over emulated links, in real time, and `lena` compares a cell of LTE with that of
ns-3. `--write` writes the tables of docs/validation.md, and of docs/lena.md.
"""

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import formulas
import lena_tables
import links
import tables
from comparison import compare
from differences import Compared
from dumbbell import REAL, draw
from markdown_table import replace_table
from programs import RIVALS, missing

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
LENA_PAGE = PAGE.with_name("lena.md")
REAL_COUNT = 16
"""Scenarios of each seed for the kernel."""
PARALLEL = 3
"""Links that run at the same time."""
SHOWN = 3
"""Differences of each reason on the page; the command prints all."""
FAMILIES = ("ns-2", "ns-3", "formulas", "kernel", "lena")


def main() -> int:
    """Compare, print the tables, and write them with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=30, help="number of random scenarios of each seed")
    parser.add_argument("--seed", type=int, action="append", help="of the scenarios; may be repeated")
    parser.add_argument("--number", type=int, action="append", help="only these scenarios of each seed")
    parser.add_argument("--repetitions", type=int, default=5, help="of each scenario; more if it differs")
    parser.add_argument("--rivals", default="ns-2,ns-3,formulas", help=f"among {', '.join(FAMILIES)}")
    parser.add_argument("--write", action="store_true", help="write the tables of the pages")
    options = parser.parse_args()
    families = set(options.rivals.split(","))
    if unknown := families - set(FAMILIES):
        parser.error(f"no rival '{min(unknown)}'; there are {', '.join(FAMILIES)}")
    seeds = options.seed or [1]

    absent = {family: links.missing() if family == "kernel" else missing(family) for family in families}
    for family, why in absent.items():
        if why:
            print(f"{family} is skipped: {why}", file=sys.stderr)
    rivals = [rival for rival in RIVALS if rival.family in families and not absent[rival.family]]
    failures: list[str] = []
    late: list[str] = []
    numbers = options.number or range(1, options.scenarios + 1)
    compared = [
        each
        for seed in seeds
        for number in numbers
        for each in compare(
            draw(seed, number), rivals, repetitions=options.repetitions, report=report, failed=failures.append
        )
    ]
    real = (
        kernel_group(seeds, options.repetitions, late.append) if "kernel" in families and not absent["kernel"] else []
    )
    checks = formula_group(seeds, options.repetitions) if "formulas" in families and not options.number else []
    cell, leftover = lena_group() if "lena" in families and not absent["lena"] else ({}, [])
    found: dict[str, list[str]] = {}
    if rivals:
        found["summary"] = tables.summary(seeds, compared, len(list(numbers)), options.repetitions, len(failures))
        found["groups"] = tables.groups(compared)
        found["differences"] = tables.differences(compared)
        found["reasons"] = tables.reasons(compared)
    if real:
        found["kernel"] = tables.kernel(real, len(late))
    if checks:
        found["formulas"] = tables.formulas(checks)
    for name, lines in found.items():
        print("\n".join(lines) + "\n")
        if options.write:
            short = name == "differences"
            replace_table(PAGE, name, tables.differences(compared, SHOWN) if short else lines)
    for name, lines in cell.items():
        print("\n".join(lines) + "\n")
        if options.write:
            replace_table(LENA_PAGE, name, lines)
    for failure in (*failures, *late):
        print(failure, file=sys.stderr)
    errors = [tables.line(each) for each in tables.unexplained([*compared, *real])]
    errors += [tables.formula_line(each) for each in checks if each.is_beyond]
    errors += leftover
    for error in errors:
        print(f"error: a difference without a known reason: {error}", file=sys.stderr)
    return 1 if errors else 0


def formula_group(seeds: list[int], repetitions: int) -> list[formulas.Check]:
    """Compare with the formulas."""
    checks: list[formulas.Check] = []
    for seed in seeds:
        for check in formulas.checks(seed, 2 * repetitions):
            report(f"seed {seed}: {tables.formula_line(check)}")
            checks.append(check)
    return checks


def lena_group() -> tuple[dict[str, list[str]], list[str]]:
    """Compare a cell of LTE; return the tables, and the differences without a known reason."""
    rows, ours, narrow, theirs = lena_tables.single(report)
    constant, faded, by_rule = lena_tables.shared(report)
    found = {
        "standard": lena_tables.standard(),
        "rates": lena_tables.rates(rows),
        "factors-miesm": lena_tables.factors(rows, "miesm"),
        "factors-piro": lena_tables.factors(rows, "piro"),
        "points": lena_tables.points(ours, narrow, theirs),
        "errors": lena_tables.errors(rows),
        "oscillations": lena_tables.oscillations(),
        "shares": constant,
        "highest": lena_tables.above_the_highest(),
        "fading": faded,
        "rule": by_rule,
    }
    return found, lena_tables.unexplained(rows)


def kernel_group(seeds: list[int], repetitions: int, failed: Callable[[str], None]) -> list[Compared]:
    """Compare with the kernel over some links at the same time."""
    scenarios = [
        replace(draw(seed, number, REAL), delayed=True) for seed in seeds for number in range(1, REAL_COUNT + 1)
    ]
    kernel = links.Kernel()
    with ThreadPoolExecutor(PARALLEL) as pool:
        each = pool.map(
            lambda one: compare(one, [kernel], repetitions=repetitions, report=report, failed=failed), scenarios
        )
        return [compared for part in each for compared in part]


def report(words: str) -> None:
    """Print progress."""
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
