"""Measures what profile-guided optimisation gains, and prints a table in Markdown.

    python benches/profiled.py [--rounds 5] [--folder target/profiled]

Builds two wheels of a release: without and with the training of `training.py`. Then the modules of
both run in turns, each in a new process; the figure is the minimum of the processor time of a run,
without the start of Python. Some of the measured workloads are not in the training, so that the
gain is not that of the training alone. Needs `llvm-profdata` (`rustup component add llvm-tools`),
and about twenty minutes of processor time.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from compare import Program
from training import ONE_LTE_MOBILE, ROOT, SCENARIOS, Workload, simulate

MEASURED: tuple[Workload, ...] = (
    ONE_LTE_MOBILE,
    ("LTE, two layers, one mobile", SCENARIOS / "lte-cell.toml", 1, {}),
    ("LTE, two layers, 50 mobiles, 60 s", SCENARIOS / "lte-cell.toml", 1, {"mobile.0.count": 50}),
    ("HS-DSCH of the study", SCENARIOS / "thesis.toml", 20, {}),
    ("wired, one flow", SCENARIOS / "flows.toml", 5, {}),
    ("not trained: GPRS cell of 50 mobiles", SCENARIOS / "gprs-cell-50.toml", 1, {}),
    ("not trained: NB-IoT, 100,000 devices", SCENARIOS / "nb-iot-100000.toml", 1, {}),
    ("not trained: a page over UMTS", SCENARIOS / "page-umts.toml", 20, {}),
)


def main() -> None:
    """Builds, runs in turns, prints; or runs one workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "profiled")
    parser.add_argument("--workload", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.workload is not None:
        measure(MEASURED[arguments.workload])
        return
    folder = arguments.folder.resolve()
    modules = [built(folder / "plain"), built(folder / "with-profile", "--pgo")]
    programs = [
        [Program(title, command(module, number)) for module in modules] for number, (title, *_) in enumerate(MEASURED)
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


def built(folder: Path, *options: str) -> Path:
    """Builds a wheel and unpacks it into a folder, which is returned."""
    wheels, module = folder / "wheels", folder / "module"
    maturin = Path(sys.executable).with_name("maturin")
    build = [maturin, "build", "--release", "--locked", "--quiet", "--interpreter", sys.executable, "--out", wheels]
    subprocess.run([*build, *options], cwd=ROOT, check=True)
    (wheel,) = wheels.glob("airpath-*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", module, wheel]
    subprocess.run(pip, check=True)
    return module


def command(module: Path, number: int) -> list[str]:
    """The command that runs a workload with this module."""
    return ["env", f"PYTHONPATH={module}", sys.executable, __file__, "--workload", str(number)]


def measure(workload: Workload) -> None:
    """Runs a workload and prints what it took."""
    began = time.process_time()
    simulated = simulate(workload)
    print(f"sim=airpath cpu_s={time.process_time() - began} sim_s={simulated}")


if __name__ == "__main__":
    main()
