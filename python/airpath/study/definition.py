"""A study as data: `study.toml`, checked, with one case for each combination of its axes' values.

`studies/README.md` describes the file. An unknown key is an error that names the line and the
nearest known key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from airpath.study.aggregate import ALL, Aggregate, read_aggregate
from airpath.study.checks import CHECKS, FindingDefinition, Selector
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.grid import PREDICT, flattened
from airpath.study.metrics import Metric
from airpath.study.observations import ALL_METRICS
from airpath.study.published_figures import PublishedFigure, Shown, read_figure
from airpath.study.run_figure import RunCase, RunFigure, read_run_figure
from airpath.study.tolerance import Published, Tolerance
from airpath.suggest import did_you_mean
from airpath.toml_table import Table

FORMAT = 2
"""Version of the format of `study.toml`."""

_STUDIES = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Case:
    """One combination of the axes' values, ready to be run."""

    experiment: str
    axis_values: dict[str, str]
    """The value of each axis, as rows and tables show it."""
    scenario: Path
    set: dict[str, Any]
    """Overrides of the scenario."""
    inputs: dict[str, float]
    """Constants for the metrics' formulas, by name."""
    repeat: int
    metrics: tuple[Metric, ...]
    published: dict[str, Published | None]
    """The published figure of each metric; `None` where the study published none."""
    allow_incomplete: bool = False
    """Whether a flow that does not finish is a result instead of an error."""

    @property
    def label(self) -> str:
        """The experiment and the values of the axes, for messages."""
        return ", ".join((self.experiment, *self.axis_values.values()))


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a metric between two values of an axis."""

    experiment: str
    name: str
    metric: Metric
    axis: str
    minuend: str
    subtrahend: str
    published: dict[tuple[str, ...], Published | None]
    """The published figure for each combination of the other axes' values, in the axes' order."""
    in_percent: bool = False
    """Whether it is a percentage of the minuend."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table of the study: one case for each combination of its axes' values."""

    name: str
    text: str
    axes: dict[str, list[str]]
    cases: tuple[Case, ...]
    differences: tuple[Difference, ...]
    aggregates: tuple[Aggregate, ...]

    def with_overrides(self, overrides: Mapping[str, Any]) -> "Experiment":
        """Return a copy with further overrides of its scenario."""
        return replace(self, cases=tuple(replace(case, set=case.set | dict(overrides)) for case in self.cases))


@dataclass(frozen=True, slots=True)
class Emulation:
    """Settings of the study's runs over emulated links, with the kernel's TCP."""

    experiments: tuple[str, ...]
    """The experiments that can run so: one download by one terminal, with TCP features that the
    kernel has."""
    repeat: int
    """Number of downloads per case, in sequence."""
    sysctl: dict[str, str]
    """Kernel parameters in the namespaces of a link."""
    control_overrides: dict[str, Any]
    """Overrides of the scenario that configure the simulator's TCP like the kernel's: the key `set`
    in the file."""


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """A published study: its experiments, its figures and its findings."""

    id: str
    title: str
    seed: int
    experiments: tuple[Experiment, ...]
    tolerances: dict[str, Tolerance]
    findings: tuple[FindingDefinition, ...]
    emulation: Emulation
    figures: tuple[PublishedFigure, ...]
    """The figures of the text."""
    run_figures: tuple[RunFigure, ...]
    """Those that show one run."""

    def __repr__(self) -> str:
        return f"<airpath.study.Study {self.id}: {self.title}, {len(self.experiments)} experiments>"

    @property
    def experiment_names(self) -> tuple[str, ...]:
        """The names of the experiments."""
        return tuple(experiment.name for experiment in self.experiments)


def studies() -> list[Study]:
    """Return the studies of airpath, by name.

    Raises:
        StudyError: One of them cannot be read.
    """
    return [read_study(folder) for folder in _folders().values()]


def load_study(name: str) -> Study:
    """Return one study.

    Raises:
        UnknownNameError: There is no such study.
        StudyError: It cannot be read.
    """
    folders = _folders()
    if name not in folders:
        raise UnknownNameError("study", name, folders)
    return read_study(folders[name])


def read_study(folder: Path) -> Study:
    """Read the study in a folder.

    Raises:
        StudyError: Its `study.toml` is invalid.
    """
    table = Table.read(folder / "study.toml", error=StudyError)
    found = table.take("format", int)
    if found != FORMAT:
        raise table.error(
            f"the format is {found}",
            "format",
            next_step=f"this version of airpath reads format {FORMAT} (studies/README.md)",
        )
    axes = table.table("axis")
    repeat = table.take("repeat", int)
    experiments = tuple(_experiment(each, folder, axes, repeat) for each in table.tables("experiment"))
    study = Study(
        id=table.take("id", str),
        title=table.take("title", str),
        seed=table.take("seed", int),
        experiments=experiments,
        tolerances={name: _tolerance(each) for name, each in table.table("tolerance").named_tables()},
        findings=tuple(_finding(each, experiments) for each in table.tables("finding")),
        emulation=_emulation(table.table("emulation"), experiments),
        figures=tuple(
            read_figure(each, _values(experiments), {each.name: _shown(each) for each in experiments})
            for each in table.tables("figure")
        ),
        run_figures=tuple(read_run_figure(each, _cases(experiments)) for each in table.tables("run_figure")),
    )
    table.finish()
    used = {metric.name for each in experiments for case in each.cases for metric in case.metrics}
    for name in sorted(used - set(study.tolerances)):
        raise table.error(f"the metric '{name}' has no tolerance", "tolerance")
    used |= {difference.name for each in experiments for difference in each.differences}
    for name in sorted(set(study.tolerances) - used):
        raise table.error(f"no metric or difference of this study has the name '{name}'", f"tolerance.{name}")
    return study


def _cases(experiments: Sequence[Experiment]) -> dict[str, dict[tuple[str, ...], RunCase]]:
    """Return the cases of each experiment by the values of their axes."""
    return {
        each.name: {
            tuple(case.axis_values.values()): RunCase(case.scenario, case.set, case.repeat) for case in each.cases
        }
        for each in experiments
    }


def _values(experiments: Sequence[Experiment]) -> dict[str, dict[str, list[str]]]:
    """Return the values of each axis in the rows of each experiment."""
    values = {}
    for experiment in experiments:
        combined = {each.over for each in experiment.aggregates}
        values[experiment.name] = {
            axis: [*each, *([ALL] if axis in combined else [])] for axis, each in experiment.axes.items()
        }
    return values


def _shown(experiment: Experiment) -> list[Shown]:
    """Return the rows of an experiment that figures can show: measured ones and aggregates."""
    rows = [Shown(metric.name, metric.unit, case.axis_values) for case in experiment.cases for metric in case.metrics]
    for aggregate in experiment.aggregates:
        axes = [axis for axis in experiment.axes if axis != aggregate.over]
        for values in aggregate.published:
            case = dict.fromkeys(experiment.axes, ALL) | dict(zip(axes, values, strict=True))
            rows.append(Shown(aggregate.name, aggregate.metric.unit, case))
    return rows


def _folders() -> dict[str, Path]:
    return {path.parent.name: path.parent for path in sorted(_STUDIES.glob("*/study.toml"))}


def _experiment(table: Table, folder: Path, axes: Table, repeat: int) -> Experiment:
    name = table.take("name", str)
    table.label = f"experiment '{name}'"
    text = table.take("text", str)
    scenario = folder / table.take("scenario", str)
    if not scenario.is_file():
        raise table.error(f"there is no scenario {scenario.name} in {folder}", "scenario")
    repeat = table.take("repeat", int, repeat)
    overrides = table.take("set", dict, {})
    inputs = table.take("inputs", dict, {})
    metrics = tuple(_metric(table, "metrics", each) for each in table.take("metrics", list))
    allow_incomplete = table.take("allow_incomplete", bool, False)
    values: dict[str, list[str]] = table.take("axes", dict)
    published = table.take("published", dict, {})
    shape = tuple(len(each) for each in values.values())
    for key in published:
        if key not in {metric.name for metric in metrics}:
            names = [metric.name for metric in metrics]
            raise table.error(f"no metric '{key}' in 'metrics'{did_you_mean(key, names)}", "published")
    grids = {key: list(flattened(table, key, value, shape)) for key, value in published.items()}
    differences = tuple(_difference(each, name, values) for each in table.tables("difference"))
    aggregates = tuple(
        read_aggregate(each, name, values, _metric(each, "metric", each.take("metric", str)))
        for each in table.tables("aggregate")
    )
    table.finish()
    cases = []
    for index, combination in enumerate(product(*values.values())):
        case_set, case_inputs = dict(overrides), dict(inputs)
        for axis, value in zip(values, combination, strict=True):
            entry = axes.sub(axis).sub(value)
            case_set |= entry.take("set", dict, {})
            case_inputs |= entry.take("inputs", dict, {})
            entry.finish()
        for metric in metrics:
            for name_of_input in metric.inputs:
                if name_of_input not in case_inputs:
                    message = (
                        f"the metric '{metric.name}' needs '{name_of_input}' in 'inputs' of the experiment or an axis"
                    )
                    raise table.error(message, "metrics")
        cases.append(
            Case(
                experiment=name,
                axis_values=dict(zip(values, combination, strict=True)),
                scenario=scenario,
                set=case_set,
                inputs=case_inputs,
                repeat=repeat,
                metrics=metrics,
                published={
                    metric.name: grids[metric.name][index] if metric.name in grids else None for metric in metrics
                },
                allow_incomplete=allow_incomplete,
            )
        )
    return Experiment(name, text, values, tuple(cases), differences, aggregates)


def _difference(table: Table, experiment: str, values: Mapping[str, list[str]]) -> Difference:
    table.label = f"experiment '{experiment}': difference"
    axis = table.take("axis", str)
    if axis not in values:
        raise table.error(f"there is no axis '{axis}' in this experiment{did_you_mean(axis, values)}", "axis")
    others = {name: each for name, each in values.items() if name != axis}
    grid = table.take("published", object, PREDICT)
    flat = flattened(table, "published", grid, tuple(len(each) for each in others.values()))
    difference = Difference(
        experiment=experiment,
        name=table.take("name", str),
        metric=_metric(table, "metric", table.take("metric", str)),
        axis=axis,
        minuend=table.take("minuend", str),
        subtrahend=table.take("subtrahend", str),
        published=dict(zip(product(*others.values()), flat, strict=True)),
        in_percent=table.take("in_percent", bool, False),
    )
    table.finish()
    return difference


def _finding(table: Table, experiments: Sequence[Experiment]) -> FindingDefinition:
    name = table.take("id", str)
    table.label = f"finding '{name}'"
    check = table.take("check", str)
    if check not in CHECKS:
        raise table.error(f"no check '{check}'{did_you_mean(check, CHECKS)}", "check")
    rows = tuple(
        Selector(each.take("experiment", str), each.take("metric", str), each.take("case", dict, {}))
        for each in table.tables("rows")
    )
    finding = FindingDefinition(
        id=name,
        text=table.take("text", str),
        check=check,
        rows=rows,
        along=table.take("along", str, None),
        than=tuple(table.take("than", list, [])),
        published=table.take("published", (int, float), None),
    )
    table.finish()
    known = [each.name for each in experiments]
    for unknown in sorted(finding.experiments - set(known)):
        raise table.error(f"no experiment '{unknown}'{did_you_mean(unknown, known)}", "rows")
    return finding


def _emulation(table: Table, experiments: Sequence[Experiment]) -> Emulation:
    emulation = Emulation(
        experiments=tuple(table.take("experiments", list, [])),
        repeat=table.take("repeat", int, 10),
        sysctl={key: str(value) for key, value in table.take("sysctl", dict, {}).items()},
        control_overrides=table.take("set", dict, {}),
    )
    table.finish()
    known = {each.name: each for each in experiments}
    for name in emulation.experiments:
        if name not in known:
            raise table.error(f"no experiment '{name}'{did_you_mean(name, known)}", "experiments")
        for kind, derived in (("aggregates", known[name].aggregates), ("differences", known[name].differences)):
            if derived:
                raise table.error(
                    f"the experiment '{name}' has {kind} ('{derived[0].name}'), which a run over emulated links does "
                    f"not have: remove '{name}' from 'experiments', or move the {kind} to another experiment",
                    "experiments",
                )
    if emulation.repeat < 2:
        raise table.error(f"'repeat' is {emulation.repeat}", "repeat", next_step="an interval needs at least 2")
    return emulation


def _tolerance(table: Table) -> Tolerance:
    kinds = {name: table.take(name, (int, float), None) for name in ("relative", "absolute", "factor")}
    table.finish()
    if sum(value is not None for value in kinds.values()) != 1:
        raise table.error("give exactly one of relative, absolute and factor")
    return Tolerance(**kinds)


def _metric(table: Table, key: str, name: str) -> Metric:
    if name not in ALL_METRICS:
        raise table.error(f"no metric '{name}'{did_you_mean(name, ALL_METRICS)}", key)
    return ALL_METRICS[name]
