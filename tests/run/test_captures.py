"""tcptrace and tshark read our captures and agree with our own figures of each flow."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import airpath

# Losses in the fixed network cause retransmissions to count. tcptrace counts the closing handshake
# as part of the transfer, airpath does not: in a transfer of this size it is less than 0.5 %.
SCENARIO = """\
format = 1
name = "captured"
seed = 5

[fixed]
rate = "10 Mbit/s"
delay = "60 ms"
loss = 0.01

[bearer]
preset = "hs-dsch-384"
downlink.bler = 0.1

[tcp]
profile = "linux-6"

[[flow]]
kind = "download"
bytes = "6 MB"
request = "200 B"
"""

MILLISECOND = 1e-3

# tshark's classes of segments that do not continue the highest one. They differ in the time since,
# and the kind of, the previous packets. At the sender, without reordering, all of them are
# retransmissions.
SENT_BEFORE = " || ".join(
    f"tcp.analysis.{each}"
    for each in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
)


RUNS: dict[str, dict[str, Any]] = {
    "linux-6 over hs-dsch": {},
    "linux-2.4 over hs-dsch": {"tcp.profile": "linux-2.4", "fixed.loss": 0.02},
    "windows-xp over dch": {"tcp.profile": "windows-xp", "bearer": {"preset": "umts-dch-384"}},
}


@pytest.fixture(scope="module", params=RUNS)
def result(request: pytest.FixtureRequest) -> airpath.Result:
    """A captured run."""
    return airpath.run(SCENARIO, set=RUNS[request.param], capture=True, log=False)


@pytest.fixture(scope="module")
def flow(result: airpath.Result) -> dict[str, Any]:
    """Our figures of its one flow."""
    flow = result.flows.row(0, named=True)
    assert flow["outcome"] == "finished"
    assert flow["retransmitted_packets"] > 10, "the test is about retransmissions"
    return flow


def _capture(result: airpath.Result, end: str) -> str:
    [path] = [path for path in result.captures() if path.stem.endswith(end)]
    return str(path)


def _tcptrace(program: str, capture: str) -> dict[str, tuple[float, float]]:
    """Return tcptrace's figures of the connection by name: of the opener, and of the other end."""
    output = subprocess.run([program, "-lrn", capture], capture_output=True, text=True, check=True).stdout
    assert "1 TCP connection traced" in output
    assert "complete conn: yes" in output
    column = r"([\w #.]+): +([\d.]+)[^:]*?"
    figures = {}
    for line in output.splitlines():
        if match := re.fullmatch(rf" +{column} {{2,}}{column}", line):
            name, opener, _, other = match.groups()
            figures[name] = (float(opener), float(other))
    return figures


def test_tcptrace_agrees_at_the_server(
    result: airpath.Result, flow: dict[str, Any], need: Callable[[str], str]
) -> None:
    theirs = {name: other for name, (_, other) in _tcptrace(need("tcptrace"), _capture(result, "server")).items()}
    assert theirs["actual data pkts"] == flow["data_packets"]
    assert theirs["actual data bytes"] == flow["data_bytes"]
    assert theirs["unique bytes sent"] == flow["unique_bytes"]
    assert theirs["rexmt data pkts"] == flow["retransmitted_packets"]
    assert theirs["rexmt data bytes"] == flow["retransmitted_bytes"]
    assert theirs["RTT min"] * MILLISECOND == pytest.approx(flow["rtt_min_s"], abs=MILLISECOND)
    assert theirs["RTT avg"] * MILLISECOND == pytest.approx(flow["rtt_mean_s"], abs=MILLISECOND)


def test_tcptrace_agrees_at_the_mobile(
    result: airpath.Result, flow: dict[str, Any], need: Callable[[str], str]
) -> None:
    """The mobile's capture has the time of our throughput: the SYN and the last byte."""
    theirs = _tcptrace(need("tcptrace"), _capture(result, "mobile"))
    assert theirs["pure acks sent"][0] == pytest.approx(flow["ack_packets"], abs=2)
    assert theirs["throughput"][1] * 8 == pytest.approx(flow["throughput_bps"], rel=0.005)


def _tshark(program: str, capture: str, only: str, field: str) -> list[float]:
    """Return a field of each packet that passes a display filter."""
    command = [program, "-r", capture, "-Y", only, "-T", "fields", "-e", field]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(line) for line in output.split()]


def test_tshark_agrees(result: airpath.Result, flow: dict[str, Any], need: Callable[[str], str]) -> None:
    program, capture = need("tshark"), _capture(result, "server")
    [server_port, *_] = _tshark(program, capture, "tcp.flags.syn == 1 && tcp.flags.ack == 1", "tcp.srcport")
    from_server = f"tcp.srcport == {server_port:.0f} && tcp.len > 0"
    lengths = _tshark(program, capture, from_server, "tcp.len")
    assert len(lengths) == flow["data_packets"]
    assert sum(lengths) == flow["data_bytes"]
    repeated = _tshark(program, capture, f"{from_server} && ({SENT_BEFORE})", "tcp.len")
    assert len(repeated) == flow["retransmitted_packets"]
    assert sum(repeated) == flow["retransmitted_bytes"]
    round_trips = _round_trips_by_karn(program, capture, server_port)
    assert len(round_trips) == flow["rtt_samples"]
    assert min(round_trips) == pytest.approx(flow["rtt_min_s"], abs=MILLISECOND)
    assert fmean(round_trips) == pytest.approx(flow["rtt_mean_s"], abs=MILLISECOND)
    mobile = _capture(result, "mobile")
    arrivals = _tshark(program, mobile, f"tcp.srcport == {server_port:.0f} && tcp.len > 0", "frame.time_relative")
    assert flow["bytes"] * 8 / arrivals[-1] == pytest.approx(flow["throughput_bps"], rel=0.005)


def _round_trips_by_karn(program: str, capture: str, server_port: float) -> list[float]:
    """Return tshark's round trips at the server, except those that Karn's rule forbids.

    tshark measures from the last acknowledged segment, without this rule. An acknowledgement of a
    retransmitted segment, or one released when an earlier retransmission fills a hole, does not
    measure the path.
    """
    fields = ("frame.number", "tcp.srcport", "tcp.nxtseq", "tcp.ack", "tcp.analysis.ack_rtt")
    command = [program, "-r", capture, "-Y", "tcp", "-T", "fields", *(word for each in fields for word in ("-e", each))]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    sent: dict[int, list[int]] = {}  # by the end of a segment in the stream: the frames that carried it
    acknowledged = 0
    round_trips = []
    for line in lines:
        frame, port, end, ack, round_trip = line.split("\t")
        if float(port) == server_port:
            if end:
                sent.setdefault(int(end), []).append(int(frame))
            continue
        if int(ack) <= acknowledged:
            continue
        acknowledged = int(ack)
        covered = {end: sent.pop(end) for end in [end for end in sent if end <= acknowledged]}
        last = covered.get(acknowledged, [])
        if round_trip and len(last) == 1 and all(frames[-1] <= last[0] for frames in covered.values()):
            round_trips.append(float(round_trip))
    return round_trips


def test_captures_have_nanoseconds(result: airpath.Result, need: Callable[[str], str]) -> None:
    for path in result.captures():
        times = _tshark(need("tshark"), str(path), "tcp", "frame.time_epoch")
        assert len(times) > 1000
    raw = subprocess.run(
        [need("tshark"), "-r", _capture(result, "server"), "-T", "fields", "-e", "frame.time_epoch"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert all(re.fullmatch(r"\d+\.\d{9}", each) for each in raw)
    assert any(not each.endswith("000") for each in raw)


def test_checksums_are_right(result: airpath.Result, need: Callable[[str], str]) -> None:
    """The headers are complete although the file has no payload."""
    command = [need("tshark"), "-r", _capture(result, "server"), "-o", "ip.check_checksum:TRUE"]
    wrong = [*command, "-Y", "ip.checksum.status == 0 || _ws.malformed"]
    assert subprocess.run(wrong, capture_output=True, text=True, check=True).stdout == ""


def test_both_ends_saw_the_same_run(result: airpath.Result, flow: dict[str, Any], need: Callable[[str], str]) -> None:
    """Packets that the server sent and the mobile did not receive are the drops in the log."""
    program = need("tshark")
    sent = len(_tshark(program, _capture(result, "server"), "ip.dst != 0.0.0.0 && tcp.len > 0", "tcp.len"))
    got = len(_tshark(program, _capture(result, "mobile"), "ip.dst != 0.0.0.0 && tcp.len > 0", "tcp.len"))
    requests = 1
    down = result.links.filter(direction="down")
    columns = [name for name in down.columns if name.startswith("dropped_") and name.endswith("_packets")]
    dropped = sum(sum(row) for row in down.select(columns).iter_rows())
    assert sent == flow["data_packets"] + requests
    assert sent - got == dropped
    assert Path(_capture(result, "server")).stat().st_size > 0
