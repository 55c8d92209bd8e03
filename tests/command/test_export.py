"""`airpath export`: what other programs get is what the frames hold."""

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import export
from airpath.tables import EVENT_TABLES
from support import Command

CALLS = """
format = 1
name = "calls"
duration = "60 s"
bearer.preset = "gprs-3+1"
bearer.conditions.environment = "walking"
[[flow]]
kind = "download"
bytes = "20 kB"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    return airpath.run(CALLS, out=tmp_path_factory.mktemp("result") / "run")


@pytest.fixture(scope="module")
def trace(result: airpath.Result, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = export.perfetto(result, tmp_path_factory.mktemp("trace") / "trace.json")
    return json.loads(path.read_text())["traceEvents"]


def test_each_table_is_a_file(result: airpath.Result, tmp_path: Path) -> None:
    files = export.csv(result, tmp_path / "tables")
    assert {file.stem for file in files} == {*EVENT_TABLES, "flows", "links", "radio-totals", "repetitions", "settings"}
    with (tmp_path / "tables" / "states.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(EVENT_TABLES["states"])
    assert len(rows) == result.states.height
    assert [int(row["time"]) for row in rows] == result.states["time"].to_list()
    schemes = result.states.filter(aspect="scheme")["name"].to_list()
    assert [row["name"] for row in rows if row["aspect"] == "scheme"] == schemes
    assert {"cs-1", "cs-2"} >= set(schemes) > set()


def test_a_trace_has_the_states_as_slices(result: airpath.Result, trace: list[dict[str, Any]]) -> None:
    tracks = {
        (each["pid"], each["tid"]): each["args"]["name"]
        for each in trace
        if each["ph"] == "M" and each["name"] == "thread_name"
    }
    modes = [each for each in trace if each["ph"] == "X" and tracks[each["pid"], each["tid"]] == "mode"]
    states = result.states.filter(aspect="mode")
    assert [each["name"] for each in modes] == states["name"].to_list()
    assert [each["ts"] for each in modes] == pytest.approx((states["time"] / 1e3).to_list())
    for one, following in pairwise(modes):
        assert one["ts"] + one["dur"] == pytest.approx(following["ts"], abs=1)
    assert {"mode", "cell", "scheme down", "tbf up"} <= set(tracks.values())


def test_a_trace_has_numbers_as_counters(result: airpath.Result, trace: list[dict[str, Any]]) -> None:
    counters = [each for each in trace if each["ph"] == "C"]
    ratios = [
        each["args"]["carrier-to-interference"] for each in counters if each["pid"] == 1 and "slots" not in each["name"]
    ]
    logged = result.states.filter(aspect="carrier-to-interference")["number"].to_list()
    assert [ratios[0], max(ratios)] == [logged[0], max(logged)]
    names = {each["pid"]: each["args"]["name"] for each in trace if each["name"] == "process_name"}
    assert {"mobile", "cell", "fixed", "flow download"} <= set(names.values())
    cell = next(pid for pid, name in names.items() if name == "cell")
    inside = [each["args"]["bytes"] for each in counters if each["pid"] == cell and each["name"] == "inside down"]
    assert min(inside) == 0 < max(inside)


def test_the_command_writes_both(airpath_command: Command, result: airpath.Result, tmp_path: Path) -> None:
    done = airpath_command("export", result.path, "--format", "perfetto", "-o", tmp_path / "trace.json")
    assert (done.code, done.out.strip()) == (0, str(tmp_path / "trace.json"))
    done = airpath_command("export", result.path, "-o", tmp_path / "tables")
    assert done.code == 0
    assert all(Path(line).is_file() for line in done.out.split())
    assert airpath_command("export", tmp_path, "-o", tmp_path / "x").code == 2
    assert airpath_command("export", result.path, "-o", tmp_path / "x", "--repetition", "0").code == 2
    wrong = airpath_command("export", result.path, "-o", tmp_path / "x", "--format", "perfetto", "--repetition", "7")
    assert (wrong.code, "has no repetition 7" in wrong.err) == (2, True)
