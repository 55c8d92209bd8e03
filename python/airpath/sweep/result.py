"""The result of a sweep, as frames."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.statistics import mean_interval
from airpath.sweep.folder import SweepFolder
from airpath.sweep.plan import kinds_of
from airpath.sweep.task import schema, typed

if TYPE_CHECKING:
    import tempfile

    import polars as pl


class SweepResult:
    """The rows of a sweep, in its folder.

    Other programs read them in one line, such as `duckdb.sql("from 'DIR/flows/*.parquet'")`.

    Args:
        path: The folder.

    Raises:
        SweepFolderError: It holds no sweep, or one of another version.
    """

    path: Path
    """The folder."""

    def __init__(self, path: str | Path, *, _temporary: "tempfile.TemporaryDirectory[str] | None" = None) -> None:
        self.path = Path(path)
        self._folder = SweepFolder(self.path)
        self._temporary = _temporary
        self._state = self._folder.state()

    @property
    def complete(self) -> bool:
        """Whether all tasks are finished."""
        return bool(self._state["complete"])

    @property
    def plan(self) -> dict[str, Any]:
        """The resolved plan: scenario, seed, columns, cases and repetitions."""
        return self._state["plan"]

    @property
    def file(self) -> str:
        """The path of the scenario."""
        return self._state["file"]

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns that vary: dotted paths of keys."""
        return tuple(self.plan["columns"])

    @cached_property
    def cases(self) -> "pl.DataFrame":
        """One row per case: its number and the values of the axes."""
        import polars as pl

        columns = schema(self._kinds)[0]
        rows = [(number, *map(typed, case, self._kinds.values())) for number, case in enumerate(self.plan["cases"])]
        return pl.DataFrame(rows, schema=columns, orient="row")

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return kinds_of(self.axes, self.plan["cases"])

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """What failed: case, repetitions, overrides and error."""
        return self._folder.failures()

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """One row per flow and run: case, the values of the axes, and the columns of `flows`.

        Sorted by case, repetition and flow: the same for the same plan, wherever it ran.
        """
        return self.scan().sort("case", "repetition", "flow").collect()

    def scan(self) -> "pl.LazyFrame":
        """Return the rows as a lazy frame, for sweeps that do not fit into memory."""
        import polars as pl

        if parts := self._folder.parts():
            return pl.scan_parquet(parts)
        settings, figures = schema(self._kinds)
        return pl.LazyFrame(schema={**settings, **figures})

    def means(self, figure: str, *, flow: str | None = None) -> "pl.DataFrame":
        """Return the mean of a figure by case, with its 95 % interval by Student's t.

        A repetition counts once: the mean over its flows that have a value.

        Args:
            figure: A numeric column of `flows`.
            flow: The name of a flow; by default all flows.
        """
        import polars as pl

        rows = self.scan() if flow is None else self.scan().filter(pl.col("name") == flow)
        samples = (
            rows.group_by("case", *self.axes, "repetition")
            .agg(pl.col(figure).mean())
            .drop_nulls(figure)
            .group_by("case", *self.axes)
            .agg(pl.col(figure).sort_by("repetition"))
            .sort("case")
            .collect()
        )
        intervals = [mean_interval(each) if len(each) > 1 else None for each in samples[figure].to_list()]
        return samples.select(
            "case",
            *self.axes,
            mean=pl.col(figure).list.mean(),
            low=pl.Series([each and each.low for each in intervals], dtype=pl.Float64),
            high=pl.Series([each and each.high for each in intervals], dtype=pl.Float64),
            n=pl.col(figure).list.len(),
        )

    def __repr__(self) -> str:
        state = "complete" if self.complete else "partial"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<airpath.SweepResult {len(self.plan['cases'])} cases, {state}{failed}, in {self.path}>"
