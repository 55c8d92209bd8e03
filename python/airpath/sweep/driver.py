"""Runs the tasks of a plan on an executor, and keeps what is finished."""

import math
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.statistics import student_t
from airpath.sweep.folder import SweepFolder
from airpath.sweep.plan import Plan, Until
from airpath.sweep.result import SweepResult
from airpath.sweep.task import Batch, Failure, Outcome, Task, run_task

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future, ProcessPoolExecutor

TASK_SECONDS = 1.0
"""Aim for the duration of a task: long against the driver's work for it, short against a loss."""

_MOST_RUNS_PER_TASK = 10_000
_AHEAD = 3
"""Tasks submitted for each worker, so that none waits for the driver."""


class ExecutorLostError(Exception):
    """The executor ended or lost its tasks. What was finished is kept; the same sweep continues."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a running sweep."""

    runs: int
    """Finished runs, those of an earlier start included."""
    total: int
    """Runs of the plan; with `repeat.within` the most."""
    failed: int
    """Runs that stopped on an error."""
    seconds: float
    """Time since this start."""
    runs_before: int
    """Runs finished before this start."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep would take."""

    cases: int
    runs: int
    seconds_per_run: float
    """Measured: one run of the first case."""
    seconds: float
    """For all runs on the workers, if all take as long."""


def estimate(plan: Plan, workers: int | None = None) -> Estimate:
    """Run the first case once and estimate the time of the sweep."""
    seconds = _seconds_per_run(plan)
    return Estimate(len(plan.cases), plan.runs, seconds, plan.runs * seconds / (workers or cores(plan)))


def sweep(
    plan: Plan,
    *,
    out: str | Path | None = None,
    executor: "Executor | None" = None,
    workers: int | None = None,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Run a plan, and return its rows.

    A sweep that ended early is continued: finished tasks in `out` are not run again.

    Args:
        plan: The plan, as of `read_plan` or `make_plan`.
        out: The folder. Without it the result lies in a temporary folder that lasts as long as the
            returned object.
        executor: Runs the tasks: any `concurrent.futures.Executor`, such as `Client.get_executor()`
            of Dask. By default processes on the cores of this machine. Its workers must be able to
            read the files that the scenario names, and have the same version of airpath.
        workers: The number of tasks that run at the same time; by default the number of cores, with
            links 1. An executor of one's own has this number too.
        retry: Whether to run tasks again in which something failed.
        progress: Called when a task is finished.

    Raises:
        SweepFolderError: `out` holds something else, another plan, or a sweep that is running.
        ExecutorLostError: The executor ended. What was finished is kept.
        OSError: The folder cannot be written. What was finished is kept.
        KeyboardInterrupt: Ctrl-C. What was finished is kept.
    """
    from airpath._native import __version__

    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="airpath-")
        out = temporary.name
        Path(out).rmdir()
    folder = SweepFolder(Path(out))
    workers = workers or cores(plan)
    with folder.locked():
        known = (folder.path / "sweep.json").exists()
        runs_per_task = folder.begin(plan, __version__, 0 if known else _runs_per_task(plan, workers))
        driver = _Driver(plan, folder, runs_per_task, retry=retry, progress=progress)
        with _tasks_on(executor, workers) as pool:
            driver.run(pool, workers)
        folder.end(plan, __version__, runs_per_task)
    return SweepResult(out, _temporary=temporary)


def cores(plan: Plan) -> int:
    """Return the number of workers by default: the cores that this process may use, or 1 for links.

    A link is in real time, so that a second one would disturb it.
    """
    return 1 if plan.link else len(os.sched_getaffinity(0))


class _Driver:
    """Submits tasks, and writes their outcomes."""

    def __init__(
        self,
        plan: Plan,
        folder: SweepFolder,
        runs_per_task: int,
        *,
        retry: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.plan, self.folder, self.progress = plan, folder, progress
        self.runs_per_task = runs_per_task
        self.kinds = tuple(plan.kinds().items())
        self.failures = folder.failed()
        self.done = folder.finished() - (self.failures if retry else set())
        self.failed = 0 if retry else sum(each["count"] for each in folder.failures())
        self.runs = self.runs_before = 0
        self.start = time.monotonic()
        self.intervals = [_Mean() for _ in plan.cases] if isinstance(plan.repeat, Until) else []

    def run(self, pool: "_Pool", workers: int) -> None:
        """Run all tasks that are not finished."""
        from concurrent.futures import FIRST_COMPLETED, wait

        tasks = self._tasks()
        further: list[Task] = []
        suspects: list[Task] = []
        running: dict[Future[Outcome], Task] = {}
        while True:
            # The tasks of a broken pool run one by one, to find the one that ended its worker.
            is_alone = bool(suspects) and not running
            if is_alone:
                task = suspects.pop()
                running[pool.submit(task)] = task
            while not suspects and not is_alone and len(running) < _AHEAD * workers:
                task = further.pop() if further else next(tasks, None)
                if task is None:
                    break
                if task.name in self.done:
                    further += self._skip(task)
                else:
                    running[pool.submit(task)] = task
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                task = running.pop(future)
                outcome = _outcome(future, task, pool)
                if outcome is None and not is_alone:
                    suspects.append(task)
                    continue
                outcome = outcome or _lost(task, "the worker process was killed, perhaps for lack of memory")
                further += self._finish(task, outcome)
            if pool.is_broken:
                suspects += running.values()
                running = {}
                pool.restart()

    def _tasks(self) -> Iterator[Task]:
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
        return Task(plan.text, plan.file, plan.seed, self.kinds, tuple(batches), until, plan.link)

    def _skip(self, task: Task) -> list[Task]:
        """Count a task of an earlier start. Return what follows it."""
        self.runs += task.runs
        self.runs_before += task.runs
        if not self.intervals or task.name in self.failures:
            return []
        import polars as pl

        from airpath.sweep.task import samples

        assert task.until is not None
        rows = pl.read_parquet(self.folder.part(task.name))
        return self._follow(task, samples(rows, task.until))

    def _finish(self, task: Task, outcome: Outcome) -> list[Task]:
        """Write the outcome of a task. Return what follows it."""
        self.folder.add(task, outcome)
        self.runs += task.runs
        self.failed += sum(each.count for each in outcome.failures)
        if self.progress is not None:
            seconds = time.monotonic() - self.start
            self.progress(Progress(self.runs, self.plan.runs, self.failed, seconds, self.runs_before))
        return [] if outcome.failures else self._follow(task, outcome.samples)

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


class _Mean:
    """Mean and deviation of samples (Welford, Technometrics 4, 1962)."""

    __slots__ = ("mean", "n", "squares")

    def __init__(self) -> None:
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        self.n += 1
        difference = value - self.mean
        self.mean += difference / self.n
        self.squares += difference * (value - self.mean)

    def is_within(self, share: float) -> bool:
        """Whether half the 95 % interval is at most this share of the mean."""
        if self.n < 2:
            return False
        half = student_t(self.n - 1) * math.sqrt(self.squares / (self.n - 1) / self.n)
        return half <= share * abs(self.mean)


class _Pool:
    """An executor for tasks; the built-in one can be started again."""

    def __init__(self, executor: "Executor | None", workers: int) -> None:
        self.own = executor is None
        self.workers = workers
        self.executor = executor or self._start()

    def _start(self) -> "ProcessPoolExecutor":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Not forked: a copy of a process with threads can hang.
        return ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts)

    def submit(self, task: Task) -> "Future[Outcome]":
        """Submit a task; if the built-in executor is broken, the future reports it.

        Raises:
            ExecutorLostError: The executor takes no tasks.
        """
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        try:
            return self.executor.submit(run_task, task)
        except Exception as error:
            if self.own and isinstance(error, BrokenProcessPool):
                failed: Future[Outcome] = Future()
                failed.set_exception(error)
                return failed
            raise ExecutorLostError(f"the executor takes no tasks: {error}") from error

    @property
    def is_broken(self) -> bool:
        """Whether a worker of the built-in executor was killed."""
        return self.own and bool(getattr(self.executor, "_broken", False))

    def restart(self) -> None:
        """Replace the built-in executor by a new one."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._start()

    def end(self) -> None:
        """End the built-in executor at once: unfinished tasks have written nothing."""
        if not self.own:
            return
        processes = list((getattr(self.executor, "_processes", None) or {}).values())
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


@contextmanager
def _tasks_on(executor: "Executor | None", workers: int) -> Iterator[_Pool]:
    pool = _Pool(executor, workers)
    try:
        yield pool
    finally:
        pool.end()


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the driver, in a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _outcome(future: "Future[Outcome]", task: Task, pool: _Pool) -> Outcome | None:
    """Return the outcome of a task; `None` if a worker of the built-in executor was killed.

    Raises:
        ExecutorLostError: The executor has forgotten the task, or is broken.
    """
    from concurrent.futures import BrokenExecutor, CancelledError

    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        if pool.own and isinstance(error, BrokenExecutor):
            return None
        raise ExecutorLostError(f"the executor lost its tasks ({type(error).__name__})") from error
    except Exception as error:  # of the executor: a worker was lost, a result too large
        return _lost(task, f"{type(error).__name__}: {error}")


def _lost(task: Task, error: str) -> Outcome:
    """Return the outcome of a task whose worker gave none."""
    empty = run_task(replace(task, batches=()))
    failures = tuple(Failure(each.case, each.first, each.count, each.overrides, error) for each in task.batches)
    return replace(empty, failures=failures)


def _runs_per_task(plan: Plan, workers: int) -> int:
    """Return the runs of a task, from the time of one run."""
    if plan.link:
        return 1
    fitting = math.ceil(TASK_SECONDS / max(_seconds_per_run(plan), 1e-6))
    # A few tasks for each worker, so that all end at about the same time.
    return max(1, min(fitting, math.ceil(plan.runs / (4 * workers)), _MOST_RUNS_PER_TASK))


def _seconds_per_run(plan: Plan) -> float:
    batch = Batch(0, tuple(plan.overrides(0)), plan.cases[0], 0, 1)
    task = Task(plan.text, plan.file, plan.seed, tuple(plan.kinds().items()), (batch,), None, plan.link)
    run_task(task)  # the first run loads modules, and fills caches
    return run_task(task).seconds
