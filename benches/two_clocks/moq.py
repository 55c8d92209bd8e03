"""Compares live media over QUIC in virtual time with itself over emulated links.

The program is crates/moq: a publisher at the server, and a subscriber at the mobile that measures
the delay of each object. In virtual time it runs over a bearer, and in real time with tokio and UDP
sockets over `airpath link` with the same bearer and seed.
"""

import json
import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clocks import best_attempt, chosen, medians, percent, run_seeds, summary
from quinn import AIRPATH, TIMEOUT, build

from airpath.quantities import rate


@dataclass(frozen=True, slots=True)
class Case:
    """Media over a preset."""

    preset: str
    video: int
    """Bits per second of the video."""
    media: dict[str, str]
    """Further keys of the media."""

    def __str__(self) -> str:
        """The case as text."""
        return f"{self.preset}, {rate(self.video)}"

    @property
    def options(self) -> list[str]:
        """The media, as options."""
        keys = {"video.rate": f"{self.video} bit/s", "video.duration": "20 s"} | self.media
        return [word for key, value in keys.items() for word in ("--media", f"{key}={value}")]


# Intervals of frames are no multiples of those of radio blocks. Otherwise each frame waits equally
# long for its block, and a millisecond of the real clock can shift all of them to the next block.
# Video has the rate of NTSC, 30/1.001, divided by 2 or 6. Audio has AAC's 1,024 samples at 44.1
# kHz, and twice or four times that.
FAST = {"video.frame_rate": "14.985", "video.gop": "30", "audio.frame": "23.22 ms", "audio.rate": "16 kbit/s"}
SLOW = {"video.frame_rate": "4.995", "video.gop": "20", "audio.frame": "92.88 ms", "audio.rate": "8 kbit/s"}
MIDDLE = FAST | {"audio.frame": "46.44 ms"}

CASES = (
    Case("gprs-4+1", 8_000, SLOW),
    Case("egprs-4+1", 40_000, MIDDLE),
    Case("umts-dch-64", 16_000, SLOW),
    Case("umts-dch-128", 48_000, MIDDLE),
    Case("umts-dch-384", 200_000, FAST),
    Case("umts-dch-384", 400_000, FAST),
    Case("umts-r99-384", 200_000, FAST),
    Case("hs-dsch-360", 200_000, FAST),
    Case("hs-dsch-384", 200_000, FAST),
    Case("hsdpa-cat6", 1_500_000, FAST),
    Case("lte-cat-m1", 150_000, FAST),
    Case("lte-10mhz", 4_000_000, FAST),
)

SEEDS = 5

ATTEMPTS = 3
"""Links of a case and seed at most, until one is in time. The one that was least late counts."""

IN_TIME_S = 1e-3
"""99th percentile of the lateness below which a link is in time, in seconds."""

FIGURES = {"median_s": "video, median", "p95_s": "video, 95 %", "audio_median_s": "audio, median"}
"""Figures of `Run` that are compared, with their titles."""


@dataclass(frozen=True, slots=True)
class Run:
    """Delays from capture to arrival, and what was lost."""

    median_s: float
    p95_s: float
    audio_median_s: float
    lost: int
    """Objects of both tracks."""
    paused_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """A case under both clocks, seed by seed."""

    case: Case
    simulated: tuple[Run, ...]
    real: tuple[Run, ...]
    late_s: float
    """The largest 99th percentile of the links' lateness, in seconds."""


def compare(
    only: Iterable[str] = (), *, links: int, seeds: int = SEEDS, report: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Run the program over the presets, or over those with these names, under both clocks.

    Raises:
        RuntimeError: A run failed.
    """
    cases = chosen(CASES, only, lambda case: case.preset)
    program = build("airpath-moq", "--bin", "moq")
    done = run_seeds(cases, partial(_run, program), links=links, seeds=lambda _: seeds, report=report)
    rows: list[Row] = []
    for case, runs in zip(cases, done, strict=True):
        simulated, real, late = zip(*runs, strict=True)
        rows.append(Row(case, simulated, real, max(late)))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = ["preset, video"]
    heads += [
        f"{title}, {head}" for title in FIGURES.values() for head in ("simulated (ms)", "real (ms)", "difference")
    ]
    heads += ["lost, simulated", "lost, real", "paused, simulated (s)", "paused, real (s)", "late (ms)"]
    lines = [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads))]
    for row in rows:
        cells = [str(row.case)]
        for figure in FIGURES:
            cells += [f"{1e3 * seconds:.1f}" for seconds in medians(row, figure)]
            cells.append(percent(row, figure))
        cells += [f"{statistics.fmean(run.lost for run in runs):.0f}" for runs in (row.simulated, row.real)]
        cells += [f"{statistics.fmean(run.paused_s for run in runs):.2f}" for runs in (row.simulated, row.real)]
        cells.append(f"{1e3 * row.late_s:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def verdict(rows: Sequence[Row]) -> list[str]:
    """Return a summary of the table, a line for each figure."""
    return [f"{title[0].upper()}{title[1:]}: {summary(rows, figure)}" for figure, title in FIGURES.items()]


def _run(program: Path, case: Case, seed: int) -> tuple[Run, Run, float]:
    """Return the simulated and the real figures, and the lateness of the link."""
    media = case.options
    simulated = _figures([str(program), "simulate", case.preset, "--set", f"seed={seed}", "--json", *media])

    def attempt() -> tuple[float, Run]:
        with tempfile.TemporaryDirectory(prefix="airpath-") as temporary:
            out = Path(temporary) / "link"
            line = [*AIRPATH, "link", case.preset, "--seed", str(seed)]
            line += ["--serve", shlex.join([str(program), "publish", *media])]
            line += ["--out", str(out), "--no-log", "--no-status"]
            real = _figures([*line, "--", str(program), "subscribe", "server", "--json", *media])
            late: float = json.loads((out / "summary.json").read_text())["emulation"]["lateness"]["p99_s"]
        return late, real

    late, real = best_attempt(attempt, lambda made: (made[0] >= IN_TIME_S, made[0], 0), most=ATTEMPTS)
    return simulated, real, late


def _figures(line: Sequence[str]) -> Run:
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(line)}: {done.stderr.strip()}")
    figures = json.loads(done.stdout)
    video, audio = figures["video"], figures["audio"]
    return Run(
        video["delay_median_s"],
        video["delay_p95_s"],
        audio["delay_median_s"],
        video["lost"] + audio["lost"],
        figures["playback"]["paused_s"],
    )
