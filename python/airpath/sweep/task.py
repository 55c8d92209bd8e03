"""A task: some repetitions of some cases, run in one call, on any worker."""

import io
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.flow_groups import is_named
from airpath.statistics import repetition_means
from airpath.sweep.axes import Value
from airpath.sweep.work import ENDS, Batch, Task, Until, figures

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Failure:
    """A batch that stopped on an error."""

    case: int
    first: int
    count: int
    overrides: tuple[tuple[str, str], ...]
    error: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task returns."""

    tables: dict[str, bytes]
    """The rows of each table that has some, as Parquet files; the first is always there."""
    failures: tuple[Failure, ...]
    samples: dict[int, list[float]]
    """With `Until`, the figure of each repetition, by case."""
    ends: dict[int, list[float]]
    """The ends of simulations and links in seconds, by case."""
    seconds: float


def run_task(task: Task) -> Outcome:
    """Run a task. An error of a batch is returned; the other batches run."""
    start = time.perf_counter()
    failures, parts, done = [], [], []
    for batch in task.batches:
        try:
            parts.append(task.work.run(task, batch))
            done.append(batch)
        except Exception as error:  # whatever it is, the sweep goes on, and the error is kept
            failures.append(Failure(batch.case, batch.first, batch.count, batch.overrides, _message(error)))
    frames = {name: _frame(task, columns, name, done, parts) for name, columns in task.work.tables().items()}
    first = next(iter(frames))
    tables = {name: _parquet(frame) for name, frame in frames.items() if name == first or frame.height}
    found = samples(frames[figures(task.work)[task.until.figure]], task.until) if task.until else {}
    ends: dict[int, list[float]] = {}
    for batch, part in zip(done, parts, strict=True):
        ends.setdefault(batch.case, []).extend(map(float, part.get(ENDS, "").split()))
    return Outcome(tables, tuple(failures), found, ends, time.perf_counter() - start)


def _message(error: Exception) -> str:
    from airpath.toml_table import TableError

    if isinstance(error, TableError):  # of a study: the message has all
        return str(error)
    return "".join(traceback.format_exception_only(error)).strip()


def _parquet(frame: "pl.DataFrame") -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file, compression="zstd")
    return file.getvalue()


def _frame(
    task: Task, columns: Mapping[str, str], table: str, batches: list[Batch], parts: list[dict[str, str]]
) -> "pl.DataFrame":
    """Return the rows of all batches, with case and the plan's columns before the figures."""
    import polars as pl

    lines = [part.get(table, "") for part in parts]
    settings, own = schema(dict(task.kinds), columns)
    text = "".join(lines).encode()
    rows = pl.read_ndjson(io.BytesIO(text), schema=own) if text else pl.DataFrame(schema=own)
    kinds = [kind for _, kind in task.kinds]
    counts = [each.count("\n") for each in lines]
    values = [(batch.case, *map(typed, batch.values, kinds)) for batch in _each(batches, counts)]
    return pl.concat([pl.DataFrame(values, schema=settings, orient="row"), rows], how="horizontal")


def schema(kinds: Mapping[str, str], columns: Mapping[str, str]) -> "tuple[dict[str, Any], dict[str, Any]]":
    """Return the columns of a table in Polars' types: case and settings, and the table's own.

    Args:
        kinds: The types of the plan's columns.
        columns: Those of the table's own.
    """
    import polars as pl

    return (
        {"case": pl.Int64, **{name: getattr(pl, kind) for name, kind in kinds.items()}},
        {name: getattr(pl, kind) for name, kind in columns.items()},
    )


def _each(batches: list[Batch], counts: list[int]) -> Iterator[Batch]:
    for batch, count in zip(batches, counts, strict=True):
        for _ in range(count):
            yield batch


def typed(value: Value | None, kind: str) -> Value | None:
    """Return a value of a column of this type: numbers in a column of texts are text."""
    return str(value) if value is not None and kind == "String" else value


def samples(rows: "pl.DataFrame", until: Until) -> dict[int, list[float]]:
    """Return the figure of each repetition: the mean over its rows that have a value."""
    chosen = rows if until.flow is None else rows.filter(is_named(until.flow))
    found: dict[int, list[float]] = {}
    for case, _, value in repetition_means(chosen, until.figure, ("case", "repetition")).iter_rows():
        found.setdefault(case, []).extend([] if value is None else [value])
    return found
