"""Loads pages in Chromium over links, and simulates the same loads.

    .venv/bin/python benches/pages_chromium.py [--loads N] [--case TEXT …] [--write]

Each load is an `airpath page load` of its own, so that it starts with an idle radio; page times of
Chromium are medians of the loads, simulated ones of as many runs with the seeds of the links. Sizes
of heads and certificates, and the number of speculative connections, are those of captures.
All other keys of the simulation have their defaults. `processing` is the page time over the preset
`wired`, 100 Mbit/s and 0.2 ms: what browser and server need on this machine.

Prints the table of docs/pages.md and the time that a load takes beside its page time, and writes
the table with `--write`. Needs Chromium, the extra `page` and links (`airpath doctor`). Loads are
in real time: with the default of three, all take about nine minutes on an idle machine.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_table import replace_table

import airpath

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "pages.md"
HEAD = ("page", "link", "protocol", "Chromium", "spread", "processing", "simulated", "difference")
LINE = {"downlink.rate": "4 Mbit/s", "uplink.rate": "1 Mbit/s", "downlink.delay": "20 ms", "uplink.delay": "20 ms"}
"""Keys of `wired` for a line whose rate and delay are neither negligible nor those of a radio."""
CLEAR = {"request": "400 B", "response": "220 B", "speculative": 1}
"""Requests of Chromium: 392 B (images) to 448 B (documents). Heads of the servers: 219 to 221 B."""
SECURE = {"request": "580 B", "response": "220 B", "speculative": 1, "certificates": "1100 B"}
"""Over TLS, Chromium adds fields (client hints, Sec-Fetch): 583 B."""
TICKETS = {"resumption": "ticket"}
"""Chromium resumes TLS on later connections of HTTP/1."""


@dataclass(frozen=True, slots=True)
class Case:
    """A page over a link by a protocol."""

    page: str
    preset: str
    protocol: str = "http/1.1"
    tls: str = "none"
    loads: int | None = None
    """Number of loads, if a load takes long."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of the bearer beside the preset."""

    def cells(self) -> tuple[str, str, str]:
        """Return the cells that name the case."""
        secure = "" if self.tls == "none" else f", {self.tls}"
        rate = ", 4 Mbit/s" if self.keys else ""
        return f"`{self.page}`", f"`{self.preset}`{rate}", f"`{self.protocol}`{secure}"


CASES = (
    Case("static-site", "gprs-4+1", loads=1),
    Case("umts-live-yahoo", "gprs-3+1", "http/1.0", loads=1),
    Case("umts-live-yahoo", "gprs-4+1", "h2", "TLSv1.3", loads=1),
    Case("static-site", "egprs-4+1", "http/1.0", loads=1),
    Case("umts-live-cnn", "egprs-4+1", loads=1),
    Case("static-site", "umts-dch-384"),
    Case("static-site", "umts-dch-384", "h2", "TLSv1.3"),
    Case("umts-live-cnn", "umts-dch-384", "http/1.0"),
    Case("umts-live-cnn", "umts-dch-384", "http/1.1", "TLSv1.2"),
    Case("umts-live-yahoo", "umts-r99-states"),
    Case("static-site", "umts-r99-states", "h2", "TLSv1.2"),
    Case("umts-live-star-wars", "hs-dsch-384"),
    Case("umts-live-yahoo", "hs-dsch-384", "http/1.1", "TLSv1.3"),
    Case("umts-live-star-wars", "hsdpa-cat6"),
    Case("static-site", "hsdpa-cat6", "h2", "TLSv1.3"),
    Case("front-page", "wired", "http/1.1", keys=LINE),
    Case("umts-live-star-wars", "wired", "http/1.0", keys=LINE),
    Case("median-2024", "wired", "h2", "TLSv1.3", keys=LINE),
)


def in_chromium(case: Case, seed: int) -> tuple[dict[str, Any], float]:
    """Return the figures of a load in Chromium, and the command's time beside the page time."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "airpath", "page", "load", case.page, "--link", case.preset]
        words += ["--protocol", case.protocol, "--tls", case.tls, "--seed", str(seed), "--format", "json"]
        words += [word for key, value in case.keys.items() for word in ("--set", f"bearer.{key}={value}")]
        started = time.monotonic()
        done = subprocess.run([*words, "-o", f"{folder}/result"], check=True, stdout=subprocess.PIPE)
        taken = time.monotonic() - started
    [view] = json.loads(done.stdout)
    return view, taken - view["page_time_s"]


@functools.cache
def processing(page: str, protocol: str, tls: str) -> float:
    """Return the page time over a wire without limits."""
    return in_chromium(Case(page, "wired", protocol, tls), 1)[0]["page_time_s"]


def simulated(case: Case, seed: int) -> dict[str, Any]:
    """Return the figures of a simulated load."""
    flow = {"kind": "page", "page": case.page, "protocol": case.protocol, "tls": case.tls}
    flow |= CLEAR if case.tls == "none" else SECURE
    flow |= TICKETS if case.tls != "none" and case.protocol != "h2" else {}
    scenario = {"format": 1, "bearer": {"preset": case.preset}, "tcp": {"profile": "linux-6"}, "flow": [flow]}
    overrides = {f"bearer.{key}": value for key, value in case.keys.items()}
    return airpath.run(scenario, seed=seed, set=overrides).summary["pages"][0]


def row(cells: tuple[str, ...]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print the table, and write it with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=3)
    parser.add_argument("--case", action="append", help="only cases with this text, for example 'h2'; not with --write")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.case and options.write:
        parser.error("--write replaces the whole table; remove --case")
    cases = [case for case in CASES if all(text in " ".join(case.cells()) for text in options.case or [])]
    if not cases:
        parser.error(f"no case has all of {', '.join(options.case)}; docs/pages.md lists them")
    lines, differences, added = [row(HEAD), row(("---",) * len(HEAD))], [], []
    for case in cases:
        names = case.cells()
        loads = min(options.loads, case.loads or options.loads)
        real = [in_chromium(case, seed) for seed in range(1, loads + 1)]
        model = [simulated(case, seed) for seed in range(1, loads + 1)]
        added += [beside for _, beside in real]
        times = [view["page_time_s"] for view, _ in real]
        theirs, ours = statistics.median(times), statistics.median(view["page_time_s"] for view in model)
        own = processing(case.page, case.protocol, case.tls)
        differences.append(ours / theirs - 1)
        spread = f"{min(times):.2f} to {max(times):.2f} s" if loads > 1 else "one load"
        difference = f"{round(100 * differences[-1]):+d} %".replace("-", "−")
        lines.append(row((*names, f"{theirs:.2f} s", spread, f"{own:.2f} s", f"{ours:.2f} s", difference)))
        counts = [(each["requests"], each["connections"]) for each in (real[0][0], model[0])]
        print(lines[-1], *(["requests, connections:", counts] if counts[0] != counts[1] else []), flush=True)
    sizes = sorted(abs(each) for each in differences)
    print(f"{len(sizes)} cases: differences {statistics.median(sizes):.1%} in the median, at most {sizes[-1]:.1%}")
    print(f"beside the page time: {statistics.median(added):.2f} s in the median, at least {min(added):.2f} s")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if options.write:
        replace_table(DOCUMENT, "chromium", lines)


if __name__ == "__main__":
    main()
