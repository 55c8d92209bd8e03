"""Calls: figures, their agreement with captures and the event log, RTP as tshark reads it."""

import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.run import execute
from support import ROOT

EXAMPLE = ROOT / "examples" / "voice.toml"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """The example with a capture."""
    return airpath.run(EXAMPLE, out=tmp_path_factory.mktemp("voice") / "run", capture=True)


def _call(result: airpath.Result) -> dict[str, Any]:
    return result.flows.filter(kind="voice").row(0, named=True)


def _wired(**keys: object) -> dict[str, Any]:
    call = {"kind": "voice", "duration": "60 s", "jitter_buffer": "fixed", "depth": "40 ms"} | keys
    return {"format": 1, "bearer": {"preset": "wired"}, "fixed": {"delay": "50 ms"}, "flow": [call]}


def test_figures_add_up(result: airpath.Result) -> None:
    call = _call(result)
    assert call["outcome"] == "finished"
    assert call["codec"] == "amr"
    assert call["mos_scale"] == "narrowband"
    for way in ("down", "up"):
        assert call[f"{way}_sent"] == call[f"{way}_received"] + call[f"{way}_lost"]
        unplayed = call[f"{way}_lost_frames"] + call[f"{way}_late_frames"]
        assert unplayed == call[f"{way}_concealed_frames"] + call[f"{way}_muted_frames"]
        assert call[f"{way}_frame_loss"] == pytest.approx(unplayed / call[f"{way}_frames"])
        # The frame, the look-ahead, the fixed network, the radio.
        assert call[f"{way}_mouth_to_ear_s"] > 0.020 + 0.005 + 0.040 + call[f"{way}_buffer_mean_s"]
    assert call["mos"] == min(call["down_mos"], call["up_mos"])
    assert call["frame_loss"] == max(call["down_frame_loss"], call["up_frame_loss"])


def test_a_wired_call_without_loss_has_the_rating_of_its_delay(tmp_path: Path) -> None:
    call = _call(airpath.run(_wired(), out=tmp_path / "run"))
    delay = call["down_mouth_to_ear_s"]
    # Frame, look-ahead, fixed network, jitter buffer; the wired bearer adds less than 1 ms.
    assert 0.115 <= delay < 0.118
    assert call["down_frame_loss"] == 0
    # G.107 at 115 ms: R = 90.4 without the codec, whose Ie is 5.
    assert call["down_r"] == pytest.approx(85.3, abs=0.3)
    assert call["down_mos"] == pytest.approx(4.20, abs=0.05)


def test_wideband_has_its_own_scale(tmp_path: Path) -> None:
    call = _call(airpath.run(_wired(codec="amr-wb"), out=tmp_path / "run"))
    assert call["mos_scale"] == "wideband"
    # 129 − 20 of the codec, less at most 5 for the delay.
    assert 104 < call["down_r"] <= 109


def test_tshark_reads_the_packets(result: airpath.Result, need: Callable[[str], str]) -> None:
    call = _call(result)
    server = next(path for path in result.captures() if "server" in path.name)
    packets = _fields(need("tshark"), server, "rtp && udp.srcport == 5004", "rtp.seq", "rtp.timestamp", "frame.len")
    assert len(packets) == call["down_sent"]
    numbers = [int(sequence) for sequence, _, _ in packets]
    assert all((after - before) % 65_536 == 1 for before, after in pairwise(numbers))
    clock = [int(timestamp) for _, timestamp, _ in packets]
    assert all((after - before) % 2**32 % 160 == 0 for before, after in pairwise(clock))
    # IPv4, UDP and RTP headers, and 32 bytes of AMR 12.2 or 7 of comfort noise.
    lengths = {int(length) for *_, length in packets}
    assert {max(lengths) - min(lengths), len(lengths)} == {25, 2}


def _fields(tshark: str, capture: Path, only: str, *fields: str) -> list[tuple[str, ...]]:
    words = [tshark, "-n", "-r", str(capture), "-d", "udp.port==5004,rtp", "-Y", only, "-T", "fields"]
    for field in fields:
        words += ["-e", field]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split("\t")) for line in output.splitlines()]


def test_rohc_compresses_the_headers_of_a_call(result: airpath.Result) -> None:
    counters = {row["counter"]: row["value"] for row in result.middleboxes.iter_rows(named=True)}
    assert counters["rohc_up_failures"] == 0
    # The queue of the downlink, behind the compressor, drops packets in a row: the decompressor
    # rejects some of those that follow.
    down = result.links.row(by_predicate=(pl.col("component") == "cell") & (pl.col("direction") == "down"), named=True)
    assert down["dropped_decompression_packets"] == counters["rohc_down_failures"]
    assert counters["rohc_down_failures"] <= 0.5 * down["dropped_queue_full_packets"]
    # Uplink: RTP, and acknowledgements of the download.
    assert counters["rohc_up_compressed_header_bytes"] < 0.25 * counters["rohc_up_header_bytes"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("codec", "opus"),
        ("frames_per_packet", 13),
        ("depth", "300 ms"),
        ("advantage", 21.0),
        ("duration", "1 ms"),
        ("dtx", False),
    ],
)
def test_wrong_settings_are_named(key: str, value: object) -> None:
    with pytest.raises(airpath.ScenarioError, match=rf"\b{key}\b"):
        execute(_wired(**({"jitter_buffer": "adaptive"} | {key: value})))


def test_a_fixed_jitter_buffer_has_no_greatest_depth(tmp_path: Path) -> None:
    fixed = {"kind": "voice", "duration": "2 s", "jitter_buffer": "fixed"}
    call = {"format": 1, "bearer": "umts-dch-384", "flow": [fixed | {"max_depth": "1 s"}]}
    with pytest.raises(airpath.ScenarioError, match="a fixed jitter buffer has only `depth`") as caught:
        airpath.run(call)
    assert caught.value.field == "flow.0.max_depth"
    result = airpath.run(call | {"flow": [fixed]}, out=tmp_path / "fixed", log=False)
    assert "max_depth" not in result.scenario
    assert airpath.run(tmp_path / "fixed", log=False).flows.equals(result.flows)
    adaptive = airpath.run(call | {"flow": [{"kind": "voice", "duration": "2 s"}]}, log=False)
    assert 'max_depth = "200 ms"' in adaptive.scenario
