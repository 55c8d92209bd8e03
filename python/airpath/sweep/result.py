"""The result of a sweep, as frames."""

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.flow_groups import group_names, own_name
from airpath.quantities import number_of
from airpath.scenario import has_download, name_after
from airpath.statistics import mean_intervals
from airpath.suggest import did_you_mean
from airpath.sweep.folder import SCENARIO, SweepFolder
from airpath.sweep.kinds import Simulation, from_dict
from airpath.sweep.number_columns import NumberColumn, number_columns
from airpath.sweep.plan import kinds_of
from airpath.sweep.task import schema, typed
from airpath.sweep.work import Work, figures

if TYPE_CHECKING:
    import tempfile

    import polars as pl


_ORDER = ("case", "repetition", "flow", "view", "object", "connection")
_MEAN = ("mean", "low", "high", "n")
"""The columns of a mean."""


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

    ends: Mapping[int, list[float]]
    """The ends of the simulations and links that this process ran, in seconds, by case."""

    def __init__(
        self,
        path: str | Path,
        *,
        _temporary: "tempfile.TemporaryDirectory[str] | None" = None,
        _ends: Mapping[int, list[float]] | None = None,
    ) -> None:
        self.path = Path(path)
        self._folder = SweepFolder(self.path)
        self._temporary = _temporary
        self.ends = _ends or {}
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
        """The path of the scenario, as it was named."""
        return self._state["file"]

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns that vary: dotted paths of keys."""
        return tuple(self.plan["columns"])

    @property
    def number_axes(self) -> tuple[str, ...]:
        """The columns of the axes of quantities as numbers, with their unit: `fixed.delay_s`.

        They are in the frames, not in the files: texts there keep the spelling of the plan.
        """
        return tuple(each.name for each in self._numbers)

    @cached_property
    def cases(self) -> "pl.DataFrame":
        """One row per case: its number and the values of the axes, quantities also as numbers."""
        import polars as pl

        columns = schema(self._kinds, {})[0]
        rows = [(number, *map(typed, case, self._kinds.values())) for number, case in enumerate(self.plan["cases"])]
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        return frame.with_columns(each.expression() for each in self._numbers)

    @cached_property
    def _numbers(self) -> list[NumberColumn]:
        taken = {*self.axes, "case"}.union(*self.work.tables().values())
        return [each for each in number_columns(self.axes, self.plan["cases"]) if each.name not in taken]

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return kinds_of(self.axes, self.plan["cases"])

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """What failed: case, repetitions, overrides and error."""
        return self._folder.failures()

    @cached_property
    def work(self) -> Work:
        """What a run is, with the tables of its rows."""
        return from_dict(self.plan["work"])

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """One row per flow and run: case, the values of the axes, and the columns of `flows`.

        Sorted by case, repetition and flow: the same for the same plan, wherever it ran.
        """
        return self.table("flows")

    def table(self, name: str) -> "pl.DataFrame":
        """Return a table: `flows`, `pages`, `objects`, `connections`, or `metrics` of a study.

        Raises:
            KeyError: The sweep has no such table.
            UnreadableResultError: A file of the table is damaged.
        """
        frame = self.scan(name)
        names = frame.collect_schema().names()
        return frame.sort([key for key in _ORDER if key in names], maintain_order=True).collect()

    def _table_of(self, figure: str) -> str:
        """Return the table that has a figure.

        Raises:
            KeyError: None has it.
        """
        known = self.figures
        if figure not in known:
            raise KeyError(f"no figure '{figure}'{did_you_mean(figure, known)}")
        return known[figure]

    def scan(self, name: str = "flows") -> "pl.LazyFrame":
        """Return a table as a lazy frame, for sweeps that do not fit into memory.

        The values of the axes are before the figures, quantities also as numbers.

        Raises:
            KeyError: The sweep has no such table.
        """
        import polars as pl

        tables = self.work.tables()
        if name not in tables:
            raise KeyError(f"no table '{name}'; there is {', '.join(tables)}")
        settings, own = schema(self._kinds, tables[name])
        parts = self._folder.parts(name)
        rows = self._folder.scan(parts, {**settings, **own}) if parts else pl.LazyFrame(schema={**settings, **own})
        if not self._numbers:
            return rows
        others = pl.exclude(list(settings))
        return rows.select(*settings, *(each.expression() for each in self._numbers), others)

    @property
    def workload(self) -> str:
        """What a run is: the name of the scenario and its flows, or the command, page or study."""
        scenario = tomllib.loads(self.plan["scenario"])
        with suppress(ValueError):
            # The plan may replace all flows.
            scenario |= tomllib.loads(f"flow = {flow}") if (flow := self.plan["set"].get("flow")) else {}
        flows = [self._flow_words(index, flow) for index, flow in enumerate(scenario.get("flow", []))]
        kinds = dict.fromkeys(flows)
        name = self.plan["set"].get("name") or str(scenario.get("name", Path(self.file).name))
        fixed = self.plan["set"]
        varies, sets = (
            any(key in each for key in ("bearer.preset", "flow.kind", "flow.0.kind") for each in places)
            for places in ((self.axes, *self.plan["given"]), (fixed,))
        )
        kind = fixed.get("flow.kind", fixed.get("flow.0.kind", "download"))
        if (varies or sets) and (own := name_after(self.plan["scenario"], fixed.get("bearer.preset"), kind)):
            # A name that has another preset or kind than the runs.
            name = "" if varies else own
        words = ", ".join(kinds) if isinstance(self.work, Simulation) else ""
        return f"{name}: {words}" if name and words else name or words

    def _flow_words(self, index: int, flow: Mapping[str, Any]) -> str:
        """Return kind and size of a flow as all cases have them; what they vary is left out."""
        found = {}
        for key in ("kind", "bytes"):
            paths = [f"flow.{which}{key}" for which in ("", f"{index}.", f"{flow.get('name')}.")]
            found[key] = next((self.plan["set"][path] for path in paths if path in self.plan["set"]), flow.get(key))
            if any(path in each for path in paths for each in (self.axes, *self.plan["given"])):
                found[key] = None
        if found["kind"] not in ("download", "upload") and has_download(self.plan["scenario"]):
            found["bytes"] = None  # other kinds have no size
        return (found["kind"] or "flow") + (f" of {found['bytes']}" if found["bytes"] else "")

    @property
    def scenario(self) -> str:
        """The path of a file with the scenario of this sweep.

        The one that was named, unless it is missing, was changed, or was no file.
        """
        path = Path(self.file)
        try:
            is_same = path.read_text(encoding="utf-8") == self.plan["scenario"]
        except (OSError, ValueError):
            is_same = False
        return self.file if is_same else str(self.path / SCENARIO)

    def present(self) -> list[str]:
        """Return the figures that have a value in some row."""
        import polars as pl

        found = []
        for table in self.work.tables():
            names = [name for name, of in self.figures.items() if of == table]
            counts = self.scan(table).select(pl.col(names).count()).collect().row(0) if names else ()
            found += [name for name, count in zip(names, counts, strict=True) if count]
        return found

    @property
    def figures(self) -> dict[str, str]:
        """The numeric columns, each with its table."""
        return figures(self.work)

    def flow_names(self, figure: str) -> list[str]:
        """Return the groups of the flows that have a figure; none if its table has no names.

        A group has the flows of a table over a group of mobiles, and its name; a flow that is
        alone keeps its own name.

        Raises:
            KeyError: No table has the figure.
        """
        import polars as pl

        if self._table_of(figure) != "flows":
            return []
        rows = (
            self.scan("flows").drop_nulls(figure).join(self._flow_groups, on=("name", "mobile"), maintain_order="left")
        )
        named = rows.group_by("_group").agg(pl.col("flow").min()).sort("flow").collect()
        return named["_group"].to_list()

    @cached_property
    def _flow_groups(self) -> "pl.LazyFrame":
        """The group of each flow by its name and that of its mobile."""
        import polars as pl

        flows = self.scan("flows").select("name", "mobile", _own=own_name()).unique(maintain_order=True).collect()
        names = group_names(
            flows.select("name", "mobile").iter_rows(), tomllib.loads(self.plan["scenario"]) | self.plan["set"]
        )
        rows = [(name, mobile, names[name, mobile] if own == name else own) for name, mobile, own in flows.iter_rows()]
        return pl.LazyFrame(rows, schema=dict.fromkeys(("name", "mobile", "_group"), pl.String), orient="row")

    def means_by_flow(self, figure: str) -> "pl.DataFrame":
        """Return `means` for each group of flows, with the column `flow`.

        Raises:
            KeyError: No table has the figure.
        """
        import polars as pl

        parts = [self.means(figure, flow=name).with_columns(flow=pl.lit(name)) for name in self.flow_names(figure)]
        if not parts:
            return self.means(figure)
        settings = ("case", *self.axes, *self.number_axes)
        return pl.concat(parts).sort("case", maintain_order=True).select(*settings, "flow", *_MEAN)

    def means(self, figure: str, *, flow: str | None = None) -> "pl.DataFrame":
        """Return the mean of a figure by case, with its 95 % interval by Student's t.

        A repetition counts once: the mean over its rows that have a value.

        Args:
            figure: A numeric column of a table.
            flow: The name of a flow or of a group; by default all flows.

        Raises:
            KeyError: No table has the figure.
        """
        import polars as pl

        rows = self.scan(self._table_of(figure))
        if flow is not None:
            rows = rows.join(self._flow_groups, on=("name", "mobile"), maintain_order="left")
            rows = rows.filter((pl.col("_group") == flow) | (pl.col("name") == flow))
        settings = ("case", *self.axes, *self.number_axes)
        return mean_intervals(rows, figure, settings).sort("case")

    def __repr__(self) -> str:
        state = "complete" if self.complete else "partial"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<airpath.SweepResult {number_of(len(self.plan['cases']), 'case')}, {state}{failed}, in {self.path}>"

    def _repr_html_(self) -> str:
        from airpath.notebook import table

        cases = self.cases.drop(self.number_axes)
        rows = [["" if value is None else str(value) for value in row] for row in cases.iter_rows()]
        state = "complete" if self.complete else "partial"
        return table(self.file, f", {state}", cases.columns, rows, rest="in .cases", below=f"in {self.path}")
