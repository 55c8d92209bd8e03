"""The training of a build with profile-guided optimisation.

`maturin build --pgo` installs a module that counts into an empty environment, runs this program
there (`pgo-command` in pyproject.toml), and builds the module again with the counts.
"""

import tempfile
from pathlib import Path

import airpath
from airpath.run import execute

ROOT = Path(__file__).parents[1]
SCENARIOS, STUDIES = ROOT / "benches" / "scenarios", ROOT / "studies"

Workload = tuple[str, Path, int, dict[str, object]]
"""A title, a scenario, repetitions, and overrides."""

ONE_LTE_MOBILE: Workload = ("LTE, one layer, one mobile", SCENARIOS / "lte-cell.toml", 1, {"bearer.mobile.layers": 1})
TRAINING: tuple[Workload, ...] = (
    ONE_LTE_MOBILE,
    ("LTE, 50 mobiles, 10 s", SCENARIOS / "lte-cell.toml", 1, {"mobile.0.count": 50, "duration": "10 s"}),
    (
        "NR, one mobile",
        SCENARIOS / "lte-cell.toml",
        1,
        {"bearer.preset": "nr-n78-100mhz-sa", "bearer.pdcp.queue.bytes": "40 MB", "duration": "5 s"},
    ),
    ("HSDPA", SCENARIOS / "hsdpa-cat10.toml", 5, {}),
    ("HS-DSCH of the study", SCENARIOS / "thesis.toml", 10, {}),
    ("GPRS with link adaptation", STUDIES / "gprs-la" / "download.toml", 5, {}),
    ("UMTS", STUDIES / "umts-live" / "download.toml", 2, {}),
    ("messages over LTE", SCENARIOS / "messages.toml", 1, {"duration": "60 s"}),
    ("wired", SCENARIOS / "flows.toml", 3, {}),
)


def simulate(workload: Workload) -> None:
    """Runs a workload on one thread, without an event log."""
    _, scenario, repeat, overrides = workload
    execute(scenario, set=overrides, repeat=repeat, threads=1)


def log_and_trace() -> None:
    """A run with an event log and captures, and the analysis of these."""
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        airpath.run(SCENARIOS / "hs-dsch.toml", out=folder, capture=True)
        airpath.trace(folder)


if __name__ == "__main__":
    for each in TRAINING:
        simulate(each)
    log_and_trace()
