"""Programs of streaming, calls and terminals over a link.

They are ffmpeg, hls.js in Chromium, GStreamer, SIPp, mosh and FreeRDP.
"""

import json
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support.link import BROWSER, LinkCommand, summary
from support.needs import missing, needs, program
from support.programs import PROGRAMS

Need = Callable[..., str]

AIRPATH = Path(sys.executable).with_name("airpath")

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


PLAYER = """\
<!doctype html><video muted autoplay></video><script src="hls.js"></script><script>
const video = document.querySelector("video"), player = new Hls(), levels = new Set();
player.on(Hls.Events.FRAG_LOADED, (_, data) => levels.add(data.frag.level));
player.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) console.log("failed: " + data.details); });
video.addEventListener("ended", () => console.log(`ended: ${video.currentTime.toFixed(1)} ${[...levels].sort()}`));
player.loadSource("v.m3u8"); player.attachMedia(video);
</script>
"""
"""A page that plays the playlist, and reports the end on the console."""


@pytest.fixture(scope="session")
def hls_js(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The player hls.js, from the registry of npm."""
    npm = program("npm")
    folder = tmp_path_factory.mktemp("npm")
    fetch = [npm, "pack", "--silent", "hls.js@1.5.20"]
    got = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, check=False)
    if got.returncode != 0:
        missing("npm-registry", f"hls.js cannot be fetched: {' '.join(got.stderr.split())[:200]}")
    with tarfile.open(folder / "hls.js-1.5.20.tgz") as archive:
        member = archive.extractfile("package/dist/hls.light.min.js")
        assert member is not None
        return member.read()


def test_hls_js_plays_two_qualities(link: LinkCommand, web: str, hls_js: bytes, need: Need) -> None:
    chromium, ffmpeg = need("chromium"), need("ffmpeg")
    files = link.folder / "files"
    (files / "hls.js").write_bytes(hls_js)
    (files / "index.html").write_text(PLAYER, encoding="utf-8")
    source = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc=size=176x144:rate=15", "-t", "6"]
    codec = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "15"]
    variants = "#EXTM3U\n"
    for kbps in (150, 500):
        rate = [f"{option}={kbps}k" for option in ("b:v", "maxrate", "bufsize")]
        options = [word for option in rate for word in f"-{option}".split("=")]
        playlist = ["-f", "hls", "-hls_time", "1", "-hls_list_size", "0", str(files / f"{kbps}.m3u8")]
        subprocess.run([*source, *codec, *options, *playlist], check=True)
        variants += f"#EXT-X-STREAM-INF:BANDWIDTH={kbps * 1200}\n{kbps}.m3u8\n"
    (files / "v.m3u8").write_text(variants, encoding="utf-8")
    # Virtual time would outrun the link.
    options = [each for each in BROWSER if "virtual-time" not in each]
    options += ["--autoplay-policy=no-user-gesture-required", "--enable-logging=stderr", "--remote-debugging-port=0"]
    browser = shlex.join([chromium, *options, f"--user-data-dir={link.folder / 'profile'}", "http://server/index.html"])
    wait = """for each in $(seq 600); do grep -oE '(ended|failed): [^"]*' console && break; sleep 0.1; done"""
    wire = link.wire(rate="2 Mbit/s", delay="30 ms", queue="{ packets = 100 }")
    script = f"{browser} 2>console & {wait}; kill $!; wait"
    done = link("sh", "-c", script, link=wire, serve=web, options="--out kept --no-log", timeout=100, code=None)
    # The first segment has the lowest quality; the link is fast enough for the other.
    assert done.out == "ended: 6.0 0,1\n"


# Until port 5004 is in the list of the receiver's sockets; and the sender's wait for it.
LISTENS = "for each in $(seq 200); do grep -q :138C /proc/net/[tu][cd]p* && break; sleep 0.1; done; touch listens"
LISTENED = "for each in $(seq 200); do test -e listens && break; sleep 0.1; done"
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


def _checksums(listing: Path) -> list[str]:
    """Return the checksums of the pictures that ffmpeg has decoded."""
    return [line.split(",")[-1] for line in _frames(listing)]


def test_ffmpeg_plays_rtp_of_airpath(link: LinkCommand, umts: Path, video: Path, need: Need) -> None:
    """Each picture is that of the file, which has B frames."""
    ffmpeg = [need("ffmpeg"), "-v", "error"]
    clip = ["-i", str(video), "-c:v", "libx264", "-b:v", "148k", "-g", "15", "-bf", "2", "-f", "h264", "clip.h264"]
    subprocess.run([*ffmpeg, *clip], cwd=link.folder, check=True)
    decoded = ["-i", "clip.h264", "-fps_mode", "passthrough", "-f", "framecrc", "want"]
    subprocess.run([*ffmpeg, *decoded], cwd=link.folder, check=True)
    send = [str(AIRPATH), "measure", "stream", "--rtp", "send", "--video", "clip.h264", "--lead", "0 s"]
    send += ["--format", "json"]
    # The description, before the player starts.
    describe = [*send, "127.0.0.1:5004", "--sdp", "v.sdp", "--speed", "8", "--ahead", "10 s"]
    subprocess.run(describe, cwd=link.folder, check=True, capture_output=True)
    # BYE of the sender ends the input.
    play = [*ffmpeg, "-protocol_whitelist", "file,udp,rtp", "-i", "v.sdp"]
    play += ["-fps_mode", "passthrough", "-f", "framecrc", "-y", "got"]
    serve = f"{LISTENED}; {shlex.join([*send, 'mobile:5004'])} >sender.json; touch ended"
    script = f"timeout 30 {shlex.join(play)} & {LISTENS}; wait $!; {WAIT}"
    link("sh", "-ec", script, link=umts, serve=serve, options="--out kept --no-log")
    assert _checksums(link.folder / "got") == _checksums(link.folder / "want")
    assert len(_checksums(link.folder / "got")) == FRAMES
    sender = json.loads((link.folder / "sender.json").read_text(encoding="utf-8"))
    (flow,) = sender["flows"]
    assert (flow["outcome"], flow["frames"]) == ("finished", FRAMES)
    assert flow["duration_s"] == pytest.approx((FRAMES - 1) / 15, abs=0.5)
    rtp = sender["measurement"]["rtp"]
    assert (rtp["width"], rtp["height"], rtp["frame_rate"]) == (176, 144, 15)


@pytest.mark.parametrize("loss", [0, 0.1])
def test_airpath_receives_rtp_of_ffmpeg(link: LinkCommand, umts: Path, video: Path, need: Need, loss: float) -> None:
    ffmpeg = need("ffmpeg")
    umts.write_text(umts.read_text(encoding="utf-8").replace("[bearer]", f"down.loss = {loss}\n[bearer]"))
    send = [ffmpeg, "-v", "error", "-re", "-i", str(video), "-c", "copy", "-f", "rtp", "-sdp_file", "v.sdp"]
    # Without the description, a datagram of it is sent to this host.
    subprocess.run([*send, "-frames:v", "1", "rtp://127.0.0.1:5004"], cwd=link.folder, check=True, capture_output=True)
    receive = [str(AIRPATH), "measure", "stream", "--rtp", "receive", "--sdp", "v.sdp", "--listen", "0.0.0.0"]
    receive += ["--buffer", "1 s", "--timeout", "3 s", "--format", "json", "--out", "received"]
    serve = f"{LISTENED}; {shlex.join([*send[:-2], 'rtp://mobile:5004'])} >/dev/null"
    script = f"{shlex.join(receive)} 2>note & {LISTENS}; wait $!"
    done = link("sh", "-ec", script, link=umts, serve=serve, options="--out kept --no-log")
    received = json.loads(done.out)
    (flow,) = received["flows"]
    assert flow["outcome"] == "finished"
    assert flow["sent"] - flow["received"] == flow["lost"]
    rtp = received["measurement"]["rtp"]
    assert (rtp["parameter_sets"], rtp["ended"], rtp["foreign"]) == ("description", "silence", 0)
    assert flow["startup_s"] == pytest.approx(1, abs=0.5)
    assert 0 < flow["jitter_s"] < 0.2
    if loss:
        assert 0 < flow["frames_decodable"] < flow["frames_complete"] < flow["frames"] <= FRAMES
        on_link = sum(each["lost"] for each in summary(link.folder / "kept")["flows"] if each["kind"] == "udp")
        assert 0 < flow["lost"] <= on_link
    else:
        assert (flow["frames"], flow["frames_decodable"], flow["lost"], flow["late"]) == (FRAMES, FRAMES, 0, 0)
        assert flow["delivered_bytes"] == pytest.approx(video.stat().st_size, rel=0.1)


RECEIVES_IN_A_CONNECTION = """
gst-launch-1.0 -q tcpserversrc host=0.0.0.0 port=5004
  ! application/x-rtp-stream,media=video,clock-rate=90000,encoding-name=H264
  ! rtpstreamdepay ! rtph264depay ! video/x-h264,stream-format=byte-stream ! filesink location=got.h264"""

SENDS_IN_A_CONNECTION = """
gst-launch-1.0 -q filesrc location=video.mp4 ! qtdemux ! rtph264pay config-interval=-1 ! rtpstreampay
  ! tcpclientsink host=mobile port=5004 sync=true"""


def test_gstreamer_plays_rtp_of_airpath_in_a_connection(link: LinkCommand, umts: Path, video: Path, need: Need) -> None:
    """RTP framed by its length (RFC 4571). Each picture is that of the file."""
    ffmpeg, tshark = [need("ffmpeg"), "-v", "error"], need("tshark")
    need("gst-launch-1.0", "gstreamer1.0-tools")
    clip = ["-i", str(video), "-c:v", "libx264", "-b:v", "148k", "-g", "15", "-bf", "2", "-f", "h264", "clip.h264"]
    subprocess.run([*ffmpeg, *clip], cwd=link.folder, check=True)
    send = [str(AIRPATH), "measure", "stream", "mobile:5004", "--rtp", "send", "--transport", "tcp"]
    send += ["--video", "clip.h264", "--format", "json"]
    serve = f"{LISTENED}; {shlex.join(send)} >sender.json; touch ended"
    script = f"timeout 30 {_one_line(RECEIVES_IN_A_CONNECTION)} & {LISTENS}; wait $!; {WAIT}"
    link("sh", "-ec", script, link=umts, serve=serve, options="--out kept --no-log --capture")
    for name, decoded in (("clip.h264", "want"), ("got.h264", "got")):
        decode = ["-i", name, "-fps_mode", "passthrough", "-f", "framecrc", decoded]
        subprocess.run([*ffmpeg, *decode], cwd=link.folder, check=True)
    assert _checksums(link.folder / "got") == _checksums(link.folder / "want")
    assert len(_checksums(link.folder / "got")) == FRAMES
    sender = json.loads((link.folder / "sender.json").read_text(encoding="utf-8"))
    (flow,) = sender["flows"]
    assert (flow["outcome"], flow["frames"]) == ("finished", FRAMES)
    assert "udp" not in _kinds(link.folder / "kept")
    read = [tshark, "-r", "kept/captures/0000-server.pcapng", "-d", "tcp.port==5004,rtp"]
    read += ["-T", "fields", "-e", "rtp.seq"]
    seen = subprocess.run(read, cwd=link.folder, check=True, capture_output=True, text=True).stdout
    assert len({int(number) for number in seen.replace(",", " ").split()}) == flow["sent"]


def test_airpath_receives_rtp_of_gstreamer_in_a_connection(
    link: LinkCommand, umts: Path, video: Path, need: Need
) -> None:
    need("gst-launch-1.0", "gstreamer1.0-tools")
    receive = [str(AIRPATH), "measure", "stream", "--rtp", "receive", "--transport", "tcp", "--listen", "0.0.0.0"]
    receive += ["--buffer", "1 s", "--format", "json"]
    serve = f"{LISTENED}; {_one_line(SENDS_IN_A_CONNECTION)}"
    script = f"{shlex.join(receive)} 2>note & {LISTENS}; wait $!"
    done = link("sh", "-ec", script, link=umts, serve=serve, options="--out kept --no-log")
    received = json.loads(done.out)
    (flow,) = received["flows"]
    assert (flow["outcome"], flow["frames"], flow["frames_decodable"]) == ("finished", FRAMES, FRAMES)
    assert (flow["lost"], flow["late"], flow["stalls"]) == (0, 0, 0)
    assert flow["delivered_bytes"] == pytest.approx(video.stat().st_size, rel=0.1)
    assert flow["startup_s"] == pytest.approx(1, abs=0.5)
    rtp = received["measurement"]["rtp"]
    assert (rtp["parameter_sets"], rtp["ended"], rtp["foreign"]) == ("stream", "closed", 0)
    assert (rtp["transport"], rtp["reports_received"]) == ("tcp", 0)
    assert "udp" not in _kinds(link.folder / "kept")


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


SENDS_WITH_RETRANSMISSION = """
gst-launch-1.0 -q rtpsession name=s rtp-profile=avpf
  videotestsrc num-buffers=75 is-live=true pattern=snow ! video/x-raw,width=176,height=144,framerate=15/1
  ! vp8enc deadline=1 target-bitrate=148000 keyframe-max-dist=15 ! rtpvp8pay pt=96
  ! rtprtxsend payload-type-map='application/x-rtp-pt-map,96=(uint)97' ! s.send_rtp_sink
  s.send_rtp_src ! udpsink host=server port=5000 sync=false async=false
  s.send_rtcp_src ! udpsink host=server port=5001 sync=false async=false
  udpsrc port=5001 ! s.recv_rtcp_sink"""

RECEIVES_WITH_RETRANSMISSION = """
exec gst-launch-1.0 -q rtpsession name=s rtp-profile=avpf
  udpsrc port=5000 caps='application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=96'
  ! s.recv_rtp_sink
  s.recv_rtp_src ! rtprtxreceive payload-type-map='application/x-rtp-pt-map,96=(uint)97'
  ! rtpssrcdemux ! rtpjitterbuffer do-retransmission=true latency=500
  ! rtpvp8depay ! multifilesink location=frame-%05d
  udpsrc port=5001 ! s.recv_rtcp_sink
  s.send_rtcp_src ! udpsink host=mobile port=5001 sync=false async=false"""


def test_gstreamer_repairs_rtp_by_retransmission(link: LinkCommand, need: Need) -> None:
    """Generic NACKs (RFC 4585 §6.2.1), and retransmissions in a stream of their own (RFC 4588)."""
    tshark = need("tshark")
    need("gst-launch-1.0", "gstreamer1.0-tools")
    wire = link.folder / "wire.toml"
    wire.write_text(
        'format = 1\n[fixed]\nrate = "10 Mbit/s"\ndelay = "10 ms"\nup.loss = 0.05\n[bearer]\npreset = "wired"\n',
        encoding="utf-8",
    )
    # The video has 5 s. Sometimes GStreamer does not see the end of its RTCP.
    send = f"timeout 12 {_one_line(SENDS_WITH_RETRANSMISSION)} || test $? = 124; sleep 1"
    link("sh", "-ec", send, link=wire, serve=_one_line(RECEIVES_WITH_RETRANSMISSION), options="--out kept --capture")
    ports = ["-d", "udp.port==5000,rtp", "-d", "udp.port==5001,rtcp"]
    read = [
        tshark,
        "-r",
        "kept/captures/0000-server.pcapng",
        *ports,
        "-T",
        "fields",
        "-e",
        "rtp.p_type",
        "-e",
        "rtcp.pt",
    ]
    seen = subprocess.run(read, cwd=link.folder, check=True, capture_output=True, text=True).stdout.splitlines()
    types = [line.strip() for line in seen]
    lost = sum(flow["lost"] for flow in summary(link.folder / "kept")["flows"] if flow["kind"] == "udp")
    assert lost >= 3
    assert types.count("97") >= lost / 2
    assert any("205" in each.split(",") for each in types)
    # A retransmission may be lost, too, and nothing reports the loss of the last packet.
    assert len(list(link.folder.glob("frame-*"))) >= 70


def _one_line(pipeline: str) -> str:
    return " ".join(pipeline.split())


ON_A_SCREEN = """
export HOME=$PWD
mkfifo $$.display
Xvfb -displayfd 7 -screen 0 320x240x24 -nolisten tcp 7>$$.display 2>/dev/null &
screen=$!
read -r display <$$.display
export DISPLAY=:$display
trap 'kill $program' TERM
"$@" &
program=$!
wait $program
code=$?
kill $screen
wait $screen
exit $code
"""
"""Runs a program on a screen of its own, which ends with it."""


def test_freerdp_shows_the_screen_of_the_server(link: LinkCommand, umts: Path, need: Need) -> None:
    need("Xvfb", "xvfb")
    shadow, client = need("freerdp-shadow-cli", "freerdp2-shadow-x11"), need("xfreerdp", "freerdp2-x11")
    (link.folder / "screen.sh").write_text(ON_A_SCREEN, encoding="utf-8")
    # It may start before its screen is complete, and then it ends.
    again = f"for each in 1 2 3; do {shadow} /port:3389 -auth /sec:rdp; sleep 1; done"
    serve = f"exec sh screen.sh sh -c {shlex.quote(again)}"
    show = f"sh screen.sh timeout 12 {client} /v:server /u:user /p:secret /cert:ignore /sec:rdp /size:320x240 /bpp:16"
    # The session has no end of its own: `timeout` ends it.
    link("sh", "-c", show, link=umts, serve=serve, options="--out kept --no-log", code=124)
    links = {each["direction"]: each for each in summary(link.folder / "kept")["links"] if each["component"] == "cell"}
    assert _kinds(link.folder / "kept")["tcp"] > 1000
    assert links["down"]["delivered_bytes"] > 2000
    assert "synchronize_event" in (link.folder / "kept" / "server.log").read_text()


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
