"""Causes of QUIC flows in simulated runs, where the scenario and the logs give the truth."""

import json
import re
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

import airpath
from airpath.quantities import count
from airpath.trace import stream
from airpath.trace.compare.report import write
from airpath.trace.quic import flows
from airpath.trace.warnings import warnings_of
from support import ROOT, Command

DOWNLOAD = '[[flow]]\nkind = "download"\ntransport = "quic-quinn"\nbytes = '
SCENARIOS = {
    "full link": ("umts-dch-384", f'{DOWNLOAD}"1 MB"'),
    "full uplink": ("umts-dch-384", '[[flow]]\nkind = "upload"\ntransport = "quic-quinn"\nbytes = "200 kB"'),
    "outage": ("umts-dch-384", f'[[change]]\nat = "5 s"\noutage = "4 s"\n{DOWNLOAD}"1 MB"'),
    "outage of LTE": ("lte-10mhz", f'[[change]]\nat = "2 s"\noutage = "2 s"\n{DOWNLOAD}"20 MB"'),
    "shared": ("umts-dch-384", f'{DOWNLOAD}"1 MB"\n[[flow]]\nkind = "download"\nbytes = "1 MB"'),
    "small window": ("lte-10mhz", f'{DOWNLOAD}"3 MB"\nquic = {{ receive_window = "30 kB" }}'),
    "smaller window": ("lte-10mhz", f'{DOWNLOAD}"1 MB"\nquic = {{ receive_window = "20 kB" }}'),
    "short queue": (
        "wired",
        f'bearer.rate = "5 Mbit/s"\nbearer.queue.discipline = "codel"\n{DOWNLOAD}"5 MB"',
    ),
    "half duplex": ("nb-iot", f'{DOWNLOAD}"200 kB"'),
    "migration": (
        "lte-10mhz",
        'second_bearer.preset = "wifi-n"\nsteering = { mode = "active-standby", preferred = "second", '
        f'addresses = "two" }}\n[[change]]\nat = "1 s"\nto = "second-bearer"\noutage = "15 s"\n{DOWNLOAD}"5 MB"\n'
        '[[flow]]\nkind = "download"\nbytes = "5 MB"',
    ),
    "think time": (
        "lte-10mhz",
        '[[flow]]\nkind = "transactions"\ntransport = "quic-quinn"\nresponse = "200 kB"\nthink = "5 s"\n'
        'duration = "30 s"',
    ),
    "page": ("umts-dch-384", '[[flow]]\nkind = "page"\npage = "static-site"\nprotocol = "h3"'),
    "reading": (
        "lte-20mhz",
        '[[flow]]\nkind = "page"\npage = "median-2024"\nprotocol = "h3"\nviews = 3\nreading = "5 s"\n',
    ),
    "driving": (
        "lte-20mhz",
        '[[mobile]]\nname = "car"\nenvironment = "driving"\n[[flow]]\nkind = "transactions"\n'
        'transport = "quic-quinn"\nresponse = "1 MB"\nthink = "2 s"\nduration = "120 s"',
    ),
    "gprs": ("gprs-3+1", f'[[mobile]]\nenvironment = "driving"\n{DOWNLOAD}"300 kB"'),
}
ENDS = ("server", "mobile")


@cache
def runs() -> TemporaryDirectory[str]:
    """Make all runs once; they are removed with the object."""
    folder = TemporaryDirectory()
    for name, (preset, rest) in SCENARIOS.items():
        text = f'format = 1\nduration = "400 s"\nfixed.delay = "20 ms"\nbearer.preset = "{preset}"\n{rest}\n'
        airpath.run(text, out=Path(folder.name) / name, capture=True)
    return folder


def run(name: str) -> Path:
    return Path(runs().name) / name


def capture(name: str, end: str) -> Path:
    return run(name) / "captures" / f"0000-{end}.pcapng"


def seconds(trace: airpath.Trace) -> dict[str, float]:
    [flow] = trace.quic.rows(named=True)
    return {name.removesuffix("_s"): value for name, value in flow.items() if name.endswith("_s")}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_pieces_follow_each_other_and_add_up(name: str, end: str) -> None:
    trace = airpath.trace(capture(name, end), radio=run(name))
    for flow in flows(trace):
        pieces = trace.causes.filter(quic=flow["quic"])
        assert pieces["start"].to_list() == [flow["first"], *pieces["end"].to_list()[:-1]]
        assert pieces["end"].to_list()[-1] == flow["last"]
        assert pieces["connection"].null_count() == pieces.height
        causes = set(pieces["cause"])
        # These need acknowledgements, offsets or flags, which are encrypted.
        assert not causes & {"slow-start", "congestion-window", "receive-window", "recovery", "spurious", "closing"}


@pytest.mark.parametrize("end", ENDS)
def test_a_full_link_is_found(end: str) -> None:
    for name, sender, least in (("full link", "server", 0.9), ("full uplink", "client", 0.75)):
        trace = airpath.trace(capture(name, end))
        times = seconds(trace)
        whole = sum(flow["duration_s"] for flow in flows(trace))
        assert times["queueing"] + times["path_rate"] > least * whole
        full = trace.causes.filter(pl.col("cause") == "queueing", pl.col("full_by") == sender)
        assert sum((full["end"] - full["start"]).to_list()) / 1e9 > 0.95 * times["queueing"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("name", "length"), [("outage", 4), ("outage of LTE", 2)])
def test_an_outage_is_found_without_and_with_a_log(name: str, length: float, end: str) -> None:
    assert seconds(airpath.trace(capture(name, end)))["radio"] == pytest.approx(length, abs=0.2)
    trace = airpath.trace(capture(name, end), radio=run(name))
    outage = trace.radio_states.filter(state="outage", cause="radio")
    assert sum((outage["end"] - outage["start"]).to_list()) / 1e9 == pytest.approx(length, abs=0.05)


@pytest.mark.parametrize("end", ENDS)
def test_think_time_is_the_applications(end: str) -> None:
    transactions = airpath.load(run("think time")).summary["flows"][0]["received"]
    assert seconds(airpath.trace(capture("think time", end)))["application"] == pytest.approx(5 * transactions, abs=5.2)


@pytest.mark.parametrize("end", ENDS)
def test_the_time_of_a_reader_is_neither_latency_nor_a_round_trip(end: str) -> None:
    # At the server, the run ends before the close of two flows that are not used again.
    found = [flow for flow in flows(airpath.trace(capture("reading", end))) if flow["duration_s"] > 5]
    assert len(found) >= 4
    for flow in found:
        assert flow["application_s"] > 0.7 * flow["duration_s"]
        assert flow["latency_s"] < 0.1 * flow["duration_s"]
        assert (flow["round_trip_p50_ns"] or 0) < 150e6
        assert (flow["round_trip_max_ns"] or 0) < 1e9
    assert sum(flow["round_trips"] for flow in found) > 20


@pytest.mark.parametrize("name", ["small window", "smaller window"])
def test_a_small_window_is_the_senders(name: str) -> None:
    trace = airpath.trace(capture(name, "server"))
    times = seconds(trace)
    assert times["sender"] > 0.85 * sum(flow["duration_s"] for flow in flows(trace))


@pytest.mark.parametrize("end", ENDS)
def test_a_half_duplex_mobile_fills_its_link(end: str) -> None:
    trace = airpath.trace(capture("half duplex", end))
    times = seconds(trace)
    assert times["queueing"] + times["path_rate"] > 0.75 * sum(flow["duration_s"] for flow in flows(trace))


@pytest.mark.parametrize("end", ENDS)
def test_a_full_link_with_a_short_queue_is_found(end: str) -> None:
    trace = airpath.trace(capture("short queue", end))
    times = seconds(trace)
    assert times["queueing"] + times["path_rate"] > 0.6 * sum(flow["duration_s"] for flow in flows(trace))


def test_another_connection_shares_the_link() -> None:
    trace = airpath.trace(capture("shared", "mobile"))
    times = seconds(trace)
    assert times["sharing"] > 5
    assert times["sharing"] + times["queueing"] + times["path_rate"] > 20
    # The connection of TCP shares it with the datagrams.
    assert trace.connections["sharing_s"].sum() > 5


def test_a_silent_bearer_is_not_shared_after_a_migration() -> None:
    trace = airpath.trace(run("migration"))
    assert seconds(trace)["sharing"] < 0.5
    assert any("connection migration" in warning for warning in warnings_of(trace))
    # A capture does not show that an address may change.
    assert warnings_of(airpath.trace(capture("migration", "server"))) == []


@pytest.mark.parametrize("end", ENDS)
def test_a_flow_goes_on_from_another_port_of_its_client(end: str, tmp_path: Path) -> None:
    """A NAT gives the client another port; the connection ID of the server remains."""
    whole = airpath.trace(capture("full link", end))
    port = int(whole.quic["client"].item().rsplit(":", 1)[1])
    content, at, frame, is_moved = bytearray(capture("full link", end).read_bytes()), 0, 0, False
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:  # An enhanced packet block: its data is behind 28 bytes.
            frame += 1
            ports = struct.unpack_from(">HH", content, at + 28 + 20)
            # The server learns of it by a datagram of the client.
            is_moved |= frame > 300 and ports[0] == port
            if is_moved:
                struct.pack_into(">HH", content, at + 28 + 20, *(each + (each == port) for each in ports))
        at += length
    (tmp_path / "moved.pcapng").write_bytes(content)
    moved = airpath.trace(tmp_path / "moved.pcapng")
    assert (whole.quic["address_changes"].item(), moved.quic["address_changes"].item()) == (0, 1)
    assert moved.quic.drop("address_changes").equals(whole.quic.drop("address_changes"))
    assert moved.causes.equals(whole.causes)
    # The flow is selected by what it had at its begin.
    assert airpath.trace(tmp_path / "moved.pcapng", flow=f":{port}").causes.equals(whole.causes)
    with pytest.raises(airpath.TraceError, match="no flow matches"):
        airpath.trace(tmp_path / "moved.pcapng", flow=f":{port + 1}")


def test_the_radio_log_has_the_names_of_its_states() -> None:
    states = airpath.trace(run("driving")).radio_states
    assert {"harq-repeat", "scheduling-request", "grant"} <= set(states["state"])
    assert "establishment" in set(airpath.trace(run("gprs")).radio_states["state"])
    at_mobile = airpath.trace(capture("driving", "mobile"), radio=run("driving")).radio_states
    assert "promotion" in set(at_mobile.filter(cause="set-up")["state"])


def test_a_stream_has_a_line_for_each_flow() -> None:
    lines: list[str] = []
    stream(capture("shared", "server"), lines.append, causes=True)
    found = {row["type"]: row for row in map(json.loads, lines)}
    assert set(found) == {"connection", "quic"}
    expected = airpath.trace(capture("shared", "server")).quic.row(0, named=True)
    line = found["quic"]
    assert {name: line[name] for name in expected} == expected
    lines.clear()
    stream(capture("page", "server"), lines.append)
    assert [json.loads(line)["type"] for line in lines] == ["quic"]
    assert "main_cause" not in json.loads(lines[0])


def test_a_comparison_with_quic_has_no_number_of_retransmissions(tmp_path: Path) -> None:
    command = Command(tmp_path)
    tcp = ROOT / "tests" / "captures" / "loss-server.pcapng"
    quic = capture("page", "server")
    done = command("trace", "compare", tcp, quic, "--format", "json")
    figures = {row["figure"]: (row["trace 1"], row["trace 2"]) for row in done.json}
    known, hidden = figures["retransmitted"]
    assert known > 0
    assert hidden is None
    assert "UDP payload" in done.err
    text = command("trace", "compare", tcp, quic).out
    assert next(line for line in text.splitlines() if "retransmitted" in line).split()[1:] == [count(known), "–", "–"]
    of_three = command("trace", "compare", tcp, quic, tcp).out.split("retransmitted")[1]
    assert re.search(rf" {count(known)}\b.* –", of_three, re.DOTALL)
    assert "– (" not in of_three
    assert "UDP payload" not in command("trace", "compare", tcp, tcp).err


def test_a_flow_is_selected_by_its_address_or_number() -> None:
    for selector in (1, "1", "quic:1"):
        selected = airpath.trace(capture("page", "server"), flow=selector)
        assert selected.causes.equals(airpath.trace(capture("page", "server")).causes)
    assert airpath.trace(capture("page", "server"), flow=":443").quic.height == 1
    with pytest.raises(airpath.TraceError, match="no flow matches"):
        airpath.trace(capture("page", "server"), flow=":444")
    for selector in ("2", "quic:2", "tcp:1"):
        with pytest.raises(airpath.TraceError, match=f"'{selector}': the capture has 1 QUIC flow numbered from 1"):
            airpath.trace(capture("page", "server"), flow=selector)


def test_a_number_selects_the_connection_and_the_quic_flow() -> None:
    whole = airpath.trace(capture("shared", "server"))
    for selector, numbers in {"1": (1, 1), "tcp:1": (1, 0), "quic:1": (0, 1)}.items():
        selected = airpath.trace(capture("shared", "server"), flow=selector)
        assert (selected.connections.height, selected.quic.height) == numbers
        # The others share the path of the selected ones.
        assert selected.quic.equals(whole.quic.head(numbers[1]))
        assert selected.observations().is_empty() == (selector == "quic:1")
    with pytest.raises(airpath.TraceError, match="has 1 TCP connection and 1 QUIC flow, each numbered from 1"):
        airpath.trace(capture("shared", "server"), flow=2)


def test_a_flow_has_another_name_than_a_connection(airpath_command: Command, tmp_path: Path) -> None:
    both = f'{DOWNLOAD}"50 kB"\n[[flow]]\nkind = "download"\nbytes = "50 kB"'
    scenario = f'format = 1\nduration = "60 s"\nbearer.preset = "umts-r99-384"\n{both}\n'
    result = airpath.run(scenario, out=tmp_path / "run", capture=True)
    text = airpath_command("trace", result.path).out
    client = airpath.trace(result.path).quic["client"].item()
    assert f"\nQUIC flow 1, {client} → " in text
    assert "--flow quic:1 selects QUIC flow 1" in text
    selected = airpath_command("trace", result.path, "--flow", client).out
    assert "1 QUIC flow\n" in selected and "selects" not in selected and "\nConnection" not in selected
    page = airpath.trace(result.path).report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>1 connection and 1 QUIC flow" in page


@pytest.mark.parametrize("cut", range(3, 40, 4))
def test_a_truncated_capture_is_read_as_far_as_possible(cut: int, tmp_path: Path) -> None:
    content = capture("page", "mobile").read_bytes()
    file = tmp_path / "cut.pcapng"
    file.write_bytes(content[: len(content) * cut // 40])
    trace = airpath.trace(file)
    [flow] = flows(trace)
    length = pl.col("end") - pl.col("start")
    assert trace.causes.select(length.sum()).item() == flow["last"] - flow["first"]


def test_a_report_draws_the_flow(tmp_path: Path) -> None:
    page = airpath.trace(run("outage")).report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "QUIC flow 1" in page
    assert "where it went" in page
    assert "by state: outage 4 s" in page


@pytest.mark.parametrize("other", ["outage of LTE", "shared"])
def test_a_comparison_has_flows_of_quic_beside_connections(other: str, tmp_path: Path) -> None:
    """Of a trace with QUIC alone, and of one with a connection as well."""
    traces = [airpath.trace(run(name)) for name in (other, "full link")]
    page = write(traces, tmp_path / "compared.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "QUIC 1" in text
    assert "QUIC encrypts its acknowledgements and offsets" in text
    [flow] = traces[1].quic.rows(named=True)
    assert f"{count(flow['client_datagrams'] + flow['server_datagrams'])} datagrams" in text


def test_perfetto_has_the_causes_of_quic_flows(tmp_path: Path) -> None:
    for name in ("full link", "shared"):
        traced = airpath.trace(capture(name, "server"))
        out = traced.perfetto(tmp_path / "trace.json")
        events = json.loads(out.read_text(encoding="utf-8"))["traceEvents"]
        slices = [each for each in events if each["ph"] == "X" and each["cat"] == "quic"]
        assert len(slices) == traced.causes.drop_nulls("quic").height > 0
        time = sum((row["last"] - row["first"]) / 1e3 for row in traced.quic.iter_rows(named=True))
        assert sum(each["dur"] for each in slices) == pytest.approx(time, abs=0.01 * len(slices))
        assert min(each["ts"] for each in events if each["ph"] == "X") == 0


def test_outputs_of_connections_alone_name_the_quic_flows_that_they_lack(tmp_path: Path) -> None:
    done = Command(tmp_path)("trace", capture("shared", "server"), "--format", "csv", "--xplot", "plots")
    assert "--format csv leaves out 1 QUIC flow; --format json has all flows" in done.err
    assert "1 QUIC flow without a plot" in done.err
    assert len(done.out.splitlines()) == 2
