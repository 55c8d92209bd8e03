"""`airpath run --vary` and `airpath.run(vary=…)`: a sweep without a plan file."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.cli import main
from airpath.cli.run_vary import values_of
from support import DOWNLOAD, Command

AXES = {"bearer.bler": [0.0, 0.2], "tcp.congestion": ["reno", "cubic"]}
OPTIONS = ("--vary", "bearer.bler=0,0.2", "--vary", "tcp.congestion=reno, cubic", "--repeat", "2")


def test_the_parameters_are_columns() -> None:
    flows = airpath.run(DOWNLOAD, vary=AXES, repeat=2).flows
    assert flows.height == 8
    alone = airpath.run(DOWNLOAD, set={"bearer.bler": 0.2, "tcp.congestion": "reno"}, repeat=2)
    rows = flows.filter((pl.col("bearer.bler") == 0.2) & (pl.col("tcp.congestion") == "reno"))
    assert rows["duration_s"].to_list() == alone.flows["duration_s"].to_list()


def test_a_script_on_standard_input_can_vary() -> None:
    script = f"import airpath\nprint(airpath.run({DOWNLOAD!r}, vary={AXES!r}).flows.height)"
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout == "4\n"


def test_a_script_on_standard_input_has_no_processes() -> None:
    script = f"import airpath\nplan = airpath.make_plan({DOWNLOAD!r}, {AXES!r})\nairpath.sweep(plan)\n"
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=False)
    assert "ExecutorLostError: the executor takes no tasks: its processes import the script" in done.stderr
    threads = "from concurrent.futures import ThreadPoolExecutor\n" + script.replace(
        "sweep(plan)", "sweep(plan, executor=ThreadPoolExecutor())"
    )
    subprocess.run([sys.executable, "-"], input=threads, text=True, check=True)


def test_progress_counts_runs() -> None:
    calls: list[tuple[int, int]] = []
    airpath.run(DOWNLOAD, vary=AXES, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (4, 4)


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ({"bearer.blr": [0.1]}, "bearer.blr"),
        ({"bearer.bler": [2]}, "not a probability"),
        ({"bearer.bler": []}, "no values"),
    ],
)
def test_wrong_values_run_nothing(vary: dict[str, list[float]], words: str) -> None:
    with pytest.raises(airpath.PlanError, match=words):
        airpath.run(DOWNLOAD, vary=vary)


@pytest.mark.parametrize("vary", [{}, {"vary": AXES}])
@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"threads": 0}, ValueError, "threads is 0; a run has at least one"),
        ({"threads": -1}, ValueError, "threads is -1"),
        ({"threads": 1.5}, TypeError, "threads is a float; give a whole number"),
        ({"seed": -1}, ValueError, "seed is -1; select one from 0"),
        ({"repeat": 0}, ValueError, "repeat is 0; a run has at least one repetition"),
        ({"set": "a=1"}, TypeError, "set is a str; write a dictionary"),
        ({"set": {1: 2}}, TypeError, "a key of set has type int"),
        ({"log": "packets"}, TypeError, "log is a str; give True or False"),
        ({"capture": 1}, TypeError, "capture is a int; give True or False"),
    ],
)
def test_arguments_are_checked_as_without_vary(
    arguments: dict[str, Any], kind: type[Exception], words: str, vary: dict[str, Any]
) -> None:
    with pytest.raises(kind, match=words):
        airpath.run(DOWNLOAD, **arguments, **vary)


def test_means_that_are_not_printed_are_in_another_format(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("airpath.cli.sweep_output._MOST_ROWS", 3)
    line = ["run", "wired", "--vary", "fixed.loss=0,0.1", "--vary", "fixed.delay=1ms,2ms"]
    assert main(line) == 0
    assert "the first 3 of 4 rows; --format json prints all" in capsys.readouterr().err
    assert main([*line, "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_the_command_prints_means_or_rows(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    means = airpath_command("run", scenario(), *OPTIONS, "--format", "json").json
    assert [(each["bearer.bler"], each["tcp.congestion"], each["n"]) for each in means] == [
        (bler, algorithm, 2) for bler in (0.0, 0.2) for algorithm in ("reno", "cubic")
    ]
    text = airpath_command("run", scenario(), *OPTIONS).out
    assert "tcp.congestion" in text
    assert len(text.splitlines()) == 7
    rows = list(csv.DictReader(io.StringIO(airpath_command("run", scenario(), *OPTIONS, "--format", "csv").out)))
    assert [row["tcp.congestion"] for row in rows] == ["reno", "reno", "cubic", "cubic"] * 2
    lines = [
        json.loads(line) for line in airpath_command("run", scenario(), *OPTIONS, "--format", "jsonl").out.splitlines()
    ]
    assert sorted(line["bearer.bler"] for line in lines if line["type"] == "flow") == [0.0] * 4 + [0.2] * 4
    assert lines[-1] == {"type": "end", "complete": True, "failed": 0}


def test_a_folder_keeps_the_rows(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    path = scenario()
    done = airpath_command("run", path, *OPTIONS, "--out", "swept")
    assert "the rows are in swept" in done.err
    assert airpath.SweepResult(airpath_command.folder / "swept").flows.height == 8
    other = airpath_command("run", path, "--vary", "bearer.bler=0.1", "--out", "swept")
    assert other.code == 2
    assert "another plan" in other.err


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,0.5,true", [1, 0.5, True]),
        ("1_000, 0x10", [1000, 16]),
        ("1 kB,'2 kB'", ["1 kB", "2 kB"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"1",2', ['"1"', 2]),
        ("[1, 2],{a = [3, 4]}", ["[1, 2]", "{a = [3, 4]}"]),
        ("1e400,nan,99999999999999999999", ["1e400", "nan", "99999999999999999999"]),
        ("it's,1979-05-27", ["it's", "1979-05-27"]),
        ("1\nw = 2", ["1\nw = 2"]),
    ],
)
def test_values_are_those_of_toml(text: str, values: list[object]) -> None:
    assert [(type(each), each) for each in values_of([f"k={text}"])["k"]] == [(type(each), each) for each in values]


def test_rows_have_no_log(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    line = ("run", scenario(), "--vary", "bearer.bler=0.1,0.2", "--quiet")
    assert airpath_command(*line, "--no-log").out == airpath_command(*line).out != ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--vary", "bearer.bler=0.1", "--vary", "bearer.bler=0.2"], "--vary bearer.bler: given twice"),
        (["--vary", "bearer.bler=0.1", "--set", "bearer.bler=0.2"], "--set bearer.bler: --vary sets it, too"),
        (["--vary", 'tcp.congestion="reno'], "is not closed"),
        (["--vary", "bearer.bler=0.1", "--out", "swept", "--capture"], "--vary keeps rows only"),
    ],
)
def test_wrong_combinations_run_nothing(
    airpath_command: Command, scenario: Callable[..., Path], options: list[str], words: str
) -> None:
    done = airpath_command("run", scenario(), *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_the_next_step_of_a_wrong_value_is_apart(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    done = airpath_command("run", scenario(), "--vary", "bearer.preset=gprs,gprsx")
    assert "there is no preset `gprsx`\n  next: did you mean `gprs" in done.err, done.err


@pytest.mark.parametrize("wrong", ["bearer.bler", "bearer.bler=", "bearer.bler=0.1,,0.2", "bearer.bler=2"])
def test_a_wrong_option_is_named(airpath_command: Command, scenario: Callable[..., Path], wrong: str) -> None:
    done = airpath_command("run", scenario(), "--vary", wrong)
    assert done.code == 2
    assert "vary" in done.err
