"""The cost of a sweep: the same runs as a plan and alone, and the driver's time for a task.

    python benches/sweep.py [--runs 10000] [--costs]

With `--costs` only what a large sweep needs besides its runs: a task on a Dask cluster, a row on
disk, the stored plan, and the list of the finished tasks, which are the Parquet files of a table.

Alone means one call of the core for each case, with all its repetitions on all cores. Run it on an
idle machine: both sides use all cores. The processor time, which has that of the workers, differs
less on a busy one.
"""

import argparse
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import airpath
from airpath.run import execute
from airpath.sweep.driver import run_plans
from airpath.sweep.folder import SweepFolder
from airpath.sweep.pool import tasks_on

SCENARIO = Path(__file__).parents[1] / "examples" / "hs-dsch.toml"
CASES = 100


def main() -> None:
    """Print the times of both, the memory, and the driver's time for a task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--costs", action="store_true")
    arguments = parser.parse_args()
    if arguments.costs:
        _rows()
        _plan()
        _dask()
        return
    vary = {"bearer.bler": [round(0.003 * case, 4) for case in range(CASES)]}
    repeat = arguments.runs // CASES
    plan = airpath.make_plan(SCENARIO, vary, repeat=repeat)
    for _ in range(arguments.rounds):
        start, used = time.perf_counter(), _processor_seconds()
        for value in vary["bearer.bler"]:
            execute(SCENARIO, set={"bearer.bler": value}, repeat=repeat)
        alone, alone_used = time.perf_counter() - start, _processor_seconds() - used
        with tempfile.TemporaryDirectory() as folder:
            start, used = time.perf_counter(), _processor_seconds()
            result = airpath.sweep(plan, out=Path(folder) / "sweep")
            swept, swept_used = time.perf_counter() - start, _processor_seconds() - used
            assert len(result.flows) == plan.runs
        print(
            f"{plan.runs} runs: alone {alone:.2f} s, as a plan {swept:.2f} s ({swept / alone - 1:+.1%}); "
            f"of processor {alone_used:.2f} s and {swept_used:.2f} s ({swept_used / alone_used - 1:+.1%})"
        )
    print(f"memory of the driver: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    _driver()


def _processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


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

    for tasks in (1000, 4000):
        plan = airpath.make_plan(SCENARIO, {"bearer.bler": [0.1]}, repeat=tasks)
        with tempfile.TemporaryDirectory() as folder, tasks_on(Ready(), 2) as pool:
            start, used = time.perf_counter(), _processor_seconds()
            run_plans([(plan, Path(folder) / "sweep")], pool, runs_per_task=lambda _: 1)
            elapsed, used = time.perf_counter() - start, _processor_seconds() - used
            print(
                f"driver, {tasks} tasks: {elapsed / tasks * 1e3:.3f} ms a task, {used / tasks * 1e3:.3f} of processor"
            )
    print(f"memory of the driver: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _rows() -> None:
    """Print the size of a row on disk, and the time to read and average rows."""
    plan = airpath.make_plan(SCENARIO, {"bearer.bler": [0.01 * case for case in range(4)]}, repeat=1000)
    with tempfile.TemporaryDirectory() as folder:
        result = airpath.sweep(plan, out=Path(folder) / "sweep")
        size = sum(path.stat().st_size for path in result.path.glob("flows/*.parquet"))
        start = time.perf_counter()
        result.means("duration_s")
        seconds = time.perf_counter() - start
    print(f"rows: {size / plan.runs:.0f} bytes a row, means of {plan.runs} rows in {seconds * 1e3:.0f} ms")


def _plan() -> None:
    """Print the time to store and to check a plan, and to list its finished tasks."""
    start = time.perf_counter()
    checked = airpath.make_plan(SCENARIO, {"bearer.bler": [case / 1000 for case in range(500)]})
    print(f"plan: {(time.perf_counter() - start) / 500 * 1e3:.2f} ms to check a value")
    for cases in (10_000, 100_000):
        plan = replace(checked, cases=tuple((round(0.5 * case / cases, 9),) for case in range(cases)))
        with tempfile.TemporaryDirectory() as path:
            folder = SweepFolder(Path(path) / "sweep")
            with folder.locked():
                start = time.perf_counter()
                folder.begin(plan, "1", 1)
                folder.begin(plan, "1", 1)
                stored = time.perf_counter() - start
                for case in range(cases):
                    folder.part("flows", f"{case:07d}-0000000").touch()
                start = time.perf_counter()
                assert len(folder.finished(plan.work)) == cases
                listed = time.perf_counter() - start
            size = (folder.path / "sweep.json").stat().st_size
        print(
            f"plan of {cases} cases and as many tasks: {size / cases:.0f} bytes a case, "
            f"stored and read {stored / cases * 1e6:.1f} µs a case, "
            f"finished tasks listed {listed / cases * 1e6:.1f} µs a task"
        )


def _dask() -> None:
    """Print the time of a task that takes none on a local Dask cluster."""
    from airpath.sweep.clusters import executor_of

    tasks = 2000
    with executor_of("local", 2) as (executor, _):
        assert executor is not None
        executor.submit(abs, 1).result()
        start = time.perf_counter()
        for future in [executor.submit(bytes, 20_000) for _ in range(tasks)]:
            future.result()
        seconds = time.perf_counter() - start
    print(f"Dask: {seconds / tasks * 1e3:.2f} ms a task with a result of 20 kB, {tasks / seconds:.0f} tasks/s")


if __name__ == "__main__":
    main()
