"""Runs a study: each experiment is a plan of a sweep, all on one pool.

With the real clock each case is simulated as well, so that emulated and simulated figures stand
side by side.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from airpath.study.checks import CHECKS
from airpath.study.definition import Difference, Experiment, Study, load_study
from airpath.study.emulation import run_cases
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.result import Finding, StudyResult
from airpath.study.rows import Row, Rows, require_two_values
from airpath.study.simulation import plan_of
from airpath.study.tolerance import Tolerance
from airpath.sweep.driver import run_plans
from airpath.sweep.plan import Plan
from airpath.sweep.pool import Pool
from airpath.sweep.progress import Progress as SweepProgress
from airpath.sweep.result import SweepResult

_TASKS_PER_CASE = 4
"""Tasks of a case on an executor, so that a cluster is busy until the end of a study."""

Progress = Callable[[int, int], None]
OnRows = Callable[[Sequence[Row]], None]
Clock = Literal["virtual", "real"]


def run(
    name: str,
    *,
    only: str | Sequence[str] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    clock: Clock = "virtual",
    links: int = 6,
    out: str | Path | None = None,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    on_rows: OnRows | None = None,
) -> StudyResult:
    """Run a study. Return its rows (published figure and ours) and its findings.

    After Ctrl-C the result has the experiments that were complete; its `complete` is false.

    Args:
        name: The study, as `studies` lists them.
        only: Run these experiments alone. Findings that need other experiments are left out.
        seed: The seed, in place of the study's.
        repeat: The repetitions of each case, in place of the study's; at least two. With
            `clock="real"` it is the number of downloads of each case over its link; the simulations
            keep the study's numbers.
        clock: With `"real"`, each case also runs over an emulated link with the kernel's TCP, and
            is simulated with a TCP configured like the kernel's.
        links: With `clock="real"`, the number of emulated links that run at the same time.
        out: A folder with the folder of a sweep for each experiment. If it has them, only what is
            missing is run.
        executor: Runs the simulations, as for `airpath.sweep`; by default this process, on all
            cores.
        workers: The number of tasks that the executor runs at the same time.
        progress: Called with the repetitions that are done and the total.
        on_rows: Called with the rows of each experiment when it is complete; under the real clock
            at the end.

    Raises:
        SweepFolderError: `out` holds something else, or a study with another seed or number of
            repetitions.
        ExecutorLostError: The executor ended; what was finished is kept in `out`.
        UnknownNameError: The study or experiment does not exist, or the experiment cannot run under
            the real clock.
        StudyError: A file of the study is invalid, a run failed, a flow did not finish, or this
            host cannot make a link.
        ScenarioError: A scenario of the study is invalid.
        ValueError: `repeat` is below two. A confidence interval needs two repetitions.
        KeyboardInterrupt: Ctrl-C before an experiment was complete.
    """
    study = load_study(name)
    experiments = _chosen(study, [only] if isinstance(only, str) else only, clock)
    if repeat is not None and repeat < 2:
        raise ValueError(f"repeat is {repeat}; a confidence interval needs at least two repetitions")
    seed = study.seed if seed is None else seed
    with _Simulator(out, executor, workers) as simulator:
        if clock == "virtual":
            total = sum(repeat or case.repeat for experiment in experiments for case in experiment.cases)
            counter = _Counter(total, progress)
            rows = simulator.rows(experiments, study, seed, repeat=repeat, counter=counter, on_rows=on_rows)
        else:
            downloads = repeat or study.emulation.repeat
            rows = _rows_with_both_clocks(
                study, experiments, seed, simulator, downloads=downloads, links=links, progress=progress
            )
            if on_rows is not None:
                on_rows(rows)
    done = {row.experiment for row in rows}
    complete = len(done) == len(experiments)
    options = [] if only is None else ["--only", only if isinstance(only, str) else ",".join(only)]
    options += [] if repeat is None else ["--repeat", str(repeat)]
    return StudyResult(study, seed, rows, _findings(study, done, Rows(rows)), complete, tuple(options))


class _Simulator:
    """Runs experiments as plans, each in a folder of its own."""

    def __init__(self, out: str | Path | None, executor: Executor | None, workers: int) -> None:
        self._temporary = None
        if out is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="airpath-")
            out = self._temporary.name
        self._out = Path(out)
        self._is_here = executor is None
        # A task in this process has all cores: only one at a time.
        self._pool = Pool(_ThisProcess(), 1, ahead=1) if executor is None else Pool(executor, workers)

    def __enter__(self) -> "_Simulator":
        return self

    def __exit__(self, *_: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def rows(
        self,
        experiments: Sequence[Experiment],
        study: Study,
        seed: int,
        *,
        repeat: int | None,
        counter: "_Counter",
        name: str = "{}",
        on_rows: "OnRows | None" = None,
    ) -> list[Row]:
        """Run experiments and return their rows. After Ctrl-C it returns those of complete ones.

        Args:
            experiments: The experiments.
            study: Their study.
            seed: The seed.
            repeat: Repetitions of each case; `None` keeps the study's.
            counter: Counts the repetitions.
            name: The name of the folder of an experiment.
            on_rows: As of `run`.

        Raises:
            StudyError: A run failed.
            KeyboardInterrupt: Ctrl-C before an experiment was complete.
        """
        found: dict[str, list[Row]] = {}

        def ended(plan: Plan) -> None:
            number = next(index for index, (each, _) in enumerate(plans) if each is plan)
            experiment, folder = experiments[number], plans[number][1]
            found[experiment.name] = _rows_of(experiment, study, SweepResult(folder))
            if on_rows is not None:
                on_rows(found[experiment.name])

        plans = [(plan_of(each, seed=seed, repeat=repeat), self._out / name.format(each.name)) for each in experiments]
        interrupt = None
        try:
            run_plans(
                plans,
                self._pool,
                runs_per_task=self._runs_per_task,
                threads=None if self._is_here else 1,
                # A run that failed is run again: the study may have been changed.
                retry=True,
                progress=lambda now: _stop_at_a_failure(now, counter),
                on_end=ended,
            )
        except KeyboardInterrupt as error:
            interrupt = error
        rows = [row for experiment in experiments for row in found.get(experiment.name, [])]
        if not rows and interrupt is not None:
            raise interrupt
        counter.end(sum(plan.runs for plan, _ in plans))
        return rows

    def _runs_per_task(self, plan: Plan) -> int:
        repeat = plan.runs // len(plan.cases)
        return repeat if self._is_here else math.ceil(repeat / _TASKS_PER_CASE)


class _ThisProcess(Executor):
    """Runs a call when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a call; see `concurrent.futures.Executor`."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _stop_at_a_failure(now: SweepProgress, counter: "_Counter") -> None:
    """Report the progress.

    Raises:
        StudyError: A run has failed.
    """
    if now.failed:
        raise StudyError(now.error)
    counter.report(now.runs)


def _rows_with_both_clocks(
    study: Study,
    experiments: Sequence[Experiment],
    seed: int,
    simulator: _Simulator,
    *,
    downloads: int,
    links: int,
    progress: Progress | None,
) -> list[Row]:
    """Return the simulated rows, each with its control and its figure under the real clock.

    The control is simulated with a TCP configured like the kernel's. It separates the effect of the
    TCP implementation from the effect of the clock.
    """
    cases = [case for experiment in experiments for case in experiment.cases]
    # Each case is simulated twice (study's TCP, kernel's TCP) and downloaded over an emulated link.
    counter = _Counter(sum(2 * case.repeat + downloads for case in cases), progress)
    rows = _require_all(simulator.rows(experiments, study, seed, repeat=None, counter=counter), experiments)
    controls = [experiment.with_overrides(study.emulation.control_overrides) for experiment in experiments]
    control_rows = simulator.rows(controls, study, seed, repeat=None, counter=counter, name="{}-control")
    _require_all(control_rows, controls)
    emulated = run_cases(
        cases,
        study.emulation,
        seed=seed,
        repeat=downloads,
        parallel=links,
        on_case_done=lambda: counter.add(downloads),
    )
    # `definition._emulation` rejects experiments with aggregates or differences: each row is a
    # measured one, and `emulated` has its key unless Ctrl-C came before.
    incomplete = {row.experiment for row in rows if row.key not in emulated}
    if len(incomplete) == len(experiments):
        raise KeyboardInterrupt
    return [
        replace(row, control=control.samples, emulated=emulated[row.key])
        for row, control in zip(rows, control_rows, strict=True)
        if row.experiment not in incomplete
    ]


def _require_all(rows: list[Row], experiments: Sequence[Experiment]) -> list[Row]:
    """Return the rows if they are those of all experiments.

    Raises:
        KeyboardInterrupt: Some are missing, as Ctrl-C came before they were complete.
    """
    if {row.experiment for row in rows} != {experiment.name for experiment in experiments}:
        raise KeyboardInterrupt
    return rows


def _chosen(study: Study, only: Sequence[str] | None, clock: Clock) -> list[Experiment]:
    """Return the experiments to run."""
    if clock == "real":
        for name in only or ():
            # The loop below reports names that no experiment has.
            if name in study.experiment_names and name not in study.emulation.experiments:
                raise UnknownNameError(
                    f"experiment of {study.id} for the real clock", name, study.emulation.experiments
                )
        only = only or study.emulation.experiments
    if only is None:
        return list(study.experiments)
    for name in only:
        if name not in study.experiment_names:
            raise UnknownNameError(f"experiment of {study.id}", name, study.experiment_names)
    return [experiment for experiment in study.experiments if experiment.name in only]


def _rows_of(experiment: Experiment, study: Study, result: SweepResult) -> list[Row]:
    """Return the rows of an experiment that was run.

    First one row per case and metric, then aggregates and differences.
    """
    values = result.table("metrics")
    by_case = values.partition_by("case", as_dict=True)
    measured: list[Row] = []
    for number, case in enumerate(experiment.cases):
        for metric in case.metrics:
            # A metric without a value in a repetition is `nan` there.
            samples = tuple(by_case[number,][metric.name].fill_null(math.nan).to_list())
            require_two_values(samples, case.label, metric.name)
            measured.append(
                Row(
                    experiment=experiment.name,
                    case=case.axis_values,
                    metric=metric.name,
                    definition=metric,
                    published=case.published[metric.name],
                    tolerance=study.tolerances[metric.name],
                    samples=samples,
                )
            )
    table = Rows(measured)
    aggregates = [row for aggregate in experiment.aggregates for row in aggregate.rows(table, experiment.axes)]
    # Differences are defined between measured rows only, not between aggregates.
    differences = [
        row
        for difference in experiment.differences
        for row in _difference_rows(difference, table, study.tolerances.get(difference.name))
    ]
    return [*measured, *aggregates, *differences]


def _difference_rows(difference: Difference, rows: Rows, tolerance: Tolerance | None) -> list[Row]:
    """Return the rows that are differences between two measured rows, repetition by repetition.

    Without a tolerance of their own they have that of the metric.
    """
    made = []
    axis, metric = difference.axis, difference.metric
    for minuend_row in rows.select(difference.experiment, metric.name, {axis: difference.minuend}):
        subtrahend_row = rows.counterpart(minuend_row, {axis: difference.subtrahend})
        # The difference is `nan` in a repetition in which either row is.
        pairs = zip(minuend_row.samples, subtrahend_row.samples, strict=True)
        samples = tuple(100 * (1 - b / a) if difference.in_percent else a - b for a, b in pairs)
        other_axes = {name: value for name, value in minuend_row.case.items() if name != axis}
        case = other_axes | {axis: f"{difference.minuend} − {difference.subtrahend}"}
        label = ", ".join((difference.experiment, *case.values()))
        require_two_values(samples, label, difference.name)
        made.append(
            Row(
                experiment=difference.experiment,
                case=case,
                metric=difference.name,
                definition=replace(metric, unit="%", decimals=1) if difference.in_percent else metric,
                published=difference.published[tuple(other_axes.values())],
                tolerance=tolerance or minuend_row.tolerance,
                samples=samples,
            )
        )
    return made


def _findings(study: Study, experiments: set[str], rows: Rows) -> list[Finding]:
    """Check the findings whose experiments were run."""
    findings = []
    for finding in study.findings:
        if not finding.experiments <= experiments:
            continue
        try:
            holds = CHECKS[finding.check](finding, rows)
        except (LookupError, ValueError) as error:
            raise StudyError(f"finding '{finding.id}' of {study.id}: {error}") from error
        findings.append(Finding(finding.id, finding.text, holds))
    return findings


class _Counter:
    """Counts finished repetitions over all simulations and emulated cases.

    Emulated cases end in the threads of a pool. A lock protects the count and the callback.
    """

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._before = 0
        """Repetitions of what is done in full."""
        self._progress = progress
        self._lock = Lock()

    def end(self, repetitions: int) -> None:
        """Add the repetitions of plans whose progress was reported."""
        with self._lock:
            self._before += repetitions

    def add(self, repetitions: int) -> None:
        """Add repetitions, and report them."""
        self.end(repetitions)
        self.report(0)

    def report(self, done: int) -> None:
        """Report the repetitions of running plans."""
        if self._progress is not None:
            with self._lock:
                self._progress(self._before + done, self._total)
