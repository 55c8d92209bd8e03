"""`airpath measure stream --rtp`: real media between two processes of airpath on one host."""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import airpath
from support import Command, plain_environment

FRAMES = 30
"""Two seconds."""


@pytest.fixture
def clip(tmp_path: Path, need: Callable[..., str]) -> Path:
    """A file of H.264 with B frames."""
    source = ["-f", "lavfi", "-i", "testsrc=size=176x144:rate=15", "-frames:v", str(FRAMES)]
    codec = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-b:v", "148k", "-g", "15", "-bf", "2", "-f", "h264"]
    subprocess.run([need("ffmpeg"), "-v", "error", *source, *codec, "clip.h264"], cwd=tmp_path, check=True)
    return tmp_path / "clip.h264"


@pytest.fixture
def port() -> int:
    """A free port, with a free one after it."""
    while True:
        with socket.socket(type=socket.SOCK_DGRAM) as first, socket.socket(type=socket.SOCK_DGRAM) as second:
            first.bind(("127.0.0.1", 0))
            found = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", found + 1))
            except (OSError, OverflowError):
                continue
            return found


@contextmanager
def receiver(command: Command, *options: str) -> "Iterator[subprocess.Popen[str]]":
    """Start a receiver, which waits for a stream in the block."""
    line = command.line("measure", "stream", "--rtp", "receive", *options)
    process = subprocess.Popen(
        line,
        cwd=command.folder,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "waits for RTP on" in process.stderr.readline()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def finished(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return the summary of a receiver when it ends."""
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    return json.loads(out)


def test_a_file_is_received_as_it_was_sent(airpath_command: Command, clip: Path, port: int, tmp_path: Path) -> None:
    options = ("--listen", f"127.0.0.1:{port}", "--buffer", "500 ms", "--format", "json", "--out", "received")
    with receiver(airpath_command, *options) as process:
        send = ("--rtp", "send", "--video", clip.name, "--sdp", "session.sdp", "--lead", "0 s", "--packet", "300 B")
        done = airpath_command("measure", "stream", f"127.0.0.1:{port}", *send, "--format", "json")
        assert done.code == 0, done.err
        assert "session.sdp" in done.err
        received = finished(process)
    (theirs,), (ours,) = done.json["flows"], received["flows"]
    assert theirs.keys() == ours.keys()
    assert (ours["outcome"], ours["frames"], ours["frames_decodable"]) == ("finished", FRAMES, FRAMES)
    assert (ours["sent"], ours["lost"], ours["late"], ours["stalls"]) == (theirs["sent"], 0, 0, 0)
    assert ours["video_bps"] == pytest.approx(theirs["video_bps"], abs=1)
    assert 0.4 < ours["startup_s"] < 1.5
    # The sender has neither the pictures nor the buffer of the player, but its last report.
    assert (theirs["outcome"], theirs["frames_complete"], theirs["startup_s"]) == ("finished", None, None)
    assert (theirs["lost"], theirs["received"]) == (0, None)
    assert theirs["jitter_s"] == pytest.approx(ours["jitter_s"], abs=1e-4)
    assert done.json["measurement"]["rtp"]["reports_received"] >= 1
    rtp = received["measurement"]["rtp"]
    assert (rtp["ended"], rtp["parameter_sets"], rtp["width"], rtp["height"]) == ("bye", "stream", 176, 144)
    # Of B frames some need no other packet; all packets have their place.
    result = airpath.load(tmp_path / "received")
    arrived = result.app.filter(step="arrived")
    assert sorted(arrived["sequence"].to_list()) == list(range(ours["sent"]))
    assert result.buffers.height >= 2
    description = (tmp_path / "session.sdp").read_text()
    assert f"m=video {port} RTP/AVP 96" in description
    assert "sprop-parameter-sets=" in description
    report = airpath_command("report", "received", "-o", "report.html")
    assert report.code == 0, report.err


def test_a_description_selects_the_stream(airpath_command: Command, clip: Path, port: int) -> None:
    """The receiver reads what a sender has written, and receives a later stream."""
    send = ("--rtp", "send", "--video", clip.name, "--sdp", "session.sdp", "--lead", "0 s", "--speed", "8")
    send += ("--ahead", "10 s", "--quiet")
    assert airpath_command("measure", "stream", f"127.0.0.1:{port}", *send).code == 0
    with receiver(airpath_command, "--sdp", "session.sdp", "--buffer", "0 s", "--format", "json") as process:
        # Bytes that are no RTP, and RTP of another type, do no harm.
        with socket.socket(type=socket.SOCK_DGRAM) as other:
            for datagram in (b"", b"no packet", bytes([0x80, 33, *range(10)]) + b"x" * 188):
                other.sendto(datagram, ("127.0.0.1", port))
            other.sendto(bytes([0x80, 203, 0, 0]), ("127.0.0.1", port + 1))
        assert airpath_command("measure", "stream", f"127.0.0.1:{port}", *send, "--seed", "7").code == 0
        received = finished(process)
    (flow,) = received["flows"]
    assert (flow["frames"], flow["frames_decodable"], flow["lost"]) == (FRAMES, FRAMES, 0)
    assert received["measurement"]["rtp"]["foreign"] == 3
    assert flow["duration_s"] == pytest.approx(FRAMES / 15, abs=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rtp", "send"], "HOST is missing"),
        (["127.0.0.1", "--rtp", "send"], "--rtp send needs --video FILE"),
        (["127.0.0.1", "--rtp", "receive"], "HOST (127.0.0.1): --rtp receive takes packets of any sender"),
        (["127.0.0.1", "--sdp", "s.sdp"], "--sdp has no effect without --rtp"),
        (["127.0.0.1", "--rtp", "send", "--video", "x", "--gop", "3"], "--gop has no effect with --rtp send"),
        (["--rtp", "receive", "--rate", "1 Mbit/s"], "--rate has no effect with --rtp receive"),
        (["127.0.0.1", "--rtp", "send", "--video", "none.h264"], "none.h264: No such file"),
        (["127.0.0.1", "--rtp", "send", "--video", "text"], "text: there are no parameter sets of H.264"),
        (["127.0.0.1", "--rtp", "send", "--video", "movie"], "movie: this is an MP4 file"),
        (["--rtp", "receive", "--sdp", "text"], "text: this is no description of a session"),
        (["--rtp", "receive", "--sdp", "vp8.sdp"], "vp8.sdp: line 2: the video is VP8, not H264"),
        (["--rtp", "receive", "--sdp", "far.sdp"], "far.sdp: packets are sent to 192.0.2.1"),
        (["--rtp", "receive", "--listen", "127.0.0.1:65535"], "RTCP needs the port after"),
        (["--rtp", "receive", "--buffer", "2 h"], "too long"),
    ],
)
def test_bad_input_is_named(airpath_command: Command, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "text").write_text("no video\n")
    (tmp_path / "movie").write_bytes(b"\0\0\0\x20ftypisom")
    (tmp_path / "vp8.sdp").write_text("v=0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 VP8/90000\n")
    far = "v=0\nc=IN IP4 192.0.2.1\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
    (tmp_path / "far.sdp").write_text(far)
    done = airpath_command("measure", "stream", *words)
    assert done.code == 2, done.err
    assert message in " ".join(done.err.split())


def test_a_port_in_use_and_a_missing_stream_are_named(airpath_command: Command, port: int) -> None:
    listen = ("measure", "stream", "--rtp", "receive", "--listen", f"127.0.0.1:{port}", "--timeout", "500 ms")
    done = airpath_command(*listen)
    assert done.code == 1
    assert f"no stream was received at 127.0.0.1:{port}: no packet arrived for 500 ms" in done.err
    assert f"rtp://127.0.0.1:{port}" in done.err
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", port + 1))
        done = airpath_command(*listen)
    assert done.code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.err
