"""The cost of a sweep: the same runs as a plan and alone, and the driver's time for a task.

    python benches/sweep.py [--runs 10000]

Alone means one call of the core for each case, with all its repetitions on all cores. Run it on an
idle machine: both sides use all cores.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import airpath
from airpath.run import execute
from airpath.sweep import driver

SCENARIO = Path(__file__).parents[1] / "examples" / "hs-dsch.toml"
CASES = 100


def main() -> None:
    """Print the times of both, the memory, and the driver's time for a task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    vary = {"bearer.bler": [round(0.003 * case, 4) for case in range(CASES)]}
    repeat = arguments.runs // CASES
    plan = airpath.make_plan(SCENARIO, vary, repeat=repeat)
    for _ in range(arguments.rounds):
        start = time.perf_counter()
        for value in vary["bearer.bler"]:
            execute(SCENARIO, set={"bearer.bler": value}, repeat=repeat)
        alone = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            result = airpath.sweep(plan, out=Path(folder) / "sweep")
            swept = time.perf_counter() - start
            assert len(result.flows) == plan.runs
        print(f"{plan.runs} runs: alone {alone:.2f} s, as a plan {swept:.2f} s ({swept / alone - 1:+.1%})")
    print(f"memory of the driver: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    _driver()


def _driver() -> None:
    """Print the driver's time for a task that takes none."""
    from concurrent.futures import Executor, Future

    class Ready(Executor):
        """Returns the outcome of the first task for all."""

        outcome = None

        def submit(self, fn, /, *arguments, **keywords):
            self.outcome = self.outcome or fn(*arguments, **keywords)
            future: Future[object] = Future()
            future.set_result(self.outcome)
            return future

    driver.TASK_SECONDS = 1e-9
    for tasks in (1000, 4000):
        plan = airpath.make_plan(SCENARIO, {"bearer.bler": [0.1]}, repeat=tasks)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            airpath.sweep(plan, out=Path(folder) / "sweep", executor=Ready(), workers=2)
            print(f"driver, {tasks} tasks: {(time.perf_counter() - start) / tasks * 1e3:.3f} ms a task")
    print(f"memory of the driver: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
