"""Loads pages in Chromium over bearers, over a plain rate and delay, and with DevTools' throttling.

    .venv/bin/python benches/throttling.py [--loads N] [--link NAME …] [--page NAME …] [--write]

Rate and delay are those of the bearer: the goodput of a long download and upload, and the median
round trip of pings, both simulated. Each load has a link of its own, so that it starts with an idle
radio. Prints the tables of docs/throttling.md with medians, and writes their rows with `--write`.
Needs Chromium and links (`airpath doctor`); five loads of all pages over all bearers take an hour.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_table import replace_table, rows_of

import airpath
from airpath.page.load import load

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "throttling.md"
PAGES = ("static-site", "umts-live-cnn")
BEARERS = {"gprs-3+1": 200_000, "umts-dch-384": 2_000_000, "umts-r99-states": 2_000_000, "hs-dsch-384": 4_000_000}
"""Bytes of the transfers that measure the rate."""
ADJUSTED_LATENCY, ADJUSTED_THROUGHPUT = 3.75, 0.9
"""Lighthouse, core/config/constants.js: `DEVTOOLS_RTT_ADJUSTMENT_FACTOR` and
`DEVTOOLS_THROUGHPUT_ADJUSTMENT_FACTOR`."""
METHODS = ("bearer", "rate and delay", "DevTools", "DevTools, adjusted")
FIGURES = {"page_time_s": "page time", "first_byte_s": "first byte", "first_contentful_paint_s": "FCP"}

CONDITIONS = ("preset", "down (kbit/s)", "up (kbit/s)", "round trip (ms)")
LOADS = ("preset", "page", "figure", "loads", *METHODS)
"""The heads of the tables."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a tester would enter for a bearer."""

    down: float
    """bit/s."""
    up: float
    round_trip: float
    """Seconds."""


def conditions(bearer: str) -> Conditions:
    """Return rate and round trip of a bearer, by simulation."""
    head = f'format = 1\n[bearer]\npreset = "{bearer}"\n[tcp]\nprofile = "linux-6"\n'
    rates = {}
    for kind in ("download", "upload"):
        size = BEARERS[bearer] // (1 if kind == "download" else 4)
        flow = f'[[flow]]\nkind = "{kind}"\nbytes = "{size} B"\n'
        rates[kind] = airpath.run(head + flow).flows["throughput_bps"].item()
    pings = airpath.run(f'{head}[[flow]]\nkind = "ping"\ninterval = "1 s"\nrequests = 60\n')
    return Conditions(rates["download"], rates["upload"], pings.flows["delay_p50_s"].item())


def wired(of: Conditions | None) -> dict[str, Any]:
    """Return a link with a rate and delay in each direction; without them the preset `wired`."""
    scenario: dict[str, Any] = {"format": 1, "bearer": {"preset": "wired"}}
    if of is not None:
        for name, rate in (("downlink", of.down), ("uplink", of.up)):
            delay = f"{of.round_trip / 2 * 1e6:.0f} us"
            scenario["bearer"][name] = {"rate": f"{rate:.0f} bit/s", "delay": delay}
    return scenario


def throttle(of: Conditions, *, adjusted: bool) -> Mapping[str, float]:
    """Return the conditions as DevTools takes them."""
    latency, throughput = (ADJUSTED_LATENCY, ADJUSTED_THROUGHPUT) if adjusted else (1.0, 1.0)
    return {
        "latency": of.round_trip * latency * 1e3,
        "downloadThroughput": of.down / 8 * throughput,
        "uploadThroughput": of.up / 8 * throughput,
    }


def measure(page: str, bearer: str, method: str, of: Conditions, loads: int) -> dict[str, float]:
    """Return the medians of several loads."""
    rows = []
    for number in range(loads):
        link: Any = {"bearer": bearer, "rate and delay": wired(of)}.get(method, wired(None))
        own = throttle(of, adjusted=method != "DevTools") if method.startswith("DevTools") else None
        with tempfile.TemporaryDirectory() as folder:
            loaded = load(page, link, Path(folder) / "result", seed=number + 1, throttle=own, timeout=300)
        rows += loaded.views
    return {name: statistics.median(row[name] for row in rows) for name in FIGURES}


def row(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def tables(bearers: Sequence[str], pages: Sequence[str], loads: int) -> tuple[list[str], list[str]]:
    """Return the lines of the table of conditions, and of that of loads."""
    entered, lines = [], []
    for bearer in bearers:
        of = conditions(bearer)
        entered.append(row([f"`{bearer}`", f"{of.down / 1e3:.1f}", f"{of.up / 1e3:.1f}", f"{of.round_trip * 1e3:.0f}"]))
        for page in pages:
            found = {method: measure(page, bearer, method, of, loads) for method in METHODS}
            for name, title in FIGURES.items():
                true = found["bearer"][name]
                others = [f"{found[m][name]:.2f} s ({found[m][name] / true - 1:+.0%})" for m in METHODS[1:]]
                words = [each.replace("%", " %").replace("-", "−") for each in others]
                lines.append(row([f"`{bearer}`", f"`{page}`", title, str(loads), f"{true:.2f} s", *words]))
                print(lines[-1], flush=True)
    return entered, lines


def write(name: str, heads: Sequence[str], lines: Sequence[str], key: int) -> None:
    """Replace rows of a table of the document; `key` is the number of cells that name one."""
    rows = {tuple(line.split(" | ")[:key]): line for line in (*rows_of(DOCUMENT, name), *lines)}
    names = [f"| `{each}`" for each in BEARERS]
    ordered = sorted(rows.values(), key=lambda line: names.index(line.partition(" | ")[0]))
    replace_table(DOCUMENT, name, [row(heads), row(["---"] * len(heads)), *ordered])


def main() -> None:
    """Measure, print the tables, and write them with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--link", action="append", choices=BEARERS)
    parser.add_argument("--page", action="append", choices=PAGES)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    entered, lines = tables(options.link or list(BEARERS), options.page or PAGES, options.loads)
    print("\n".join(entered))
    if options.write:
        write("conditions", CONDITIONS, entered, 1)
        write("throttling", LOADS, lines, 3)


if __name__ == "__main__":
    main()
