"""Measures two versions of airpath on the same workloads in turns, and prints a table in Markdown.

    git worktree add ../before COMMIT
    python benches/versions.py [--rounds 5] ../before [CAPTURE…]

The workloads are those of compare.py and radio.py, each version with its own scenarios; with
captures, also those of traces.py on one thread and on two. Both versions are built in the release
profile. The figure is the processor time (user and system). The ratio of the minima is the result;
that of the medians shows the noise.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent

ANALYSES = {
    "one thread": ["analyse", "--threads=1"],
    "two threads": ["analyse", "--threads=2"],
    "with causes, one thread": ["analyse", "--threads=1", "--causes"],
    "with causes, two threads": ["analyse", "--threads=2", "--causes"],
}


def loaded(root: Path, name: str) -> ModuleType:
    """A benchmark script of a version."""
    folder = str(root / "benches")
    sys.modules.pop("compare", None)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(f"{name} of {root}", root / "benches" / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def simulations(root: Path) -> dict[str, list[str]]:
    """The commands of the simulator's workloads, by number and title."""
    binary = str(root / "target" / "release" / "airpath-benches")

    def command(scenario: Path | str, *, repeat: int = 1, sets: dict[str, object] | None = None) -> list[str]:
        options = [word for key, value in (sets or {}).items() for word in ("--set", f"{key}={value}")]
        return [binary, "--repeat", str(repeat), *options, str(root / "benches" / "scenarios" / scenario)]

    nowhere = Path("/nonexistent")
    found = [
        (case.title, case.programs[0].command)
        for case in loaded(root, "compare").cases(command, nowhere, nowhere, False)
    ]
    found += [
        (title, command(scenario, repeat=repeat, sets=sets))
        for title, scenario, repeat, sets in loaded(root, "radio").cases()
    ]
    return {f"{number}. {title}": words for number, (title, words) in enumerate(found, 1)}


def traces(root: Path, captures: list[Path]) -> dict[str, list[str]]:
    """The commands of the analyses of captures, by title."""
    examples = root / "target" / "release" / "examples"
    return {
        f"{capture.name}, {title}": [str(examples / words[0]), *words[1:], str(capture)]
        for capture in captures
        for title, words in ANALYSES.items()
    }


def of_run(command: list[str]) -> float:
    """The processor time of a run as the benchmark prints it, without set-up."""
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = next(line for line in output.splitlines() if line.startswith("sim="))
    return float(dict(word.split("=", 1) for word in line.split())["cpu_s"])


def of_process(command: list[str]) -> float:
    """The processor time of a process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def build(root: Path) -> None:
    """Builds what is measured."""
    packages = ["airpath-benches", "airpath-trace"]
    if (root / "crates" / "observe").exists():
        packages.append("airpath-observe")
    words = [word for package in packages for word in ("-p", package)]
    subprocess.run(["cargo", "build", "--release", "--quiet", "--bins", "--examples", *words], cwd=root, check=True)


def main() -> None:
    """Builds, runs in turns, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("captures", nargs="*", type=Path, metavar="CAPTURE")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_intermixed_args()
    versions = (arguments.before.resolve(), ROOT)
    for version in versions:
        build(version)
    captures = [capture.resolve() for capture in arguments.captures]
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| workload | before, CPU s | after, CPU s | ratio of minima | ratio of medians |")
    print("| --- | --- | --- | --- | --- |")
    before, after = versions
    compare(simulations(before), simulations(after), of_run, arguments.rounds)
    compare(traces(before, captures), traces(after, captures), of_process, arguments.rounds)


def compare(
    before: dict[str, list[str]],
    after: dict[str, list[str]],
    measure: Callable[[list[str]], float],
    rounds: int,
) -> None:
    """Measures the workloads that both versions have, and prints their rows."""
    times: dict[str, tuple[list[float], list[float]]] = {title: ([], []) for title in after if title in before}
    for number in range(rounds):
        for title, (old, new) in times.items():
            pairs = [(old, before[title]), (new, after[title])]
            # In turns: the first of a pair finds colder caches.
            for found, command in pairs if number % 2 == 0 else reversed(pairs):
                found.append(measure(command))
    for title, (old, new) in times.items():
        medians = statistics.median(new) / statistics.median(old)
        print(f"| {title} | {min(old):.4f} | {min(new):.4f} | {min(new) / min(old):.3f} | {medians:.3f} |")


if __name__ == "__main__":
    main()
