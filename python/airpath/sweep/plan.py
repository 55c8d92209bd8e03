"""A plan: a base, the values of its axes, and how often each case is repeated."""

import math
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from airpath.quantities import number_of
from airpath.run import MAX_SEED, override_texts, override_texts_for, plain, whole_number
from airpath.scenario import bearer_preset, download_over, read_scenario, similar
from airpath.sweep.axes import MOST_CASES, Axis, Value, latin_hypercube, read_axes
from airpath.sweep.kinds import LinkCommand, PageLoad, Simulation, base_of
from airpath.sweep.work import Until, Work, figures, to_dict
from airpath.toml_lines import KeyPath
from airpath.toml_table import Table, TableError

FORMAT = 1
"""Version of the format of a plan."""


class PlanError(TableError):
    """A plan is invalid. The message has the place and the fault."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What a sweep runs: cases of one scenario, each with the same seed and repetitions.

    The same repetition of two cases has the same random streams, so their differences are paired.
    """

    text: str
    """The scenario as TOML."""
    file: str
    """Its name for messages; paths in it are relative to its folder."""
    seed: int
    columns: tuple[str, ...]
    """Dotted paths of the keys that vary."""
    cases: tuple[tuple[Value | None, ...], ...]
    """The value of each column by case; `None` is the scenario's own."""
    repeat: int | Until = 1
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Overrides of all cases."""
    work: Work = field(default_factory=Simulation)
    """What a run is."""
    labels: tuple[str, ...] = ()
    """Columns that are no keys: the axes of a study, whose values stand for the overrides in
    `given`."""
    given: tuple[Mapping[str, Any], ...] = ()
    """Overrides of each case besides those of its columns; none without a study."""

    @property
    def runs(self) -> int:
        """The number of runs; with `Until` the most."""
        return len(self.cases) * (self.repeat if isinstance(self.repeat, int) else self.repeat.most)

    def overrides(self, case: int) -> list[tuple[str, str]]:
        """Return the overrides of a case as texts."""
        given = self.given[case] if self.given else {}
        return override_texts_for(self.text, {**given, **self.fixed, **self.keys(case)})

    def keys(self, case: int) -> dict[str, Value]:
        """Return the columns of a case that are keys, with their values."""
        varied = zip(self.columns, self.cases[case], strict=True)
        return {path: value for path, value in varied if value is not None and path not in self.labels}

    def kinds(self) -> dict[str, str]:
        """Return the type of each column, by its name in Polars."""
        return kinds_of(self.columns, self.cases)

    def __repr__(self) -> str:
        return (
            f"<airpath.Plan of {self.file}: {number_of(len(self.cases), 'case')} of {', '.join(self.columns)}; "
            f"{number_of(self.runs, 'run')}>"
        )

    def _repr_html_(self) -> str:
        from airpath.notebook import table

        rows = [
            [str(number), *("" if value is None else str(value) for value in case)]
            for number, case in enumerate(self.cases)
        ]
        return table(self.file, f", {self.runs:,} runs", ("case", *self.columns), rows, rest="in .cases")

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data: what determines the rows."""
        return {
            "scenario": self.text,
            "seed": self.seed,
            "columns": list(self.columns),
            "cases": [list(case) for case in self.cases],
            "repeat": self.repeat
            if isinstance(self.repeat, int)
            else {name: getattr(self.repeat, name) for name in Until.__slots__},
            "set": dict(override_texts(self.fixed)),
            "work": to_dict(self.work),
            "labels": list(self.labels),
            "given": [dict(override_texts(each)) for each in self.given],
        }


def read_file(path: str | Path) -> Plan:
    """Read the file of a plan; `docs/sweep.md` describes it.

    Raises:
        PlanError: It cannot be read, or is invalid. The message has file, line and key.
        ScenarioError: Its scenario is invalid.
    """
    table = Table.read(Path(path), error=PlanError)
    if "bearer" in table.data:
        raise PlanError(
            f"{path} is a scenario, not a plan", next_step="`airpath run` runs it, or a plan names it as `scenario`"
        )
    if "format" not in table.data:
        raise table.error("the key 'format' is missing", next_step=f"begin the plan with `format = {FORMAT}`")
    version = table.take("format", int)
    if version != FORMAT:
        raise table.error(f"format is {version}", "format", next_step=f"this version reads {FORMAT}")
    base = _base(table, Path(path).parent)
    fixed = {key: values[0] for key, values in _fixed(table).items()}
    dimensions = _dimensions(table)
    varied = _combined(table, dimensions)
    if base.cases:
        if len(base.cases) * len(varied) > MOST_CASES:
            raise table.error(f"the plan has more than {MOST_CASES:,} cases", "axes")
        varied = [{**labels, **each} for labels in base.cases for each in varied]
    plan = _plan(
        base,
        fixed=fixed,
        seed=table.take("seed", int, base.seed),
        repeat=_repeat(table, base),
        varied=varied,
    )
    table.finish()
    _check(plan, lambda *fault: _error_at(table, Path(path), *fault))
    return plan


def _error_at(
    table: Table, path: Path, column: str | None, value: Value | None, message: str, next_step: str | None
) -> TableError:
    """Return an error with the line on which a column has this value, or with that of `[axes]`."""
    keys = tuple((column or "").split("."))
    given = tomllib.loads(path.read_text(encoding="utf-8"))
    for at in table.lines:
        begin = {"axes": 1, "together": 2, "case": 2}.get(str(at[0]), 0)
        if begin and at[begin:] == keys and (at[0] != "case" or _value_at(given, at) == value):
            found = Table({}, table.file, lines={("",): table.lines[at]}, error=PlanError)
            return found.error(message, "", next_step=next_step)
    return table.error(message, "axes", next_step=next_step)


def _value_at(data: Any, path: KeyPath) -> Any:
    for key in path:
        data = data[key]
    return data


_VARY = "write lists of values, as in {'bearer.bler': [0.01, 0.1]}"


def make_plan(
    scenario: str | Path | Mapping[str, Any],
    vary: Mapping[str, Iterable[Any]],
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    repeat: int = 1,
) -> Plan:
    """Make a plan of all combinations of some values.

    Raises:
        PlanError: An axis has no values or is unknown, or the scenario refuses a value.
        ScenarioError: The scenario is invalid.
    """
    if not isinstance(vary, Mapping):
        raise TypeError(f"vary is a {type(vary).__name__}; {_VARY}")
    lists = {key: plain(values) for key, values in vary.items()}
    for key, values in lists.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"the values of '{key}' are a {type(values).__name__}; {_VARY}")
    override_texts(set)
    text, file = read_scenario(scenario)
    varied = {key: [plain(value) for value in values] for key, values in lists.items()}
    axes = read_axes(Table(varied, "vary", error=PlanError))
    repeat = whole_number("repeat", repeat)
    if repeat < 1:
        raise ValueError(f"repeat is {repeat}; a case has at least one repetition")
    seed = None if seed is None else whole_number("seed", seed)
    plan = _plan(Base(text, file), fixed=dict(set or {}), seed=seed, repeat=repeat, varied=_grid(axes))
    _check(plan, lambda _column, _value, message, next_step: PlanError(f"vary: {message}", next_step=next_step))
    return plan


@dataclass(frozen=True, slots=True)
class Base:
    """What a plan varies."""

    text: str
    file: str
    work: Work = field(default_factory=Simulation)
    cases: tuple[dict[str, str], ...] = ()
    """Cases of the base itself, as of a study's experiment: the values of its axes."""
    given: tuple[dict[str, Any], ...] = ()
    """The overrides of these cases."""
    spread: Callable[[int], Work] | None = None
    """Returns the work if each of these cases becomes as many cases of the plan."""
    seed: int | None = None
    repeat: int = 1


def _plan(
    base: Base,
    *,
    fixed: dict[str, Any],
    seed: int | None,
    repeat: int | Until,
    varied: list[dict[str, Value]],
) -> Plan:
    from airpath import _native

    if seed is None:
        # The file of the scenario may name files beside it, so its text is kept as it is.
        seed = int(tomllib.loads(_native.resolve(base.text, base.file, override_texts_for(base.text, fixed)))["seed"])
    if not 0 <= seed <= MAX_SEED:
        raise PlanError(f"seed is {seed}", next_step=f"select one from 0 to {MAX_SEED}")
    columns = tuple(dict.fromkeys(path for case in varied for path in case))
    cases = tuple(tuple(case.get(path) for path in columns) for case in varied)
    each = len(cases) // max(len(base.cases), 1)
    work = base.work if base.spread is None else base.spread(each)
    given = tuple(overrides for overrides in base.given for _ in range(each))
    labels = tuple(base.cases[0]) if base.cases else ()
    return Plan(base.text, base.file, seed, columns, cases, repeat, fixed, work, labels, given)


def _base(table: Table, folder: Path) -> Base:
    """Return the base of a plan: a scenario, a link, a page, or an experiment of a study."""
    trace = table.take("trace", bool, False)
    link, page, study = (table.take(key, dict, None) for key in ("link", "page", "study"))
    if sum(each is not None for each in (link, page, study)) > 1:
        raise table.error("write one of link, page and study")
    if study is not None:
        if trace:
            raise table.error("trace is for scenarios and links", "trace", next_step="remove it")
        return base_of("study")(table.child(study, "study"), folder)
    if page is not None:
        if trace:
            raise table.error("trace is for scenarios and links", "trace", next_step="remove it")
        work: Work = _page(table.child(page, "page"), folder)
    else:
        work = Simulation(trace) if link is None else _link(table.child(link, "link"), trace)
    name = table.take("scenario", str)
    scenario = folder / name
    if scenario.is_file():
        return Base(*read_scenario(scenario), work)
    if work.is_real_time and Path(name).suffix == "":
        from airpath.link import preset_scenario

        return Base(preset_scenario(name), name, work)
    if bearer_preset(Path(name)):
        return Base(*read_scenario(download_over(name)), work)
    meant = similar(scenario) or similar(Path(name))
    next_step = f"did you mean '{meant}'?" if meant else "check the path, or name a preset: `airpath presets list`"
    raise table.error(f"no scenario file '{scenario}'", "scenario", next_step=next_step)


def _page(table: Table, folder: Path) -> PageLoad:
    name = table.take("name", str)
    if "://" in name:
        next_step = f"record it (`airpath page record {shlex.quote(name)} -o FOLDER`), and name the folder"
        raise table.error(
            f"{name} is a URL, and a sweep loads pages that airpath serves", "name", next_step=f"{next_step}"
        )
    path = folder / name
    work = PageLoad(
        str(path.resolve()) if path.exists() else name,
        table.take("protocol", str, "http/1.1"),
        table.take("compression", bool, True),
        table.take("repeat_view", bool, False),
    )
    table.finish()
    from airpath.page import recording
    from airpath.page.files import PageProblemError, load
    from airpath.page.load import PROTOCOLS

    if work.protocol not in PROTOCOLS:
        raise table.error(f"no protocol '{work.protocol}'", "protocol", next_step=f"there are {', '.join(PROTOCOLS)}")
    if path.is_dir() and not (path / recording.HAR).is_file():
        raise table.error(
            f"{path} is a folder without a recorded site ({recording.HAR})", "name", next_step="name a page"
        )
    if path.exists() and (recorded := recording.file_of(path)) is not None:
        try:
            recording.contents(recorded, compression=False)
            recording.document_of(recorded)
        except (PageProblemError, OSError) as error:
            raise table.error(str(error), "name") from None
    elif "/" in name and not path.exists():
        raise table.error(f"no page file or recorded site '{path}'", "name", next_step="check the path")
    else:
        load(work.page)
    return work


def _fixed(table: Table) -> dict[str, tuple[Value, ...]]:
    """Return the overrides of `[set]`; each is a single value."""
    overrides = table.table("set")
    single = _listed(overrides.data)
    axes = read_axes(overrides.child(single))
    return {path: axis.values for path, axis in axes.items()}


def _listed(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _listed(value) if isinstance(value, dict) else [value] for key, value in data.items()}


def _dimensions(table: Table) -> list[list[dict[str, Value]]]:
    """Return the lists of settings that are combined: zipped axes, and cases."""
    dimensions = []
    for each in table.tables("together"):
        axes = read_axes(each)
        if not axes:
            raise each.error("it has no axes", next_step="remove it, or write keys with lists of values")
        lengths = {path: len(axis.values) for path, axis in axes.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"'{path}' {length}" for path, length in lengths.items())
            raise each.error("axes that change together have equally many values", next_step=f"here {counts}")
        dimensions.append([dict(zip(axes, values, strict=True)) for values in _columns(axes)])
    cases = [
        {path: axis.values[0] for path, axis in read_axes(each.child(_listed(each.data))).items()}
        for each in table.tables("case")
    ]
    return dimensions + ([cases] if cases else [])


def _columns(axes: Mapping[str, Axis]) -> list[tuple[Value, ...]]:
    return list(zip(*(axis.values for axis in axes.values()), strict=True))


def _grid(axes: Mapping[str, Axis]) -> list[dict[str, Value]]:
    count = math.prod(len(axis.values) for axis in axes.values())
    if count > MOST_CASES:
        raise PlanError(f"the axes have {count:,} combinations", next_step=f"a plan has at most {MOST_CASES:,}")
    return [dict(zip(axes, values, strict=True)) for values in product(*(axis.values for axis in axes.values()))]


def _combined(table: Table, dimensions: list[list[dict[str, Value]]]) -> list[dict[str, Value]]:
    """Return the settings of each case."""
    axes = read_axes(table.table("axes"))
    sample = table.take("sample", dict, None)
    if sample is None:
        settings = _grid(axes)
    else:
        keys = table.child(sample, "sample")
        cases, seed = keys.take("cases", int), keys.take("seed", int, 1)
        keys.finish()
        if not axes:
            raise table.error("a sample needs [axes]", "sample")
        if not 1 <= cases <= MOST_CASES:
            raise table.error(f"cases is {cases}", "sample", next_step=f"a sample has 1 to {MOST_CASES:,}")
        settings = latin_hypercube(axes, cases, seed)
    count = len(settings) * math.prod(map(len, dimensions))
    if count > MOST_CASES:
        raise table.error(f"the plan has {count:,} cases", next_step=f"at most {MOST_CASES:,} are possible")
    taken = set(axes)
    for dimension in dimensions:
        paths = {path for each in dimension for path in each}
        if twice := sorted(taken & paths):
            raise table.error(f"'{twice[0]}' is set by two axes")
        taken |= paths
        settings = [{**first, **second} for first, second in product(settings, dimension)]
    return settings


def _repeat(table: Table, base: Base) -> int | Until:
    repeat = table.take("repeat", (int, dict), base.repeat)
    if isinstance(repeat, int):
        if repeat < 1:
            raise table.error(f"repeat is {repeat}", "repeat", next_step="a case has at least one repetition")
        return repeat
    keys = table.child(repeat, "repeat")
    until = Until(
        figure=keys.take("figure", str),
        flow=keys.take("flow", str, None),
        within=keys.take("within", (int, float)),
        least=keys.take("least", int, 10),
        most=keys.take("most", int, 1000),
    )
    keys.finish()
    known = figures(base.work)
    if until.figure not in known:
        from airpath.suggest import suggestion

        next_step = suggestion(until.figure, known) or "docs/result-folder.md lists the columns of flows"
        raise table.error(f"no figure '{until.figure}'", "repeat", next_step=next_step)
    if until.flow is not None and known[until.figure] != "flows":
        raise table.error(f"{until.figure} is a figure of {known[until.figure]}", "repeat", next_step="remove 'flow'")
    if not 0 < until.within < 1:
        raise table.error(f"within is {until.within}", "repeat", next_step="it is a share of the mean, such as 0.05")
    if not 2 <= until.least <= until.most:
        raise table.error(f"least is {until.least}, most is {until.most}", "repeat", next_step="write 2 ≤ least ≤ most")
    return until


def _link(table: Table, trace: bool) -> LinkCommand:
    command, serve = table.take("command", list), table.take("serve", str, None)
    table.finish()
    if not command or not all(isinstance(each, str) for each in command):
        raise table.error('command must be a list of texts, such as ["curl", "http://server:8000/"]', "command")
    return LinkCommand(tuple(command), serve, trace)


def _check(plan: Plan, error: Callable[[str | None, Value | None, str, str | None], TableError]) -> None:
    """Check each value of each axis once, before anything runs.

    `error` returns an error at a value of a column, or at no certain one, with its next step.
    """
    from airpath import _native

    taken = {"case", "seed"}.union(*plan.work.tables().values())
    for path in plan.columns:
        if path in taken:
            raise error(path, None, f"'{path}' cannot be an axis: it is a column of the result", None)
    checked: set[tuple[int, str]] = set()
    for number, case in enumerate(plan.cases):
        new = {(index, repr(value)) for index, value in enumerate(case)} - checked
        if not new:
            continue
        checked |= new
        try:
            _native.resolve(plan.text, plan.file, plan.overrides(number))
        except _native.ScenarioError as fault:
            values = {path: value for path, value in zip(plan.columns, case, strict=True) if value is not None}
            listed = ", ".join(f"{path}={value}" for path, value in values.items())
            at_fault = [path for path in values if str(fault).startswith(f"override {path}=")]
            column = at_fault[0] if at_fault else plan.columns[new.pop()[0]] if len(new) == 1 else None
            text = str(fault).removesuffix(f"; {fault.help}")
            raise error(column, values.get(column or ""), f"case {number} ({listed}): {text}", fault.help) from None


def kinds_of(columns: Sequence[str], cases: Sequence[Sequence[Value | None]]) -> dict[str, str]:
    """Return the type of each column of some cases, by its name in Polars."""
    return {path: _kind([case[index] for case in cases]) for index, path in enumerate(columns)}


def _kind(values: Sequence[Value | None]) -> str:
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present):
        return "Boolean"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in present):
        return "Int64"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return "Float64"
    return "String"
