"""Programs of streaming, calls and terminals over a link: ffmpeg, SIPp, mosh."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.link import LinkCommand, summary
from support.needs import needs
from support.programs import PROGRAMS

Need = Callable[..., str]

FRAMES = 45
"""Frames of the video: three seconds."""


@pytest.fixture
def umts(link: LinkCommand) -> Path:
    """A bearer of UMTS with a fixed network that loses nothing."""
    path = link.folder / "umts.toml"
    path.write_text('format = 1\n[fixed]\ndelay = "10 ms"\n[bearer]\npreset = "umts-dch-384"\n', encoding="utf-8")
    return path


@pytest.fixture
def video(link: LinkCommand, need: Need) -> Path:
    """A video of 148 kbit/s in 176 × 144, as that of the study `umts-live`."""
    path = link.folder / "video.mp4"
    source = ["-f", "lavfi", "-i", "testsrc=size=176x144:rate=15", "-frames:v", str(FRAMES)]
    codec = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "148k", "-g", "15"]
    subprocess.run([need("ffmpeg"), "-v", "error", *source, *codec, str(path)], check=True)
    return path


def _frames(listing: Path) -> list[str]:
    return [line for line in listing.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def _kinds(folder: Path) -> dict[str, int]:
    """The bytes of the flows towards the mobile or the server, by kind."""
    kinds: dict[str, int] = {}
    for flow in summary(folder)["flows"]:
        kinds[flow["kind"]] = kinds.get(flow["kind"], 0) + (flow.get("delivered_bytes") or 0) + (flow.get("sent") or 0)
    return kinds


def test_ffmpeg_plays_a_playlist_of_segments(link: LinkCommand, umts: Path, video: Path, web: str, need: Need) -> None:
    ffmpeg = need("ffmpeg")
    files = link.folder / "files"
    make = [ffmpeg, "-v", "error", "-i", str(video), "-c", "copy", "-f", "hls", "-hls_time", "1", "-hls_list_size", "0"]
    play = [ffmpeg, "-v", "error", "-i", "http://server/v.m3u8", "-f", "framecrc", "-y", "got"]
    script = f"{shlex.join([*make, str(files / 'v.m3u8')])}; {shlex.join(play)}"
    link("sh", "-ec", script, link=umts, serve=web, options="--out kept --no-log")
    assert len(_frames(link.folder / "got")) == FRAMES
    assert _kinds(link.folder / "kept")["tcp"] >= video.stat().st_size * 0.9


WAIT = "for each in $(seq 200); do test -e ended && exit; sleep 0.1; done; exit 1"
"""A link ends with its command, so the command waits for the output of the server."""


def test_ffmpeg_plays_rtp_of_ffmpeg(link: LinkCommand, umts: Path, video: Path, need: Need) -> None:
    ffmpeg = need("ffmpeg")
    send = [ffmpeg, "-v", "error", "-re", "-i", str(video), "-c", "copy", "-f", "rtp"]
    # What the description of the session would transmit.
    describe = [*send[:-2], "-frames:v", "1", "-f", "rtp", "-sdp_file", "any.sdp", "rtp://127.0.0.1:5004"]
    subprocess.run(describe, cwd=link.folder, check=True, capture_output=True)
    description = (link.folder / "any.sdp").read_text(encoding="utf-8").replace("127.0.0.1", "0.0.0.0")
    (link.folder / "v.sdp").write_text(description, encoding="utf-8")
    # The description has the numbers of the session, and the last packets may come after its end.
    receive = [
        ffmpeg,
        "-v",
        "error",
        "-protocol_whitelist",
        "file,udp,rtp",
        "-i",
        "v.sdp",
        "-frames:v",
        str(FRAMES - 5),
    ]
    serve = f"{shlex.join([*receive, '-f', 'framecrc', '-y', 'got'])}; touch ended"
    script = f"{shlex.join([*send, 'rtp://server:5004'])} >/dev/null; {WAIT}"
    link("sh", "-ec", script, link=umts, serve=serve, options="--out kept --no-log")
    assert len(_frames(link.folder / "got")) == FRAMES - 5
    assert _kinds(link.folder / "kept")["udp"] > video.stat().st_size / 1400


def test_ffmpeg_plays_rtp_in_the_connection_of_rtsp(link: LinkCommand, umts: Path, video: Path, need: Need) -> None:
    """RTP interleaved in TCP (RFC 7826 §14)."""
    ffmpeg = need("ffmpeg")
    # ffmpeg as a server receives: the mobile sends the video.
    receive = [ffmpeg, "-v", "error", "-rtsp_flags", "listen", "-i", "rtsp://0.0.0.0:8554/v"]
    serve = f"{shlex.join([*receive, '-f', 'framecrc', '-y', 'got'])}; touch ended"
    send = [ffmpeg, "-v", "error", "-re", "-i", str(video), "-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp"]
    script = f"{shlex.join([*send, 'rtsp://server:8554/v'])}; {WAIT}"
    link("sh", "-ec", script, link=umts, serve=serve, options="--out kept --no-log")
    assert len(_frames(link.folder / "got")) == FRAMES
    assert "udp" not in _kinds(link.folder / "kept")


def test_sipp_calls_with_a_voice_stream(link: LinkCommand, umts: Path, need: Need) -> None:
    sipp = need("sipp", "sip-tester")
    # The recordings of speech and digits that come with it.
    (link.folder / "pcap").symlink_to("/usr/share/sip-tester")
    common = "-m 1 -nostdin -trace_err -error_file err.txt"
    serve = f"exec {sipp} -sn uas -i $(hostname -I | cut -d' ' -f1) {common}"
    call = f"{sipp} -sn uac_pcap server -i $(hostname -I | cut -d' ' -f1) {common} -timeout 30s"
    done = link("sh", "-ec", call, link=umts, serve=serve, options="--out kept --no-log", timeout=90)
    assert re.search(r"Successful call +\| +\d+ +\| +1", done.out), done.out
    voice_flows = [flow for flow in summary(link.folder / "kept")["flows"] if flow["kind"] == "udp"]
    assert max(flow["sent"] for flow in voice_flows) > 100


@needs("pseudo-terminal")
def test_mosh_runs_a_command(link: LinkCommand, umts: Path, need: Need) -> None:
    """The login is over ssh, and the session over UDP."""
    mosh, exchange = need("mosh"), PROGRAMS["ssh"](link.folder, need, "server")
    login = f"{need('ssh')} -F none -i {link.folder}/user -o UserKnownHostsFile={link.folder}/known"
    # A pseudo-terminal of its own has no size.
    session = f"stty rows 24 cols 80; {mosh} --predict=never --ssh={shlex.quote(login)} root@server -- echo over mosh"
    script = shlex.join([need("script", "bsdutils"), "-qec", session, "/dev/null"])
    done = link(
        *("sh", "-ec", f"export LC_ALL=C.UTF-8 TERM=xterm; {script}"),
        link=umts,
        serve=exchange.serve,
        options="--out kept --no-log",
    )
    assert "over mosh" in done.out
    kinds = _kinds(link.folder / "kept")
    assert kinds["tcp"] > 0
    assert kinds["udp"] > 0
