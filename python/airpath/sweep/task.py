"""A task: some repetitions of some cases, run in one call, on any worker."""

import io
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from airpath.sweep.axes import Value
from airpath.sweep.plan import LinkCommand, Until
from airpath.tables import SUMMARY_TABLES

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive repetitions of one case."""

    case: int
    overrides: tuple[tuple[str, str], ...]
    values: tuple[Value | None, ...]
    """The values of the plan's columns."""
    first: int
    """The first repetition."""
    count: int


@dataclass(frozen=True, slots=True)
class Task:
    """Batches that run one after the other on one core. It has all that a worker needs."""

    text: str
    file: str
    seed: int
    kinds: tuple[tuple[str, str], ...]
    """Name and type of the plan's columns."""
    batches: tuple[Batch, ...]
    until: Until | None = None
    link: LinkCommand | None = None

    @property
    def name(self) -> str:
        """Its name in the folder: first case and repetition. Tasks of a plan do not overlap."""
        first = self.batches[0]
        return f"{first.case:07d}-{first.first:07d}"

    @property
    def runs(self) -> int:
        """Its number of runs."""
        return sum(batch.count for batch in self.batches)


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

    table: bytes
    """The rows of its flows, as a Parquet file."""
    failures: tuple[Failure, ...]
    samples: dict[int, list[float]]
    """With `Until`, the figure of each repetition, by case."""
    rows: int
    seconds: float


def run_task(task: Task) -> Outcome:
    """Run a task. An error of a batch is returned; the other batches run."""
    start = time.perf_counter()
    failures, parts, done = [], [], []
    for batch in task.batches:
        try:
            parts.append(_run_on_link(task, batch) if task.link else _run(task, batch))
            done.append(batch)
        except Exception as error:  # whatever it is, the sweep goes on, and the error is kept
            text = "".join(traceback.format_exception_only(error)).strip()
            failures.append(Failure(batch.case, batch.first, batch.count, batch.overrides, text))
    flows = _frame(task, done, parts)
    file = io.BytesIO()
    flows.write_parquet(file, compression="zstd")
    figures = samples(flows, task.until) if task.until else {}
    return Outcome(file.getvalue(), tuple(failures), figures, len(flows), time.perf_counter() - start)


def _run(task: Task, batch: Batch) -> str:
    """Return the rows of the batch's flows as JSON lines."""
    from airpath import _native

    return _native.run_flows(task.text, task.file, list(batch.overrides), task.seed, batch.first, batch.count)


def _run_on_link(task: Task, batch: Batch) -> str:
    """Run the command on a link, once for each repetition.

    Raises:
        RuntimeError: A command failed.
    """
    import json
    import tempfile
    from pathlib import Path

    from airpath.link import link
    from airpath.tables import flat_rows

    assert task.link is not None
    lines = []
    for repetition in range(batch.first, batch.first + batch.count):
        with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
            scenario = Path(task.file) if Path(task.file).is_file() else task.text
            linked = link(
                scenario,
                list(task.link.command),
                serve=task.link.serve,
                set=dict(batch.overrides),
                seed=task.seed + repetition,
                out=Path(folder) / "link",
                capture_output=True,
            )
            if linked.returncode:
                lines_of_error = (linked.stderr or b"").decode(errors="replace").splitlines()
                reason = [line for line in lines_of_error if line.strip() and not line.startswith("note:")]
                raise RuntimeError(f"the command ended with {linked.returncode}: {reason[-1] if reason else ''}")
            rows = flat_rows("flows", linked.result.summary["flows"])
            lines += [json.dumps({**row, "repetition": repetition}) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _frame(task: Task, batches: list[Batch], parts: list[str]) -> "pl.DataFrame":
    """Return the rows of all batches, with case and the plan's columns before the figures."""
    import polars as pl

    counts = [part.count("\n") for part in parts]
    settings, figures = schema(dict(task.kinds))
    text = "".join(parts).encode()
    flows = pl.read_ndjson(io.BytesIO(text), schema=figures) if text else pl.DataFrame(schema=figures)
    kinds = [kind for _, kind in task.kinds]
    values = [(batch.case, *map(typed, batch.values, kinds)) for batch in _each(batches, counts)]
    return pl.concat([pl.DataFrame(values, schema=settings, orient="row"), flows], how="horizontal")


def schema(kinds: Mapping[str, str]) -> "tuple[dict[str, Any], dict[str, Any]]":
    """Return the columns of the rows in Polars' types: case and settings, and the figures of flows.

    Args:
        kinds: The types of the plan's columns.
    """
    import polars as pl

    figures = SUMMARY_TABLES["flows"]
    return (
        {"case": pl.Int64, **{name: getattr(pl, kind) for name, kind in kinds.items()}},
        {name: getattr(pl, kind) for name, kind in figures.items()},
    )


def _each(batches: list[Batch], counts: list[int]) -> Iterator[Batch]:
    for batch, count in zip(batches, counts, strict=True):
        for _ in range(count):
            yield batch


def typed(value: Value | None, kind: str) -> Value | None:
    """Return a value of a column of this type: numbers in a column of texts are text."""
    return str(value) if value is not None and kind == "String" else value


def samples(flows: "pl.DataFrame", until: Until) -> dict[int, list[float]]:
    """Return the figure of each repetition: the mean over its flows that have a value."""
    import polars as pl

    chosen = flows if until.flow is None else flows.filter(pl.col("name") == until.flow)
    found: dict[int, list[float]] = {}
    for case, _, values in (
        chosen.group_by("case", "repetition", maintain_order=True).agg(pl.col(until.figure)).iter_rows()
    ):
        present = [value for value in values if value is not None]
        found.setdefault(case, []).extend([fmean(present)] if present else [])
    return found
