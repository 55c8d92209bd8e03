"""The simulation of a case: its runs, and the metrics of each repetition."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from airpath.result import Result
from airpath.run import execute
from airpath.scenario import read_scenario
from airpath.study.definition import Experiment, Study, load_study, read_study
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.observations import ALL_METRICS, OBSERVERS
from airpath.sweep.plan import Base, Plan
from airpath.sweep.work import Batch, Lines, Tables, Task, lines_of
from airpath.toml_table import Table


@dataclass(frozen=True, slots=True)
class StudyMetrics:
    """Each run of a plan is a simulation; its rows are the metrics of a study."""

    kind: ClassVar[str] = "study"
    is_real_time: ClassVar[bool] = False
    experiment: str
    metrics: tuple[str, ...]
    inputs: tuple[dict[str, float], ...]
    """Constants for the metrics' formulas, by case."""
    allow_incomplete: bool
    """Whether a flow that does not finish is a result instead of an error."""

    def tables(self) -> Tables:
        """Return the tables and their columns."""
        return {"metrics": {"repetition": "Int64", **dict.fromkeys(self.metrics, "Float64")}}

    def run(self, task: Task, batch: Batch) -> Lines:
        """Run the repetitions of a batch, and return the rows of all tables."""
        metrics = [ALL_METRICS[name] for name in self.metrics]
        label = ", ".join((self.experiment, *(str(value) for value in batch.values if value is not None)))
        observers = sorted({each.observer_name for each in metrics if each.observer_name is not None})
        inputs = self.inputs[batch.case]
        rows = [
            {"repetition": batch.first + number, **{each.name: each.compute(flows, inputs) for each in metrics}}
            for number, flows in enumerate(_flows(task, batch, label, observers, self.allow_incomplete))
        ]
        return {"metrics": lines_of(rows)}


def plan_of(experiment: Experiment, *, seed: int, repeat: int | None) -> Plan:
    """Return the plan of an experiment; `repeat` replaces the repetitions of its cases."""
    first = experiment.cases[0]
    text, file = read_scenario(first.scenario)
    return Plan(
        text,
        file,
        seed,
        columns=tuple(experiment.axes),
        cases=tuple(tuple(case.axis_values.values()) for case in experiment.cases),
        repeat=repeat or first.repeat,
        work=_work(experiment),
        labels=tuple(experiment.axes),
        given=tuple(case.set for case in experiment.cases),
    )


def read_base(table: Table, folder: Path) -> Base:
    """Return the base of a plan that varies an experiment of a study.

    Args:
        table: `id`, the name of a study or the path of its folder, and `experiment`.
        folder: The folder of the plan.

    Raises:
        TableError: There is no such study or experiment.
    """
    name, wanted = table.take("id", str), table.take("experiment", str)
    table.finish()
    try:
        study = _study(folder / name, name)
        found = {each.name: each for each in study.experiments}
        if wanted not in found:
            raise UnknownNameError(f"experiment of {study.id}", wanted, found)
    except UnknownNameError as error:
        raise table.error(str(error)) from None
    experiment = found[wanted]
    cases = experiment.cases
    work = _work(experiment)
    return Base(
        *read_scenario(cases[0].scenario),
        work,
        tuple(case.axis_values for case in cases),
        tuple(case.set for case in cases),
        lambda each: replace(work, inputs=tuple(inputs for inputs in work.inputs for _ in range(each))),
        study.seed,
        cases[0].repeat,
    )


def _study(folder: Path, name: str) -> Study:
    return read_study(folder) if (folder / "study.toml").is_file() else load_study(name)


def _work(experiment: Experiment) -> StudyMetrics:
    cases = experiment.cases
    return StudyMetrics(
        experiment.name,
        tuple(metric.name for metric in cases[0].metrics),
        tuple(case.inputs for case in cases),
        cases[0].allow_incomplete,
    )


def _flows(
    task: Task, batch: Batch, label: str, observers: Sequence[str], allow_incomplete: bool
) -> list[list[dict[str, Any]]]:
    """Run a batch and return the flows of each repetition.

    Raises:
        StudyError: The run failed, or a flow did not finish.
        KeyboardInterrupt: Ctrl-C.
    """
    with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
        summary = execute(
            task.scenario,
            set=dict(batch.overrides),
            seed=task.seed,
            first=batch.first,
            repeat=batch.count,
            out=Path(folder) if observers else None,
            capture=False,
            log=bool(observers),
            threads=task.threads,
        )
        links: dict[int, list[dict[str, Any]]] = {}
        for link in summary["links"]:
            links.setdefault(link["repetition"], []).append(link)
        flows = [flow | {"links": links.get(flow["repetition"], [])} for flow in summary["flows"]]
        if "pages" in summary:
            flows = [
                flow
                | {
                    "views": [
                        view
                        for view in summary["pages"]
                        if (view["repetition"], view["flow"]) == (flow["repetition"], flow["flow"])
                    ]
                }
                for flow in flows
            ]
        if observers and summary["stopped"] is None:
            flows = _with_observations(flows, Result(folder), observers)
    if summary["stopped"] == "interrupted":
        raise KeyboardInterrupt
    if summary["stopped"] is not None:
        raise StudyError(f"{label}: {summary['stopped']}")
    repetitions: list[list[dict[str, Any]]] = [[] for _ in range(batch.count)]
    for flow in flows:
        if flow["outcome"] != "finished" and not allow_incomplete:
            raise StudyError(
                f"{label}: {flow['name']} was {flow['outcome']} in repetition {flow['repetition']}",
                next_step=f"give {Path(task.file).name} a longer duration, or set allow_incomplete in study.toml",
            )
        repetitions[flow["repetition"] - batch.first].append(flow)
    return repetitions


def _with_observations(flows: list[dict[str, Any]], result: Result, observers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the flows, each with its observations under the names of the observers."""
    # One value per flow, in the order of the summary's flows.
    columns = {name: OBSERVERS[name](result) for name in observers}
    return [flow | {name: column[index] for name, column in columns.items()} for index, flow in enumerate(flows)]
