"""Runs the cases of docs/two-clocks.md under both clocks, and writes its tables.

    .venv/bin/python benches/two_clocks [--only kernel|bbr|quic|quinn|moq|study] [--case NAME]...
                                        [--links 5] [--seeds 9] [--jitter MS]... [--write]

Takes minutes: the links run in real time. With `--case` only these cases of kernel.toml run (with
`--only bbr` also presets of bearers, with `--only quic` those of quic.toml, with `--only quinn` and
`--only moq` presets), and nothing is written. With `--jitter` the cases of BBR run in the simulator
only, with a random delay of these means in milliseconds. Needs what `airpath link` needs;
`airpath doctor` checks this host.
"""

import argparse
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import bbr
import kernel
import moq
import quic
import quinn
import steps
from markdown_table import replace_table

from airpath import realtime, study

PAGE = Path(__file__).resolve().parents[2] / "docs" / "two-clocks.md"
STUDY = "hsdpa-sim"
EXPERIMENTS = ("utilisation-20kB", "utilisation-50kB", "utilisation-100kB", "retransmission-delay")
STEPPED = ("utilisation-20kB", "utilisation-100kB")


def main() -> int:
    """Run the cases, print the tables, and write them with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["kernel", "bbr", "quic", "quinn", "moq", "study"])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--links", type=int, default=5, help="links that run at the same time")
    parser.add_argument("--seeds", type=int, default=9, help="links of each case with BBR")
    parser.add_argument("--jitter", type=float, action="append", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.jitter:
        print("\n".join(bbr.jitter_table(bbr.downloads(options.case, seeds=options.seeds), options.jitter)))
        return 0
    obstacle = realtime.obstacle()
    if obstacle is not None:
        print(f"no link can be made on this host: {obstacle}", file=sys.stderr)
        return 1
    # Each table is written when it is complete.
    for name, lines in tables(options):
        print("\n".join(lines), flush=True)
        if options.write and not options.case:
            replace_table(PAGE, name, lines)
    return 0


def tables(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Run what the options select; return each table with its name."""
    if options.only in {None, "kernel"}:
        cases = kernel.load_cases(options.case)
        compared = kernel.compare(cases, links=options.links, report=lambda words: print(words, file=sys.stderr))
        yield "kernel", [*kernel.table(compared), "", f"Kernel {platform.release()}. {kernel.verdict(compared)}"]
    if options.only == "bbr" or (options.only is None and not options.case):
        downloads = bbr.downloads(options.case, seeds=options.seeds)
        rows = bbr.compare(downloads, links=options.links, report=lambda words: print(words, file=sys.stderr))
        yield "bbr", [*bbr.table(rows), "", f"Kernel {platform.release()}. {bbr.verdict(rows)}"]
        yield "probe-rtt", bbr.probe_table(rows)
    if options.only == "quic" or (options.only is None and not options.case):
        rows = quic.compare(
            quic.load_cases(options.case), links=options.links, report=lambda words: print(words, file=sys.stderr)
        )
        yield "quic", [*quic.table(rows), "", f"Kernel {platform.release()}. {quic.verdict(rows)}"]
    if options.only == "quinn" or (options.only is None and not options.case):
        rows = quinn.compare(options.case, links=options.links, report=lambda words: print(words, file=sys.stderr))
        yield (
            "quinn",
            [*quinn.table(rows), "", f"Kernel {platform.release()}. {len(rows)} cases.", *quinn.verdict(rows)],
        )
    if options.only == "moq" or (options.only is None and not options.case):
        rows = moq.compare(options.case, links=options.links, report=lambda words: print(words, file=sys.stderr))
        yield "moq", [*moq.table(rows), "", f"Kernel {platform.release()}. {len(rows)} cases.", *moq.verdict(rows)]
    if options.only in {None, "study"} and not options.case:
        yield "steps", steps.table(STUDY, STEPPED)
        result = study.run(STUDY, only=EXPERIMENTS, clock="real", links=options.links)
        yield "study", [*steps.study_tables(result), f"Kernel {platform.release()}. {result.invalid}".rstrip()]


if __name__ == "__main__":
    sys.exit(main())
