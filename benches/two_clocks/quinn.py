"""Compares an application of the crate quinn in virtual time with itself over emulated links.

The application is crates/quinn/examples/transfers.rs: a bulk download beside requests and responses
on one connection. In virtual time it runs over the bearer of a scenario, and in real time with
tokio and UDP sockets over `airpath link` with the same scenario and seed.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clocks import chosen, medians, percent, run_seeds, summary

ROOT = Path(__file__).resolve().parents[2]

CASES = {
    "gprs-4+1": 60_000,
    "egprs-4+1": 150_000,
    "umts-dch-64": 100_000,
    "umts-dch-128": 300_000,
    "umts-dch-384": 1_000_000,
    "umts-r99-384": 800_000,
    "hs-dsch-360": 800_000,
    "hs-dsch-384": 800_000,
    "hsdpa-cat6": 4_000_000,
    "nb-iot": 30_000,
    "lte-cat-m1": 1_000_000,
    "lte-10mhz": 10_000_000,
}
"""Bytes of the bulk download over each preset."""

SEEDS = 3

FIGURES = ("bulk", "requests")
"""Figures of `Times` that are compared."""

AIRPATH = (sys.executable, "-m", "airpath")

TIMEOUT = 900
"""Limit of a link, in seconds."""


@dataclass(frozen=True, slots=True)
class Times:
    """When the transfers ended, in seconds from the start of the client."""

    bulk: float
    requests: float


@dataclass(frozen=True, slots=True)
class Row:
    """A preset under both clocks, seed by seed."""

    preset: str
    simulated: tuple[Times, ...]
    real: tuple[Times, ...]
    late_s: float
    """The largest 99th percentile of the links' lateness, in seconds."""


def build(package: str, kind: str, name: str) -> Path:
    """Build the program `name` of a crate, of the kind `--bin` or `--example`; return its path.

    Raises:
        subprocess.CalledProcessError: It cannot be built.
    """
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--package", package, kind, name], cwd=ROOT, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, check=True, capture_output=True
    )
    folder = Path(json.loads(metadata.stdout)["target_directory"]) / "debug"
    return (folder / "examples" if kind == "--example" else folder) / name


def compare(
    only: Iterable[str] = (), *, links: int, seeds: int = SEEDS, report: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Run the application over the presets, or over those with these names, under both clocks.

    Raises:
        RuntimeError: A run failed.
    """
    presets = chosen(CASES, only, str)
    program = build("airpath-quinn", "--example", "transfers")
    done = run_seeds(presets, partial(_run, program), links=links, seeds=lambda _: seeds, report=report)
    rows: list[Row] = []
    for preset, runs in zip(presets, done, strict=True):
        simulated, real, late = zip(*runs, strict=True)
        rows.append(Row(preset, simulated, real, max(late)))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["preset", "bytes", "seeds"]
    heads += [f"{figure}, {head}" for figure in FIGURES for head in ("simulated (s)", "real (s)", "difference")]
    heads += ["late (ms)"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for row in rows:
        cells = [row.preset, f"{CASES[row.preset]:,}", str(len(row.real))]
        for figure in FIGURES:
            cells += [f"{seconds:.3f}" for seconds in medians(row, figure)]
            cells.append(percent(row, figure))
        cells.append(f"{1e3 * row.late_s:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def verdict(rows: Sequence[Row]) -> list[str]:
    """Return a summary of the table, a line for each figure."""
    return [f"{figure.title()}: {summary(rows, figure)}" for figure in FIGURES]


def _run(program: Path, preset: str, seed: int) -> tuple[Times, Times, float]:
    """Return the simulated and the real times, and the lateness of the link."""
    with tempfile.TemporaryDirectory(prefix="airpath-") as temporary:
        folder = Path(temporary)
        scenario, out = folder / "link.toml", folder / "link"
        text = f'format = 1\nname = "two clocks"\nseed = {seed}\n[bearer]\npreset = "{preset}"\n'
        scenario.write_text(text, encoding="utf-8")
        size = str(CASES[preset])
        simulated = _times([str(program), "virtual", str(scenario), size])
        line = [*AIRPATH, "link", str(scenario), "--serve", shlex.join([str(program), "server"])]
        line += ["--out", str(out), "--no-log", "--no-status", "--", str(program), "client", "server", size]
        real = _times(line)
        lateness = json.loads((out / "summary.json").read_text())["emulation"]["lateness"]["p99_s"]
    return simulated, real, lateness


def _times(line: Sequence[str]) -> Times:
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    match = re.search(r"bulk ([\d.]+) s, requests ([\d.]+) s", done.stdout)
    if done.returncode != 0 or match is None:
        raise RuntimeError(f"{shlex.join(line)}: {done.stderr.strip() or done.stdout.strip()}")
    return Times(float(match[1]), float(match[2]))
