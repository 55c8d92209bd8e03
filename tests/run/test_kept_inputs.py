"""A result keeps the files of its scenario: it runs again from any folder, after they changed."""

from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.result_folder import clear_result_folder
from support import Command
from support.link import LinkCommand, summary

Flows = list[dict[str, Any]]

RECORDED = """\
format = 1

[bearer]
model = "recorded"
downlink = { recorded = "traces/cell", queue.packets = 50 }
uplink = { recorded = "traces/cell", queue.packets = 50 }

[[flow]]
kind = "download"
bytes = "50 kB"
"""


@pytest.fixture
def kept(airpath_command: Command, tmp_path: Path) -> Flows:
    """The flows of a run in `one`, over a recorded link whose file has changed since."""
    trace = tmp_path / "traces" / "cell"
    trace.parent.mkdir()
    trace.write_text("10\n20\n30\n")
    (tmp_path / "recorded.toml").write_text(RECORDED)
    done = airpath_command("run", "recorded.toml", "--out", "one", "--format", "json")
    assert done.code == 0, done.err
    trace.write_text("1\n")
    return done.json["flows"]


def elsewhere(tmp_path: Path) -> Command:
    folder = tmp_path / "else" / "where"
    folder.mkdir(parents=True)
    return Command(folder)


def test_a_result_runs_again_from_another_folder(kept: Flows, tmp_path: Path) -> None:
    assert (tmp_path / "one" / "inputs" / "cell").read_text() == "10\n20\n30\n"
    moved = (tmp_path / "one").rename(tmp_path / "moved")
    again = elsewhere(tmp_path)("run", moved / "scenario.toml", "--out", "again", "--format", "json")
    assert again.code == 0, again.err
    assert again.json["flows"] == kept
    # The command in the report: the result replaces itself.
    for _ in range(2):
        again = Command(tmp_path)("run", "moved/scenario.toml", "--out", "moved", "--format", "json")
        assert again.code == 0, again.err
        assert again.json["flows"] == kept


def test_a_result_is_replayed_from_another_folder(kept: Flows, tmp_path: Path) -> None:
    original = airpath.load(tmp_path / "one")
    assert original.flows["outcome"].to_list() == ["finished"] == [flow["outcome"] for flow in kept]
    done = elsewhere(tmp_path)("replay", tmp_path / "one", "--out", "again")
    assert done.code == 0, done.err
    again = airpath.load(tmp_path / "else" / "where" / "again")
    steps = ("time", "packet", "component", "step", "cause")
    end = original.packets["time"].max()
    fates = [result.packets.select(steps).sort(steps).rows() for result in (original, again)]
    assert [row for row in fates[0] if row[0] != end] == [row for row in fates[1] if row[0] != end]
    assert (tmp_path / "else" / "where" / "again" / "inputs" / "cell").read_text() == "10\n20\n30\n"


def test_an_earlier_result_makes_room_with_its_inputs(kept: Flows, airpath_command: Command) -> None:
    assert kept
    other = airpath_command.folder / "other.toml"
    wired = [('recorded = "traces/cell"', 'rate = "1 Mbit/s"'), ("recorded", "wired")]
    text = RECORDED
    for old, new in wired:
        text = text.replace(old, new)
    other.write_text(text)
    done = airpath_command("run", "other.toml", "--out", "one")
    assert done.code == 2
    assert "one has the result of another scenario" in done.err
    assert (airpath_command.folder / "one" / "inputs" / "cell").is_file()
    clear_result_folder(airpath_command.folder / "one")
    assert not (airpath_command.folder / "one" / "inputs").exists()


def test_inputs_that_no_run_wrote_are_not_touched(airpath_command: Command) -> None:
    mine = airpath_command.folder / "mine" / "inputs" / "cell"
    mine.parent.mkdir(parents=True)
    mine.write_text("1\n")
    (airpath_command.folder / "recorded.toml").write_text(RECORDED.replace("traces/", "mine/inputs/"))
    done = airpath_command("run", "recorded.toml", "--out", "mine")
    assert done.code == 2
    assert "holds no airpath result" in done.err
    assert mine.read_text() == "1\n"


def test_a_link_runs_from_a_kept_scenario(kept: Flows, link: LinkCommand, tmp_path: Path) -> None:
    assert kept
    for _ in range(2):
        link("true", link=tmp_path / "one" / "scenario.toml", options="--out linked --no-log")
        assert summary(link.folder / "linked")["complete"]
    done = link("true", link=tmp_path / "one" / "scenario.toml", options="--out one", code=125)
    assert "one has a result of `airpath run`" in done.err
    assert (link.folder / "linked" / "inputs" / "cell").read_text() == "10\n20\n30\n"


@pytest.fixture
def three(airpath_command: Command, tmp_path: Path) -> Path:
    """A result of three repetitions."""
    done = airpath_command("run", "gprs", "--repeat", "3", "--out", "three")
    assert done.code == 0, done.err
    return tmp_path / "three"


def test_a_result_runs_again_with_all_repetitions(three: Path, airpath_command: Command) -> None:
    flows = airpath.load(three).summary["flows"]
    assert airpath_command("run", "three", "--format", "json").json["flows"] == flows
    assert airpath_command("run", "three", "--repeat", "1", "--format", "json").json["flows"] == flows[:1]
    assert airpath.run(three).summary["flows"] == flows
    assert len(airpath.run(str(three), repeat=2, log=False).summary["flows"]) == 2
    assert len(airpath.run(three, vary={"flow.tcp.congestion": ["reno"]}).flows) == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("gprs",), "three has 3 repetitions, and this run has 1"),
        (("three", "--repeat", "2", "-q"), "three has 3 repetitions, and this run has 2"),
        (("gprs", "--repeat", "3", "--seed", "7"), "three has a result with seed 1"),
        (("hs-dsch-384", "--repeat", "3"), "three has the result of another scenario"),
        (("gprs", "--repeat", "3", "--no-log"), "three has event tables, and this run has none"),
    ],
)
def test_a_run_does_not_replace_what_it_does_not_have(
    three: Path, airpath_command: Command, arguments: tuple[str, ...], reason: str
) -> None:
    before = (three / "summary.json").read_bytes()
    done = airpath_command("run", *arguments, "--out", "three")
    assert done.code == 2
    assert reason in done.err
    assert "next: name another folder, or remove this one first: `rm -r three`" in done.err
    assert (three / "summary.json").read_bytes() == before
    with pytest.raises(FileExistsError, match="3 repetitions"):
        airpath.run(three, repeat=1, out=three)


def test_a_run_replaces_the_same_run_with_as_many_repetitions(three: Path, airpath_command: Command) -> None:
    assert "the earlier result in three was replaced" in airpath_command("run", "three", "--out", "three").err
    assert airpath_command("run", "gprs", "--repeat", "4", "--out", "three").code == 0
    assert len(airpath.load(three).summary["flows"]) == 4
