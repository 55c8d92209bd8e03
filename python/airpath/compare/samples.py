"""The samples of a result: for each flow and figure one value per repetition."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.result import Result, UnreadableResultError, is_result
from airpath.tables import FIGURES

if TYPE_CHECKING:
    import polars as pl

Group = str
"""What is compared: the name of a flow, with the case of a sweep, or the service of a capture."""


class IncomparableError(Exception):
    """Results cannot be compared. The message has the reason and the next step."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one side of a comparison."""

    name: str
    values: dict[Group, dict[str, dict[str, float]]] = field(default_factory=dict)
    """By group, figure and repetition."""
    seed: int | None = None
    """The seed of a simulation: the same repetition of another result with this seed has the same
    random streams."""

    def get(self, group: Group, figure: str) -> dict[str, float]:
        """Return the samples of a figure, by repetition."""
        return self.values.get(group, {}).get(figure, {})


def load_samples(path: str | Path) -> Samples:
    """Read the samples of a result.

    Args:
        path: A result folder of a run, link or measurement; a folder with several of them, each one
            more repetition; the folder of a sweep; or a capture, in which each
            connection to a service is one sample.

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
    folders = sorted(each for each in path.iterdir() if each.is_dir() and is_result(each))
    if not folders:
        raise IncomparableError(f"{path}: holds no result; name a folder that `airpath run --out` wrote")
    return _of_results(path, folders)


def _of_results(path: Path, folders: Sequence[Path]) -> Samples:
    import polars as pl

    results = [Result(folder) for folder in folders]
    for result in results:
        if not result.flows.height:
            raise UnreadableResultError(f"{result.path}: the run has no flows")
    single = len(results) == 1
    repetition = pl.col("repetition").cast(pl.String)
    frames = [
        result.flows.with_columns(sample=repetition if single else pl.lit(f"{number}/") + repetition)
        for number, result in enumerate(results)
    ]
    values: dict[Group, dict[str, dict[str, float]]] = {}
    for frame in frames:
        _add(values, frame, _flow())
    simulated = "emulation" not in results[0].summary and "measurement" not in results[0].summary
    return Samples(str(path), values, results[0].summary["seed"] if single and simulated else None)


def _of_sweep(path: Path) -> Samples:
    import polars as pl

    from airpath.sweep import SweepResult

    result = SweepResult(path)
    settings = [pl.format(f"{axis}={{}}", pl.col(axis)) for axis in result.axes]
    group = pl.concat_str([*settings, _flow()], separator=", ", ignore_nulls=True)
    values: dict[Group, dict[str, dict[str, float]]] = {}
    _add(values, result.flows.with_columns(sample=pl.col("repetition").cast(pl.String)), group)
    return Samples(str(path), values, None if result.plan["link"] else result.plan["seed"])


def _flow() -> "pl.Expr":
    """Return the group of a flow: its name, or the server of a real program's connection.

    The name of such a connection has the client's port, which differs each time.
    """
    import polars as pl

    has_server = pl.col("remote").is_not_null()
    return pl.when(has_server).then(pl.format("{} {}", "kind", "remote")).otherwise(pl.col("name"))


def _add(
    values: dict[Group, dict[str, dict[str, float]]],
    rows: "pl.DataFrame",
    group: "pl.Expr",
    figures: Sequence[str] = FIGURES,
) -> None:
    """Add the figures of flows; several flows of a name in a repetition count with their mean."""
    import polars as pl

    means = rows.group_by(group.alias("group"), "sample", maintain_order=True).agg(pl.col(figures).mean())
    for row in means.iter_rows(named=True):
        found = values.setdefault(row["group"], {})
        for figure in figures:
            if row[figure] is not None:
                found.setdefault(figure, {})[row["sample"]] = float(row[figure])


def _of_capture(path: Path) -> Samples:
    """Return the connections of a capture, by the port of their server: durations and causes."""
    import polars as pl

    from airpath.trace import trace

    connections = trace(path).connections
    figures = ["segments", *(name for name in connections.columns if name.endswith("_s"))]
    values: dict[Group, dict[str, dict[str, float]]] = {}
    _add(
        values,
        connections.with_columns(sample=pl.col("connection").cast(pl.String)),
        pl.format("port {}", pl.col("server_port")),
        figures,
    )
    return Samples(str(path), values)
