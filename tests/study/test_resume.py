"""A study in a folder: what is finished is not run again, on any executor, with the same rows."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from airpath import study
from airpath.run import execute
from airpath.study import simulation
from airpath.sweep import SweepFolderError, SweepResult
from support import Command
from support.executors import Inline

ONLY = ["rtt", "utilisation-20kB"]


def run(**options: Any) -> study.StudyResult:
    return study.run("hsdpa-sim", only=ONLY, repeat=4, **options)


def samples(result: study.StudyResult) -> list[tuple[float, ...]]:
    return [row.samples for row in result.rows]


def test_an_interrupted_study_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(named["set"])
        if len(calls) == 7:
            raise KeyboardInterrupt
        return execute(*arguments, **named)

    monkeypatch.setattr(simulation, "execute", interrupted)
    partial = run(out=tmp_path / "out")
    assert {row.experiment for row in partial.rows} == {"rtt"}
    assert not SweepResult(tmp_path / "out" / "utilisation-20kB").complete
    done = len(list((tmp_path / "out").glob("*/metrics/*.parquet")))
    whole = run(out=tmp_path / "out")
    # Each of the 4 and 9 cases once, and the one that was interrupted again.
    assert (done, len(calls)) == (6, 14)
    assert samples(whole) == samples(run())
    with pytest.raises(SweepFolderError, match=r"another plan \(changed: seed\)"):
        run(out=tmp_path / "out", seed=99)


def test_the_failure_of_this_start_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(message: str, at: int) -> Any:
        calls: list[Any] = []

        def raising(*arguments: Any, **named: Any) -> Any:
            calls.append(named)
            if len(calls) == at:
                raise study.StudyError(message)
            return execute(*arguments, **named)

        return raising

    class Late(Inline):
        """An executor whose first task does not end."""

        submitted = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
            self.submitted += 1
            return Future() if self.submitted == 1 else super().submit(fn, *args, **kwargs)

    monkeypatch.setattr(simulation, "execute", failing("an earlier failure", 1))
    with pytest.raises(study.StudyError, match="an earlier failure"):
        run(out=tmp_path / "out", executor=Inline())
    # The task that failed is run again, and has not ended when another one fails.
    monkeypatch.setattr(simulation, "execute", failing("a new failure", 1))
    with pytest.raises(study.StudyError, match="a new failure"):
        run(out=tmp_path / "out", executor=Late(), workers=2)


def test_the_rows_are_the_same_in_parts_on_an_executor() -> None:
    with ThreadPoolExecutor(2) as threads:
        parts = run(executor=threads, workers=2)
    assert samples(parts) == samples(run())


def test_the_rows_with_observations_are_the_same_in_parts() -> None:
    with ThreadPoolExecutor(2) as threads:
        parts = study.run("proposals", only="bit-errors", repeat=4, executor=threads, workers=2)
    assert samples(parts) == samples(study.run("proposals", only="bit-errors", repeat=4))


def test_the_command_keeps_a_study(airpath_command: Command, tmp_path: Path) -> None:
    line = ("study", "run", "hsdpa-sim", "--only", "rtt", "--repeat", "2", "--format", "json", "--out", "kept")
    first = airpath_command(*line)
    assert airpath_command(*line).json == first.json
    assert (tmp_path / "kept" / "rtt" / "sweep.json").is_file()
    wrong = airpath_command(*line, "--seed", "7")
    assert (wrong.code, "another plan" in wrong.err) == (2, True)
    assert airpath_command(*line, "--workers", "2").code == 2
