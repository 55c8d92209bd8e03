"""Adaptive streaming over HTTP: qualities at a constant rate, stalls, figures, wrong settings."""

from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.run import execute
from support import ROOT

EXAMPLE = ROOT / "examples" / "adaptive.toml"
QUALITIES = ["200 kbit/s", "400 kbit/s", "800 kbit/s", "1600 kbit/s", "3200 kbit/s"]
ALGORITHMS = ["rate", "bba", "bola"]


def _scenario(rate: str, **flow: object) -> dict[str, Any]:
    video = {"kind": "adaptive", "qualities": QUALITIES, "duration": "10 min", "buffer": "60 s"}
    fixed = {"rate": rate, "delay": "20 ms"}
    return {"format": 1, "bearer": {"preset": "wired"}, "fixed": fixed, "flow": [video | flow]}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_constant_rate_gives_its_sustainable_quality(tmp_path: Path, algorithm: str) -> None:
    scenario = _scenario("1.2 Mbit/s", adaptation={"algorithm": algorithm})
    result = airpath.run(scenario, out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert (flow["outcome"], flow["adaptation"], flow["stalls"]) == ("finished", algorithm, 0)
    assert flow["segments"] == flow["segments_received"] == result.segments.height == 150
    late = result.segments.filter(pl.col("segment") >= 75)
    # 800 kbit/s are sustainable, with headers and at an efficiency of 85 %, and 1,600 are not: the
    # algorithms of the buffer alternate.
    assert set(late["quality"]) <= ({2} if algorithm == "rate" else {2, 3})
    assert 780_000 <= fmean(late["rate_bps"].to_list()) <= 1_200_000


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_fast_link_keeps_the_limit_of_the_buffer(tmp_path: Path, algorithm: str) -> None:
    scenario = _scenario("50 Mbit/s", adaptation={"algorithm": algorithm})
    result = airpath.run(scenario, out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert max(result.buffers["buffer_s"].to_list()) <= 60
    assert set(result.segments.filter(pl.col("segment") >= 100)["quality"]) == {4}
    # Playback lasts for the video after its start-up, and the flow is over with it.
    assert flow["duration_s"] == pytest.approx(flow["startup_s"] + 600)
    assert flow["stall_share"] == 0
    times = result.segments["requested_s"].to_list()
    assert times == sorted(times)


def test_an_outage_longer_than_the_buffer_stalls(tmp_path: Path) -> None:
    result = airpath.run(EXAMPLE, out=tmp_path / "run", set={"flow.0.buffer": "15 s", "change.0.outage": "30 s"})
    flow = result.flows.row(0, named=True)
    assert flow["stalls"] >= 1
    assert flow["stall_s"] >= 15
    played = flow["duration_s"] - flow["startup_s"]
    assert played == pytest.approx(300 + flow["stall_s"])
    assert flow["stall_share"] == pytest.approx(flow["stall_s"] / played)
    waits = result.buffers.filter((pl.col("time_s") > flow["startup_s"]) & ~pl.col("playing"))
    assert waits.height == pytest.approx(flow["stall_s"], abs=flow["stalls"] + 1)
    received = result.segments
    assert flow["quality_bps"] == pytest.approx(received["bytes"].sum() * 8 / 300)
    assert flow["switches"] == (received["quality"].diff().drop_nulls() != 0).sum()


def test_a_flow_is_reproduced_from_its_folder(tmp_path: Path) -> None:
    result = airpath.run(EXAMPLE, out=tmp_path / "run")
    again = airpath.run(tmp_path / "run" / "scenario.toml")
    assert again.flows.equals(result.flows)
    assert again.segments.equals(result.segments)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"qualities": ["2 Mbit/s", "1 Mbit/s"]}, "qualities"),
        ({"segment": "0 s"}, "segment"),
        ({"buffer": "5 s"}, "buffer"),
        ({"startup": "0 s"}, "startup"),
        ({"adaptation": {"algorithm": "pensieve"}}, "pensieve"),
        ({"adaptation": {"algorithm": "bola", "reservoir": "3 s"}}, "reservoir"),
        ({"adaptation": {"algorithm": "bba", "reservoir": "50 s", "cushion": "20 s"}}, "cushion"),
        ({"speed": 2}, "speed"),
        ({"tcp": {"whole_segments": True}}, "whole_segments"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(airpath.ScenarioError, match=named):
        execute(_scenario("1 Mbit/s", **wrong))
