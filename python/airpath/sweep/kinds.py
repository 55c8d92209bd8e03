"""What a run of a plan can be: a simulation, a command on a link, a page in a browser.

Each kind has tables. The rows of the first one mark a task as finished.
"""

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airpath.sweep.stopping import check_of_thread
from airpath.sweep.work import ENDS, Batch, Lines, Tables, Task, Work, lines_of
from airpath.tables import SUMMARY_TABLES, flat_rows

if TYPE_CHECKING:
    from airpath.link import Linked

VIEWS = {
    "repetition": "Int64",
    "view": "Int64",
    "page": "String",
    "page_time_s": "Float64",
    "first_byte_s": "Float64",
    "content_loaded_s": "Float64",
    "load_event_s": "Float64",
    "first_contentful_paint_s": "Float64",
    "largest_contentful_paint_s": "Float64",
    "speed_index_s": "Float64",
    "cumulative_layout_shift": "Float64",
    "requests": "Int64",
    "connections": "Int64",
}
"""The columns of `pages` for a real browser; those of `page.json`."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Each run is a simulation of the scenario."""

    kind: ClassVar[str] = "run"
    is_real_time: ClassVar[bool] = False
    trace: bool = False
    """Whether to analyse the captures of each run, too."""

    def tables(self) -> Tables:
        """Return the tables and their columns."""
        names = ("flows", "pages", "objects")
        return {name: SUMMARY_TABLES[name] for name in names} | _connections(self.trace)

    def run(self, task: Task, batch: Batch) -> Lines:
        """Run the repetitions of a batch, and return the rows of all tables."""
        from airpath import _native

        if self.trace:
            return _each(task, batch, self._run_with_captures)
        lines, ends = _native.run_rows(
            *(task.text, task.file, list(batch.overrides), task.seed, batch.first, batch.count),
            check_of_thread(),
        )
        return dict(zip(("flows", "pages", "objects"), lines, strict=True)) | {ENDS: _lines(ends)}

    @staticmethod
    def _run_with_captures(task: Task, batch: Batch, repetition: int, folder: Path) -> Lines:
        from airpath import _native

        text, _ = _native.run(
            *(task.text, task.file, list(batch.overrides), task.seed, repetition, 1),
            *(str(folder), True, False, 1, None),
        )
        summary = json.loads(text)
        return {
            **{name: lines_of(flat_rows(name, summary.get(name, []))) for name in ("flows", "pages", "objects")},
            "connections": _traced(folder, repetition, repetition),
            ENDS: _ends(summary),
        }


@dataclass(frozen=True, slots=True)
class LinkCommand:
    """Each run is a command on an emulated link."""

    kind: ClassVar[str] = "link"
    is_real_time: ClassVar[bool] = True
    command: tuple[str, ...]
    serve: str | None
    trace: bool = False
    """Whether to analyse the captures of each run, too."""

    def tables(self) -> Tables:
        """Return the tables and their columns."""
        return {"flows": SUMMARY_TABLES["flows"]} | _connections(self.trace)

    def run(self, task: Task, batch: Batch) -> Lines:
        """Run the command once for each repetition.

        Raises:
            RuntimeError: The command failed.
        """
        return _each(task, batch, self._run)

    def _run(self, task: Task, batch: Batch, repetition: int, folder: Path) -> Lines:
        from airpath.link import link

        linked = link(
            task.scenario,
            list(self.command),
            serve=self.serve,
            set=dict(batch.overrides),
            seed=task.seed + repetition,
            out=folder,
            capture=self.trace,
            capture_output=True,
        )
        if linked.returncode:
            errors = (linked.stderr or b"").decode(errors="replace").splitlines()
            reason = [line for line in errors if line.strip() and not line.startswith("note:")]
            raise RuntimeError(f"the command ended with {linked.returncode}: {reason[-1] if reason else ''}")
        return _flows(linked, repetition) | ({"connections": _traced(folder, 0, repetition)} if self.trace else {})


@dataclass(frozen=True, slots=True)
class PageLoad:
    """Each run loads a page in a real browser on an emulated link, as `airpath page load` does."""

    kind: ClassVar[str] = "page"
    is_real_time: ClassVar[bool] = True
    page: str
    """Its name, or the absolute path of a page file or a recorded site."""
    protocol: str = "http/1.1"
    compression: bool = True
    repeat_view: bool = False
    """Whether the browser loads it twice, with its cache."""

    @property
    def unused_recording(self) -> Path | None:
        """The folder of the recorded site whose description for the simulator is loaded instead."""
        from airpath.page.recording import HAR, PAGE

        path = Path(self.page)
        return path.parent if path.name == PAGE and (path.parent / HAR).is_file() else None

    def tables(self) -> Tables:
        """Return the tables and their columns."""
        return {"flows": SUMMARY_TABLES["flows"], "pages": VIEWS}

    def run(self, task: Task, batch: Batch) -> Lines:
        """Load the page once for each repetition.

        Raises:
            RuntimeError: The page was not loaded.
        """
        return _each(task, batch, self._run)

    def _run(self, task: Task, batch: Batch, repetition: int, folder: Path) -> Lines:
        from airpath.page.load import load

        loaded = load(
            self.page,
            task.scenario,
            folder,
            protocol=self.protocol,
            compression=self.compression,
            repeat_view=self.repeat_view,
            overrides=dict(batch.overrides),
            seed=task.seed + repetition,
        )
        if loaded.error is not None:
            raise RuntimeError(f"the page was not loaded: {loaded.error}")
        views = [{name: view.get(name) for name in VIEWS} | {"repetition": repetition} for view in loaded.views]
        return _flows(loaded.linked, repetition) | {"pages": lines_of(views)}


_OTHERS = {"study": ("airpath.study.simulation", "StudyMetrics")}
"""Kinds of other packages, which use this one: module and class."""


def from_dict(data: Mapping[str, Any]) -> Work:
    """Return the inverse of `to_dict`."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    kind = values.pop("kind")
    own = {each.kind: each for each in (Simulation, LinkCommand, PageLoad)}
    made = own[kind] if kind in own else getattr(import_module(_OTHERS[kind][0]), _OTHERS[kind][1])
    return made(**values)


def base_of(kind: str) -> Any:
    """Return the function that reads the base of a kind of another package from a plan."""
    return import_module(_OTHERS[kind][0]).read_base


def _connections(trace: bool) -> Tables:
    from airpath.trace.tables import TABLES

    return {"connections": {"repetition": "Int64", **TABLES["connections"]}} if trace else {}


def _each(task: Task, batch: Batch, run: Any) -> Lines:
    """Run each repetition in a folder of its own, and return the rows of all."""
    found: Lines = {}
    for repetition in range(batch.first, batch.first + batch.count):
        with tempfile.TemporaryDirectory(prefix="airpath-") as folder:
            for table, lines in run(task, batch, repetition, Path(folder) / "run").items():
                found[table] = found.get(table, "") + lines
    return found


def _flows(linked: "Linked", repetition: int) -> Lines:
    rows = flat_rows("flows", linked.result.summary["flows"])
    return {"flows": lines_of({**row, "repetition": repetition} for row in rows), ENDS: _ends(linked.result.summary)}


def _ends(summary: Mapping[str, Any]) -> str:
    return _lines(each["simulated_s"] for each in summary["repetitions"])


def _lines(ends: Iterable[float]) -> str:
    return "".join(f"{end}\n" for end in ends)


def _traced(folder: Path, number: int, repetition: int) -> str:
    """Return the connections of the captures of a result folder's repetition `number`."""
    from airpath.trace import trace

    rows = trace(folder, repetition=number).connections.iter_rows(named=True)
    return lines_of({"repetition": repetition, **row} for row in rows)
