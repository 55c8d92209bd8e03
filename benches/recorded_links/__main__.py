"""Runs congestion controllers over recorded cellular links, beside figures that papers published.

    .venv/bin/python benches/recorded_links [--only NAME] [--links FOLDER] [--write]

The set-ups, their sources and the published figures are those of docs/recorded-links.md. The
recorded links are those of mahimahi (`traces/` of its repository), and not part of airpath; their
folder is by default data/links/mahimahi below AIRPATH_SHARED or `../shared`. Takes two
minutes or more, with one simulation at a time. Prints the tables in Markdown; `--write` puts them
into the page.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from markdown_table import replace_table
from recorded import Figures, run
from setups import (
    ABC,
    ABC_FILES,
    ABC_PUBLISHED,
    BBR,
    CHECKS,
    CODEL,
    CUBIC,
    HOTNETS,
    HOTNETS_PUBLISHED,
    SILENT_ACKS,
    SPROUT,
    SPROUT_LINKS,
    SPROUT_PUBLISHED,
    SetUp,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "recorded-links.md"
LINKS = Path(os.environ.get("AIRPATH_SHARED", ROOT.parent / "shared")) / "data" / "links" / "mahimahi"

Runs = dict[tuple[str, str], Figures]
"""The figures by link and name of the controller."""

Figure = Callable[[Figures], float]


def run_all(setup: SetUp, folder: Path) -> Runs:
    """Run all controllers over all links of a set-up, with a line on stderr for each."""
    runs: Runs = {}
    for link in setup.links:
        for controller in setup.controllers:
            runs[link, controller.name] = run(setup, controller, link, folder)
            print(setup.name, link, controller.name, runs[link, controller.name], file=sys.stderr, flush=True)
    return runs


def mean(runs: Runs, controller: str, figure: Figure, links: Sequence[str]) -> float:
    """Return the mean of a figure of a controller over links."""
    return statistics.fmean(figure(runs[link, controller]) for link in links)


def hotnets_tables(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Run the set-up of the first version of ABC; return its table."""
    runs = run_all(HOTNETS, folder)
    lines = table(
        "link", "controller", *("utilisation", "published", "difference", "delay (ms)", "published", "difference")
    )
    for (link, controller), figures in runs.items():
        published = HOTNETS_PUBLISHED[link, controller]
        assert published.utilisation is not None
        cells = [f"`{link}`", controller]
        cells += [f"{figures.utilisation:.1f} %", f"{published.utilisation:.1f} %"]
        cells += [difference(figures.utilisation, published.utilisation)]
        cells += [whole(figures.path_delay_ms), whole(published.delay_ms)]
        cells += [difference(figures.path_delay_ms, published.delay_ms)]
        lines.append(row(cells))
    yield "hotnets", lines


def abc_tables(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Run the set-up of ABC; return the means, and their ratios to CUBIC over CoDel."""
    runs = run_all(ABC, folder)
    figures: tuple[Figure, Figure] = (lambda each: each.utilisation, lambda each: each.path_delay_ms)
    means = table("controller", "utilisation", "same files", "published", "delay (ms)", "same files", "published")
    ratios = table("controller", "rate", "same files", "published", "delay", "same files", "published")
    for controller in ABC.controllers:
        name = controller.name
        published = ABC_PUBLISHED.get(name)
        theirs = (None, None) if published is None else (published.utilisation, published.delay_ms)
        base = ABC_PUBLISHED[CODEL.name]
        absolute, relative = [name], [name]
        for figure, value, of_base, form in zip(
            figures, theirs, (base.utilisation, base.delay_ms), (percent, whole), strict=True
        ):
            for links in (ABC.links, ABC_FILES):
                ours = mean(runs, name, figure, links)
                absolute.append(form(ours))
                relative.append(f"{ours / mean(runs, CODEL.name, figure, links):.2f}")
            absolute.append(form(value))
            relative.append("–" if value is None or of_base is None else f"{value / of_base:.2f}")
        means.append(row(absolute))
        ratios.append(row(relative))
    yield "abc", [*means, "", ordering(runs, ABC)]
    yield "abc-ratios", ratios


def sprout_tables(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Run the set-up of Sprout; return the means, and the links."""
    runs = run_all(SPROUT, folder)
    others = [link for link in SPROUT.links if link != SILENT_ACKS]
    means = table(
        "controller", "utilisation", "published", "packets (ms)", "self-inflicted (s)", "seven links", "published"
    )
    for controller in SPROUT.controllers:
        name, published = controller.name, SPROUT_PUBLISHED.get(controller.name)
        delays = [mean(runs, name, lambda each: each.self_inflicted_ms, links) for links in (SPROUT.links, others)]
        cells = [name, percent(mean(runs, name, lambda each: each.utilisation, SPROUT.links))]
        cells += [percent(None if published is None else published.utilisation)]
        cells += [whole(mean(runs, name, lambda each: each.packet_delay_ms, SPROUT.links))]
        cells += [f"{delay / 1e3:.2f}" for delay in delays]
        cells += ["–" if published is None else f"{published.delay_ms / 1e3:.2f}"]
        means.append(row(cells))
    yield "sprout", [*means, "", ordering(runs, SPROUT)]
    names = ("CUBIC", "Vegas", "CUBIC over CoDel")
    heads = [f"{name}{word}" for name in names for word in ("", ", published") if name != CODEL.name or not word]
    links = table("link", "offered (kbit/s)", "omniscient (s)", *heads)
    for link in SPROUT.links:
        figures = runs[link, CUBIC.name]
        cells = [f"`{link}`", whole(figures.capacity_kbps), f"{figures.omniscient_ms / 1e3:.2f}"]
        for name in names:
            each = runs[link, name]
            cells.append(f"{whole(each.rate_kbps)}, {each.self_inflicted_ms / 1e3:.2f} s")
            published = SPROUT_LINKS[link].get(name)
            if published is not None:
                cells.append(f"{whole(published.rate_kbps)}, {published.delay_ms / 1e3:.2f} s")
        links.append(row(cells))
    yield "sprout-links", links


def checks_tables(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Run what explains a difference; return its table."""
    lines = table(
        "link",
        "controller",
        "set-up",
        "utilisation",
        "packets, 5 % (ms)",
        "packets, 95 % (ms)",
        "self-inflicted (s)",
        "pacing (Mbit/s)",
    )
    for change, setup, controller, link in CHECKS:
        figures = run(setup, controller, link, folder)
        cells = [f"`{link}`", controller.name, change, percent(figures.utilisation)]
        cells += [whole(figures.low_delay_ms), whole(figures.packet_delay_ms), f"{figures.self_inflicted_ms / 1e3:.2f}"]
        cells += ["–" if figures.pacing_bps is None else f"{figures.pacing_bps / 1e6:.1f}"]
        lines.append(row(cells))
    yield "checks", lines


TABLES = {"hotnets": hotnets_tables, "abc": abc_tables, "sprout": sprout_tables, "checks": checks_tables}


def ordering(runs: Runs, setup: SetUp) -> str:
    """Return how BBR compares with CUBIC on the links: the finding of Li et al., PAM 2018."""
    compared = [(runs[link, BBR.name], runs[link, CUBIC.name]) for link in setup.links]
    rates = [bbr.rate_kbps / cubic.rate_kbps for bbr, cubic in compared]
    delays = [bbr.self_inflicted_ms / cubic.self_inflicted_ms for bbr, cubic in compared]
    lower = sum(delay < 1 for delay in delays)
    return (
        f"BBR has {min(rates):.2f} to {max(rates):.2f} times the rate of CUBIC and {min(delays):.2f} to "
        f"{max(delays):.2f} times its\nself-inflicted delay, which is less on {lower} of {len(delays)} links."
    )


def table(*heads: str) -> list[str]:
    """Return the head of a table."""
    return [row(heads), row(["---" if head in {"link", "controller", "set-up"} else "---:" for head in heads])]


def row(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def percent(value: float | None) -> str:
    """Return a share, or a dash."""
    return "–" if value is None else f"{value:.1f} %"


def whole(value: float | None) -> str:
    """Return a whole number, or a dash."""
    return "–" if value is None else f"{value:,.0f}"


def difference(ours: float, theirs: float) -> str:
    """Return a relative difference."""
    rounded = round(100 * (ours / theirs - 1))
    return "0 %" if rounded == 0 else f"{rounded:+d} %".replace("-", "−")


def main() -> None:
    """Run the set-ups, print the tables, and write them with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TABLES, help="only the tables of this set-up")
    parser.add_argument("--links", metavar="FOLDER", type=Path, default=LINKS, help="default: %(default)s")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not options.links.is_dir():
        sys.exit(f"there is no folder {options.links}; --links or AIRPATH_SHARED names the recorded links of mahimahi")
    for name, tables in TABLES.items():
        if options.only in {None, name}:
            for marker, lines in tables(options.links):
                print("\n".join(lines), "\n", flush=True)
                if options.write:
                    replace_table(PAGE, marker, lines)


if __name__ == "__main__":
    main()
