"""The samples of a result: for each flow, page or object, and figure, one value per repetition."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.flow_groups import group_names, known_names, names_group, own_name
from airpath.next_step import WithNextStep
from airpath.result import Result, UnreadableResultError, is_result
from airpath.statistics import repetition_means
from airpath.suggest import suggestion
from airpath.sweep.work import KEYS, figures_of
from airpath.tables import MAIN_FIGURES, MAIN_PAGE_FIGURES

if TYPE_CHECKING:
    import polars as pl

Group = str
"""What is compared: a flow, a page, or the service of a capture; in a sweep with its case."""

Values = dict[Group, dict[str, dict[str, float]]]
"""By group, figure and repetition."""

_NOT_FIGURES = (*KEYS, "run")
"""Numeric columns that are no figures."""


class IncomparableError(WithNextStep):
    """Results cannot be compared. The message has the reason and the next step."""


_MAIN = (*MAIN_PAGE_FIGURES, *MAIN_FIGURES)


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one side of a comparison."""

    name: str
    values: Values = field(default_factory=dict)
    seed: int | None = None
    """The seed of a simulation: the same repetition of another result with this seed has the same
    random streams."""
    main: tuple[str, ...] = _MAIN
    """The figures that are compared by default."""
    incomplete: Sequence[str] = ()
    """Messages about results that are not complete."""
    alone: Values = field(default_factory=dict)
    """Single flows of groups, which only rules name."""
    missing: dict[tuple[Group, str], tuple[int, int]] = field(default_factory=dict)
    """Figures that not all flows of a group have: the number of values missing, and of all."""

    def get(self, group: Group, figure: str) -> dict[str, float]:
        """Return the samples of a figure, by repetition."""
        return self.of(group).get(figure, {})

    def of(self, group: Group) -> dict[str, dict[str, float]]:
        """Return the figures of a group, or of a single flow; an empty dictionary without them."""
        return self.values.get(group) or self.alone.get(group, {})


def load_samples(path: str | Path, flows: Sequence[str | int] | None = None, named: Sequence[str] = ()) -> Samples:
    """Read the samples of a result.

    Args:
        path: A result folder of a run, link, page load or measurement; a folder with several of
            them or with several captures, each one more repetition; the folder of a sweep; or a
            capture, in which each connection to a service is one sample.
        flows: The flows to compare, by name, by the name of their group or mobile, or by number; of
            captures, selectors of connections. By default all.
        named: Single flows to read beside the groups, for rules.

    Raises:
        IncomparableError: There is no result, or none of the flows.
        UnreadableResultError: A result is damaged or of another version.
        TraceError: A capture cannot be read.
    """
    path = Path(path)
    choice = _Choice(None if flows is None else tuple(map(str, flows)), named)
    if path.is_file():
        return _of_capture(path, choice.flows)
    if not path.is_dir():
        raise IncomparableError(
            f"{path}: no such result", next_step="name a result folder, the folder of a sweep, or a capture"
        )
    if (path / "sweep.json").is_file():
        return _of_sweep(path, choice)
    if is_result(path):
        return _of_results(path, [path], choice)
    if folders := sorted(each for each in path.iterdir() if each.is_dir() and is_result(each)):
        return _of_results(path, folders, choice)
    captures = sorted(each for each in path.iterdir() if each.suffixes[:1] and each.suffixes[0] in _CAPTURES)
    if not captures:
        raise IncomparableError(f"{path}: holds no result", next_step="name a folder that `airpath run --out` wrote")
    return _of_captures(path, captures, choice.flows)


def _of_results(path: Path, folders: Sequence[Path], choice: "_Choice") -> Samples:
    import polars as pl

    results = [Result(folder).complete_part for folder in folders]
    for result in results:
        if not result.flows.height:
            raise UnreadableResultError(f"{result.path}: the run has no flows")
    single = len(results) == 1
    simulated = "emulation" not in results[0].summary and "measurement" not in results[0].summary
    seed = results[0].summary["seed"] if single and simulated else None
    incomplete = [_incomplete(each) for each in results if not each.complete]
    samples = Samples(str(path), seed=seed, incomplete=incomplete)
    repetition = pl.col("repetition").cast(pl.String)
    for number, result in enumerate(results):
        sample = repetition if single else pl.lit(f"{number}/") + repetition
        scenario = tomllib.loads(result.scenario) if simulated else {}
        chosen = _add_flows(samples, result.flows.with_columns(sample=sample), scenario, choice)
        for name, frame in (("pages", result.pages), ("objects", result.objects)):
            rows = frame.join(chosen, on=("repetition", "flow"), how="semi") if frame.height else frame
            _add(samples.values, rows.with_columns(sample=sample), _GROUPS[name]())
        if choice.flows is None and (loaded := result.path / "page.json").is_file():
            _add(samples.values, _views(loaded).with_columns(sample=sample), _GROUPS["pages"]())
    return samples


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which flows are compared."""

    flows: tuple[str, ...] | None
    """Names of flows or their groups, and numbers; `None` for all."""
    named: Sequence[str]
    """Groups and single flows that rules name."""


def _add_flows(
    samples: Samples,
    rows: "pl.DataFrame",
    scenario: Mapping[str, Any],
    choice: _Choice,
    settings: "Sequence[pl.Expr]" = (),
    figures: Sequence[str] | None = None,
) -> "pl.DataFrame":
    """Add the flows of rows, those of a group together, and return the rows of these flows.

    Raises:
        IncomparableError: There is no flow of a name or number.
    """
    import polars as pl

    names = group_names(rows.select("name", "mobile").unique(maintain_order=True).iter_rows(), scenario)
    keys = pl.DataFrame(
        [(*key, name) for key, name in names.items()], schema=("name", "mobile", "_group"), orient="row"
    )
    # Those of real programs are in the group of their server.
    rows = rows.with_columns(_own=own_name()).join(keys, on=("name", "mobile"), how="left", maintain_order="left")
    rows = rows.with_columns(_group=pl.when(pl.col("_own") == pl.col("name")).then("_group").otherwise("_own"))
    parts = (
        [(rows, "_group")] if choice.flows is None else [_selected(samples.name, rows, each) for each in choice.flows]
    )
    labels = {
        column: pl.concat_str([*settings, pl.col(column)], separator=", ", ignore_nulls=True) for column in _LABELS
    }
    for part, column in parts:
        own = part.drop(_LABELS)
        _add(samples.values, own.with_columns(group=part.select(labels[column]).to_series()), pl.col("group"), figures)
        _count_missing(samples, part.with_columns(group=labels[column]), figures)
    single = rows.with_columns(group=labels["_own"])
    single = single.filter(pl.col("group").is_in([each for each in choice.named if each not in samples.values]))
    _add(samples.alone, single.drop(_LABELS), pl.col("group"), figures)
    return pl.concat([part for part, _ in parts])


_LABELS = ("_own", "_group")
"""Columns: the name of a flow, or the server of a program's connection; and its group."""


def _selected(result: str, rows: "pl.DataFrame", word: str) -> "tuple[pl.DataFrame, str]":
    """Return the flows that a word of `--flow` selects, and the column of their groups.

    Raises:
        IncomparableError: There are none.
    """
    import polars as pl

    groups = rows["_group"].unique(maintain_order=True).to_list()
    if own := [group for group in groups if names_group(word, group)]:
        return rows.filter(pl.col("_group").is_in(own)), "_group"
    number = int(word) if word.isdecimal() else -1
    found = rows.filter((pl.col("_own") == word) | (pl.col("mobile") == word) | (pl.col("flow") == number))
    if not found.height:
        next_step = suggestion(word, known_names(groups)) or f"there is {', '.join(groups[:5])}"
        raise IncomparableError(f"{result} has no flow '{word}'", next_step=next_step)
    return found, "_own"


def _incomplete(result: Result) -> str:
    """Return that a result is not complete, and what its samples lack."""
    count = len(result.left_out)
    without = f"; {count} interrupted {'repetitions are' if count > 1 else 'repetition is'} left out" if count else ""
    return f"{result.path} is not complete ({result.stopped or 'unknown reason'}){without}"


def _views(path: Path) -> "pl.DataFrame":
    """Return the views of `airpath page load`; its loads are repetitions.

    Raises:
        UnreadableResultError: The file is damaged.
    """
    import polars as pl

    try:
        views = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnreadableResultError(f"{path}: damaged: {error}", next_step="load the page again") from None
    if not isinstance(views, list) or not views or not all(map(_is_view, views)):
        raise UnreadableResultError(f"{path}: damaged: it is no list of views", next_step="load the page again")
    flat = [{key: value for key, value in view.items() if not isinstance(value, list | dict)} for view in views]
    return pl.DataFrame(flat, infer_schema_length=None).with_columns(repetition=pl.col("run"))


def _is_view(view: object) -> bool:
    kinds = {"run": int, "view": int, "page": str}
    return isinstance(view, dict) and all(isinstance(view.get(name), kind) for name, kind in kinds.items())


def _of_sweep(path: Path, choice: _Choice) -> Samples:
    import polars as pl

    from airpath.sweep import SweepResult

    result = SweepResult(path)
    # Keys in alphabetical order: plans with the same cases may have their axes in another order.
    labels = result.plan["labels"]
    axes = [*labels, *sorted(axis for axis in result.axes if axis not in labels)]
    settings = [pl.format(f"{axis}={{}}", pl.col(axis)) for axis in axes]
    incomplete = [] if result.complete else [f"{path} is not complete; its runs until now are compared"]
    main = tuple(result.figures) if "metrics" in result.work.tables() else _MAIN
    seed = None if result.work.is_real_time else result.plan["seed"]
    samples = Samples(str(path), seed=seed, main=main, incomplete=incomplete)
    tables = result.work.tables()
    if choice.flows is not None and "flows" not in tables:
        raise IncomparableError(f"{path} has no flows to select, but {', '.join(tables)}", next_step="leave out --flow")
    scenario = tomllib.loads(result.plan["scenario"]) | result.plan["set"]
    chosen = None
    for table, columns in tables.items():
        rows = result.table(table).with_columns(sample=pl.col("repetition").cast(pl.String))
        if table == "flows":
            chosen = _add_flows(samples, rows, scenario, choice, settings, figures_of(columns))
            continue
        if choice.flows is not None:
            if chosen is None or "flow" not in columns:
                continue
            rows = rows.join(chosen, on=("case", "repetition", "flow"), how="semi")
        group = pl.concat_str([*settings, _GROUPS[table]()], separator=", ", ignore_nulls=True)
        _add(samples.values, rows, group, figures_of(columns))
    return samples


def _view() -> "pl.Expr":
    import polars as pl

    page = pl.format("page {}", "page")
    return pl.when(pl.col("view") > 0).then(pl.format("{}, view {}", page, "view")).otherwise(page)


def _service() -> "pl.Expr":
    import polars as pl

    return pl.format("port {}", pl.col("server_port"))


def _object() -> "pl.Expr":
    import polars as pl

    return pl.format("object {}", "name")


def _metrics() -> "pl.Expr":
    import polars as pl

    return pl.lit(None, dtype=pl.String)


_GROUPS = {"pages": _view, "objects": _object, "connections": _service, "metrics": _metrics}
"""What is compared in the rows of each table other than `flows`."""
_CAPTURES = (".pcap", ".pcapng", ".snoop", ".cap")


def _add(values: Values, rows: "pl.DataFrame", group: "pl.Expr", figures: Sequence[str] | None = None) -> None:
    """Add the figures of rows; several rows of a group in a repetition count with their mean."""
    figures = _figures(rows) if figures is None else figures
    # A single row without a setting, as of a study, still has a group.
    named = group.fill_null("all")
    means = repetition_means(rows.with_columns(group=named), figures, ("group", "sample"))
    for row in means.iter_rows(named=True):
        found = values.setdefault(row["group"], {})
        for figure in figures:
            if row[figure] is not None:
                found.setdefault(figure, {})[row["sample"]] = row[figure]


def _figures(rows: "pl.DataFrame") -> list[str]:
    return [name for name, kind in rows.schema.items() if kind.is_numeric() and name not in _NOT_FIGURES]


def _count_missing(samples: Samples, rows: "pl.DataFrame", figures: Sequence[str] | None) -> None:
    """Count the flows of groups that lack a figure which others of the group have."""
    import polars as pl

    groups = rows.group_by("group", maintain_order=True)
    is_pool = pl.len() > pl.struct("repetition", "sample").n_unique()
    counts = groups.agg(
        pl.col(_figures(rows) if figures is None else figures).null_count(), _is_pool=is_pool, _all=pl.len()
    )
    for row in counts.filter("_is_pool").iter_rows(named=True):
        group, number = row.pop("group"), row.pop("_all")
        for figure, nulls in row.items():
            if figure in samples.values[group] and nulls:
                before = samples.missing.get((group, figure), (0, 0))
                samples.missing[group, figure] = (before[0] + nulls, before[1] + number)


def _of_capture(path: Path, selected: tuple[str, ...] | None) -> Samples:
    """Return the connections of a capture, by the port of their server: durations and causes."""
    import polars as pl

    values: Values = {}
    connections = _connections(path, selected)
    _add(values, connections.with_columns(sample=pl.col("connection").cast(pl.String)), _service(), _times(connections))
    return Samples(str(path), values)


def _of_captures(path: Path, captures: Sequence[Path], selected: tuple[str, ...] | None) -> Samples:
    """Return the same of several captures; connections to a port count with their mean."""
    import polars as pl

    values: Values = {}
    for capture in captures:
        connections = _connections(capture, selected)
        _add(values, connections.with_columns(sample=pl.lit(capture.name)), _service(), _times(connections))
    return Samples(str(path), values)


def _connections(path: Path, selected: tuple[str, ...] | None) -> "pl.DataFrame":
    from airpath.trace import trace

    return trace(path, flow=selected).connections


def _times(connections: "pl.DataFrame") -> list[str]:
    return ["segments", *(name for name in connections.columns if name.endswith("_s"))]
