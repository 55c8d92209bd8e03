"""Runs a study: each case once, with all its repetitions in one call of the Rust core.

With the real clock each case is simulated as well, so that emulated and simulated figures stand
side by side.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from airpath.result import Result
from airpath.run import execute
from airpath.study.checks import CHECKS
from airpath.study.definition import Case, Difference, Experiment, Study, load_study
from airpath.study.emulation import run_cases
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.observations import OBSERVERS
from airpath.study.result import Finding, StudyResult
from airpath.study.rows import Row, Rows, require_two_values

Progress = Callable[[int, int], None]
Clock = Literal["virtual", "real"]


def run(
    name: str,
    *,
    only: str | Sequence[str] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    clock: Clock = "virtual",
    links: int = 6,
    progress: Progress | None = None,
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
        progress: Called with the repetitions that are done and the total.

    Raises:
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
    if clock == "virtual":
        total = sum(repeat or case.repeat for experiment in experiments for case in experiment.cases)
        counter = _Counter(total, progress)
        rows = []
        try:
            for experiment in experiments:
                rows += _rows_of(experiment, study, seed, repeat=repeat, counter=counter)
        except KeyboardInterrupt:
            if not rows:
                raise
    else:
        downloads = repeat or study.emulation.repeat
        rows = _rows_with_both_clocks(study, experiments, seed, downloads=downloads, links=links, progress=progress)
    done = {row.experiment for row in rows}
    complete = len(done) == len(experiments)
    return StudyResult(study, seed, rows, _findings(study, done, Rows(rows)), complete)


def _rows_with_both_clocks(
    study: Study,
    experiments: Sequence[Experiment],
    seed: int,
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
    rows = _rows_of_all(experiments, study, seed, repeat=None, counter=counter)
    controls = [experiment.with_overrides(study.emulation.control_overrides) for experiment in experiments]
    control_rows = _rows_of_all(controls, study, seed, repeat=None, counter=counter)
    emulated = run_cases(
        cases,
        study.emulation,
        seed=seed,
        repeat=downloads,
        links=links,
        on_case_done=lambda: counter.add_whole_case(downloads),
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


def _rows_of_all(
    experiments: Sequence[Experiment], study: Study, seed: int, *, repeat: int | None, counter: "_Counter"
) -> list[Row]:
    """Run the cases of experiments and return their rows, as `_rows_of` does for one."""
    return [
        row for experiment in experiments for row in _rows_of(experiment, study, seed, repeat=repeat, counter=counter)
    ]


def _rows_of(experiment: Experiment, study: Study, seed: int, *, repeat: int | None, counter: "_Counter") -> list[Row]:
    """Run the cases of an experiment and return its rows.

    First one row per case and metric, then aggregates and differences. `repeat` replaces the
    repetitions of each case; `None` keeps them.
    """
    measured: list[Row] = []
    for case in experiment.cases:
        repetitions = _run_case(case, seed, repeat or case.repeat, counter)
        for metric in case.metrics:
            samples = tuple(metric.compute(flows, case.inputs) for flows in repetitions)
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
    differences = [row for difference in experiment.differences for row in _difference_rows(difference, table)]
    return [*measured, *aggregates, *differences]


def _difference_rows(difference: Difference, rows: Rows) -> list[Row]:
    """Return the rows that are differences between two measured rows, repetition by repetition."""
    made = []
    axis, metric = difference.axis, difference.metric
    for minuend_row in rows.select(difference.experiment, metric.name, {axis: difference.minuend}):
        subtrahend_row = rows.counterpart(minuend_row, {axis: difference.subtrahend})
        # The difference is `nan` in a repetition in which either row is.
        samples = tuple(a - b for a, b in zip(minuend_row.samples, subtrahend_row.samples, strict=True))
        other_axes = {name: value for name, value in minuend_row.case.items() if name != axis}
        case = other_axes | {axis: f"{difference.minuend} − {difference.subtrahend}"}
        label = ", ".join((difference.experiment, *case.values()))
        require_two_values(samples, label, difference.name)
        made.append(
            Row(
                experiment=difference.experiment,
                case=case,
                metric=difference.name,
                definition=metric,
                published=difference.published[tuple(other_axes.values())],
                tolerance=minuend_row.tolerance,
                samples=samples,
            )
        )
    return made


def _run_case(case: Case, seed: int, repeat: int, counter: "_Counter") -> list[list[dict[str, Any]]]:
    """Run a case and return the flows of each repetition.

    Raises:
        StudyError: The run failed, or a flow did not finish.
        KeyboardInterrupt: Ctrl-C.
    """
    observers = sorted({metric.observer_name for metric in case.metrics if metric.observer_name is not None})
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        summary = execute(
            case.scenario,
            set=case.set,
            seed=seed,
            repeat=repeat,
            out=Path(folder) if observers else None,
            capture=False,
            log=bool(observers),
            threads=None,
            progress=counter.on_progress,
        )
        flows = summary["flows"]
        if observers and summary["stopped"] is None:
            flows = _with_observations(flows, Result(folder), observers)
    if summary["stopped"] == "interrupted":
        raise KeyboardInterrupt
    if summary["stopped"] is not None:
        raise StudyError(f"{case.label}: {summary['stopped']}")
    repetitions: list[list[dict[str, Any]]] = [[] for _ in range(repeat)]
    for flow in flows:
        if flow["outcome"] != "finished" and not case.allow_incomplete:
            raise StudyError(
                f"{case.label}: {flow['name']} was {flow['outcome']} in repetition {flow['repetition']}; "
                f"give {case.scenario.name} a longer duration, or set allow_incomplete in study.toml"
            )
        repetitions[flow["repetition"]].append(flow)
    counter.end_case(repeat)
    return repetitions


def _with_observations(flows: list[dict[str, Any]], result: Result, observers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the flows, each with its observations under the names of the observers."""
    # One value per flow, in the order of the summary's flows.
    columns = {name: OBSERVERS[name](result) for name in observers}
    return [flow | {name: column[index] for name, column in columns.items()} for index, flow in enumerate(flows)]


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
    """Counts finished repetitions over all cases.

    Emulated cases end in the threads of a pool. A lock protects the count and the callback.
    """

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._before_this_case = 0
        """Repetitions of the cases that are done."""
        self._progress = progress
        self._lock = Lock()

    @property
    def on_progress(self) -> Progress | None:
        """The callback for `execute`; `None` if the caller of `run` gave none."""
        return None if self._progress is None else self._report

    def end_case(self, repetitions: int) -> None:
        """Add the repetitions of a case whose progress was reported by `on_progress`."""
        with self._lock:
            self._before_this_case += repetitions

    def add_whole_case(self, repetitions: int) -> None:
        """Add the repetitions of a case without `on_progress`, and report them."""
        self.end_case(repetitions)
        self._report(0)

    def _report(self, done: int, _: int = 0) -> None:
        """Report the repetitions that are done; the total of the current case is not used."""
        if self._progress is not None:
            with self._lock:
                self._progress(self._before_this_case + done, self._total)
