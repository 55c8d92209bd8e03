"""The folder of a sweep: its plan, its finished tasks, its rows.

| file | what |
| --- | --- |
| `sweep.json` | the resolved plan, its tasks' size, its input files, whether the sweep is complete |
| `scenario.toml` | the text of the scenario |
| `flows/TASK.parquet` | the rows of a finished task: one per flow and run |
| `TABLE/TASK.parquet` | its rows of further tables, such as `pages` |
| `failed/TASK.json` | what failed in a task: overrides, repetitions and error of each batch |
| `lock` | locked while a sweep writes here |

A task is finished when the Parquet file of the first table of `Work.tables` is there: it is written
last. Files are written beside and renamed, so what is there is complete.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.files import write_bytes, write_text
from airpath.next_step import WithNextStep
from airpath.result import scan_parquet
from airpath.sweep.plan import Plan
from airpath.sweep.task import Outcome
from airpath.sweep.work import Task, Work

if TYPE_CHECKING:
    import polars as pl

SCHEMA = 3
"""Version of the folder."""

SCENARIO = "scenario.toml"
_PLAN, _FAILED, _LOCK = "sweep.json", "failed", "lock"

_STATE_KEYS = {"airpath": str, "complete": bool, "runs_per_task": int, "file": str, "plan": dict}
_PLAN_KEYS: dict[str, type | tuple[type, ...]] = {
    "scenario": str,
    "seed": int,
    "columns": list,
    "cases": list,
    "repeat": (int, dict),
    "set": dict,
    "work": dict,
    "labels": list,
    "given": list,
}
"""The keys of `sweep.json` and of its plan, with their types."""


class SweepFolderError(WithNextStep):
    """A folder cannot be used for a sweep. The message has the fault and the next step."""


class SweepFolder:
    """The folder of one sweep."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inputs: dict[str, str] = {}
        """The digests of the files that the scenario names."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock during the block; it is created if it is missing.

        Raises:
            SweepFolderError: Another sweep writes there, or it holds something else.
            OSError: It cannot be written.
        """
        if self.path.exists() and not self.path.is_dir():
            raise SweepFolderError(f"{self.path} is a file", next_step="name a folder")
        if self.path.is_dir() and not (self.path / _LOCK).exists() and any(self.path.iterdir()):
            raise SweepFolderError(
                f"{self.path} is not empty and holds no sweep", next_step="name a new or an empty folder"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        # The lock comes first: it marks the folder as that of a sweep.
        with (self.path / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SweepFolderError(
                    f"{self.path}: another sweep writes to this folder",
                    next_step="wait for its end, or name another folder",
                ) from None
            (self.path / _FAILED).mkdir(exist_ok=True)
            yield

    def begin(self, plan: Plan, version: str, runs_per_task: int) -> int:
        """Store the plan, or compare it with the stored one. Return the runs of a task.

        Raises:
            SweepFolderError: The folder holds another plan, or rows of another version.
        """
        for table in plan.work.tables():
            (self.path / table).mkdir(exist_ok=True)
        if not (self.path / _PLAN).exists():
            self._inputs = _inputs_of(plan)
            write_text(self.path / SCENARIO, plan.text)
            self._save(plan, version, runs_per_task, complete=False)
            return runs_per_task
        state = self.state()
        if state["airpath"] != version:
            raise SweepFolderError(
                f"{self.path}: airpath {state['airpath']} wrote its rows, this is {version}",
                next_step="name another folder",
            )
        stored, wanted = state["plan"], json.loads(json.dumps(plan.to_dict()))
        if changed := [key for key in wanted if stored.get(key) != wanted[key]]:
            raise SweepFolderError(
                f"{self.path}: holds a sweep of another plan (changed: {', '.join(changed)})",
                next_step="name another folder, or undo the change to continue that sweep",
            )
        self._inputs = state.get("inputs", {})
        if not state["complete"]:
            found = _inputs_of(plan)
            for file, digest in self._inputs.items():
                if found.get(file, digest) != digest:
                    raise SweepFolderError(
                        f"{self.path}: {file} has changed since the sweep began",
                        next_step="name another folder, or undo the change to continue that sweep",
                    )
        return state["runs_per_task"]

    def holds_plan(self) -> bool:
        """Return whether a sweep began here."""
        return (self.path / _PLAN).is_file()

    def state(self) -> dict[str, Any]:
        """Return the contents of `sweep.json`.

        Raises:
            SweepFolderError: There is no sweep, or it is damaged or of another version.
        """
        path = self.path / _PLAN
        if not path.is_file():
            raise SweepFolderError(
                f"{self.path}: no sweep, as it has no {_PLAN}", next_step="`airpath sweep` writes one"
            )
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SweepFolderError(f"{path}: damaged: {error}") from None
        if not isinstance(state, dict) or state.get("schema") != SCHEMA:
            raise SweepFolderError(f"{path}: is not of schema {SCHEMA}", next_step="repeat the sweep in another folder")
        for keys, data in ((_STATE_KEYS, state), (_PLAN_KEYS, state.get("plan"))):
            for key, kinds in keys.items():
                if not isinstance(data, dict) or not isinstance(data.get(key), kinds):
                    raise SweepFolderError(f"{path}: damaged: '{key}'", next_step="repeat the sweep in another folder")
        return state

    def reopen(self, plan: Plan, version: str, runs_per_task: int) -> None:
        """Mark the sweep as not complete."""
        self._save(plan, version, runs_per_task, complete=False)

    def end(self, plan: Plan, version: str, runs_per_task: int) -> None:
        """Mark the sweep as complete."""
        self._save(plan, version, runs_per_task, complete=True)

    def _save(self, plan: Plan, version: str, runs_per_task: int, *, complete: bool) -> None:
        state = {
            "schema": SCHEMA,
            "airpath": version,
            "complete": complete,
            "runs_per_task": runs_per_task,
            "file": plan.file,
            "inputs": self._inputs,
            "plan": plan.to_dict(),
        }
        write_text(self.path / _PLAN, json.dumps(state, ensure_ascii=False))

    def add(self, task: Task, outcome: Outcome) -> None:
        """Write the outcome of a task."""
        failed = self.path / _FAILED / f"{task.name}.json"
        if outcome.failures:
            write_text(failed, json.dumps([asdict(each) for each in outcome.failures], indent=1))
        # After new failures, as the first table marks the task as finished; before those of an
        # earlier start are removed, as the rows of that start are incomplete.
        for table in reversed(task.work.tables()):
            part = self.part(table, task.name)
            if table in outcome.tables:
                write_bytes(part, outcome.tables[table])
            else:
                part.unlink(missing_ok=True)
        if not outcome.failures:
            failed.unlink(missing_ok=True)

    def part(self, table: str, task: str) -> Path:
        """The path of a task's rows of a table."""
        return self.path / table / f"{task}.parquet"

    def scan(self, parts: list[Path], types: "Mapping[str, type[pl.DataType]]") -> "pl.LazyFrame":
        """Return parts of a table as a lazy frame with these columns, null where a part lacks one.

        Raises:
            UnreadableResultError: One is damaged.
        """
        return scan_parquet(parts, "repeat the sweep in another folder", types)

    def parts(self, table: str) -> list[Path]:
        """The rows of a table of all finished tasks."""
        return sorted((self.path / table).glob("*.parquet"))

    def finished(self, work: Work) -> set[str]:
        """Return the names of the finished tasks, those with a failure included."""
        return {path.stem for path in self.parts(next(iter(work.tables())))}

    def failed(self) -> set[str]:
        """Return the names of the tasks with a failure."""
        return {path.stem for path in (self.path / _FAILED).glob("*.json")}

    def failures(self) -> list[dict[str, Any]]:
        """Return what failed."""
        files = sorted((self.path / _FAILED).glob("*.json"))
        return [failure for file in files for failure in json.loads(file.read_text(encoding="utf-8"))]


def _inputs_of(plan: Plan) -> dict[str, str]:
    """Return the files that the scenario of the first case names, each with its digest.

    Files that cannot be read are left out: the runs report them.
    """
    from airpath import _native

    try:
        files = _native.files(plan.text, plan.file, plan.overrides(0))
        return {str(file): sha256(Path(file).read_bytes()).hexdigest() for file in files}
    except (OSError, _native.ScenarioError):
        return {}
