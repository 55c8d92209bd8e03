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


def test_an_abort_ends_the_video(tmp_path: Path) -> None:
    # The connection is lost in an outage, and a ping continues after it.
    ping = {"kind": "ping", "requests": 600, "interval": "1 s"}
    scenario = _scenario("2 Mbit/s", tcp={"retransmission_timeout": {"retries": 2}})
    scenario |= {"flow": [*scenario["flow"], ping], "change": [{"at": "30 s", "outage": "300 s"}]}
    result = airpath.run(scenario, out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert (flow["outcome"], flow["duration_s"]) == ("aborted", None)
    assert flow["segments_received"] < flow["segments"]
    buffers = result.buffers.filter(pl.col("flow") == 0)
    end = buffers["time_s"].max()
    assert isinstance(end, float)
    assert 30 < end < 330
    assert flow["stall_s"] <= end - flow["startup_s"] + 1
    whole = result.summary["repetitions"][0]["simulated_s"]
    assert whole > 590


def test_a_loss_of_the_connection_after_the_last_segment_changes_nothing(tmp_path: Path) -> None:
    scenario = _scenario("2 Mbit/s", duration="60 s", tcp={"retransmission_timeout": {"retries": 2}})
    before = airpath.run(scenario, out=tmp_path / "before")
    last = before.segments["finished_s"].to_list()[-1]
    # The last acknowledgement and FIN do not arrive.
    scenario |= {"change": [{"at": f"{last * 1000 + 1:.3f} ms", "outage": "600 s"}]}
    flow = airpath.run(scenario, out=tmp_path / "run").flows.row(0, named=True)
    assert (flow["outcome"], flow["cause"]) == ("finished", None)
    figures = ("duration_s", "stalls", "segments_received", "buffer_mean_s")
    assert [flow[key] for key in figures] == [before.flows.row(0, named=True)[key] for key in figures]


def test_the_buffer_drains_before_a_stall_that_is_not_over(tmp_path: Path) -> None:
    scenario = _scenario("2 Mbit/s") | {"duration": "200 s", "change": [{"at": "100 s", "outage": "600 s"}]}
    result = airpath.run(scenario, out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    playing = result.buffers.filter(pl.col("playing"))["buffer_s"].to_list()
    assert (flow["outcome"], flow["stalls"]) == ("unfinished", 1)
    assert flow["buffer_min_s"] == pytest.approx(min(playing), abs=1e-6)
    assert flow["buffer_min_s"] < 1
    assert flow["buffer_mean_s"] == pytest.approx(fmean(playing))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_defaults_reach_the_highest_quality(tmp_path: Path, algorithm: str) -> None:
    video = {"kind": "adaptive", "duration": "10 min", "adaptation": {"algorithm": algorithm}}
    scenario = {"format": 1, "bearer": {"preset": "wired"}, "fixed": {"rate": "50 Mbit/s"}, "flow": [video]}
    segments = airpath.run(scenario, out=tmp_path / "run").segments
    assert set(segments.filter(pl.col("segment") >= 100)["rate_bps"]) == {3_000_000}


def test_an_error_of_a_setting_has_its_own_origin() -> None:
    with pytest.raises(airpath.ScenarioError, match=r"^override .*: flow\.0\.adaptation\.gamma_p: it is above 0"):
        execute(EXAMPLE, set={"flow.0.adaptation": '{ algorithm = "bola" }', "flow.0.adaptation.gamma_p": "0"})


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
        ({"adaptation": {"algorithm": "pensieve"}}, r"adaptation\.algorithm: .*`pensieve`"),
        ({"adaptation": {"algorithm": 3}}, r"adaptation\.algorithm: .*`3`, expected a string"),
        ({"adaptation": {"samples": 3}}, r"adaptation\.algorithm: this key is missing"),
        ({"adaptation": 3}, r"adaptation: .*expected a table; set its keys.*algorithm, samples"),
        ({"adaptation": {"algorithm": "bola", "reservoir": "3 s"}}, r"adaptation\.reservoir: unknown key"),
        ({"adaptation": {"algorithm": "bola", "gamma_p": "x"}}, r"adaptation\.gamma_p: invalid type"),
        ({"adaptation": {"algorithm": "bola", "gamma_p": 0}}, r"adaptation\.gamma_p: it is above 0"),
        ({"adaptation": {"algorithm": "rate", "samples": 0}}, r"adaptation\.samples: it is 1 to"),
        # A request is made with at most 56 s of 60 s.
        (
            {"adaptation": {"algorithm": "bba", "reservoir": "40 s", "cushion": "17 s"}},
            r"adaptation\.cushion: .*`reservoir`.*`cushion`.*`buffer` − `segment`",
        ),
        ({"speed": 2}, "speed"),
        ({"tcp": {"whole_segments": True}}, "whole_segments"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(airpath.ScenarioError, match=named):
        execute(_scenario("1 Mbit/s", **wrong))
