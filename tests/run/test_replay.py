"""`airpath replay`: the packets of a result have the same fate again, and another one elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

import airpath
from support import DOWNLOAD, Command

CHANGES = """
[[change]]
at = "1 s"
outage = "800 ms"

[[change]]
at = "3 s"
handover = "100 ms"
buffer = "discard"
mobile = "mobile-1"

[[mobile]]
count = 2
"""
SERVICES: dict[str, dict[str, object]] = {
    "stream": {"video": {"rate": "24 kbit/s", "duration": "40 s"}, "repair": "nack"},
    "stream over TCP": {"video": {"rate": "24 kbit/s", "duration": "40 s"}, "transport": "tcp"},
    "adaptive": {"qualities": ["12 kbit/s", "40 kbit/s", "200 kbit/s"], "duration": "60 s"},
    "voice": {"duration": "40 s"},
    "terminal": {"session": {"rounds": 4}},
    "mail": {"protocol": "imap", "messages": 10, "message": "5 kB"},
    "ftp": {"files": 6, "file": "40 kB", "mode": "active"},
}
STEPS = ("repetition", "time", "packet", "component", "step", "direction", "size", "ecn", "cause", "offset", "ack")


def fates(result: airpath.Result) -> list[tuple[object, ...]]:
    """The fate of each packet, except at the last instant, at which the flows end the run."""
    ends = {row["repetition"]: round(row["simulated_s"] * 1e9) for row in result.summary["repetitions"]}
    rows = result.packets.select(STEPS).sort(STEPS).rows()
    return [row for row in rows if row[1] < ends[row[0]]]


@pytest.mark.parametrize("preset", ["hs-dsch-384", "umts-dch-64", "hs-dsch-classes-abc"])
def test_an_unchanged_replay_is_the_same_to_the_nanosecond(preset: str) -> None:
    text = DOWNLOAD.replace("hs-dsch-384", preset) + CHANGES
    if preset == "hs-dsch-classes-abc":
        text += 'class = "b"\n'
    original = airpath.run(text, repeat=3)
    again = airpath.replay(original)
    assert fates(again) == fates(original)
    assert len(fates(again)) > 2000
    assert again.changes.rows() == original.changes.rows()
    assert again.scenario == original.scenario


@pytest.mark.parametrize("kind", SERVICES)
@pytest.mark.parametrize("preset", ["umts-dch-384", "gprs-4+1"])
def test_the_packets_of_a_service_are_the_same_to_the_nanosecond(preset: str, kind: str) -> None:
    flow = {"kind": kind.split(maxsplit=1)[0]} | SERVICES[kind]
    outage = {"at": "20 s", "outage": "8 s"}
    scenario = {"format": 1, "seed": 3, "fixed": {"rate": "10 Mbit/s", "delay": "20 ms", "loss": 0.03}}
    original = airpath.run(scenario | {"bearer": {"preset": preset}, "flow": [flow], "change": [outage]})
    again = airpath.replay(original)
    assert fates(again) == fates(original)
    assert len(fates(again)) > 500
    assert (again.packets["step"] == "dropped").sum() > 0


def test_another_network_gives_another_fate() -> None:
    original = airpath.run(DOWNLOAD + CHANGES)
    lossy = airpath.replay(original, set={"fixed.loss": 0.3})

    def lost(result: airpath.Result) -> int:
        return int(result.links["dropped_loss_packets"].sum())

    assert lost(lossy) > lost(original) + 20
    later = airpath.replay(original, set={"change.0.at": "2 s"})
    assert later.changes["time"].to_list() == [2_000_000_000, 3_000_000_000]
    assert lossy.flows.height == 0


def test_the_command_reports_the_fate_of_the_packets(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    assert airpath_command("run", scenario(), "--out", "one").code == 0
    done = airpath_command("replay", "one", "--set", "fixed.loss=0.2", "--out", "two")
    assert done.code == 0
    assert "in the original" in done.out and "fixed" in done.out
    assert "the result is in two" in done.err
    summary = airpath_command("replay", "two", "--format", "json").json
    assert summary["complete"] and summary["flows"] == []
    report = airpath_command("report", "one", "two", "-o", "report.html")
    assert report.code == 0, report.err


def test_changes_are_marked_in_figures_over_time() -> None:
    result = airpath.run(DOWNLOAD + CHANGES)
    assert result.changes["kind"].to_list() == ["outage", "handover"]
    assert result.changes["duration"].to_list() == [800_000_000, 100_000_000]
    figure = airpath.plot.mark_changes(airpath.plot.throughput(result), result)
    bands = [(shape.x0, shape.x1) for shape in figure.layout.shapes]
    assert bands == [(1.0, 1.8), (3.0, pytest.approx(3.1))]
    notes = airpath.plot.caption_of(figure).notes
    assert "handover 100 ms, buffer discarded (cell, mobile-1) at 3 s" in notes[-1]
    calm = airpath.run(DOWNLOAD)
    assert not airpath.plot.mark_changes(airpath.plot.throughput(calm), calm).layout.shapes


def test_what_cannot_be_replayed_is_reported(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    assert airpath_command("run", scenario(), "--out", "bare", "--no-log").code == 0
    done = airpath_command("replay", "bare")
    assert done.code == 2
    assert "has no 'packets' table" in done.err
    assert airpath_command("run", scenario(), "--out", "one").code == 0
    done = airpath_command("replay", "one", "--out", "one")
    assert done.code == 2
    assert "is the result that is to be replayed" in done.err
    done = airpath_command("replay", "one", "--set", "bearer.bler=2")
    assert done.code == 2
    assert "is not a probability" in done.err


def test_a_scenario_without_flows_cannot_be_run(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    path = scenario(('[[flow]]\nkind = "download"\nbytes = "200 kB"\n', ""))
    done = airpath_command("run", path)
    assert done.code == 2
    assert "there is nothing to run" in done.err
