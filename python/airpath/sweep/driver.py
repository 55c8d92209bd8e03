"""Runs the tasks of a plan on an executor, and keeps what is finished."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.statistics import RunningMean
from airpath.sweep.estimation import check_flow, probe, task_size
from airpath.sweep.folder import SweepFolder
from airpath.sweep.plan import Plan
from airpath.sweep.pool import Pool, cores, lost_outcome, outcome_of, tasks_on
from airpath.sweep.progress import Progress, is_notebook, sweep_progress
from airpath.sweep.result import SweepResult
from airpath.sweep.task import Outcome
from airpath.sweep.work import Batch, Task, Until, figures

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    import polars as pl

OnRows = Callable[[str, list[dict[str, Any]]], None]
"""Called with the name of a table, and rows of it."""


def sweep(
    plan: Plan | str | Path,
    *,
    out: str | Path | None = None,
    executor: "Executor | None" = None,
    workers: int | None = None,
    retry: bool = False,
    progress: Callable[[Progress], None] | bool | None = None,
    on_rows: OnRows | None = None,
) -> SweepResult:
    """Run a plan, and return its rows.

    A sweep that ended early is continued: finished tasks in `out` are not run again.

    Args:
        plan: The plan, as of `read_plan` or `make_plan`, or its file.
        out: The folder. Without it the result lies in a temporary folder that lasts as long as the
            returned object.
        executor: Runs the tasks: any `concurrent.futures.Executor`, such as `Client.get_executor()`
            of Dask. By default processes on the cores of this machine. Its workers must be able to
            read the files that the scenario names, and have the same version of airpath.
        workers: The number of tasks that run at the same time; by default the number of cores, with
            links 1. An executor of one's own has this number too.
        retry: Whether to run tasks again in which something failed.
        progress: Called when a task is finished. With `True`, shown on a terminal or in a notebook;
            by default in a notebook only.
        on_rows: Called with the name of a table and its rows when a task is finished; the tasks of
            an earlier start are included.

    Raises:
        SweepFolderError: `out` holds something else, another plan, or a sweep that is running.
        PlanError: The scenario has no flow of the name in `repeat`.
        ExecutorLostError: The executor ended. What was finished is kept.
        OSError: The folder cannot be written. What was finished is kept.
        KeyboardInterrupt: Ctrl-C. What was finished is kept.
        TypeError: `executor` is no executor.
        ValueError: `workers` is less than 1.
    """
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(
            f"executor has type {type(executor).__name__}; give a concurrent.futures.Executor, "
            "as Client.get_executor() of Dask returns"
        )
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; a sweep has at least one")
    if isinstance(plan, str | Path):
        from airpath.sweep.reading import read_plan

        plan = read_plan(plan)
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="airpath-")
        out = temporary.name
    workers = workers or cores(plan)
    with ExitStack() as stack:
        pool = stack.enter_context(tasks_on(executor, workers))
        if progress is True or (progress is None and is_notebook()):
            progress = stack.enter_context(sweep_progress(Path(plan.file).name))
        [ends] = run_plans([(plan, Path(out))], pool, retry=retry, progress=progress or None, on_rows=on_rows)
    return SweepResult(out, _temporary=temporary, _ends=ends)


def run_plans(
    plans: Sequence[tuple[Plan, Path]],
    pool: Pool,
    *,
    runs_per_task: Callable[[Plan], int] | None = None,
    threads: int | None = 1,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_rows: OnRows | None = None,
    on_end: Callable[[Plan], None] | None = None,
) -> list[dict[int, list[float]]]:
    """Run several plans, each in a folder of its own, on one pool.

    A plan is marked as complete when its last task is finished.

    Args:
        plans: The plans and their folders.
        pool: Where tasks run.
        runs_per_task: The size of the tasks of a plan; by default measured.
        threads: Threads of a task's simulations; `None` is the number of cores.
        retry: As of `sweep`.
        progress: As of `sweep`; the numbers are those of all plans.
        on_rows: As of `sweep`.
        on_end: Called with a plan when it is complete.

    Returns:
        Of each plan, the ends of the simulations and links of this start in seconds, by case.

    Raises:
        SweepFolderError: As of `sweep`; likewise the other errors.
    """
    from airpath._native import __version__

    with ExitStack() as stack:
        sweeps = []
        for plan, path in plans:
            folder = SweepFolder(path)
            stack.enter_context(folder.locked())
            size = 0
            if not (folder.path / "sweep.json").exists():
                first = None
                if isinstance(plan.repeat, Until) and plan.repeat.flow is not None:
                    check_flow(plan, first := probe(plan, 0, 1))
                size = task_size(plan, pool.workers, first) if runs_per_task is None else runs_per_task(plan)
            size = folder.begin(plan, __version__, size)
            sweeps.append(
                _Sweep(plan, folder, size, __version__, threads=threads, retry=retry, on_rows=on_rows, on_end=on_end)
            )
        _Driver(sweeps, progress).run(pool)
        return [each.ends for each in sweeps]


class _Driver:
    """Submits the tasks of sweeps, and has them write the outcomes."""

    def __init__(self, sweeps: "Sequence[_Sweep]", progress: Callable[[Progress], None] | None) -> None:
        self.sweeps, self.progress = sweeps, progress
        self.start = time.monotonic()

    def run(self, pool: Pool) -> None:
        """Run all tasks that are not finished."""
        from concurrent.futures import FIRST_COMPLETED, wait

        tasks = ((sweep, task) for sweep in self.sweeps for task in sweep.tasks())
        further: list[_Of] = []
        suspects: list[_Of] = []
        running: dict[Future[Outcome], _Of] = {}
        while True:
            # The tasks of a broken pool run one by one, to find the one that ended its worker.
            is_alone = bool(suspects) and not running
            if is_alone:
                owner, task = suspects.pop()
                running[pool.submit(task)] = owner, task
            while not suspects and not is_alone and len(running) < pool.ahead:
                found = further.pop() if further else next(tasks, None)
                if found is None:
                    break
                owner, task = found
                if task.name in owner.done:
                    further += [(owner, each) for each in owner.skip(task)]
                else:
                    running[pool.submit(task)] = found
            if not running:
                break
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                owner, task = running.pop(future)
                outcome = outcome_of(future, task, pool)
                if outcome is None and not is_alone:
                    suspects.append((owner, task))
                    continue
                outcome = outcome or lost_outcome(task, "the worker process was killed, perhaps for lack of memory")
                further += [(owner, each) for each in owner.finish(task, outcome)]
                self._report()
            if pool.is_broken:
                suspects += running.values()
                running = {}
                pool.restart()
        for sweep in self.sweeps:
            sweep.end()

    def _report(self) -> None:
        if self.progress is not None:
            sums = [(each.runs, each.plan.runs, each.failed, each.runs_before) for each in self.sweeps]
            runs, total, failed, before = map(sum, zip(*sums, strict=True))
            error = next((each.error for each in self.sweeps if each.error), "")
            self.progress(Progress(runs, total, failed, time.monotonic() - self.start, before, error))


class _Sweep:
    """A plan in its folder: its tasks, and what is finished of them."""

    def __init__(
        self,
        plan: Plan,
        folder: SweepFolder,
        runs_per_task: int,
        version: str,
        *,
        threads: int | None,
        retry: bool,
        on_rows: OnRows | None,
        on_end: Callable[[Plan], None] | None,
    ) -> None:
        self.on_rows, self.on_end = on_rows, on_end
        self.plan, self.folder, self.version, self.threads = plan, folder, version, threads
        self.runs_per_task = runs_per_task
        self.kinds = tuple(plan.kinds().items())
        self.failures = folder.failed()
        if retry and self.failures:
            folder.reopen(plan, version, runs_per_task)
        self.done = folder.finished(plan.work) - (self.failures if retry else set())
        self.failed = 0 if retry else sum(each["count"] for each in folder.failures())
        self.error = ""
        """The first error of this start."""
        self.runs = self.runs_before = 0
        self.is_ended = False
        self.ends: dict[int, list[float]] = {}
        self.intervals = [RunningMean() for _ in plan.cases] if isinstance(plan.repeat, Until) else []

    def end(self) -> None:
        """Mark the sweep as complete."""
        if not self.is_ended:
            self.folder.end(self.plan, self.version, self.runs_per_task)
            self.is_ended = True
            if self.on_end is not None:
                self.on_end(self.plan)

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks of a fixed number of repetitions, or the first of each case."""
        if isinstance(self.plan.repeat, Until):
            # The size does not depend on the machine, as it decides when a case ends.
            yield from (self._task([self._batch(case, 0, self.plan.repeat.least)]) for case in self._numbers())
            return
        batches: list[Batch] = []
        room = self.runs_per_task
        for case in self._numbers():
            first = 0
            while first < self.plan.repeat:
                count = min(self.plan.repeat - first, room)
                batches.append(self._batch(case, first, count))
                first, room = first + count, room - count
                if room == 0:
                    yield self._task(batches)
                    batches, room = [], self.runs_per_task
        if batches:
            yield self._task(batches)

    def _numbers(self) -> range:
        return range(len(self.plan.cases))

    def _batch(self, case: int, first: int, count: int) -> Batch:
        return Batch(case, tuple(self.plan.overrides(case)), self.plan.cases[case], first, count)

    def _task(self, batches: list[Batch]) -> Task:
        until = self.plan.repeat if isinstance(self.plan.repeat, Until) else None
        plan = self.plan
        return Task(plan.text, plan.file, plan.seed, self.kinds, tuple(batches), plan.work, until, self.threads)

    def skip(self, task: Task) -> list[Task]:
        """Count a task of an earlier start. Return what follows it."""
        self.runs += task.runs
        self.runs_before += task.runs
        self._emit(task)
        if not self.intervals or task.name in self.failures:
            return []
        from airpath.sweep.task import samples

        assert task.until is not None
        rows = self._rows(figures(self.plan.work)[task.until.figure], task)
        return self._follow(task, {} if rows is None else samples(rows, task.until))

    def finish(self, task: Task, outcome: Outcome) -> list[Task]:
        """Write the outcome of a task. Return what follows it."""
        self.folder.add(task, outcome)
        for case, ends in outcome.ends.items():
            self.ends.setdefault(case, []).extend(ends)
        self._emit(task)
        self.runs += task.runs
        self.failed += sum(each.count for each in outcome.failures)
        if outcome.failures:
            self.error = self.error or outcome.failures[0].error
        if self.runs == self.plan.runs:
            self.end()
        return [] if outcome.failures else self._follow(task, outcome.samples)

    def _emit(self, task: Task) -> None:
        """Call `on_rows` with the tables of a finished task."""
        if self.on_rows is None:
            return
        for table in task.work.tables():
            rows = self._rows(table, task)
            if rows is not None:
                self.on_rows(table, rows.to_dicts())

    def _rows(self, table: str, task: Task) -> "pl.DataFrame | None":
        """Return the rows of a table that a finished task wrote, if it wrote some."""
        from airpath.sweep.task import schema

        part = self.folder.part(table, task.name)
        if not part.exists():
            return None
        settings, own = schema(dict(self.kinds), task.work.tables()[table])
        return self.folder.scan([part], {**settings, **own}).collect()

    def _follow(self, task: Task, samples: dict[int, list[float]]) -> list[Task]:
        """Return the next repetitions of a case whose interval is too wide.

        They depend on the case's rows alone, so that the rows are the same in any order.
        """
        until = task.until
        if until is None:
            return []
        batch = task.batches[-1]
        mean = self.intervals[batch.case]
        for value in samples.get(batch.case, []):
            mean.add(value)
        reached = batch.first + batch.count
        if reached >= until.most or mean.is_within(until.within):
            return []
        return [self._task([self._batch(batch.case, reached, min(max(until.least // 2, 1), until.most - reached))])]


_Of = tuple[_Sweep, Task]
