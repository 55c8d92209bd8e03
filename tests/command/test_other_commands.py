"""`airpath presets`, `study` and `report`, the version and completion."""

import json
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import airpath
from airpath.cli.presets import list_presets
from airpath.preset import Figures
from airpath.quantities import rate
from support import ROOT, Command

_preset = sys.modules[Figures.__module__]  # `airpath.preset` is the function
PRESETS = {
    "wired",
    "umts-dch-64",
    "umts-dch-384",
    "hs-dsch-360",
    "hs-dsch-384",
    "hs-dsch-1152-shared",
    "hs-dsch-classes-abc",
    "recorded",
}


def test_the_version_is_the_workspaces(airpath_command: Command) -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert airpath_command("--version").out == f"airpath {cargo['workspace']['package']['version']}\n"


def test_presets_are_listed(
    airpath_command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = {each["name"]: each for each in airpath_command("presets", "list", "--format", "json").json}
    known = {name: each["figures"] for name, each in listed.items() if "figures" in each}
    monkeypatch.setenv("FORCE_COLOR", "")
    list_presets()
    text = capsys.readouterr().out
    assert listed.keys() >= PRESETS
    assert all(f"{name} " in text for name in PRESETS)
    assert "\x1b" not in text
    gprs = next(line for line in text.splitlines() if line.startswith("gprs-4+1 "))
    assert rate(known["gprs-4+1"]["down_bps"]) in gprs
    assert "figures" not in listed["driving"]
    for name, nominal in (("umts-dch-384", 384e3), ("hs-dsch-360", 360e3), ("wired", 100e6)):
        assert 0.85 * nominal < listed[name]["figures"]["down_bps"] < nominal
    assert 0.4 < listed["gprs-4+1"]["figures"]["round_trip_s"] < 1.0
    # In a connection, and with the set-up of one (docs/lte.md, "What a user sees").
    lte = listed["lte-10mhz"]["figures"]
    assert 0.025 < lte["round_trip_s"] < 0.035
    assert 0.27 < lte["idle_round_trip_s"] < 0.31


def test_the_stored_figures_of_presets_are_those_of_the_simulation() -> None:
    """With `AIRPATH_BLESS=1` it writes them."""
    bearers = [each for each in airpath.presets() if each.kind == "bearer"]
    text = _preset.stored_text(bearers)
    if os.environ.get("AIRPATH_BLESS"):
        _preset.STORED_FIGURES.write_text(text, encoding="utf-8")
    assert _preset.STORED_FIGURES.read_text(encoding="utf-8") == text, (
        "a model or preset has changed: run this test with AIRPATH_BLESS=1, and check the differences"
    )


def test_the_figures_of_a_changed_preset_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    wired = airpath.preset("wired")
    [stored] = _preset.all_figures([wired]).values()
    simulated: list[str] = []

    def simulate(name: str) -> Figures | None:
        simulated.append(name)
        return stored

    monkeypatch.setattr(_preset, "figures", simulate)
    assert _preset.all_figures([wired]) == {"wired": stored}
    assert simulated == []
    assert _preset.all_figures([replace(wired, text=f"{wired.text}# mine")]) == {"wired": stored}
    assert simulated == ["wired"]


def test_every_parameter_has_a_source() -> None:
    for preset in airpath.presets():
        for parameter in preset.parameters:
            assert parameter.source or parameter.key == "model", f"{preset.name}: {parameter.key}"


def test_a_preset_becomes_a_file_of_ones_own(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    shown = airpath_command("presets", "show", "hs-dsch-384")
    assert shown.out.startswith("hs-dsch-384: ")
    assert "bler" in shown.out
    copy = airpath_command("presets", "show", "hs-dsch-384", "--format", "toml")
    (airpath_command.folder / "mine.toml").write_text(copy.out)
    assert airpath_command("presets", "show", "mine.toml", "--format", "json").json["parameters"]
    named = airpath_command("run", scenario(), "--format", "json")
    own = airpath_command("run", scenario(("hs-dsch-384", "./mine.toml")), "--format", "json")
    assert own.code == 0, own.err
    assert own.json["flows"] == named.json["flows"]


def test_studies_are_listed(airpath_command: Command) -> None:
    assert "hsdpa-sim" in airpath_command("study", "list").out
    listed = airpath_command("study", "list", "--format", "json").json
    assert "rtt" in next(each for each in listed if each["id"] == "hsdpa-sim")["experiments"]


def test_one_experiment_as_json(airpath_command: Command) -> None:
    done = airpath_command("study", "run", "hsdpa-sim", "--only", "rtt", "--format", "json")
    assert done.code == 0, done.err
    study = done.json
    assert {"study", "seed", "version", "rows", "findings"} <= set(study)
    assert {row["experiment"] for row in study["rows"]} == {"rtt"}
    columns = {"experiment", "case", "metric", "unit", "published", "ours", "low", "high", "n"}
    for row in study["rows"]:
        assert columns <= set(row)
        assert row["low"] <= row["ours"] <= row["high"]


def test_one_experiment_as_text(airpath_command: Command) -> None:
    done = airpath_command("study", "run", "hsdpa-sim", "--only", "rtt", "--repeat", "2")
    assert done.code in (0, 1), done.err
    assert "published" in done.out.lower()


def test_a_report_compares_results(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    for name, preset in (("one", "hs-dsch-384"), ("two", "umts-dch-384")):
        assert airpath_command("run", scenario(("hs-dsch-384", preset)), "--out", name).code == 0
    done = airpath_command("report", "one", "two", "-o", "report.html")
    assert (done.code, done.out) == (0, "report.html\n"), done.err
    html = (airpath_command.folder / "report.html").read_text()
    assert html.lstrip().lower().startswith("<!doctype html>")
    assert "small" in html


def test_a_report_that_cannot_be_written(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    assert airpath_command("run", scenario(), "--out", "one").code == 0
    done = airpath_command("report", "one", "-o", "no-such-folder/report.html")
    assert done.code == 3
    assert "no-such-folder" in done.err


def test_a_damaged_table_is_reported(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    scenario()
    assert airpath_command("run", "small.toml", "--out", "one").code == 0
    vary = ("--vary", "bearer.bler=0.1,0.2", "--out", "swept")
    assert airpath_command("run", "small.toml", *vary).code == 0
    for part in airpath_command.folder.glob("*/**/*.parquet"):
        part.write_bytes(part.read_bytes()[:-10])
    for line, table in (
        ("plot one --what throughput -o plot.svg", "one/events/packets"),
        ("export one --format csv -o tables", "one/events/packets"),
        ("replay one", "one/events/packets"),
        ("trace one", "one/events/packets"),
        ("plot swept -o plot.svg", "swept/flows"),
        ("report swept -o swept.html", "swept/flows"),
        ("compare swept swept", "swept/flows"),
    ):
        done = airpath_command(*line.split())
        assert (done.code, f"{table}/" in done.err, ".parquet: damaged: " in done.err) == (2, True, True), done.err
        assert "next: " in done.err
    # The report has all that needs no log.
    assert airpath_command("report", "one", "-o", "report.html").code == 0
    assert "quantiles need the event log, which is damaged" in (airpath_command.folder / "report.html").read_text()


def test_a_damaged_result_is_reported(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    assert airpath_command("run", scenario(), "--out", "one").code == 0
    summary = airpath_command.folder / "one" / "summary.json"
    whole = summary.read_text()
    summary.write_text(whole[: len(whole) // 2])
    done = airpath_command("report", "one", "-o", "report.html")
    assert done.code == 2
    assert "one/summary.json" in done.err
    assert "damaged" in done.err
    summary.write_text(json.dumps(json.loads(whole) | {"schema": 3}))
    done = airpath_command("report", "one", "-o", "report.html")
    assert done.code == 2
    assert "schema 3" in done.err
    assert "upgrade airpath" in done.err


def test_completion_lists_commands_and_presets(airpath_command: Command) -> None:
    done = airpath_command(_AIRPATH_COMPLETE="complete_bash", COMP_WORDS="airpath pre", COMP_CWORD="1")
    assert "presets" in done.out
    done = airpath_command(_AIRPATH_COMPLETE="complete_bash", COMP_WORDS="airpath presets show hs", COMP_CWORD="3")
    assert "hs-dsch-384" in done.out


def test_no_color_and_pipes_have_no_escapes(airpath_command: Command) -> None:
    for words in (("presets", "show", "driving"), ("study", "list")):
        assert "\x1b" not in airpath_command(*words, FORCE_COLOR="").out
        assert "\x1b" not in airpath_command(*words, NO_COLOR="1", TERM="xterm-256color").out


def test_a_group_alone_shows_its_help(airpath_command: Command) -> None:
    for arguments in ([], ["presets"], ["study"]):
        done = airpath_command(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("Usage: airpath")


def test_a_study_prints_lines_of_json_by_experiment(airpath_command: Command) -> None:
    options = ("--only", "rtt,utilisation-20kB", "--repeat", "2", "--format")
    lines = [
        json.loads(line) for line in airpath_command("study", "run", "hsdpa-sim", *options, "jsonl").out.splitlines()
    ]
    whole = airpath_command("study", "run", "hsdpa-sim", *options, "json").json
    rows = [{key: value for key, value in line.items() if key != "type"} for line in lines if line["type"] == "row"]
    assert rows == whole["rows"]
    assert [line["id"] for line in lines if line["type"] == "finding"] == [each["id"] for each in whole["findings"]]
    assert lines[-1] == {"type": "end"} | {key: whole[key] for key in ("study", "seed", "version", "complete")}
