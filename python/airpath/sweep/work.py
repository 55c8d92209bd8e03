"""The work of a sweep: tasks of batches of runs, and what a run is."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from airpath.files import read_text
from airpath.sweep.axes import Value

Tables = dict[str, dict[str, str]]
"""The columns of tables: names and types, as Polars names them."""
Lines = dict[str, str]
"""The rows of tables as JSON lines. Each row has its `repetition`."""
ENDS = "ends_s"
"""The key of `Lines` for the ends of simulations and links in seconds, one a line; no table."""

KEYS = ("repetition", "flow", "view", "object", "connection", "start_s", "start", "client_port", "server_port")
"""Numeric columns that are no figures."""


@dataclass(frozen=True, slots=True)
class Until:
    """Repeat a case until the 95 % interval of a figure's mean is narrow enough."""

    figure: str
    """A numeric column of a table of the rows."""
    flow: str | None
    """The name of the flow, or of the table of several; with `None` all rows are in the mean of a
    repetition."""
    within: float
    """Half the width of the interval as a share of the mean."""
    least: int
    most: int
    """Fewest and most repetitions."""


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
    work: "Work"
    until: Until | None = None
    threads: int | None = 1
    """Threads of a simulation that may have several; `None` is the number of cores."""

    @property
    def scenario(self) -> Path | str:
        """The scenario's file if it is on this machine, otherwise its text.

        Raises:
            RuntimeError: The file is not the one of the plan any more.
        """
        path = Path(self.file)
        if not path.is_file():
            return self.text
        if read_text(path) != self.text:
            raise RuntimeError(f"{self.file}: changed during the sweep; undo the change, or begin another sweep")
        return path

    @property
    def name(self) -> str:
        """Its name in the folder: first case and repetition. Tasks of a plan do not overlap."""
        first = self.batches[0]
        return f"{first.case:07d}-{first.first:07d}"

    @property
    def runs(self) -> int:
        """Its number of runs."""
        return sum(batch.count for batch in self.batches)


class Work(Protocol):
    """What a run is: a frozen dataclass, as it is sent to workers and stored with the plan."""

    kind: ClassVar[str]
    is_real_time: ClassVar[bool]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def tables(self) -> Tables:
        """Return the tables and their columns."""
        ...

    def run(self, task: Task, batch: Batch) -> Lines:
        """Run the repetitions of a batch, and return the rows of all tables."""
        ...


def to_dict(work: Work) -> dict[str, Any]:
    """Return it as plain data."""
    return {"kind": work.kind, **asdict(work)}


def figures(work: Work) -> dict[str, str]:
    """Return the figures of its tables: their numeric columns; of a name the first table."""
    found: dict[str, str] = {}
    for table, columns in work.tables().items():
        for name in figures_of(columns):
            found.setdefault(name, table)
    return found


def figures_of(columns: Mapping[str, str]) -> list[str]:
    """Return the figures of a table: its numeric columns that are no keys."""
    return [name for name, kind in columns.items() if kind in ("Float64", "Int64") and name not in KEYS]


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as JSON lines."""
    # A value that is not a number is missing: JSON has none.
    return "".join(
        json.dumps({name: None if value != value else value for name, value in row.items()}) + "\n"  # noqa: PLR0124
        for row in rows
    )
