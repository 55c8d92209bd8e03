"""`airpath measure stream --rtp`: real media between two processes of airpath on one host."""

import json
import socket
import subprocess
import time
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
        assert "waits for RTP o" in process.stderr.readline()
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
        (["127.0.0.1", "--transport", "tcp"], "--transport has no effect without --rtp"),
        (["--rtp", "receive", "--sdp", "tcp.sdp", "--transport", "udp"], "tcp.sdp: it describes RTP over tcp"),
        (["--rtp", "receive", "--sdp", "udp.sdp", "--transport", "tcp"], "udp.sdp: it describes RTP over udp"),
        (["--rtp", "receive", "--sdp", "tls.sdp"], "tls.sdp: line 2: the protocol is TCP/TLS/RTP/SAVP"),
    ],
)
def test_bad_input_is_named(airpath_command: Command, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "text").write_text("no video\n")
    (tmp_path / "movie").write_bytes(b"\0\0\0\x20ftypisom")
    (tmp_path / "vp8.sdp").write_text("v=0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 VP8/90000\n")
    far = "v=0\nc=IN IP4 192.0.2.1\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
    (tmp_path / "far.sdp").write_text(far)
    for name, protocol in (("udp", "RTP/AVP"), ("tcp", "TCP/RTP/AVP"), ("tls", "TCP/TLS/RTP/SAVP")):
        text = f"v=0\nm=video 5004 {protocol} 96\na=rtpmap:96 H264/90000\n"
        (tmp_path / f"{name}.sdp").write_text(text)
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


@pytest.fixture
def tcp_port() -> int:
    """A free port of TCP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


SEND_OVER_TCP = ("--rtp", "send", "--transport", "tcp", "--video", "clip.h264", "--format", "json")


def test_a_file_is_received_over_tcp_as_it_was_sent(airpath_command: Command, clip: Path, tcp_port: int) -> None:
    """The receiver has the transport from the description that a sender has written before."""
    send = ("measure", "stream", f"127.0.0.1:{tcp_port}", *SEND_OVER_TCP, "--sdp", "session.sdp", "--packet", "300 B")
    done = airpath_command(*send, "--lead", "100 ms")
    assert done.code == 1
    assert f"cannot connect to a player at 127.0.0.1:{tcp_port}: Connection refused" in done.err
    description = (clip.parent / "session.sdp").read_text()
    assert f"m=video {tcp_port} TCP/RTP/AVP 96\na=setup:passive\na=connection:new\na=rtcp-mux\n" in description
    with receiver(airpath_command, "--sdp", "session.sdp", "--buffer", "500 ms", "--format", "json") as process:
        done = airpath_command(*send)
        assert done.code == 0, done.err
        received = finished(process)
    (theirs,), (ours,) = done.json["flows"], received["flows"]
    assert (ours["outcome"], ours["frames"], ours["frames_decodable"]) == ("finished", FRAMES, FRAMES)
    assert (ours["sent"], ours["lost"], ours["late"], ours["stalls"]) == (theirs["sent"], 0, 0, 0)
    assert ours["sent"] > 1.5 * FRAMES
    assert (theirs["outcome"], theirs["lost"], theirs["cause"]) == ("finished", 0, None)
    assert theirs["duration_s"] == pytest.approx((FRAMES - 1) / 15, abs=0.5)
    sender, rtp = done.json["measurement"]["rtp"], received["measurement"]["rtp"]
    assert (rtp["ended"], rtp["transport"], rtp["foreign"], rtp["width"]) == ("bye", "tcp", 0, 176)
    assert sender["transport"] == "tcp"
    assert min(sender["reports_received"], rtp["reports_received"]) >= 1


def recorded(command: Command, port: int, wait: float = 0) -> bytes:
    """Return the bytes of a connection in which airpath sends the video.

    The player has a small buffer, begins to read after `wait` seconds, and sends empty reports.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        words = ("measure", "stream", f"127.0.0.1:{port}", *SEND_OVER_TCP, "--speed", "50", "--ahead", "10 s")
        sender = subprocess.Popen(command.line(*words), cwd=command.folder, stdout=subprocess.PIPE, text=True)
        player, _ = listener.accept()
    with player:
        time.sleep(wait)
        received = b""
        while part := player.recv(1000):
            received += part
            player.sendall(bytes([0, 8, 0x80, 201, 0, 1, 0, 0, 0, 1]))
    out, _ = sender.communicate(timeout=30)
    (flow,) = json.loads(out)["flows"]
    assert (flow["outcome"], flow["cause"], flow["frames"]) == ("finished", None, FRAMES)
    return received


def frames_of(connection: bytes) -> list[bytes]:
    """Return the packets in the bytes of a connection (RFC 4571), each with its length."""
    frames = []
    while connection:
        end = 2 + int.from_bytes(connection[:2])
        assert len(connection) >= end
        frames.append(connection[:end])
        connection = connection[end:]
    return frames


def received_from(command: Command, port: int, connection: bytes) -> tuple[int, str, str]:
    """Return exit code, output and errors of a receiver of this connection."""
    listen = ("--transport", "tcp", "--listen", f"127.0.0.1:{port}", "--buffer", "0 s", "--format", "json")
    with receiver(command, *listen, "--timeout", "2 s") as process:
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(connection)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err


def test_a_slow_player_receives_all_packets_and_its_reports_harm_none(
    airpath_command: Command, clip: Path, tcp_port: int
) -> None:
    frames = frames_of(recorded(airpath_command, tcp_port, wait=1))
    media = [frame for frame in frames if frame[3] & 0x7F == 96]
    assert [int.from_bytes(each[4:6]) - int.from_bytes(media[0][4:6]) & 0xFFFF for each in media] == [
        *range(len(media))
    ]
    # The last packet is BYE, in a compound with a sender report.
    assert frames[-1][3] == 200
    assert 203 in frames[-1]


def test_a_connection_that_ends_early_aborts_the_flow(airpath_command: Command, clip: Path, tcp_port: int) -> None:
    connection = recorded(airpath_command, tcp_port)
    media = [frame for frame in frames_of(connection) if frame[3] & 0x7F == 96]
    most, last = b"".join(media[:-1]), media[-1]
    for end, cause, is_complete in (
        (last, None, True),
        (last[:-1], f"in the middle of a packet, after {len(last) - 1} bytes of its frame", False),
        (last + b"GET / HTTP/1.1", f"the frame at byte {len(most) + len(last)} of the connection has a length", True),
    ):
        code, out, err = received_from(airpath_command, tcp_port, most + end)
        assert code == 0, err
        received = json.loads(out)
        (flow,) = received["flows"]
        assert flow["outcome"] == ("aborted" if cause else "finished")
        assert (cause or "") in (flow["cause"] or "")
        assert (flow["received"], flow["lost"]) == (len(media) - (not is_complete), 0)
        assert received["measurement"]["rtp"]["ended"] == "closed"


def test_a_connection_without_a_stream_is_named(airpath_command: Command, tcp_port: int) -> None:
    for connection, message in (
        (
            b"GET / HTTP/1.1\r\n\r\n",
            "the frame at byte 0 of the connection has a length of 18245 and is no packet of RTP",
        ),
        (b"\0\x20\x80\x60", "closed in the middle of a packet, after 4 bytes of its frame"),
        (b"\0\x0c\x80\x21" + bytes(10), "payload type 33"),
        (b"", "the connection was closed before a packet arrived"),
    ):
        code, _, err = received_from(airpath_command, tcp_port, connection)
        assert code == 1
        assert f"no stream was received at 127.0.0.1:{tcp_port}: " in err
        assert message in err
        assert f"rtpstreampay ! tcpclientsink host=127.0.0.1 port={tcp_port}" in err


def test_a_player_that_leaves_and_a_port_in_use_are_named(airpath_command: Command, clip: Path, tcp_port: int) -> None:
    listen = ("measure", "stream", "--rtp", "receive", "--transport", "tcp", "--listen", f"127.0.0.1:{tcp_port}")
    done = airpath_command(*listen, "--timeout", "500 ms")
    assert done.code == 1
    assert "no connection was opened for 500 ms" in done.err
    with socket.create_server(("127.0.0.1", tcp_port)) as taken:
        done = airpath_command(*listen)
        assert done.code == 1
        assert f"cannot listen on 127.0.0.1:{tcp_port}: Address already in use" in done.err
        words = ("measure", "stream", f"127.0.0.1:{tcp_port}", *SEND_OVER_TCP)
        sender = subprocess.Popen(
            airpath_command.line(*words), cwd=airpath_command.folder, stdout=subprocess.PIPE, text=True
        )
        player, _ = taken.accept()
        with player:
            assert player.recv(100)
    out, _ = sender.communicate(timeout=30)
    (flow,) = json.loads(out)["flows"]
    assert flow["outcome"] == "aborted"
    assert flow["cause"].startswith(("the player left the session", "the connection was lost"))
    assert 0 < flow["sent"] < FRAMES
