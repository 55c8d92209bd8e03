"""Streams: figures, the buffer over time, files of frames, and RTP as tshark reads it."""

import json
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

EXAMPLE = ROOT / "examples" / "stream.toml"
LOSS = 0.02


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """The example with more loss and a capture."""
    folder = tmp_path_factory.mktemp("stream") / "run"
    return airpath.run(EXAMPLE, set={"fixed.down.loss": str(LOSS)}, out=folder, capture=True)


def test_figures_agree_with_the_capture_and_the_buffer(result: airpath.Result) -> None:
    flow = result.flows.row(0, named=True)
    assert flow["outcome"] == "finished"
    assert flow["sent"] == flow["received"] + flow["lost"]
    # RTCP reports of the server are lost, too.
    down = result.links.filter(direction="down")
    dropped = int(sum(down[name].sum() for name in down.columns if name.startswith("dropped_") and "packets" in name))
    assert flow["lost"] > 0.5 * LOSS * flow["sent"]
    assert flow["lost"] <= dropped <= flow["lost"] + flow["reports"]
    assert flow["frames_decodable"] <= flow["frames_complete"] < flow["frames"] == 1800
    # The outage of 8 s exceeds the buffer of 5 s; playback goes on when the buffer is full again.
    assert flow["stalls"] == 1
    assert 3 < flow["stall_s"] < 9
    assert flow["stall_share"] == pytest.approx(flow["stall_s"] / (flow["duration_s"] - flow["startup_s"]))
    buffers = result.buffers
    assert buffers["time_s"].to_list() == list(range(buffers.height))
    waiting = buffers.filter((pl.col("time_s") > flow["startup_s"]) & ~pl.col("playing"))
    assert abs(waiting.height - flow["stall_s"]) <= 1
    arrived = result.scan("app").filter(step="arrived").collect()
    assert arrived.height == flow["received"]


def test_tshark_reads_rtp_and_rtcp(result: airpath.Result, need: Callable[[str], str]) -> None:
    flow = result.flows.row(0, named=True)
    server, mobile = (next(path for path in result.captures() if end in path.name) for end in ("server", "mobile"))
    # A capture without payload: tshark cannot decode the media, so its type is not assigned.
    assert _fields(need("tshark"), server, "_ws.malformed || rtcp.length_check.bad", "frame.number") == []
    packets = _fields(need("tshark"), server, "rtp", "rtp.seq", "rtp.marker", "rtp.ssrc", "rtp.timestamp")
    assert len(packets) == flow["sent"]
    assert len({ssrc for _, _, ssrc, _ in packets}) == 1
    # RTP has an even port, and RTCP the next one (RFC 3550 §11).
    ((port,),) = set(_fields(need("tshark"), server, "rtp", "udp.dstport"))
    assert int(port) % 2 == 0
    assert set(_fields(need("tshark"), server, "rtcp.pt == 200", "udp.dstport")) == {(str(int(port) + 1),)}
    numbers = [int(sequence) for sequence, *_ in packets]
    assert all((after - before) % 65_536 == 1 for before, after in pairwise(numbers))
    assert sum(marker in ("1", "True") for _, marker, _, _ in packets) == flow["frames"]
    clock = [int(timestamp) for *_, timestamp in packets]
    assert (clock[-1] - clock[0]) % 2**32 == pytest.approx(90_000 * 1799 / 15, abs=2)
    assert len(_fields(need("tshark"), mobile, "rtp", "rtp.seq")) == flow["received"]
    # What the receiver reports last is what was lost by then.
    reports = _fields(need("tshark"), server, "rtcp.pt == 201", "rtcp.ssrc.cum_nr")
    last = int(reports[-1][0])
    assert last == pytest.approx(flow["lost"], abs=3)
    stated = int(_fields(need("tshark"), mobile, "rtcp.pt == 200", "rtcp.sender.packetcount")[-1][0])
    assert stated <= flow["sent"]


def _fields(tshark: str, capture: Path, only: str, *fields: str) -> list[tuple[str, ...]]:
    decode = [word for port, name in ((5004, "rtp"), (5005, "rtcp")) for word in ("-d", f"udp.port=={port},{name}")]
    words = [tshark, "-n", "-r", str(capture), *decode, "-Y", only, "-T", "fields"]
    for field in fields:
        words += ["-e", field]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split("\t")) for line in output.splitlines()]


def _frames(path: Path, **first: str) -> Path:
    entries = [
        {
            "media_type": "video",
            "pict_type": "I" if number % 10 == 0 else "P",
            "pkt_size": "4000" if number % 10 == 0 else "900",
            "pts_time": f"{number / 25:.6f}",
        }
        for number in range(250)
    ]
    entries[3] |= first
    path.write_text(json.dumps({"frames": entries}, indent=1))
    return path


def _stream(video: Path) -> dict[str, Any]:
    return {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "stream", "video": str(video)}]}


def test_a_video_from_a_file_is_kept_and_runs_again(tmp_path: Path) -> None:
    video = _frames(tmp_path / "clip.json")
    result = airpath.run(_stream(video), out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert flow["frames_decodable"] == 250
    assert flow["delivered_bytes"] == 25 * 4000 + 225 * 900
    video.unlink()
    again = airpath.run(tmp_path / "run" / "scenario.toml")
    assert again.flows.row(0, named=True) == flow


def test_a_bad_frame_is_named_with_its_line(tmp_path: Path) -> None:
    video = _frames(tmp_path / "clip.json", pkt_size="many")
    with pytest.raises(airpath.ScenarioError, match=r"clip.json:21.*frames.3.pkt_size.*`many`"):
        execute(_stream(video))
    with pytest.raises(airpath.ScenarioError, match=r"missing.json.*cannot be read"):
        execute(_stream(tmp_path / "missing.json"))


# Twice the rate of the video fits the bearer.
AHEAD = {"flow.0.speed": "2", "flow.0.ahead": '"60 s"', "flow.0.repair": '"none"'}


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_the_buffer_has_a_limit(transport: str) -> None:
    """Without the outage the server stops at the limit, and nothing is discarded."""
    change = AHEAD | {"flow.0.transport": f'"{transport}"', "change.0.outage": '"1 ms"', "fixed.loss": "0"}
    limited = airpath.run(EXAMPLE, set=change | {"flow.0.max_buffer": '"12 s"'})
    flow, most = limited.flows.row(0, named=True), limited.buffers["buffer_s"].max()
    assert isinstance(most, float)
    assert 10 < most <= 12.07
    assert (flow["outcome"], flow["discarded"], flow["lost"], flow["stalls"]) == ("finished", 0, 0, 0)
    assert flow["frames_decodable"] == flow["frames"]
    unlimited = airpath.run(EXAMPLE, set=change).buffers["buffer_s"].max()
    assert isinstance(unlimited, float)
    assert unlimited > 30


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_an_outage_fills_a_limited_buffer(transport: str) -> None:
    change = {"flow.0.max_buffer": '"6 s"', "flow.0.repair": '"none"', "flow.0.transport": f'"{transport}"'}
    result = airpath.run(EXAMPLE, set=change | {"fixed.loss": "0"})
    flow, most = result.flows.row(0, named=True), result.buffers["buffer_s"].max()
    assert isinstance(most, float)
    assert most <= 6.07
    assert flow["stalls"] == 1
    assert flow["sent"] == flow["received"] + flow["lost"] + flow["discarded"]
    # Over TCP the player does not read what the bearer has stored above the limit.
    if transport == "tcp":
        assert (flow["discarded"], flow["frames_decodable"]) == (0, flow["frames"])


def test_a_limit_without_room_for_the_start_is_named() -> None:
    with pytest.raises(airpath.ScenarioError, match=r"flow.0.max_buffer.*one second more than `buffer`"):
        execute(EXAMPLE, set={"flow.0.max_buffer": '"5 s"'})
