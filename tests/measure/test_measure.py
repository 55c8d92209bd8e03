"""`airpath measure`: over loopback, short and bounded, and with the schema of a simulation."""

import csv
import io
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import airpath
from support import Command, plain_environment

TRANSACTIONS = """\
format = 1

[fixed]
rate = "10 Mbit/s"
delay = "20 ms"

[bearer]
preset = "wired"

[[flow]]
kind = "transactions"
response = "1 kB"
transactions = 5

[[flow]]
kind = "transactions"
name = "each"
response = "1 kB"
transactions = 5
connections = "each"
start = "2 s"

[[flow]]
kind = "datagrams"
direction = "down"
rate = "100 kbit/s"
duration = "1 s"

[[flow]]
kind = "download"
bytes = "10 kB"

[[flow]]
kind = "upload"
bytes = "10 kB"

[[flow]]
kind = "ping"
requests = 2

[[flow]]
kind = "terminal"
session = { rounds = 1, keys = 10, scrolls = 3, think = "10 ms", key_interval = "20 ms" }

[[flow]]
kind = "voice"
duration = "2 s"

[[flow]]
kind = "stream"
video = { duration = "2 s" }

[[flow]]
kind = "adaptive"
duration = "4 s"

[[flow]]
kind = "page"
page = "static-site"
"""


@pytest.fixture
def responder(tmp_path: Path) -> Iterator[str]:
    """A responder on a free port of this host; its address."""
    process = subprocess.Popen(
        Command(tmp_path).line("measure", "serve", "--listen", "127.0.0.1:0"),
        stderr=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    )
    assert process.stderr is not None
    words = process.stderr.readline()
    assert "listens on 127.0.0.1:" in words
    yield words.split()[-1]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    assert process.stderr.read() == ""


@pytest.fixture(scope="module")
def simulated() -> dict[str, dict[str, Any]]:
    """The rows of simulated flows, by name."""
    return {flow["name"]: flow for flow in airpath.run(TRANSACTIONS).summary["flows"]}


def measured(command: Command, *arguments: str) -> dict[str, Any]:
    done = command("measure", *arguments, "--format", "json")
    assert done.code == 0, done.err
    assert done.json["complete"]
    return done.json["flows"][0]


def test_a_ping_has_the_schema_of_a_simulated_one(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]]
) -> None:
    flow = measured(airpath_command, "ping", responder, "--count", "5", "--interval", "5 ms", "--size", "100")
    assert flow.keys() == simulated["ping"].keys()
    assert (flow["sent"], flow["received"], flow["outcome"]) == (5, 5, "finished")
    assert 0 < flow["delay_min_s"] <= flow["delay_p50_s"] <= flow["delay_max_s"] < 5


@pytest.mark.parametrize("arguments", [[], ["--upload"], ["--request", "100 B"]], ids=["silent", "upload", "request"])
def test_bulk_has_the_schema_of_a_simulated_one(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]], arguments: list[str]
) -> None:
    flow = measured(airpath_command, "bulk", responder, "--bytes", "300 kB", *arguments)
    assert flow.keys() == simulated[flow["kind"]].keys()
    assert (flow["outcome"], flow["delivered_bytes"], flow["bytes"]) == ("finished", 300_000, 300_000)
    assert 0 < flow["connect_s"] <= flow["first_byte_s"] <= flow["duration_s"] < 20
    assert flow["throughput_bps"] == pytest.approx(300_000 * 8 / flow["duration_s"])
    if flow["data_bytes"] is not None:
        assert flow["unique_bytes"] == 300_000


def test_bulk_over_quic_has_the_rows_of_a_simulated_one(airpath_command: Command, responder: str) -> None:
    options = ["--bytes", "300 kB", "--transport", "quic-quinn", "--congestion", "new-reno"]
    flow = measured(airpath_command, "bulk", responder, *options)
    keys = 'kind = "download"\ntransport = "quic-quinn"\nbytes = "300 kB"\nquic.congestion = "new-reno"\n'
    wired = 'format = 1\n[bearer]\npreset = "wired"\n'
    simulated = airpath.run(f"{wired}[[flow]]\n{keys}").summary["flows"][0]
    assert flow.keys() == simulated.keys()
    assert flow["tcp"] == simulated["tcp"]
    assert (flow["outcome"], flow["delivered_bytes"]) == ("finished", 300_000)


def test_settings_that_quic_does_not_have_are_errors(airpath_command: Command) -> None:
    quic = ["measure", "bulk", "127.0.0.1:1", "--transport", "quic-quinn"]
    done = airpath_command(*quic, "--mss", "1000")
    assert done.code == 2 and "QUIC has no --mss" in done.err
    done = airpath_command(*quic, "--congestion", "bbr")
    assert done.code == 2 and "quinn-bbr" in done.err


def test_flows_side_by_side_and_options_that_are_read_back(airpath_command: Command, responder: str) -> None:
    options = ["--flows", "3", "--bytes", "50 kB", "--mss", "1000", "--no-delay", "--send-buffer", "64 kB"]
    done = airpath_command("measure", "bulk", responder, *options, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["name"] for row in rows] == ["download-0", "download-1", "download-2"]
    assert {row["tcp_nagle"] for row in rows} == {"off"}
    assert {int(row["tcp_send_buffer"]) for row in rows} == {128_000}, "Linux doubles it"
    assert all(int(row["tcp_negotiated_segment_size"] or 0) <= 1000 for row in rows)


@pytest.mark.parametrize("way", [[], ["--upload"]], ids=["down", "up"])
def test_datagrams_have_the_schema_of_simulated_ones(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]], way: list[str]
) -> None:
    flow = measured(
        airpath_command, "datagrams", responder, "--rate", "1 Mbit/s", "--size", "972", "--duration", "200 ms", *way
    )
    assert flow.keys() == simulated["datagrams"].keys()
    assert (flow["sent"], flow["outcome"]) == (25, "finished")
    assert flow["received"] + flow["lost"] == 25
    assert flow["late_threshold_s"] == 0.15
    assert 0 <= flow["delay_min_s"] < 5, "both ends read the same clock"


@pytest.mark.parametrize("connections", ["one", "each"])
def test_transactions_have_the_schema_of_simulated_ones(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]], connections: str
) -> None:
    options = ["--connections", connections, "--count", "7", "--response", "3 kB", "--think", "2 ms"]
    flow = measured(airpath_command, "transactions", responder, *options)
    assert flow.keys() == simulated["transactions"].keys()
    assert (flow["sent"], flow["received"], flow["connections"]) == (7, 7, connections)
    assert flow["transactions_per_s"] == pytest.approx(7 / flow["duration_s"])


def test_a_terminal_has_the_schema_of_a_simulated_one(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]]
) -> None:
    options = ["--keys", "10", "--scrolls", "3", "--think", "10 ms", "--key-interval", "20 ms", "--no-delay"]
    flow = measured(airpath_command, "terminal", responder, *options)
    assert flow.keys() == simulated["terminal"].keys()
    assert (flow["sent"], flow["received"], flow["outcome"]) == (15, 15, "finished")
    kinds = {"key": 10, "scroll": 3, "window": 1, "open": 1}
    assert {kind: latencies["count"] for kind, latencies in flow["exchange"].items()} == kinds
    assert flow["exchange"].keys() == simulated["terminal"]["exchange"].keys()
    # The server takes 100 ms to open a file.
    assert 0.1 <= flow["exchange"]["open"]["p50_s"] < 5
    assert flow["tcp"]["nagle"] == "off"
    done = airpath_command("measure", "terminal", responder, "--rounds", "10000")
    assert done.code == 2
    assert "too long" in done.err


def _page(command: Command, responder: str, *words: str) -> dict[str, Any]:
    """Return the summary of pages that were loaded in full."""
    done = command("measure", "page", responder, *words, "--format", "json")
    assert done.code == 0, done.err
    assert done.json["flows"][0]["outcome"] == "finished", done.json["flows"][0]["cause"]
    return done.json


def _virtual_page(**settings: Any) -> dict[str, Any]:
    flow = {"kind": "page", "page": "static-site"} | settings
    return airpath.run({"format": 1, "name": "page", "bearer": {"preset": "wired"}, "flow": [flow]}).summary


def test_a_page_has_the_schema_and_the_objects_of_a_simulated_one(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    real = _page(airpath_command, responder, "static-site", "--out", str(tmp_path / "out"))
    virtual = _virtual_page()
    (flow,), (page,), (virtual_page,) = real["flows"], real["pages"], virtual["pages"]
    assert flow.keys() == simulated["page"].keys()
    assert page.keys() == virtual_page.keys()
    assert real["objects"][0].keys() == virtual["objects"][0].keys()
    same = ("page", "objects", "requests", "responses", "cached", "bytes", "connections")
    assert {key: page[key] for key in same} == {key: virtual_page[key] for key in same}
    bytes_of = [[(each["name"], each["bytes"]) for each in summary["objects"]] for summary in (real, virtual)]
    assert bytes_of[0] == bytes_of[1]
    assert 0 < page["first_byte_s"] < page["page_time_s"] < 60
    assert (flow["protocol"], flow["tcp"]["nagle"]) == ("http/1.1", "off")
    # Segments are not seen here.
    assert page["idle_downlink_s"] is None
    assert airpath.Result(tmp_path / "out").summary["objects"] == real["objects"]


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["--protocol", "http/1.0", "--connections", "3"], {"protocol": "http/1.0", "connections": 3}),
        (["--connections", "1", "--pipeline", "4"], {"connections": 1, "pipeline": {"depth": 4}}),
        (["--connections", "2", "--speculative", "1"], {"connections": 2, "speculative": 1}),
        (["--connections", "1", "--no-compression"], {"connections": 1, "compression": False}),
        (
            ["--connections", "1", "--views", "2", "--reading", "10 ms"],
            {"connections": 1, "views": 2, "reading": "10 ms"},
        ),
    ],
    ids=["non-persistent", "pipelined", "speculative", "uncompressed", "cached"],
)
def test_pages_by_each_variant_of_http_1(
    airpath_command: Command, responder: str, words: list[str], settings: dict[str, Any]
) -> None:
    real, virtual = _page(airpath_command, responder, "static-site", *words), _virtual_page(**settings)
    same = ("view", "requests", "responses", "cached", "bytes", "connections")
    views = [[{key: page[key] for key in same} for page in summary["pages"]] for summary in (real, virtual)]
    assert views[0] == views[1]
    sources = [[each["source"] for each in summary["objects"]] for summary in (real, virtual)]
    assert sources[0] == sources[1]
    deep = real["pages"][0]["pipeline_factor"] > 1
    assert deep == ("--pipeline" in words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["static-site", "--protocol", "h2"], "HTTP/1.x in clear text"),
        (["static-site", "--protocol", "h3"], "airpath page load"),
        (["static-site", "--pipeline", "2", "--protocol", "http/1.0"], "only HTTP/1.1 pipelines"),
        (["static-site", "--request", "99 B"], "request: 99 is too little; at least "),
        (["static-site", "--response", "99 B"], "response: 99 is too little; at least "),
        (["static-site", "--views", "1001"], "views: 1001 is too much; at most 1000"),
        (["static-site", "--reading", "1 s"], "reading: there is no view after the first"),
        (["static-site", "--connections", "300"], "connections to all hosts: 300 is too much; at most 256"),
        (["static-sight"], "did you mean `static-site`"),
        (["missing.page"], "missing.page"),
    ],
)
def test_what_pages_cannot_have_is_named(
    airpath_command: Command, responder: str, words: list[str], message: str
) -> None:
    done = airpath_command("measure", "page", responder, *words)
    assert done.code == 2, done.err
    assert message in " ".join(done.err.split())


def test_a_connection_of_another_session_is_closed(responder: str) -> None:
    host, port = responder.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as stranger:
        stranger.sendall(b"GET /static-site/ HTTP/1.1\r\nHost: a\r\nAirpath-Session: 1\r\n\r\n")
        assert stranger.recv(100) == b""


def test_a_user_may_think_for_longer_than_a_connection_may_stay_without_a_token(
    airpath_command: Command, responder: str
) -> None:
    options = ["--rounds", "1", "--keys", "0", "--scrolls", "0", "--think", "11 s"]
    flow = measured(airpath_command, "terminal", responder, *options)
    assert (flow["outcome"], flow["sent"], flow["received"]) == ("finished", 2, 2)


@pytest.mark.parametrize("codec", ["amr", "amr-wb"])
def test_a_call_has_the_schema_of_a_simulated_one(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]], codec: str
) -> None:
    options = ["--duration", "4 s", "--codec", codec, "--jitter-buffer", "fixed", "--depth", "200 ms"]
    flow = measured(airpath_command, "voice", responder, *options)
    assert flow.keys() == simulated["voice"].keys()
    assert (flow["outcome"], flow["codec"]) == ("finished", codec)
    for way in ("down", "up"):
        found = flow[way]
        assert found.keys() == simulated["voice"][way].keys()
        assert found["sent"] == found["received"] > 20
        assert 0 <= found["delay_mean_s"] < 5, "both ends read the same clock"
        # The frame, the look-ahead, and the jitter buffer.
        assert found["mouth_to_ear_s"] >= 0.020 + 0.005 + 0.200
        assert 1 <= found["mos"] <= 4.5
    # Both have the same talk spurts from the same seed.
    again = measured(airpath_command, "voice", responder, *options)
    assert again["down"]["frames"] == flow["down"]["frames"]


STREAM = ("--duration", "4 s", "--buffer", "1 s", "--gop", "15", "--peak-to-mean", "5")


@pytest.mark.parametrize("words", [(), ("--speed", "4", "--ahead", "3 s", "--probes")], ids=["real-time", "ahead"])
def test_a_stream_has_the_schema_of_a_simulated_one(
    airpath_command: Command,
    responder: str,
    simulated: dict[str, dict[str, Any]],
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    options = [*STREAM, *words, "--repair", "nack", "--out", "real"]
    flow = measured(airpath_command, "stream", responder, *options)
    assert flow.keys() == simulated["stream"].keys()
    assert (flow["outcome"], flow["frames"], flow["frames_decodable"]) == ("finished", 60, 60)
    assert flow["sent"] == flow["received"] >= 60
    assert (flow["lost"], flow["late"], flow["stalls"]) == (0, 0, 0)
    assert flow["delivered_bytes"] == pytest.approx(148_000 / 8 * 4, abs=1)
    # Both ends send reports, and each sends BYE.
    assert flow["reports"] >= 2
    # A second of media takes a second, unless the responder sends ahead.
    assert flow["startup_s"] < 0.9 if words else 0.9 < flow["startup_s"] < 3
    assert flow["duration_s"] == pytest.approx(flow["startup_s"] + 4, abs=0.1)
    result = airpath.load(tmp_path / "real")
    assert result.buffers["time_s"].to_list() == list(range(result.buffers.height))
    arrived = result.app.filter(step="arrived")
    assert sorted(arrived["sequence"].to_list()) == list(range(flow["sent"]))
    assert 0 <= arrived["delay"].min() <= arrived["delay"].max() < 5e9, "both ends read the same clock"  # type: ignore
    assert result.app["step"].to_list()[-1] == "finished"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--duration", "2 h"], "too long"),
        (["--duration", "1 h", "--frame-rate", "1000"], "frames of the video: 3600000 is too much; at most 216000"),
        (["--rate", "1 Gbit/s"], "packets of the video: 5357"),
        (["--packet", "0 B"], "packet"),
        (["--speed", "2"], "ahead"),
        (["--frame-rate", "0"], "frames of the video: 0 is too little"),
        (["--peak-to-mean", "100"], "--peak-to-mean: "),
        (["--rate", "1"], "`1` has no unit"),
    ],
)
def test_a_stream_beyond_the_limits_is_named(airpath_command: Command, words: list[str], message: str) -> None:
    done = airpath_command("measure", "stream", "127.0.0.1:1", *words)
    assert done.code == 2, done.err
    assert message in " ".join(done.err.split())


def test_a_stream_that_is_stopped_has_its_figures_so_far(
    airpath_command: Command, responder: str, tmp_path: Path
) -> None:
    line = airpath_command.line("measure", "stream", responder, "--out", "cut", "--format", "jsonl", "--interval", "1s")
    process = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while True:
        text = process.stdout.readline()
        assert text, process.communicate()
        if json.loads(text).get("count", 0) > 0:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    summary = airpath.load(tmp_path / "cut").summary
    (flow,) = summary["flows"]
    assert (summary["complete"], flow["outcome"], flow["duration_s"]) == (False, "unfinished", None)
    assert 0 < flow["received"] <= flow["sent"] < flow["frames"] * 2
    # The session of the responder has ended with its control connection.
    assert measured(airpath_command, "ping", responder, "--count", "1")["received"] == 1


def test_adaptive_streaming_whose_responder_ends_is_aborted(airpath_command: Command, tmp_path: Path) -> None:
    serve = airpath_command.line("measure", "serve", "--listen", "127.0.0.1:0")
    responder = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, env=plain_environment())
    assert responder.stderr is not None
    address = responder.stderr.readline().split()[-1]
    process = _until_something_arrives(airpath_command.line("measure", "adaptive", address), tmp_path)
    responder.kill()
    responder.communicate()
    _, err = process.communicate(timeout=60)
    assert "1 of 1 flows aborted: the other end closed the connection early" in err
    (flow,) = airpath.load(tmp_path / "cut").summary["flows"]
    assert flow["outcome"] == "aborted"
    assert 0 < flow["segments_received"] < flow["segments"]


def test_adaptive_streaming_that_is_stopped_has_its_figures_so_far(
    airpath_command: Command, responder: str, tmp_path: Path
) -> None:
    process = _until_something_arrives(airpath_command.line("measure", "adaptive", responder), tmp_path)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    summary = airpath.load(tmp_path / "cut").summary
    (flow,) = summary["flows"]
    assert (summary["complete"], flow["outcome"], flow["duration_s"]) == (False, "unfinished", None)
    assert flow["delivered_bytes"] > 0
    assert measured(airpath_command, "ping", responder, "--count", "1")["received"] == 1


def _until_something_arrives(line: list[str], folder: Path) -> "subprocess.Popen[str]":
    """Start a measurement with the result `cut`; return it when something has arrived."""
    line = [*line, "--out", "cut", "--format", "jsonl", "--interval", "1s"]
    process = subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while True:
        text = process.stdout.readline()
        assert text, process.communicate()
        if json.loads(text).get("count", 0) > 0:
            return process


def test_parameters_of_adaptation_are_those_of_the_flow(
    airpath_command: Command, responder: str, tmp_path: Path
) -> None:
    options = ["--segment", "500 ms", "--duration", "2 s", "--startup", "1 s", "--buffer", "2 s", "--out", "real"]
    options += ["--qualities", "100 kbit/s, 1 Gbit/s", "--parameter", "efficiency=0.01", "--parameter", "samples=2"]
    flow = measured(airpath_command, "adaptive", responder, *options)
    assert flow["quality_bps"] == 100_000
    assert airpath.load(tmp_path / "real").segments["quality"].max() == 0


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("samples=x", '--parameter samples: invalid type: string "x"'),
        ("gamma_p=3", "unknown field `gamma_p`, expected one of `algorithm`, `samples`, `efficiency`"),
        ("samples=0", "--parameter samples: it is 1 to 10,000"),
    ],
)
def test_a_wrong_parameter_of_adaptation_is_named(airpath_command: Command, parameter: str, message: str) -> None:
    wrong = airpath_command("measure", "adaptive", "127.0.0.1", "--parameter", parameter)
    assert wrong.code == 2 and message in wrong.err


@pytest.mark.parametrize("algorithm", ["rate", "bba", "bola"])
def test_adaptive_streaming_has_the_schema_of_a_simulated_one(
    airpath_command: Command, responder: str, simulated: dict[str, dict[str, Any]], tmp_path: Path, algorithm: str
) -> None:
    options = ["--segment", "500 ms", "--duration", "3.8 s", "--startup", "1 s", "--buffer", "2 s"]
    options += ["--qualities", "100 kbit/s, 1 Mbit/s,2Mbit/s", "--algorithm", algorithm, "--out", "real"]
    flow = measured(airpath_command, "adaptive", responder, *options)
    assert flow.keys() == simulated["adaptive"].keys()
    assert (flow["outcome"], flow["adaptation"], flow["stalls"]) == ("finished", algorithm, 0)
    assert flow["segments"] == flow["segments_received"] == 8
    assert flow["duration_s"] == pytest.approx(flow["startup_s"] + 3.8, abs=0.1)
    assert flow["tcp"]["nagle"] == "off"
    result = airpath.load(tmp_path / "real")
    segments = result.segments
    # The last segment has 300 ms.
    rates = [100_000, 1_000_000, 2_000_000]
    lengths = [0.5] * 7 + [0.3]
    assert segments["rate_bps"].to_list() == [rates[quality] for quality in segments["quality"]]
    assert segments["bytes"].to_list() == [
        round(rate * length / 8) for rate, length in zip(segments["rate_bps"], lengths, strict=True)
    ]
    assert segments["bytes"].sum() == flow["delivered_bytes"]
    # With this buffer the path is much faster than the highest quality.
    assert segments["quality"].max() == 2
    assert max(result.buffers["buffer_s"].to_list()) <= 2
    heads = 2000 + 300 * 9
    assert result.app["delivered"].to_list()[-1] == flow["delivered_bytes"] + heads


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--duration", "2 h"], "too long"),
        (["--request", "15 B"], "request: 15 is too little; at least 16"),
        (["--qualities", "2 Mbit/s, 1 Mbit/s"], "qualities"),
        (["--qualities", "2"], "`2` has no unit"),
        (["--buffer", "5 s"], "buffer"),
        (["--segment", "0 s"], "segment"),
        (["--parameter", "efficiency"], "not of the form K=V"),
        (["--parameter", "efficiency=-1"], "efficiency"),
        (["--parameter", "size=1"], "unknown field `size`"),
        (["--parameter", "buffer=1"], "unknown field `buffer`"),
        (["--algorithm", "bba", "--parameter", "reservoir=soon"], "--parameter reservoir: `soon`"),
        (["--algorithm", "bba", "--parameter", "cushion=2"], "--parameter cushion: invalid type"),
    ],
)
def test_adaptive_streaming_beyond_the_limits_is_named(
    airpath_command: Command, words: list[str], message: str
) -> None:
    done = airpath_command("measure", "adaptive", "127.0.0.1:1", *words)
    assert done.code == 2, done.err
    assert message in " ".join(done.err.split())


@pytest.mark.parametrize("quality", [3, 2**32 - 1])
def test_a_request_for_an_unknown_quality_closes_the_connection(responder: str, quality: int) -> None:
    settings = {"qualities": ["8 kbit/s", "16 kbit/s", "32 kbit/s"], "request": "20 B"}
    work = {"kind": "adaptive", "settings": settings}
    connection, lines = _control(responder, {"test": {"work": work}})
    with connection:
        number = json.loads(lines.readline())["ready"]["session"]
        with socket.create_connection(connection.getpeername(), timeout=20) as flow:
            flow.sendall(b"flow" + bytes(4) + bytes.fromhex(number) + bytes(4))
            received = flow.makefile("rb")
            assert len(received.read(2300)) == 2300
            flow.sendall((1).to_bytes(4, "big") + bytes(16))
            assert len(received.read(8300)) == 8300
            flow.sendall(quality.to_bytes(4, "big") + bytes(16))
            assert received.read() == b""


def _control(responder: str, *requests: object) -> tuple[socket.socket, Any]:
    """Return a control connection of a client by hand, and its lines after the greeting."""
    host, port = responder.split(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(b"airpath-measure 3\n")
    for request in requests:
        connection.sendall(json.dumps(request).encode() + b"\n")
    lines = connection.makefile("rb")
    assert lines.readline() == b"airpath-measure 3\n"
    return connection, lines


def _stream(**video: object) -> dict[str, Any]:
    return {"test": {"work": {"kind": "stream", "video": video, "settings": {"repair": "nack"}}}}


PING = {
    "test": {"work": {"kind": "ping", "size": 100, "interval": "1 s", "count": 1, "timeout": "1 s"}},
}


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ([_stream(duration="3600 s", frame_rate=1000.0)], "frames of the video"),
        ([_stream(rate="10 Gbit/s")], "packets of the video"),
        ([_stream(), {"start": 2**63}], "would start in more than"),
        ([_stream(), {"start": 0}, {"start": 0}], "has started before"),
        ([PING, {"start": 0}], "no call and no video"),
        ([{"test": {"work": {"kind": "rtp-send", "video": "/etc/hosts"}}}], "plain RTP has no responder"),
    ],
    ids=["frames", "packets", "late", "twice", "ping", "plain"],
)
def test_a_responder_refuses_what_exceeds_its_limits(responder: str, requests: list[object], reason: str) -> None:
    connection, lines = _control(responder, *requests)
    with connection:
        for _ in requests[1:]:
            lines.readline()
        assert reason in json.loads(lines.readline())["refused"]


def test_hostile_datagrams_of_a_stream_do_no_harm(airpath_command: Command, responder: str) -> None:
    connection, lines = _control(responder, _stream(duration="3 s"), {"start": 0})
    with connection:
        ready = json.loads(lines.readline())["ready"]
        ports = json.loads(lines.readline())["started"]
        assert ready["session"] and len(ports) == 3
        # A generic NACK of 65 kB: each entry requests 17 packets.
        length = 16_000
        header = bytes([0x81, 205]) + length.to_bytes(2, "big") + bytes(8)
        nack = header + b"".join(number.to_bytes(2, "big") + b"\xff\xff" for number in range(length - 2))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            for _ in range(200):
                for port in ports:
                    for payload in (b"", b"\xff", bytes(1200), nack[:1472], nack):
                        datagrams.sendto(payload, ("127.0.0.1", port))
        connection.sendall(b'"report"\n')
        sent = json.loads(lines.readline())["report"]["video"]
        assert sent["packets"] <= 1000
        assert sent["retransmitted_packets"] <= sent["packets"] + 1000
        connection.sendall(b'"arrivals"\n')
        assert json.loads(lines.readline())["arrivals"] >= 1
    assert measured(airpath_command, "ping", responder, "--count", "1")["received"] == 1


def test_simulated_transactions_take_the_round_trips_that_they_must(simulated: dict[str, dict[str, Any]]) -> None:
    one, each = simulated["transactions"], simulated["each"]
    assert (one["outcome"], each["outcome"]) == ("finished", "finished")
    # One round trip for a transaction, one more for a separate connection; the transmission of 1 kB
    # adds one millisecond.
    round_trip = simulated["ping"]["delay_min_s"]
    assert round_trip < one["delay_min_s"] < 1.2 * round_trip
    assert 2 * round_trip < each["delay_min_s"] < 2.2 * round_trip
    assert each["connect_mean_s"] == pytest.approx(round_trip, rel=0.05)


def test_a_result_folder_can_be_reported_beside_a_simulated_one(
    airpath_command: Command, responder: str, tmp_path: Path
) -> None:
    assert airpath_command("measure", "bulk", responder, "--bytes", "200 kB", "--out", "real").code == 0
    result = airpath.load(tmp_path / "real")
    assert result.app["step"].to_list()[:2] == ["started", "connected"]
    assert {"first-byte", "finished"} <= set(result.app["step"])
    assert result.summary["measurement"]["clocks"]["clock"] == "shared"
    airpath.run(TRANSACTIONS, out=tmp_path / "simulated")
    done = airpath_command("report", "real", "simulated", "-o", "compared.html")
    assert done.code == 0, done.err


def test_ctrl_c_leaves_a_result_marked_partial(airpath_command: Command, responder: str, tmp_path: Path) -> None:
    line = airpath_command.line("measure", "ping", responder, "--count", "3000", "--out", "cut", "--format", "json")
    process = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "cut" / "summary.json").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "partial" in err
    summary = json.loads(out)
    assert (summary["complete"], summary["stopped"]) == (False, "interrupted")
    assert summary["flows"][0]["outcome"] == "unfinished"


def test_intervals_add_up_and_are_printed_while_it_runs(airpath_command: Command, responder: str) -> None:
    options = ("--duration", "0.6 s", "--rate", "1 Mbit/s", "--interval", "200 ms", "--format", "jsonl")
    lines = [json.loads(line) for line in airpath_command("measure", "datagrams", responder, *options).out.splitlines()]
    intervals = [line for line in lines if line["type"] == "interval"]
    flow = next(line for line in lines if line["type"] == "flow")
    assert lines.index(intervals[-1]) < lines.index(flow)
    assert len(intervals) >= 3
    assert sum(each["count"] for each in intervals) == flow["received"]
    assert [each["start_s"] for each in intervals[1:]] == [each["end_s"] for each in intervals[:-1]]
    text = airpath_command("measure", "bulk", responder, "--bytes", "1 MB", "--interval", "30 s").out
    assert text.splitlines()[0].endswith("bit/s")
    assert ": 1 MB, " in text


@pytest.mark.parametrize("options", ["--interval 1x", "--interval 0s", "--interval 10ms", "--interval 1s --format csv"])
def test_an_interval_that_cannot_be_printed_is_an_error(airpath_command: Command, options: str) -> None:
    done = airpath_command("measure", "bulk", "127.0.0.1:1", *options.split())
    assert done.code == 2
    assert "--interval" in done.err


def test_garbage_does_no_harm(airpath_command: Command, responder: str) -> None:
    host, port = responder.split(":")
    for garbage in (b"", b"GET / HTTP/1.0\r\n\r\n", b"airpath-measure x\n", b"\xff" * 5000, b"airpath-measure 1\n{}\n"):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(garbage)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.sendto(garbage, (host, int(port)))
            datagrams.sendto(b"apm1" + garbage, (host, int(port)))
    assert measured(airpath_command, "ping", responder, "--count", "1")["received"] == 1


def test_errors_report_the_next_step(airpath_command: Command, responder: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = airpath_command("measure", "serve", "--listen", f"127.0.0.1:{port}")
        assert (done.code, "cannot listen on" in done.err, "--listen" in done.err) == (1, True, True)
    done = airpath_command("measure", "ping", f"127.0.0.1:{port}")
    assert done.code == 1
    assert "airpath measure serve" in done.err
    done = airpath_command("measure", "ping", "no-such-host.invalid")
    assert (done.code, "cannot find the host no-such-host.invalid" in done.err) == (1, True)
    done = airpath_command("measure", "ping", "no; such.invalid")
    assert done.err.startswith("error: cannot find the host no; such.invalid: ")
    assert done.err.endswith("\n  next: check the name, or give its address\n")
    done = airpath_command("measure", "bulk", responder, "--bytes", "5")
    assert (done.code, "`5` has no unit" in done.err) == (2, True)
    done = airpath_command("measure", "ping", responder, "--size", "5")
    assert (done.code, "size: 5 is too little; at least 32" in done.err) == (2, True)
    done = airpath_command("measure", "bulk", responder, "--congestion", "warp")
    assert (done.code, "the congestion control `warp`" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["ping", "--interval", "foo"], "--interval: `foo` is not a length of time"),
        (["ping", "--interval", "0 s"], "--interval: the time between requests must be above zero"),
        (["ping", "--duration", "soon"], "--duration: `soon` is not a length of time"),
        (["ping", "--size", "5"], "--size: 5 is too little; at least 32"),
        (["datagrams", "--late", "3"], "--late: `3` has no unit"),
        (["datagrams", "--size", "-1"], "--size: invalid value: integer `-1`"),
        (["bulk", "--bytes", "5"], "--bytes: `5` has no unit"),
        (["bulk", "--send-buffer", "x"], "--send-buffer: `x` is not a size"),
        (["terminal", "--file", "5"], "--file: `5` has no unit"),
        (["voice", "--depth", "2 min"], "--depth: it is at most 60 s"),
        (["stream", "--rate", "5"], "--rate: `5` has no unit"),
        (["adaptive", "--parameter", "efficiency=-1"], "--parameter efficiency: it is 0.01 to 10"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_names_the_option(airpath_command: Command, command: list[str], message: str) -> None:
    kind, *words = command
    done = airpath_command("measure", kind, "127.0.0.1:1", *words)
    assert done.code == 2, done.err
    assert f"error: {message}" in " ".join(done.err.split())


def test_a_stream_whose_responder_ends_has_what_arrived(airpath_command: Command, tmp_path: Path) -> None:
    serve = airpath_command.line("measure", "serve", "--listen", "127.0.0.1:0")
    responder = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, env=plain_environment())
    assert responder.stderr is not None
    address = responder.stderr.readline().split()[-1]
    line = airpath_command.line("measure", "datagrams", address, "--duration", "4 s", "--timeout", "500 ms")
    process = _until_something_arrives(line, tmp_path)
    responder.kill()
    responder.communicate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    words = " ".join(err.split())
    assert "lost the responder at 127.0.0.1:" in words
    assert "the partial result is in cut" in words
    summary = airpath.load(tmp_path / "cut").summary
    assert (summary["complete"], summary["stopped"].partition(" at ")[0]) == (False, "lost the responder")
    (flow,) = summary["flows"]
    # The responder did not report what it has sent: 125 datagrams a second.
    assert flow["outcome"] == "unfinished"
    assert 0 < flow["received"] <= flow["sent"] < 4 * 125


def test_a_responder_that_is_too_old_is_reported(airpath_command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as old:

        def answer() -> None:
            connection, _ = old.accept()
            with connection:
                connection.sendall(b"airpath-measure 0\n")
                connection.recv(100)

        thread = threading.Thread(target=answer)
        thread.start()
        done = airpath_command("measure", "ping", f"127.0.0.1:{old.getsockname()[1]}")
        thread.join()
    assert done.code == 1
    assert "speaks version 0" in done.err
    assert "update airpath there" in done.err
