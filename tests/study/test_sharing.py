"""The figures of flows that share a bearer, with real runs where the value follows from the run."""

import math

import pytest

import airpath
from airpath.study.observations import ALL_METRICS
from support import ROOT

STUDY = ROOT / "studies" / "transports-on-cellular"


def test_goodput_and_share_count_from_the_starts() -> None:
    first = {"delivered_bytes": 3_000, "start_s": 5.0}
    second = {"delivered_bytes": 1_000, "start_s": 10.0}
    assert ALL_METRICS["goodput"].compute([first], {"seconds": 10}) == pytest.approx(2.4)
    # 3,000 bytes in 10 s beside 1,000 in 5 s.
    assert ALL_METRICS["share"].compute([first, second], {"seconds": 10}) == pytest.approx(60)


def test_a_video_that_never_arrives_has_the_rate_zero() -> None:
    video = {"kind": "adaptive", "quality_bps": None, "segments_received": 0, "segments": 15}
    assert ALL_METRICS["video-rate"].compute([{"kind": "download"}, video], {}) == 0
    half = video | {"quality_bps": 64e3, "segments_received": 5}
    assert ALL_METRICS["video-rate"].compute([half], {}) == pytest.approx(64 / 3)


def test_without_an_answer_there_is_no_delay() -> None:
    lost = {"kind": "ping", "delay_p95_s": None, "delay_min_s": None}
    assert math.isnan(ALL_METRICS["added-delay-95"].compute([lost], {}))
    files = {"kind": "transactions", "delay_mean_s": None}
    assert math.isnan(ALL_METRICS["file-time"].compute([files], {}))


def test_the_added_delay_is_that_of_the_queue() -> None:
    # A window of 16 kB over 384 kbit/s is at most a third of a second; without a clamp the queue
    # takes seconds.
    delays = []
    for clamp in ("16 kB", "unlimited"):
        overrides = {"bearer.preset": "umts-dch-384", "flow.0.tcp.receive_buffer.clamp": clamp, "duration": "30 s"}
        flows = airpath.run(STUDY / "bulk.toml", set=overrides).summary["flows"]
        delays.append(ALL_METRICS["added-delay-95"].compute(flows, {}))
    assert delays[0] < 400, delays
    assert delays[1] > 1000, delays
