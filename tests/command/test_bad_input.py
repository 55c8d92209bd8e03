"""Bad input: one block with the error, its place and the next step; exit code 2; empty stdout."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support import Command

WriteScenario = Callable[..., Path]

# The change of the small scenario, and texts that the error block must contain.
WRONG_SCENARIOS: dict[str, tuple[tuple[str, str], list[str]]] = {
    "unknown key": (
        ('rate = "10 Mbit/s"', 'rte = "10 Mbit/s"'),
        ["small.toml:6", "fixed.rte", "unknown key", "did you mean `rate`?", '6 | rte = "10 Mbit/s"'],
    ),
    "unknown table": (("[fixed]", "[fixd]"), ["small.toml:5", "fixd", "unknown key", "did you mean `fixed`?"]),
    "wrong unit": (('"10 Mbit/s"', '"10 ms"'), ["small.toml:6", "fixed.rate", "`ms` is not a unit of a bit rate"]),
    "no unit": (('"10 Mbit/s"', '"10"'), ["small.toml:6", "fixed.rate"]),
    "negative rate": (('"10 Mbit/s"', '"-10 Mbit/s"'), ["small.toml:6", "fixed.rate", "negative"]),
    "wrong type": (("loss = 0.01", 'loss = "often"'), ["small.toml:8", "fixed.loss"]),
    "impossible loss": (("loss = 0.01", "loss = 1.5"), ["small.toml:8", "fixed.loss"]),
    "unknown preset": (("hs-dsch-384", "hs-dsch-348"), ["small.toml:11", "bearer.preset", "did you mean `hs-dsch-3"]),
    "unknown workload": (('"download"', '"downlod"'), ["small.toml:14", "flow.0.kind", "did you mean `download`?"]),
    "not TOML": (('"200 kB"', '"200 kB'), ["small.toml:15", "not valid TOML"]),
    "newer format": (("format = 1", "format = 2"), ["small.toml", "format 2 is not known", "reads format 1"]),
    "no format": (("format = 1\n", ""), ["small.toml", "format", "begin the scenario with `format = 1`"]),
}


@pytest.mark.parametrize("case", WRONG_SCENARIOS)
def test_a_wrong_scenario(airpath_command: Command, scenario: WriteScenario, case: str) -> None:
    replacement, expected = WRONG_SCENARIOS[case]
    scenario(replacement)
    done = airpath_command("run", "small.toml", "--out", "kept")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    for words in expected:
        assert words in done.err
    assert not (airpath_command.folder / "kept").exists()


# Arguments, and texts that the error block must contain.
WRONG_ARGUMENTS: dict[str, tuple[list[str], list[str]]] = {
    "command": (["rnu"], ["no such command 'rnu'", "'run'", "`airpath --help`"]),
    "option": (["run", "small.toml", "--sed", "1"], ["no such option --sed", "'--se", "`airpath run --help`"]),
    "format": (["run", "small.toml", "--format", "jsno"], ["'jsno' is not one of", "'json'"]),
    "number": (["run", "small.toml", "--repeat", "0"], ["--repeat", "greater than or equal to 1"]),
    "override": (["run", "small.toml", "--set", "fixed.rate"], ["--set fixed.rate", "K=V"]),
    "key of an override": (
        ["run", "small.toml", "--set", "fixed.dely=1 ms"],
        ["at --set fixed.dely=1 ms", "unknown key", "`delay`"],
    ),
    "value of an override": (["run", "small.toml", "--set", "fixed.delay=1 bit/s"], ["fixed.delay", "unit"]),
    "capture without a folder": (["run", "small.toml", "--capture"], ["--capture", "--out DIR"]),
    "missing file": (["run", "smal.toml"], ["no scenario file 'smal.toml'", "did you mean 'small.toml'?"]),
    "folder": (["run", "."], ["is a folder"]),
    "preset": (
        ["presets", "show", "hs-dsch-348"],
        ["no preset `hs-dsch-348`", "did you mean `hs-dsch-3"],
    ),
    "study": (["study", "run", "hsdpa"], ["no study 'hsdpa'", "did you mean 'hsdpa-sim'?"]),
    "experiment": (["study", "run", "hsdpa-sim", "--only", "rt"], ["'rt'", "did you mean 'rtt'?"]),
    "result": (["report", "nowhere", "-o", "report.html"], ["nowhere: no such result folder", "airpath run"]),
    "report without a name": (["report", "nowhere"], ["--out"]),
}


@pytest.mark.parametrize("case", WRONG_ARGUMENTS)
def test_wrong_arguments(airpath_command: Command, scenario: WriteScenario, case: str) -> None:
    arguments, expected = WRONG_ARGUMENTS[case]
    scenario()
    done = airpath_command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    for words in expected:
        assert words in done.err


def test_a_scenario_that_is_no_text(airpath_command: Command) -> None:
    (airpath_command.folder / "binary.toml").write_bytes(b"\xff\xfe\x00")
    done = airpath_command("run", "binary.toml")
    assert done.code == 2
    assert "not UTF-8 text" in done.err


# The file of the recorded link, and texts that the error block must contain.
WRONG_RECORDINGS: dict[str, tuple[str | None, list[str]]] = {
    "missing": (None, ["link.down"]),
    "empty": ("", ["link.down"]),
    "cut off in a line": ("1\n5\n9x", ["link.down", "3"]),
    "going back": ("5\n4\n", ["link.down", "2"]),
}


@pytest.mark.parametrize("case", WRONG_RECORDINGS)
def test_a_wrong_recorded_link(airpath_command: Command, scenario: WriteScenario, case: str) -> None:
    text, expected = WRONG_RECORDINGS[case]
    scenario(
        ('preset = "hs-dsch-384"', 'preset = "recorded"\ndownlink.recorded = "link.down"\nuplink.recorded = "link.up"')
    )
    (airpath_command.folder / "link.up").write_text("1\n2\n")
    if text is not None:
        (airpath_command.folder / "link.down").write_text(text)
    done = airpath_command("run", "small.toml")
    assert (done.code, done.out) == (2, "")
    for words in expected:
        assert words in done.err
