"""Running a study: every case once, with all its repetitions in one call of the Rust core.

Under the real clock each case is run in virtual time as well: what counts is the two side by side.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, Literal

from airpath.result import Result
from airpath.study.checks import CHECKS
from airpath.study.definition import Case, Difference, Experiment, Study, load_study
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.observations import OBSERVERS
from airpath.study.result import Finding, StudyResult
from airpath.study.rows import Row, Rows

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
    """Run a study and return its rows, published beside ours, and its findings.

    Args:
        name: The study, as `studies` lists them.
        only: Run these experiments alone. Findings that need others are left out.
        seed: The seed of all chance, in place of the study's own.
        repeat: The repetitions of each case, in place of the study's own numbers; two at least. Under the real clock
            the downloads of each case over its link; what is simulated beside them keeps the study's numbers.
        clock: `real` runs the cases over emulated links with the kernel's TCP as well.
        links: How many links run side by side under the real clock.
        progress: Called with the repetitions done and the repetitions in all.

    Raises:
        UnknownNameError: There is no such study or experiment, or the experiment cannot be run under the real clock.
        ValueError: `repeat` is less than two.
        StudyError: The study's files cannot be used, a run did not come to its end, or this host cannot make a link.
        ScenarioError: One of its scenarios cannot be used.
        KeyboardInterrupt: Ctrl-C came.
    """
    study = load_study(name)
    experiments = _chosen(study, [only] if isinstance(only, str) else only, clock)
    if repeat is not None and repeat < 2:
        raise ValueError(f"repeat is {repeat}; an interval needs two repetitions at least")
    seed = study.seed if seed is None else seed
    cases = [case for each in experiments for case in each.cases]
    downloads = (repeat or study.real.repeat) if clock == "real" else 0
    simulated = repeat if clock == "virtual" else None
    rounds = 2 if clock == "real" else 1
    counter = _Counter(sum(rounds * (simulated or case.repeat) + downloads for case in cases), progress)
    rows: list[Row] = []
    for experiment in experiments:
        rows += _rows_of(experiment, study, seed, simulated, counter)
    if clock == "real":
        from airpath.study.real import run_cases

        # What the simulator says of the kernel's TCP stands between the study's TCP and the kernel itself.
        alike = [
            row for each in experiments for row in _rows_of(each.under(study.real.set), study, seed, None, counter)
        ]
        real = run_cases(
            cases, study.real, seed=seed, repeat=downloads, links=links, done=lambda: counter.tell(downloads)
        )
        rows = [
            replace(row, alike=other.samples, real=real[row.experiment, tuple(row.case.values()), row.metric])
            for row, other in zip(rows, alike, strict=True)
        ]
    return StudyResult(study, seed, rows, _findings(study, {each.name for each in experiments}, Rows(rows)))


def _chosen(study: Study, only: Sequence[str] | None, clock: Clock) -> list[Experiment]:
    if clock == "real":
        for name in only or ():
            if name in study.experiments and name not in study.real.experiments:
                raise UnknownNameError(f"experiment of {study.id} for the real clock", name, study.real.experiments)
        only = only or study.real.experiments
    if only is None:
        return list(study.tables)
    for name in only:
        if name not in study.experiments:
            raise UnknownNameError(f"experiment of {study.id}", name, study.experiments)
    return [experiment for experiment in study.tables if experiment.name in only]


def _rows_of(experiment: Experiment, study: Study, seed: int, repeat: int | None, counter: "_Counter") -> list[Row]:
    rows: list[Row] = []
    for case in experiment.cases:
        runs = _run_case(case, seed, repeat or case.repeat, counter)
        for kind in case.metrics:
            computed = (kind.compute(flows, case.given) for flows in runs)
            samples = tuple(sample for sample in computed if not isnan(sample))
            if len(samples) < 2:
                where = f"{case.experiment}, {', '.join(case.values.values())}"
                raise StudyError(f"{where}: fewer than two repetitions have a {kind.name}; give it more of them")
            tolerance = study.tolerances[kind.name]
            published = case.published[kind.name]
            rows.append(Row(experiment.name, case.values, kind.name, kind, published, tolerance, samples))
    table = Rows(rows)
    rows = rows + [row for each in experiment.aggregates for row in each.rows(table, experiment.axes)]
    return rows + [row for difference in experiment.differences for row in _difference_rows(difference, table)]


def _difference_rows(difference: Difference, rows: Rows) -> list[Row]:
    """Make the rows that are differences between two others."""
    made = []
    axis, kind = difference.axis, difference.metric
    for row in rows.select(difference.experiment, kind.name, {axis: difference.minuend}):
        other = rows.like(row, {axis: difference.subtrahend})
        samples = tuple(a - b for a, b in zip(row.samples, other.samples, strict=True))
        others = {name: value for name, value in row.case.items() if name != axis}
        case = others | {axis: f"{difference.minuend} − {difference.subtrahend}"}
        published = difference.published[tuple(others.values())]
        made.append(Row(row.experiment, case, difference.name, kind, published, row.tolerance, samples))
    return made


def _run_case(case: Case, seed: int, repeat: int, counter: "_Counter") -> list[list[dict[str, Any]]]:
    """Run a case and return the flows of each repetition."""
    from airpath.run import execute

    observed = sorted({metric.observed for metric in case.metrics if metric.observed is not None})
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        summary = execute(
            case.scenario,
            set=case.set,
            seed=seed,
            repeat=repeat,
            out=Path(folder) if observed else None,
            capture=False,
            log=bool(observed),
            threads=None,
            progress=counter.of_a_case,
        )
        flows = summary["flows"]
        if observed and summary["stopped"] is None:
            seen = [OBSERVERS[name](Result(folder)) for name in observed]
            flows = [flow | dict(zip(observed, each, strict=True)) for flow, *each in zip(flows, *seen, strict=True)]
    if summary["stopped"] == "interrupted":
        raise KeyboardInterrupt
    where = f"{case.experiment}, {', '.join(case.values.values())}"
    if summary["stopped"] is not None:
        raise StudyError(f"{where}: {summary['stopped']}")
    runs: list[list[dict[str, Any]]] = [[] for _ in range(repeat)]
    for flow in flows:
        if flow["outcome"] != "finished" and not case.may_fail:
            raise StudyError(
                f"{where}: {flow['name']} was {flow['outcome']} in repetition {flow['repetition']}; "
                f"give {case.scenario.name} a longer duration"
            )
        runs[flow["repetition"]].append(flow)
    counter.next_case(repeat)
    return runs


def _findings(study: Study, experiments: set[str], rows: Rows) -> list[Finding]:
    """Check the findings whose experiments were run."""
    findings = []
    for each in study.findings:
        if not each.experiments <= experiments:
            continue
        try:
            holds = CHECKS[each.check](each, rows)
        except LookupError as error:
            raise StudyError(f"finding '{each.id}' of {study.id}: {error}") from error
        findings.append(Finding(each.id, each.text, holds))
    return findings


class _Counter:
    """Repetitions done over all cases."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._before = 0
        self._progress = progress

    @property
    def of_a_case(self) -> Progress | None:
        """What takes the progress of the case that runs."""
        return None if self._progress is None else self._report

    def next_case(self, repetitions: int) -> None:
        """Count a case that is done."""
        self._before += repetitions

    def tell(self, repetitions: int) -> None:
        """Count repetitions that nobody else has told of."""
        if self._progress is not None:
            self._report(repetitions, repetitions)
        self._before += repetitions

    def _report(self, done: int, _: int) -> None:
        assert self._progress is not None
        self._progress(self._before + done, self._total)
