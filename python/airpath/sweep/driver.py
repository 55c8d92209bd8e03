"""Runs the tasks of a plan on an executor, and keeps what is finished."""

import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.statistics import student_t
from airpath.sweep.folder import SweepFolder
from airpath.sweep.plan import Plan, PlanError
from airpath.sweep.progress import Progress, is_notebook, sweep_progress
from airpath.sweep.result import SweepResult
from airpath.sweep.task import Failure, Outcome, run_task
from airpath.sweep.temporary import WorkerFolder, join_folder
from airpath.sweep.work import Batch, Task, Until, figures

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future, ProcessPoolExecutor
    from threading import Thread

TASK_SECONDS = 1.0
"""Aim for the duration of a task: long against the driver's work for it, short against a loss."""

_MOST_RUNS_PER_TASK = 10_000
_MOST_MEASURED = 5
_MEASURED_SECONDS = 0.2
"""Cases that an estimate runs, and about how long each."""
_CORES_PER_LINK = 4
"""Real-time runs are sequential, unless there are this many cores for each."""
_TERMINATE_SECONDS = 10.0
"""How long a worker may take to end its programs."""
_TERMINATED = 128 + signal.SIGTERM
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_AHEAD = 3
"""Tasks submitted for each worker, so that none waits for the driver."""

OnRows = Callable[[str, list[dict[str, Any]]], None]
"""Called with the name of a table, and rows of it."""


class ExecutorLostError(Exception):
    """The executor ended or lost its tasks. What was finished is kept; the same sweep continues."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep would take."""

    cases: int
    runs: int
    """With `repeat.within` the most."""
    fewest: int
    """With `repeat.within` the fewest runs; otherwise the same number."""
    seconds_per_run: float
    """Measured: the mean of some cases."""
    measured: int
    """The number of these cases."""
    workers: int

    def seconds(self, runs: int) -> float:
        """Return the time of a number of runs on the workers."""
        return runs * self.seconds_per_run / min(self.workers, max(runs, 1))


def estimate(plan: Plan, workers: int | None = None) -> Estimate:
    """Run some cases and estimate the time of the sweep.

    In real time that is one run of one case, otherwise several runs of up to `_MOST_MEASURED`
    cases, evenly spread over the plan.

    Raises:
        PlanError: One of these runs fails, or the scenario has no flow of the name in `repeat`.
    """
    cases = len(plan.cases)
    most = 1 if plan.work.is_real_time else min(cases, _MOST_MEASURED)
    measured = sorted({round(index * (cases - 1) / max(most - 1, 1)) for index in range(most)})
    first = _probed(plan, measured[0], 1)
    _check_flow(plan, first)
    if not plan.work.is_real_time:
        seconds = [_seconds_per_run(plan, case, _probed) for case in measured]
    else:
        seconds = [first.seconds]
    fewest = cases * (plan.repeat.least if isinstance(plan.repeat, Until) else plan.repeat)
    mean = sum(seconds) / len(seconds)
    return Estimate(cases, plan.runs, fewest, mean, len(measured), workers or cores(plan))


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
        run_plans([(plan, Path(out))], pool, retry=retry, progress=progress or None, on_rows=on_rows)
    return SweepResult(out, _temporary=temporary)


def run_plans(
    plans: Sequence[tuple[Plan, Path]],
    pool: "Pool",
    *,
    runs_per_task: Callable[[Plan], int] | None = None,
    threads: int | None = 1,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_rows: OnRows | None = None,
    on_end: Callable[[Plan], None] | None = None,
) -> None:
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
                if isinstance(plan.repeat, Until) and plan.repeat.flow is not None:
                    _check_flow(plan, _probe(plan, 0, 1))
                size = (runs_per_task or (lambda plan: _runs_per_task(plan, pool.workers)))(plan)
            size = folder.begin(plan, __version__, size)
            sweeps.append(
                _Sweep(plan, folder, size, __version__, threads=threads, retry=retry, on_rows=on_rows, on_end=on_end)
            )
        _Driver(sweeps, progress).run(pool)


def cores(plan: Plan) -> int:
    """Return the number of workers by default: the cores that this process may use.

    Runs in real time disturb each other: one of them needs `_CORES_PER_LINK` cores, for the link,
    its programs and the others of the machine.
    """
    found = len(os.sched_getaffinity(0))
    return max(1, found // _CORES_PER_LINK) if plan.work.is_real_time else found


class _Driver:
    """Submits the tasks of sweeps, and has them write the outcomes."""

    def __init__(self, sweeps: "Sequence[_Sweep]", progress: Callable[[Progress], None] | None) -> None:
        self.sweeps, self.progress = sweeps, progress
        self.start = time.monotonic()

    def run(self, pool: "Pool") -> None:
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
                outcome = _outcome(future, task, pool)
                if outcome is None and not is_alone:
                    suspects.append((owner, task))
                    continue
                outcome = outcome or _lost(task, "the worker process was killed, perhaps for lack of memory")
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
        self.intervals = [_Mean() for _ in plan.cases] if isinstance(plan.repeat, Until) else []

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
        part = self.folder.part(figures(self.plan.work)[task.until.figure], task.name)
        return self._follow(task, samples(self.folder.scan([part]).collect(), task.until) if part.exists() else {})

    def finish(self, task: Task, outcome: Outcome) -> list[Task]:
        """Write the outcome of a task. Return what follows it."""
        self.folder.add(task, outcome)
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
            part = self.folder.part(table, task.name)
            if part.exists():
                self.on_rows(table, self.folder.scan([part]).collect().to_dicts())

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


class Pool:
    """An executor for tasks; the built-in one can be started again."""

    def __init__(self, executor: "Executor | None", workers: int, ahead: int = _AHEAD) -> None:
        self.own = executor is None
        self.workers = workers
        self.ahead = ahead * workers
        """Tasks that are submitted at the same time."""
        self._folder = WorkerFolder() if executor is None else None
        """The temporary files of the built-in executor's tasks."""
        self.executor = executor or self._start()

    def _start(self) -> "ProcessPoolExecutor":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Not forked: a copy of a process with threads can hang.
        assert self._folder is not None
        arguments = (str(self._folder.path), os.getpid())
        return ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=_prepare_worker, initargs=arguments
        )

    def submit(self, task: Task) -> "Future[Outcome]":
        """Submit a task; if the built-in executor is broken, the future reports it.

        Raises:
            ExecutorLostError: The executor takes no tasks.
        """
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        try:
            if not self.own:
                return self.executor.submit(run_task, task)
            # This may start workers. They inherit the mask, so Ctrl-C does not end their imports.
            with _without_interrupts():
                return self.executor.submit(_run_in_worker, run_task, task)
        except Exception as error:
            if self.own and isinstance(error, BrokenProcessPool):
                failed: Future[Outcome] = Future()
                failed.set_exception(error)
                return failed
            message = str(error)
            if self.own and "freeze_support" in message:
                # Python's own text is about programs that are frozen into one file.
                message = "its processes import the script that calls it; call it below `if __name__ == '__main__':`"
            raise ExecutorLostError(f"the executor takes no tasks: {message}") from error

    @property
    def is_broken(self) -> bool:
        """Whether a worker of the built-in executor was killed."""
        return self.own and bool(getattr(self.executor, "_broken", False))

    def restart(self) -> None:
        """Replace the built-in executor by a new one."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._start()

    def end(self) -> None:
        """End the built-in executor at once, and remove its temporary files.

        Unfinished tasks have written no rows.
        """
        from multiprocessing.connection import wait

        if self._folder is None:
            return
        processes = list((getattr(self.executor, "_processes", None) or {}).values())
        manager: Thread | None = getattr(self.executor, "_executor_manager_thread", None)
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        running = processes
        deadline = time.monotonic() + _TERMINATE_SECONDS
        while running and (left := deadline - time.monotonic()) > 0:
            ended = wait([process.sentinel for process in running], left)
            running = [process for process in running if process.sentinel not in ended]
        for process in running:
            process.kill()
        # The interpreter writes to the pipe of this thread when it ends, even while the thread
        # closes the pipe (CPython 3.11).
        if manager is not None:
            manager.join(_TERMINATE_SECONDS)
        self._folder.remove()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread; it is handled after the block."""
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


@contextmanager
def tasks_on(executor: "Executor | None", workers: int) -> Iterator[Pool]:
    """Yield a pool on an executor, or on processes of this machine, which end with the block."""
    pool = Pool(executor, workers)
    try:
        yield pool
    finally:
        pool.end()


def _prepare_worker(folder: str, driver: int) -> None:
    """Prepare a worker process.

    Args:
        folder: The folder of its temporary files, which the driver removes.
        driver: The process that started it. The worker ends with it.
    """
    import ctypes

    # Ctrl-C is handled by the driver.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != driver:
        sys.exit(_TERMINATED)
    join_folder(Path(folder))


def _run_in_worker(run: Callable[[Task], Outcome], task: Task) -> Outcome:
    """Run a task. SIGTERM ends the worker, in real time also the programs of the task."""
    if not task.work.is_real_time:
        return run(task)

    def end(*_: object) -> None:
        # `subprocess.run` kills its process on an exception.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(_TERMINATED)

    signal.signal(signal.SIGTERM, end)
    try:
        return run(task)
    except SystemExit:
        # `ProcessPoolExecutor` would return it as the result of the task, and go on.
        os._exit(_TERMINATED)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _outcome(future: "Future[Outcome]", task: Task, pool: Pool) -> Outcome | None:
    """Return the outcome of a task; `None` if a worker of the built-in executor was killed.

    Raises:
        ExecutorLostError: The executor has lost the task, or is broken.
    """
    from concurrent.futures import BrokenExecutor, CancelledError

    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        if pool.own and isinstance(error, BrokenExecutor):
            return None
        raise ExecutorLostError(f"the executor lost its tasks: {error or type(error).__name__}") from error
    except Exception as error:  # of the executor: a worker was lost, a result too large
        return _lost(task, f"{type(error).__name__}: {error}")


def _lost(task: Task, error: str) -> Outcome:
    """Return the outcome of a task whose worker gave none."""
    empty = run_task(replace(task, batches=()))
    failures = tuple(Failure(each.case, each.first, each.count, each.overrides, error) for each in task.batches)
    return replace(empty, failures=failures)


def _runs_per_task(plan: Plan, workers: int) -> int:
    """Return the runs of a task, from the time of one run."""
    if plan.work.is_real_time:
        return 1
    fitting = math.ceil(TASK_SECONDS / max(_seconds_per_run(plan, 0), 1e-6))
    # A few tasks for each worker, so that all end at about the same time.
    return max(1, min(fitting, math.ceil(plan.runs / (4 * workers)), _MOST_RUNS_PER_TASK))


def _seconds_per_run(plan: Plan, case: int, probe: Callable[[Plan, int, int], Outcome] | None = None) -> float:
    probe = probe or _probe
    # The first run loads modules, and fills caches; the second gives the number for the third.
    probe(plan, case, 1)
    once = probe(plan, case, 1).seconds
    most = plan.repeat if isinstance(plan.repeat, int) else plan.repeat.least
    count = max(1, min(math.ceil(_MEASURED_SECONDS / max(once, 1e-6)), most))
    return once if count == 1 else probe(plan, case, count).seconds / count


def _probe(plan: Plan, case: int, count: int) -> Outcome:
    """Run some repetitions of a case in this process."""
    batch = Batch(case, tuple(plan.overrides(case)), plan.cases[case], 0, count)
    return run_task(Task(plan.text, plan.file, plan.seed, tuple(plan.kinds().items()), (batch,), plan.work))


def _probed(plan: Plan, case: int, count: int) -> Outcome:
    """Run some repetitions of a case in this process.

    Raises:
        PlanError: One fails.
    """
    outcome = _probe(plan, case, count)
    if outcome.failures:
        raise PlanError(f"case {case} fails: {outcome.failures[0].error}")
    return outcome


def _check_flow(plan: Plan, outcome: Outcome) -> None:
    """Check that the rows have the flow of `repeat`.

    Raises:
        PlanError: They have other flows.
    """
    import io

    import polars as pl

    from airpath.suggest import did_you_mean

    if not isinstance(plan.repeat, Until) or plan.repeat.flow is None or outcome.failures:
        return
    names = pl.read_parquet(io.BytesIO(outcome.tables["flows"]))["name"].unique(maintain_order=True).to_list()
    if plan.repeat.flow not in names:
        hint = did_you_mean(plan.repeat.flow, names) or f"; there is {', '.join(names[:5])}"
        raise PlanError(f"repeat: no flow '{plan.repeat.flow}' in {plan.file}{hint}")
