"""Simulates short downloads beside a long one over several bearers, without and with a proxy.

    .venv/bin/python benches/proxy_gains.py [--write]

The scenario is examples/short-transfers.toml; the long download has 40 s at the rate of the bearer.
Prints the table of docs/proxy-gains.md, and writes it with `--write`.
"""

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from markdown_table import replace_table

from airpath.result import Result
from airpath.run import execute

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "proxy-gains.md"
SCENARIO = ROOT / "examples" / "short-transfers.toml"

# Bytes of the long download: 40 s at the goodput of crates/radio/tests/preset_rates.rs.
BEARERS = {
    "gprs-3+1": 178_000,
    "gprs-4+1": 238_000,
    "gprs-4+2-cs4": 397_000,
    "egprs-4+1": 1_175_000,
    "umts-r99-64": 316_000,
    "umts-r99-384": 1_900_000,
    "hs-dsch-384": 1_895_000,
    "hsdpa-cat6": 16_800_000,
    "hsdpa-cat10": 60_800_000,
}

BUDGETS = (None, "bearer", "adaptive")

REPETITIONS = 5


@dataclass(frozen=True, slots=True)
class Times:
    """Medians over all repetitions, in seconds."""

    long: float
    short: float
    """Of the short downloads."""
    round_trip: float
    """Of all round trips over the radio."""
    budget: str
    """As the resolved scenario has it."""


def measure(bearer: str, size: int, budget: str | None) -> Times:
    """Run the scenario."""
    sets: dict[str, Any] = {"bearer": {"preset": bearer}, "flow.0.bytes": f"{size} B"}
    if budget is not None:
        sets["proxy.budget"] = budget
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result"
        flows = execute(SCENARIO, set=sets, repeat=REPETITIONS, log=True, out=out)["flows"]
        result = Result(out)
        round_trips = result.scan_radio_senders().filter(pl.col("direction") == "down")
        median = round_trips.select(pl.col("round_trip").median() / 1e9).collect().item()
        lines = (out / "scenario.toml").read_text().splitlines()
    resolved = next((line.split('"')[1] for line in lines if line.startswith("budget = ")), "none")
    times: dict[bool, list[float]] = {True: [], False: []}
    for flow in flows:
        times[flow["name"] == "long"].append(flow["duration_s"])
    return Times(statistics.median(times[True]), statistics.median(times[False]), median, resolved)


def table() -> list[str]:
    """Return the lines of the table."""
    heads = ["bearer", "proxy", "budget", "long download (s)", "short downloads (s)", "round trip (s)"]
    lines = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads))]
    for bearer, size in BEARERS.items():
        for budget in BUDGETS:
            times = measure(bearer, size, budget)
            words = ["no", ""] if budget is None else [f"`{budget}`", times.budget if budget == "bearer" else ""]
            cells = [bearer, *words, *(f"{each:.2f}" for each in (times.long, times.short, times.round_trip))]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Run the cases, print the table, and write it with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = table()
    print("\n".join(lines))
    if options.write:
        replace_table(PAGE, "gains", lines)


if __name__ == "__main__":
    main()
