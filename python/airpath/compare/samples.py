"""The samples of a result: for each flow, page or object, and figure, one value per repetition."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.result import Result, UnreadableResultError, is_result
from airpath.statistics import repetition_means
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


class IncomparableError(Exception):
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

    def get(self, group: Group, figure: str) -> dict[str, float]:
        """Return the samples of a figure, by repetition."""
        return self.values.get(group, {}).get(figure, {})


def load_samples(path: str | Path) -> Samples:
    """Read the samples of a result.

    Args:
        path: A result folder of a run, link, page load or measurement; a folder with several of
            them or with several captures, each one more repetition; the folder of a sweep; or a
            capture, in which each connection to a service is one sample.

    Raises:
        IncomparableError: There is no result.
        UnreadableResultError: A result is damaged or of another version.
        TraceError: A capture cannot be read.
    """
    path = Path(path)
    if path.is_file():
        return _of_capture(path)
    if not path.is_dir():
        raise IncomparableError(f"{path}: no such result; name a result folder, the folder of a sweep, or a capture")
    if (path / "sweep.json").is_file():
        return _of_sweep(path)
    if is_result(path):
        return _of_results(path, [path])
    if folders := sorted(each for each in path.iterdir() if each.is_dir() and is_result(each)):
        return _of_results(path, folders)
    captures = sorted(each for each in path.iterdir() if each.suffixes[:1] and each.suffixes[0] in _CAPTURES)
    if not captures:
        raise IncomparableError(f"{path}: holds no result; name a folder that `airpath run --out` wrote")
    return _of_captures(path, captures)


def _of_results(path: Path, folders: Sequence[Path]) -> Samples:
    import polars as pl

    results = [Result(folder).complete_part for folder in folders]
    for result in results:
        if not result.flows.height:
            raise UnreadableResultError(f"{result.path}: the run has no flows")
    single = len(results) == 1
    repetition = pl.col("repetition").cast(pl.String)
    values: Values = {}
    for number, result in enumerate(results):
        sample = repetition if single else pl.lit(f"{number}/") + repetition
        tables = {"flows": result.flows, "pages": result.pages, "objects": result.objects}
        for name, frame in tables.items():
            _add(values, frame.with_columns(sample=sample), _GROUPS[name]())
        if (loaded := result.path / "page.json").is_file():
            _add(values, _views(loaded).with_columns(sample=sample), _GROUPS["pages"]())
    simulated = "emulation" not in results[0].summary and "measurement" not in results[0].summary
    seed = results[0].summary["seed"] if single and simulated else None
    return Samples(str(path), values, seed, incomplete=[_incomplete(each) for each in results if not each.complete])


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
        raise UnreadableResultError(f"{path}: damaged: {error}; load the page again") from None
    if not isinstance(views, list) or not views or not all(map(_is_view, views)):
        raise UnreadableResultError(f"{path}: damaged: it is no list of views; load the page again")
    flat = [{key: value for key, value in view.items() if not isinstance(value, list | dict)} for view in views]
    return pl.DataFrame(flat, infer_schema_length=None).with_columns(repetition=pl.col("run"))


def _is_view(view: object) -> bool:
    kinds = {"run": int, "view": int, "page": str}
    return isinstance(view, dict) and all(isinstance(view.get(name), kind) for name, kind in kinds.items())


def _of_sweep(path: Path) -> Samples:
    import polars as pl

    from airpath.sweep import SweepResult

    result = SweepResult(path)
    # Keys in alphabetical order: plans with the same cases may have their axes in another order.
    labels = result.plan["labels"]
    axes = [*labels, *sorted(axis for axis in result.axes if axis not in labels)]
    settings = [pl.format(f"{axis}={{}}", pl.col(axis)) for axis in axes]
    values: Values = {}
    for table, columns in result.work.tables().items():
        group = pl.concat_str([*settings, _GROUPS[table]()], separator=", ", ignore_nulls=True)
        rows = result.table(table).with_columns(sample=pl.col("repetition").cast(pl.String))
        _add(values, rows, group, figures_of(columns))
    main = tuple(result.figures) if "metrics" in result.work.tables() else _MAIN
    incomplete = [] if result.complete else [f"{path} is not complete; its runs until now are compared"]
    return Samples(str(path), values, None if result.work.is_real_time else result.plan["seed"], main, incomplete)


def _flow() -> "pl.Expr":
    """Return the group of a flow: its name, or the server of a real program's connection.

    The name of such a connection has the client's port, which differs each time.
    """
    import polars as pl

    has_server = pl.col("remote").is_not_null()
    return pl.when(has_server).then(pl.format("{} {}", "kind", "remote")).otherwise(pl.col("name"))


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


_GROUPS = {"flows": _flow, "pages": _view, "objects": _object, "connections": _service, "metrics": _metrics}
"""What is compared in the rows of each table."""
_CAPTURES = (".pcap", ".pcapng", ".snoop", ".cap")


def _add(values: Values, rows: "pl.DataFrame", group: "pl.Expr", figures: Sequence[str] | None = None) -> None:
    """Add the figures of rows; several rows of a group in a repetition count with their mean."""
    if figures is None:
        kinds = rows.schema.items()
        figures = [name for name, kind in kinds if kind.is_numeric() and name not in _NOT_FIGURES]
    # A single row without a setting, as of a study, still has a group.
    named = group.fill_null("all")
    means = repetition_means(rows.with_columns(group=named), figures, ("group", "sample"))
    for row in means.iter_rows(named=True):
        found = values.setdefault(row["group"], {})
        for figure in figures:
            if row[figure] is not None:
                found.setdefault(figure, {})[row["sample"]] = row[figure]


def _of_capture(path: Path) -> Samples:
    """Return the connections of a capture, by the port of their server: durations and causes."""
    import polars as pl

    values: Values = {}
    connections = _connections(path)
    _add(values, connections.with_columns(sample=pl.col("connection").cast(pl.String)), _service(), _times(connections))
    return Samples(str(path), values)


def _of_captures(path: Path, captures: Sequence[Path]) -> Samples:
    """Return the same of several captures; connections to a port count with their mean."""
    import polars as pl

    values: Values = {}
    for capture in captures:
        connections = _connections(capture)
        _add(values, connections.with_columns(sample=pl.lit(capture.name)), _service(), _times(connections))
    return Samples(str(path), values)


def _connections(path: Path) -> "pl.DataFrame":
    from airpath.trace import trace

    return trace(path).connections


def _times(connections: "pl.DataFrame") -> list[str]:
    return ["segments", *(name for name in connections.columns if name.endswith("_s"))]
