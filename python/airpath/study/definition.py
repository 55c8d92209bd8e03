"""A study as data: what `study.toml` says, checked and with its axes multiplied out.

The file is described in `studies/README.md`. Types here are closed: an unknown key is an error that names the nearest
right one.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from airpath.study.aggregate import Aggregate, read_aggregate
from airpath.study.checks import CHECKS, FindingDefinition, Selector
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.grid import PREDICT, flattened
from airpath.study.metrics import METRICS, Metric
from airpath.study.observations import OBSERVED_METRICS
from airpath.study.table import Table
from airpath.study.tolerance import Published, Tolerance
from airpath.suggest import did_you_mean

FORMAT = 1

_STUDIES = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Case:
    """One combination of the axes' values, ready to be run."""

    experiment: str
    values: dict[str, str]
    """Of each axis, as rows and tables show it."""
    scenario: Path
    set: dict[str, Any]
    """Overrides of the scenario."""
    given: dict[str, float]
    """What formulas need beyond the run."""
    repeat: int
    metrics: tuple[Metric, ...]
    published: dict[str, Published | None]
    """By metric."""
    may_fail: bool = False
    """Whether flows that do not come to their end are a result, not an error."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure made of two rows of an experiment: how a metric differs between two values of an axis."""

    experiment: str
    name: str
    metric: Metric
    axis: str
    minuend: str
    subtrahend: str
    published: dict[tuple[str, ...], Published | None]
    """By the values of the other axes, in their order."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table of the study: cases that differ along its axes."""

    name: str
    text: str
    axes: dict[str, list[str]]
    cases: tuple[Case, ...]
    differences: tuple[Difference, ...]
    aggregates: tuple[Aggregate, ...]

    def under(self, overrides: Mapping[str, Any]) -> "Experiment":
        """Return the same with further overrides of its scenario."""
        return replace(self, cases=tuple(replace(case, set=case.set | dict(overrides)) for case in self.cases))


@dataclass(frozen=True, slots=True)
class RealClock:
    """How the study is run over emulated links, with the kernel's TCP."""

    experiments: tuple[str, ...]
    """Those that can be: one download by one terminal, with nothing of TCP that a kernel cannot do."""
    repeat: int
    """Downloads of a case, one after the other."""
    sysctl: dict[str, str]
    """Parameters of the kernel in the namespaces of a link."""
    set: dict[str, Any]
    """Overrides of the scenario by which the simulator's TCP is as the kernel's then."""


@dataclass(frozen=True, slots=True)
class Study:
    """A published study: its experiments, its figures and its findings."""

    id: str
    title: str
    seed: int
    tables: tuple[Experiment, ...]
    tolerances: dict[str, Tolerance]
    findings: tuple[FindingDefinition, ...]
    real: RealClock

    @property
    def experiments(self) -> tuple[str, ...]:
        """The names of the experiments."""
        return tuple(experiment.name for experiment in self.tables)


def studies() -> list[Study]:
    """Return the studies that come with airpath, by name.

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
    """Return the study that lies in a folder.

    Raises:
        StudyError: Its `study.toml` cannot be used.
    """
    path = folder / "study.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: {error}") from error
    table = Table(document, str(path))
    if table.take("format", int) != FORMAT:
        raise table.error(f"the format is not {FORMAT}, the one that this version reads")
    axes = table.table("axis")
    repeat = table.take("repeat", int)
    experiments = tuple(_experiment(each, folder, axes, repeat) for each in table.tables("experiment"))
    study = Study(
        id=table.take("id", str),
        title=table.take("title", str),
        seed=table.take("seed", int),
        tables=experiments,
        tolerances={name: _tolerance(each) for name, each in table.table("tolerance").named_tables()},
        findings=tuple(_finding(each) for each in table.tables("finding")),
        real=_real_clock(table.table("real"), [each.name for each in experiments]),
    )
    table.finish()
    for experiment in experiments:
        for name in {metric.name for case in experiment.cases for metric in case.metrics} - set(study.tolerances):
            raise StudyError(f"{path}: the metric '{name}' has no tolerance")
    for finding in study.findings:
        for name in sorted(finding.experiments - set(study.experiments)):
            raise StudyError(
                f"{path}: finding '{finding.id}': no experiment '{name}'{did_you_mean(name, study.experiments)}"
            )
    return study


def _folders() -> dict[str, Path]:
    return {path.parent.name: path.parent for path in sorted(_STUDIES.glob("*/study.toml"))}


def _experiment(table: Table, folder: Path, axes: Table, repeat: int) -> Experiment:
    name = table.take("name", str)
    table.where += f": experiment '{name}'"
    text = table.take("text", str)
    scenario = folder / table.take("scenario", str)
    if not scenario.is_file():
        raise table.error(f"there is no scenario {scenario.name}")
    repeat = table.take("repeat", int, repeat)
    overrides = table.take("set", dict, {})
    given = table.take("given", dict, {})
    metrics = tuple(_metric(table, each) for each in table.take("metrics", list))
    may_fail = table.take("may_fail", bool, False)
    values: dict[str, list[str]] = table.take("axes", dict)
    published = table.take("published", dict, {})
    shape = tuple(len(each) for each in values.values())
    for key in published:
        if key not in {metric.name for metric in metrics}:
            raise table.error(f"a value is published for '{key}', which is none of its metrics")
    grids = {key: list(flattened(table, key, value, shape)) for key, value in published.items()}
    differences = tuple(_difference(each, name, values) for each in table.tables("difference"))
    aggregates = tuple(
        read_aggregate(each, name, values, _metric(each, each.take("metric", str)))
        for each in table.tables("aggregate")
    )
    table.finish()
    cases = []
    for index, combination in enumerate(product(*values.values())):
        case_set, case_given = dict(overrides), dict(given)
        for axis, value in zip(values, combination, strict=True):
            entry = axes.sub(axis).sub(value)
            case_set |= entry.take("set", dict, {})
            case_given |= entry.take("given", dict, {})
            entry.finish()
        for metric in metrics:
            for need in metric.needs:
                if need not in case_given:
                    raise table.error(f"the metric '{metric.name}' must be given '{need}'")
        cases.append(
            Case(
                experiment=name,
                values=dict(zip(values, combination, strict=True)),
                scenario=scenario,
                set=case_set,
                given=case_given,
                repeat=repeat,
                metrics=metrics,
                published={
                    metric.name: grids[metric.name][index] if metric.name in grids else None for metric in metrics
                },
                may_fail=may_fail,
            )
        )
    return Experiment(name, text, values, tuple(cases), differences, aggregates)


def _difference(table: Table, experiment: str, values: Mapping[str, list[str]]) -> Difference:
    table.where += f": experiment '{experiment}': difference"
    axis = table.take("axis", str)
    if axis not in values:
        raise table.error(f"there is no axis '{axis}' to take a difference along{did_you_mean(axis, values)}")
    others = {name: each for name, each in values.items() if name != axis}
    grid = table.take("published", object, PREDICT)
    flat = flattened(table, "published", grid, tuple(len(each) for each in others.values()))
    difference = Difference(
        experiment=experiment,
        name=table.take("name", str),
        metric=_metric(table, table.take("metric", str)),
        axis=axis,
        minuend=table.take("minuend", str),
        subtrahend=table.take("subtrahend", str),
        published=dict(zip(product(*others.values()), flat, strict=True)),
    )
    table.finish()
    return difference


def _finding(table: Table) -> FindingDefinition:
    name = table.take("id", str)
    table.where += f": finding '{name}'"
    check = table.take("check", str)
    if check not in CHECKS:
        raise table.error(f"no check '{check}'{did_you_mean(check, CHECKS)}")
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
    return finding


def _real_clock(table: Table, experiments: list[str]) -> RealClock:
    real = RealClock(
        experiments=tuple(table.take("experiments", list, [])),
        repeat=table.take("repeat", int, 10),
        sysctl={key: str(value) for key, value in table.take("sysctl", dict, {}).items()},
        set=table.take("set", dict, {}),
    )
    table.finish()
    for name in real.experiments:
        if name not in experiments:
            raise table.error(f"no experiment '{name}'{did_you_mean(name, experiments)}")
    if real.repeat < 2:
        raise table.error("'repeat' is less than two, which an interval needs at least")
    return real


def _tolerance(table: Table) -> Tolerance:
    kinds = {name: table.take(name, (int, float), None) for name in ("relative", "absolute", "factor")}
    table.finish()
    if sum(value is not None for value in kinds.values()) != 1:
        raise table.error("give one of relative, absolute and factor")
    return Tolerance(**kinds)


def _metric(table: Table, name: str) -> Metric:
    known = METRICS | OBSERVED_METRICS
    if name not in known:
        raise table.error(f"no metric '{name}'{did_you_mean(name, known)}")
    return known[name]
