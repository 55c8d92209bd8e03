"""A result folder: its summary and its tables, as frames.

| file | what |
| --- | --- |
| `scenario.toml` | the resolved scenario with its seed: it yields the same result again |
| `inputs/` | copies of the files that the scenario names, such as recorded links |
| `summary.json` | figures of each flow, link, radio user and repetition; `schema` is 2 |
| `events/TABLE/*.parquet` | the event log, one row per event; times are nanoseconds from the run's origin |
| `captures/*.pcapng` | captures at the server and at the mobile, with `capture` |
"""

import json
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.next_step import WithNextStep
from airpath.quantities import number_of
from airpath.tables import EVENT_TABLES, FIGURES, OPTIONAL_TABLES, PROXY, SUMMARY_TABLES, TCP_SETTING, flat_rows

if TYPE_CHECKING:
    import tempfile

    import polars as pl

SCHEMA = 2
"""The summary schema that this version reads."""

SUMMARY_FRAMES = (
    "flows",
    "links",
    "radio_totals",
    "mobiles",
    "pages",
    "objects",
    "buffers",
    "segments",
    "scripts",
    "middleboxes",
    "repetitions",
    "settings",
)
"""The frames of `Result` that are made from the summary."""


class UnreadableResultError(WithNextStep):
    """A folder is not a readable result. The message has the file, the fault and the next step."""


class NotLoggedError(LookupError):
    """The run did not log this event table."""


class Result:
    """The result of a run, in its folder.

    Args:
        path: The result folder.

    Raises:
        UnreadableResultError: The folder is no result, is damaged, or was written by another
            version.
    """

    path: Path
    """The result folder."""
    summary: dict[str, Any]
    """The contents of `summary.json`."""
    label: str | None
    """Its name in figures; `None` for that of its scenario."""
    left_out: tuple[int, ...]
    """In a `complete_part`, the repetitions that it lacks."""

    def __init__(self, path: str | Path, *, _temporary: "tempfile.TemporaryDirectory[str] | None" = None) -> None:
        self.path = Path(path)
        self._temporary = _temporary  # removed from disk when this object is
        self.summary = _read_summary(self.path)
        self.label = None
        self.left_out = ()

    @property
    def complete(self) -> bool:
        """Whether the run finished; `stopped` has the reason if not."""
        return bool(self.summary["complete"])

    @property
    def stopped(self) -> str | None:
        """Why the run stopped before its end: `"interrupted"`, or the text of an error."""
        return self.summary["stopped"]

    @property
    def is_temporary(self) -> bool:
        """Whether the folder is removed with this object."""
        return self._temporary is not None

    @cached_property
    def complete_part(self) -> "Result":
        """This result without its interrupted repetitions, whose figures would bias means.

        It is the whole result if no repetition was interrupted, or if none is complete.
        """
        cut = cut_repetitions(self.summary)
        if not cut:
            return self
        part = Result.__new__(Result)
        part.path, part.label, part._temporary = self.path, self.label, self._temporary
        part.summary, part.left_out = complete_part(self.summary), tuple(sorted(cut))
        return part

    @cached_property
    def scenario(self) -> str:
        """The resolved scenario as TOML, with its seed.

        Paths in it are relative to the result folder.
        """
        return _read_text(self.path / "scenario.toml")

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """One row per flow and repetition; seconds (`…_s`), bits per second (`…_bps`), bytes.

        `settings` has the TCP settings of these flows.
        """
        return self._flows_and_settings[0]

    def means(self, figure: str) -> "pl.DataFrame":
        """Return the mean of a column of `flows` by the name of the flow, with its 95 % interval.

        A repetition counts once: the mean over its flows of that name that have a value. Those that
        were interrupted do not count while others are complete.

        Raises:
            KeyError: `flows` has no such figure.
        """
        from airpath.statistics import mean_intervals
        from airpath.suggest import did_you_mean

        if figure not in FIGURES:
            raise KeyError(f"no figure '{figure}'{did_you_mean(figure, FIGURES)}")
        return mean_intervals(self.complete_part.flows.lazy(), figure, ["name"]).rename({"name": "flow"})

    @cached_property
    def settings(self) -> "pl.DataFrame":
        """One row per flow and repetition, in the order of `flows`: the settings of its TCP."""
        return self._flows_and_settings[1]

    @cached_property
    def _flows_and_settings(self) -> "tuple[pl.DataFrame, pl.DataFrame]":
        rows = self._summary_frame("flows")
        settings = [name for name in rows.columns if name.startswith(TCP_SETTING)]
        named = rows.select("repetition", "flow", "name", *settings)
        return rows.drop(settings), named.rename({name: name.removeprefix(TCP_SETTING) for name in settings})

    @cached_property
    def links(self) -> "pl.DataFrame":
        """One row per link or bearer, direction and repetition.

        Offered = delivered + dropped + still queued.
        """
        return self._summary_frame("links")

    @cached_property
    def radio_totals(self) -> "pl.DataFrame":
        """One row per radio user, direction and repetition.

        TTIs and PDUs used, PDUs repeated and errored.
        """
        return self._summary_frame("radio")

    @cached_property
    def mobiles(self) -> "pl.DataFrame":
        """One row per interface of a mobile and repetition: handovers, set-ups, link failures."""
        return self._summary_frame("mobiles")

    @cached_property
    def pages(self) -> "pl.DataFrame":
        """One row per view of a web page: page time, first byte, connections, pipelining.

        Times in seconds from the start of the view, but for `start_s`.
        """
        return self._summary_frame("pages")

    @cached_property
    def objects(self) -> "pl.DataFrame":
        """One row per object of a view: when it was found, requested and received.

        Times in seconds from the start of the view.
        """
        return self._summary_frame("objects")

    @cached_property
    def buffers(self) -> "pl.DataFrame":
        """One row per second of a video's playback: its playout buffer, and whether it plays.

        Times in seconds from the start of the flow.
        """
        return self._summary_frame("buffers")

    @cached_property
    def segments(self) -> "pl.DataFrame":
        """One row per segment of a video over HTTP: its quality, and when it was loaded.

        Times in seconds from the start of the flow.
        """
        return self._summary_frame("segments")

    @cached_property
    def scripts(self) -> "pl.DataFrame":
        """One row per sequence of exchanges of a kind, of terminals and mail: which are what."""
        return self._summary_frame("scripts")

    @cached_property
    def middleboxes(self) -> "pl.DataFrame":
        """One row per counter of a middlebox: what a proxy did with HTTP."""
        return self._summary_frame("middleboxes")

    @cached_property
    def repetitions(self) -> "pl.DataFrame":
        """One row per repetition: the simulated seconds, and how it ended."""
        return self._summary_frame("repetitions")

    @cached_property
    def packets(self) -> "pl.DataFrame":
        """One row per step of a packet: sent, queued, delivered, dropped, received.

        Times in nanoseconds.
        """
        return self._event_frame("packets")

    @cached_property
    def tcp(self) -> "pl.DataFrame":
        """One row per change of a TCP sender.

        Its windows in bytes, its round trips in nanoseconds.
        """
        return self._event_frame("tcp")

    @cached_property
    def quic(self) -> "pl.DataFrame":
        """One row per packet of QUIC that an end sent or declared lost.

        Times in nanoseconds.
        """
        return self._event_frame("quic")

    @cached_property
    def radio(self) -> "pl.DataFrame":
        """One row per user and TTI: the PDUs sent, repeated and errored. Times in nanoseconds."""
        return self._event_frame("radio")

    @cached_property
    def states(self) -> "pl.DataFrame":
        """One row per change in the state of a radio connection: its new `name` or `number`.

        Times in nanoseconds.
        """
        return self._event_frame("states")

    @cached_property
    def app(self) -> "pl.DataFrame":
        """One row per step of an application: started, connected, first byte, finished, arrived.

        Nanoseconds.
        """
        return self._event_frame("app")

    @cached_property
    def changes(self) -> "pl.DataFrame":
        """One row per change of conditions: an outage, a handover, a new rate.

        Times in nanoseconds.
        """
        return self._event_frame("changes")

    def scan(self, table: str) -> "pl.LazyFrame":
        """Return an event table as a lazy frame, for logs that do not fit into memory.

        Its rows are in the order of writing: by repetition, and for each component by time. The
        properties of the same names are sorted by time.

        Args:
            table: `packets`, `tcp`, `quic`, `radio`, `states`, `app` or `changes`.

        Raises:
            KeyError: There is no table of that name.
            NotLoggedError: The run did not log that table.
            UnreadableResultError: A file of the table is damaged.
        """
        import polars as pl

        if table not in EVENT_TABLES:
            raise KeyError(f"no event table '{table}'; there are {', '.join(EVENT_TABLES)}")
        if not self._is_logged(table):
            raise NotLoggedError(
                f"{self.path} has no '{table}' table: the run did not log it; run the scenario again with this log on"
            )
        types = {name: getattr(pl, kind) for name, kind in EVENT_TABLES[table].items()}
        parts = sorted((self.path / "events" / table).glob("*.parquet"))
        if not parts:
            return pl.LazyFrame(schema=types)
        logged = scan_parquet(parts, "run the scenario again").filter(~pl.col("repetition").is_in(list(self.left_out)))
        # Results of earlier versions lack columns.
        known = logged.collect_schema().names()
        columns = {name: pl.col(name) if name in known else pl.lit(None) for name in types}
        return logged.select(columns[name].cast(kind).alias(name) for name, kind in types.items())

    def scan_radio_senders(self) -> "pl.LazyFrame":
        """Return the table `tcp` of the senders whose data crosses the radio.

        With a proxy in the path these are its ends towards the mobiles, and the mobiles.

        Raises:
            NotLoggedError: The run did not log that table.
        """
        import polars as pl

        senders = self.scan("tcp")
        if all(component["name"] != PROXY for component in self.summary["components"]):
            return senders
        return senders.filter((pl.col("component") == PROXY) == (pl.col("direction") == "down"))

    def columns(self, table: str) -> "pl.DataFrame":
        """Return the columns of a table: their name, type, unit, and of event tables their meaning.

        The unit is that of the numbers: ns, s, B, bit/s or 1/s. It is null for counts, shares and
        texts.

        Args:
            table: A property of this object: `flows`, `links`, `packets`, and so on.

        Raises:
            KeyError: There is no table of that name.
        """
        import polars as pl

        from airpath.columns import event_columns, unit_of

        if table in EVENT_TABLES:
            known = event_columns(table)
            rows = [(name, kind, *known[name]) for name, kind in EVENT_TABLES[table].items()]
        elif table in SUMMARY_FRAMES:
            frame: pl.DataFrame = getattr(self, table)
            rows = [(name, str(kind), unit_of(name), None) for name, kind in frame.schema.items()]
        else:
            raise KeyError(f"no table '{table}'; there are {', '.join((*SUMMARY_FRAMES, *EVENT_TABLES))}")
        return pl.DataFrame(
            rows, schema=dict.fromkeys(("column", "type", "unit", "description"), pl.String), orient="row"
        )

    def captures(self) -> list[Path]:
        """Return the pcapng captures, in order of repetition; none if the run made none."""
        return sorted((self.path / "captures").glob("*.pcapng"))

    def _event_frame(self, table: str) -> "pl.DataFrame":
        return self.scan(table).sort("repetition", "time", maintain_order=True).collect()

    def _is_logged(self, table: str) -> bool:
        if not (self.path / "events").is_dir():
            return False
        # The keys `log.radio` and `log.packets` control a second table each.
        key = {"states": "radio", "quic": "packets"}.get(table, table)
        return tomllib.loads(self.scenario).get("log", {}).get(key, True)

    def _summary_frame(self, table: str) -> "pl.DataFrame":
        import polars as pl

        types = {name: getattr(pl, kind) for name, kind in SUMMARY_TABLES[table].items()}
        rows = flat_rows(table, self.summary.get(table, []))
        if not rows:
            return pl.DataFrame(schema=types)
        return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)

    def __repr__(self) -> str:
        summary = self.summary
        state = "complete" if self.complete else f"partial: {self.stopped}"
        what = f"'{summary['scenario']}' seed {summary['seed']}, {number_of(len(summary['flows']), 'flow')}"
        return f"<airpath.Result {what}, {state}, in {self.path}>"

    def _repr_html_(self) -> str:
        from airpath.notebook import html

        return html(self.path, self.summary)


def load(path: str | Path) -> Result:
    """Open a result folder.

    Raises:
        UnreadableResultError: The folder is no result, is damaged, or was written by another
            version.
    """
    return Result(path)


def cut_repetitions(summary: Mapping[str, Any]) -> set[int]:
    """Return the repetitions that were interrupted; none if there is no complete one."""
    ended = {each["repetition"]: each["ended"] for each in summary["repetitions"]}
    cut = {repetition for repetition, how in ended.items() if how == "interrupted"}
    return cut if len(cut) < len(ended) else set()


def complete_part(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without the rows of the repetitions that were interrupted."""
    cut = cut_repetitions(summary)
    tables = (name for name in SUMMARY_TABLES if name in summary)
    return summary | {name: [row for row in summary[name] if row["repetition"] not in cut] for name in tables}


def scan_parquet(
    parts: list[Path], next_step: str, types: "Mapping[str, type[pl.DataType]] | None" = None
) -> "pl.LazyFrame":
    """Return Parquet files as a lazy frame, after a check of their footers.

    Args:
        parts: The files.
        next_step: What to do if one is damaged.
        types: The columns of the frame; by default those of the files. A column that a file of an
            earlier version lacks is null.

    Raises:
        UnreadableResultError: A file is cut or damaged; the message has the next step.
    """
    import polars as pl

    alike: dict[frozenset[str], list[Path]] = {}
    for part in parts:
        try:
            names = pl.read_parquet_schema(part)
        except pl.exceptions.PolarsError as error:
            raise UnreadableResultError(f"{part}: damaged: {str(error).splitlines()[0]}", next_step=next_step) from None
        alike.setdefault(frozenset(names), []).append(part)
    if types is None:
        return pl.scan_parquet(parts)

    def columns(present: frozenset[str]) -> "list[pl.Expr]":
        return [pl.col(name) if name in present else pl.lit(None, kind).alias(name) for name, kind in types.items()]

    return pl.concat(pl.scan_parquet(each).select(columns(present)) for present, each in alike.items())


def is_result(folder: Path) -> bool:
    """Return whether a run wrote this folder, complete or not."""
    return (folder / "summary.json").is_file() or (folder / "scenario.toml").is_file()


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    if folder.is_file():
        raise UnreadableResultError(
            f"{folder} is a file, not a result folder",
            next_step="name the folder of a result; `airpath trace` reads captures",
        )
    if not folder.is_dir():
        raise UnreadableResultError(
            f"{folder}: no such result folder", next_step=f"`airpath run SCENARIO.toml --out {folder}` makes one"
        )
    if not path.is_file():
        from airpath.input_kind import kind_of_folder

        if (kind := kind_of_folder(folder)) is not None:
            raise UnreadableResultError(f"{folder} is {kind[0]}, not a result", next_step=f"{kind[1]}")
        raise UnreadableResultError(
            f"{folder}: no result, as it has no summary.json", next_step="name a folder that `airpath run --out` wrote"
        )
    try:
        summary = json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise UnreadableResultError(
            f"{path}:{error.lineno}: damaged: {error.msg.lower()}", next_step="run the scenario beside it again"
        ) from None
    if not isinstance(summary, dict) or not isinstance(summary.get("schema"), int):
        raise UnreadableResultError(
            f"{path}: damaged: it has no schema number", next_step="run the scenario beside it again"
        )
    if summary["schema"] != SCHEMA:
        next_step = "upgrade airpath" if summary["schema"] > SCHEMA else "run the scenario beside it again"
        raise UnreadableResultError(
            f"{path}: has schema {summary['schema']}, written by airpath {summary.get('airpath', '(unknown)')}",
            next_step=f"this version reads schema {SCHEMA}: {next_step}",
        )
    needed = ("airpath", "scenario", "seed", "complete", "stopped", *SUMMARY_TABLES)
    missing = [name for name in needed if name not in summary and name not in OPTIONAL_TABLES]
    if missing:
        raise UnreadableResultError(
            f"{path}: damaged: it has no '{missing[0]}'", next_step="run the scenario beside it again"
        )
    return summary


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableResultError(
            f"{path}: missing", next_step="the result folder is incomplete, run the scenario again"
        ) from None
    except UnicodeDecodeError:
        raise UnreadableResultError(f"{path}: damaged: it is not text", next_step="run the scenario again") from None
