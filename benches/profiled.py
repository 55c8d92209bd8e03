"""Measures what profile-guided optimisation gains, and prints a table in Markdown.

    python benches/profiled.py [--rounds 5] [--folder target/profiled]

Builds `airpath-benches` in the release profile: as it is, with counters, and with the counts of the
workloads of `training.py`, which train the wheels of a release, too. Then both programs run in
turns; the figure is the minimum of their processor time. Some of the measured workloads are not in
the training, so that the gain is not that of the training alone. Needs `llvm-profdata` (`rustup
component add llvm-tools`), and some ten minutes of processor time.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from compare import ROOT, SCENARIOS, Program, built
from training import ONE_LTE_MOBILE, TRAINING, Workload

MEASURED: tuple[Workload, ...] = (
    ONE_LTE_MOBILE,
    ("LTE, two layers, 50 mobiles, 60 s", SCENARIOS / "lte-cell.toml", 1, {"mobile.0.count": 50}),
    ("HS-DSCH of the study", SCENARIOS / "thesis.toml", 20, {}),
    ("wired, one flow", SCENARIOS / "flows.toml", 5, {}),
    ("not trained: GPRS cell of 50 mobiles", SCENARIOS / "gprs-cell-50.toml", 1, {}),
    ("not trained: NB-IoT, 100,000 devices", SCENARIOS / "nb-iot-100000.toml", 1, {}),
    ("not trained: a page over UMTS", SCENARIOS / "page-umts.toml", 20, {}),
)


def main() -> int:
    """Builds, trains, builds again, runs, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "profiled")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    tool = profdata()
    if tool is None:
        print("no llvm-profdata: `rustup component add llvm-tools` installs it", file=sys.stderr)
        return 2
    counts, merged = folder / "counts", folder / "merged.profdata"
    counted = build(folder / "counted", f"-Cprofile-generate={counts}")
    for workload in TRAINING:
        subprocess.run(command(counted, workload), check=True, stdout=subprocess.DEVNULL)
    subprocess.run([tool, "merge", "-o", merged, counts], check=True)
    optimised, plain = build(folder / "optimised", f"-Cprofile-use={merged}"), built()
    programs = [
        [Program(workload[0], command(binary, workload)) for binary in (plain, optimised)] for workload in MEASURED
    ]
    for _ in range(arguments.rounds):
        for program in (program for pair in programs for program in pair):
            program.run()
    print("| workload | simulated s | CPU s | with the profile | ratio | × real time |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for before, after in programs:
        figures, seconds = before.figures, after.figures["cpu_s"]
        print(
            f"| {before.name} | {figures['sim_s']:,.0f} | {figures['cpu_s']:.3f} | {seconds:.3f} "
            f"| {seconds / figures['cpu_s']:.2f} | {figures['sim_s'] / seconds:,.0f} |"
        )
    return 0


def profdata() -> Path | None:
    """The program of the toolchain's LLVM that merges counts."""
    tool = Path(rustc("target-libdir")).parent / "bin" / "llvm-profdata"
    return tool if tool.exists() else None


def build(folder: Path, flags: str) -> Path:
    """Builds the program in a folder of its own with these flags of rustc."""
    environment = {**os.environ, "RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(folder)}
    # With a target, the flags are not those of build scripts.
    target = rustc("host-tuple")
    words = ["cargo", "build", "--release", "--quiet", "--target", target, "-p", "airpath-benches"]
    subprocess.run([*words, "--bin", "airpath-benches"], cwd=ROOT, check=True, env=environment)
    return folder / target / "release" / "airpath-benches"


def rustc(what: str) -> str:
    """What `rustc --print` answers."""
    done = subprocess.run(["rustc", "--print", what], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def command(binary: Path, workload: Workload) -> list[str]:
    """The command of a workload."""
    _, scenario, repeat, overrides = workload
    sets = [word for key, value in overrides.items() for word in ("--set", f"{key}={value}")]
    return [str(binary), "--repeat", str(repeat), *sets, str(scenario)]


if __name__ == "__main__":
    sys.exit(main())
