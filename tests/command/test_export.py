"""`airpath export`: what other programs get is what the frames hold."""

import csv
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import export
from airpath.tables import EVENT_TABLES
from support import Command

CALLS = """
format = 1
name = "calls"
duration = "60 s"
bearer.preset = "gprs-3+1"
bearer.conditions.environment = "walking"
[[flow]]
kind = "download"
bytes = "20 kB"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    return airpath.run(CALLS, out=tmp_path_factory.mktemp("result") / "run")


@pytest.fixture(scope="module")
def trace(result: airpath.Result, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = export.perfetto(result, tmp_path_factory.mktemp("trace") / "trace.json")
    return json.loads(path.read_text())["traceEvents"]


def test_a_result_without_pages_names_where_they_are(result: airpath.Result, tmp_path: Path) -> None:
    with pytest.raises(export.NoPagesError, match="run a scenario with a flow of kind page"):
        export.har(result, tmp_path / "pages.har")
    loaded = tmp_path / "loaded"
    shutil.copytree(result.path, loaded)
    (loaded / "page.har").touch()
    with pytest.raises(export.NoPagesError, match=f"a browser loaded its pages; {loaded}/page.har has them"):
        export.har(airpath.load(loaded), tmp_path / "pages.har")


def test_each_table_is_a_file(result: airpath.Result, tmp_path: Path) -> None:
    files = export.csv(result, tmp_path / "tables")
    summaries = {"flows", "links", "radio-totals", "mobiles", "repetitions", "settings"}
    assert {file.stem for file in files} == {*EVENT_TABLES, *summaries, "columns"}
    columns = pl.read_csv(tmp_path / "tables" / "columns.csv")
    for file in files:
        if file.stem != "columns":
            header = pl.read_csv(file, n_rows=0).columns
            assert columns.filter(table=file.stem)["column"].to_list() == header
    units = {(row["table"], row["column"]): row["unit"] for row in columns.iter_rows(named=True)}
    assert (units["packets", "time"], units["packets", "size"], units["tcp", "pacing_rate"]) == ("ns", "B", "bit/s")
    assert (units["flows", "duration_s"], units["flows", "timeouts"]) == ("s", None)
    with (tmp_path / "tables" / "states.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(EVENT_TABLES["states"])
    assert len(rows) == result.states.height
    assert [int(row["time"]) for row in rows] == result.states["time"].to_list()
    schemes = result.states.filter(aspect="scheme")["name"].to_list()
    assert [row["name"] for row in rows if row["aspect"] == "scheme"] == schemes
    assert {"cs-1", "cs-2"} >= set(schemes) > set()


def test_a_trace_has_the_states_as_slices(result: airpath.Result, trace: list[dict[str, Any]]) -> None:
    tracks = {
        (each["pid"], each["tid"]): each["args"]["name"]
        for each in trace
        if each["ph"] == "M" and each["name"] == "thread_name"
    }
    modes = [each for each in trace if each["ph"] == "X" and tracks[each["pid"], each["tid"]] == "mode"]
    states = result.states.filter(aspect="mode")
    assert [each["name"] for each in modes] == states["name"].to_list()
    assert [each["ts"] for each in modes] == pytest.approx((states["time"] / 1e3).to_list())
    for one, following in pairwise(modes):
        assert one["ts"] + one["dur"] == pytest.approx(following["ts"], abs=1)
    assert {"mode", "cell", "scheme down", "tbf up"} <= set(tracks.values())


def test_a_trace_has_numbers_as_counters(result: airpath.Result, trace: list[dict[str, Any]]) -> None:
    counters = [each for each in trace if each["ph"] == "C"]
    ratios = [
        each["args"]["carrier-to-interference"] for each in counters if each["pid"] == 1 and "slots" not in each["name"]
    ]
    logged = result.states.filter(aspect="carrier-to-interference")["number"].to_list()
    assert [ratios[0], max(ratios)] == [logged[0], max(logged)]
    names = {each["pid"]: each["args"]["name"] for each in trace if each["name"] == "process_name"}
    assert {"mobile", "cell", "fixed", "flow download"} <= set(names.values())
    cell = next(pid for pid, name in names.items() if name == "cell")
    inside = [each["args"]["bytes"] for each in counters if each["pid"] == cell and each["name"] == "inside down"]
    assert min(inside) == 0 < max(inside)


def test_the_command_writes_both(airpath_command: Command, result: airpath.Result, tmp_path: Path) -> None:
    done = airpath_command("export", result.path, "--format", "perfetto", "-o", tmp_path / "trace.json")
    assert (done.code, done.out.strip()) == (0, str(tmp_path / "trace.json"))
    done = airpath_command("export", result.path, "-o", tmp_path / "tables")
    assert done.code == 0
    assert all(Path(line).is_file() for line in done.out.split())
    assert airpath_command("export", tmp_path, "-o", tmp_path / "x").code == 2
    assert airpath_command("export", result.path, "-o", tmp_path / "x", "--repetition", "0").code == 2
    wrong = airpath_command("export", result.path, "-o", tmp_path / "x", "--format", "perfetto", "--repetition", "7")
    assert (wrong.code, "has no repetition 7" in wrong.err) == (2, True)


TRANSPORTS = """
format = 1
name = "transports"
duration = "60 s"
[bearer]
preset = "umts-dch-384"
[[flow]]
kind = "download"
name = "tcp"
bytes = "60 kB"
[[flow]]
kind = "download"
name = "quic"
transport = "quic-quinn"
bytes = "60 kB"
"""


@pytest.fixture(scope="module")
def transports(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    return airpath.run(TRANSPORTS, out=tmp_path_factory.mktemp("transports") / "run")


def test_qlog_has_a_trace_for_each_end_of_each_connection(transports: airpath.Result, tmp_path: Path) -> None:
    written = json.loads(export.qlog(transports, tmp_path / "run.qlog").read_text())
    assert (written["qlog_version"], written["qlog_format"]) == ("0.3", "JSON")
    traces = {trace["title"]: trace for trace in written["traces"]}
    assert set(traces) == {"tcp, server", "tcp, mobile", "quic, server", "quic, mobile"}
    assert [traces[f"{name}, server"]["common_fields"]["protocol_type"] for name in ("tcp", "quic")] == [
        ["TCP"],
        ["QUIC"],
    ]
    for index, name in enumerate(("tcp", "quic")):
        events = traces[f"{name}, server"]["events"]
        assert [event["time"] for event in events] == sorted(event["time"] for event in events)
        sent = [event["data"]["raw"]["length"] for event in events if event["name"] == "transport:packet_sent"]
        logged = transports.packets.filter(flow=index, component="server", step="sent")
        if name == "quic":
            # Without the headers of IP and UDP; several packets may share a datagram.
            assert len(sent) > logged.height and sum(sent) == (logged["size"] - 28).sum()
        else:
            assert sent == logged["size"].to_list()
        metrics = [event["data"] for event in events if event["name"] == "recovery:metrics_updated"]
        windows = [each["congestion_window"] for each in metrics if "congestion_window" in each]
        rows = transports.tcp.filter(flow=index, component="server")["congestion_window"]
        assert windows == rows.filter((rows != rows.shift()).fill_null(value=True)).to_list()
        assert 100 < min(each["latest_rtt"] for each in metrics if "latest_rtt" in each) < 1000, "milliseconds"
    received = [event["data"] for event in traces["quic, mobile"]["events"] if event["name"].endswith("_received")]
    datagrams = transports.packets.filter(flow=1, component="mobile", step="received")["packet"].to_list()
    assert list(dict.fromkeys(data["datagram_id"] for data in received)) == datagrams


def test_qlog_has_the_packets_and_losses_of_quic(tmp_path: Path) -> None:
    result = airpath.run(LOSSY, set={"flow.0.transport": "quic-quinn", "flow.0.bytes": "1 MB"}, out=tmp_path / "run")
    traces = json.loads(export.qlog(result, tmp_path / "run.qlog").read_text())["traces"]
    server, mobile = (trace["events"] for trace in traces)
    flow = result.flows.row(0, named=True)

    lost = _headers(server, "recovery:packet_lost")
    assert 0 < len(lost) == len(set(lost)) == flow["retransmitted_packets"], "quinn's own count"
    for end, peer in ((server, mobile), (mobile, server)):
        sent = _headers(end, "transport:packet_sent")
        assert len(sent) == len(set(sent))
        assert {kind for kind, _ in sent} == {"initial", "handshake", "1RTT"}
        assert set(_headers(peer, "transport:packet_received")) <= set(sent)
        before: set[tuple[str, int]] = set()
        for event in end:
            header = _header(event["data"])
            match event["name"]:
                case "transport:packet_sent":
                    before.add(header)
                case "recovery:packet_lost":
                    assert header in before
                case "transport:packet_received":
                    assert _acknowledged(event["data"]) <= before
                case _:
                    pass
        assert not set(_headers(end, "recovery:packet_lost")) & set(_headers(peer, "transport:packet_received"))

    streams = [
        frame
        for event in server
        if event["name"] == "transport:packet_sent"
        for frame in event["data"]["frames"]
        if frame["frame_type"] == "stream"
    ]
    assert max(frame["offset"] + frame["length"] for frame in streams) == flow["delivered_bytes"]
    assert len(streams) == flow["data_packets"]
    assert any(frame.get("fin") for frame in streams)
    first = next(event["data"]["datagram_id"] for event in server if event["name"] == "transport:packet_sent")
    shared = [event["data"] for event in server if event["data"].get("datagram_id") == first]
    assert [data["header"]["packet_type"] for data in shared] == ["initial", "handshake"]
    assert [data["frames"][-1]["frame_type"] for data in shared] == ["crypto", "crypto"]


def _header(data: dict[str, Any]) -> tuple[str, int]:
    """Return the type of a packet and its number, which is not unique without the type."""
    header = data.get("header", {})
    return header.get("packet_type", ""), header.get("packet_number", -1)


def _headers(events: list[dict[str, Any]], name: str) -> list[tuple[str, int]]:
    return [_header(event["data"]) for event in events if event["name"] == name]


def _acknowledged(data: dict[str, Any]) -> set[tuple[str, int]]:
    frames = (frame for frame in data["frames"] if frame["frame_type"] == "ack")
    ranges = (each for frame in frames for each in frame["acked_ranges"])
    return {(data["header"]["packet_type"], number) for first, last in ranges for number in range(first, last + 1)}


def test_qlog_acknowledges_packets_by_their_numbers(tmp_path: Path) -> None:
    result = airpath.run("wired", set={"bearer.downlink.loss": 0.05, "flow.0.bytes": "200 kB"}, out=tmp_path / "lossy")
    written = json.loads(export.qlog(result, tmp_path / "run.qlog").read_text())
    server, mobile = (trace["events"] for trace in written["traces"])

    def packets(events: list[dict[str, Any]], step: str) -> list[dict[str, Any]]:
        return [event["data"] for event in events if event["name"] == f"transport:packet_{step}"]

    sent = {data["header"]["packet_number"]: data for data in packets(server, "sent")}
    assert sorted(sent) == list(range(len(sent)))
    acknowledged = {
        number
        for data in packets(server, "received")
        for frame in data.get("frames", [])
        if frame["frame_type"] == "ack"
        for first, last in frame["acked_ranges"]
        for number in range(first, last + 1)
    }
    arrived = {data["header"]["packet_number"] for data in packets(mobile, "received") if "frames" in data}
    streams = {number for number, data in sent.items() if data.get("frames", [{}])[0].get("frame_type") == "stream"}
    lost = streams - arrived
    assert lost and not lost & acknowledged
    assert streams - lost == acknowledged


def test_qlog_of_the_command_and_its_errors(
    airpath_command: Command, transports: airpath.Result, tmp_path: Path
) -> None:
    file = tmp_path / "run.qlog"
    done = airpath_command("export", transports.path, "--format", "qlog", "-o", file, "--repetition", "0")
    assert (done.code, done.out.strip(), file.is_file()) == (0, str(file), True)
    pings = 'format = 1\nbearer.preset = "gprs-3+1"\n[[flow]]\nkind = "ping"\nrequests = 1\n'
    silent = airpath.run(pings, out=tmp_path / "pings")
    done = airpath_command("export", silent.path, "--format", "qlog", "-o", tmp_path / "none.qlog")
    assert (done.code, "has no connections" in done.err) == (2, True)
    assert not (tmp_path / "none.qlog").exists()


def _numbers(events: list[dict[str, Any]], step: str) -> list[int]:
    return [event["data"]["header"]["packet_number"] for event in events if event["name"] == f"transport:packet_{step}"]


def _offsets(events: list[dict[str, Any]]) -> list[int]:
    sent = [event["data"] for event in events if event["name"] == "transport:packet_sent"]
    return [frame["offset"] for data in sent for frame in data.get("frames", []) if frame["frame_type"] == "stream"]


LOSSY = """
format = 1
name = "lossy"
duration = "60 s"
[bearer]
preset = "wired"
downlink.loss = 0.03
[[flow]]
kind = "download"
bytes = "200 kB"
"""


@pytest.mark.parametrize("kind", ["snoop", "w-tcp", "eln", "m-tcp"])
def test_qlog_numbers_the_packets_that_a_middlebox_creates(kind: str, tmp_path: Path) -> None:
    freeze = {"middlebox.freeze_after": "500 ms"} if kind == "m-tcp" else {}
    result = airpath.run(LOSSY, set={"middlebox.kind": kind, **freeze}, out=tmp_path / "run")
    created = result.packets.filter(step="created")
    assert created.height
    server, mobile = (
        trace["events"] for trace in json.loads(export.qlog(result, tmp_path / "q").read_text())["traces"]
    )
    sent = _numbers(server, "sent")
    assert sent == list(range(len(sent)))
    assert set(_numbers(mobile, "received")) <= set(sent), "a copy has the number of its original"
    answers = _numbers(server, "received")
    assert len(answers) == len(set(answers)) == result.packets.filter(component="server", step="received").height
    own = set(_numbers(mobile, "sent"))
    assert bool(set(answers) - own) == ("up" in set(created["direction"])), "acknowledgements of the middlebox"


def test_qlog_has_both_connections_of_a_proxy(tmp_path: Path) -> None:
    result = airpath.run("umts-r99-384", set={"proxy.budget": "adaptive"}, out=tmp_path / "run")
    traces = {
        trace["title"].partition(", ")[2]: trace
        for trace in json.loads(export.qlog(result, tmp_path / "q").read_text())["traces"]
    }
    assert set(traces) == {"server", "proxy towards server", "proxy towards mobile", "mobile"}
    # words: allow vantage (key of qlog)
    kinds = [traces[f"proxy towards {end}"]["vantage_point"]["type"] for end in ("server", "mobile")]
    assert kinds == ["client", "server"]
    for one, other in (("server", "proxy towards server"), ("mobile", "proxy towards mobile")):
        for end, peer in ((one, other), (other, one)):
            assert _numbers(traces[end]["events"], "sent") == sorted(_numbers(traces[peer]["events"], "received"))
            assert any(event["name"] == "recovery:metrics_updated" for event in traces[end]["events"])
    assert _offsets(traces["server"]["events"]) == _offsets(traces["proxy towards mobile"]["events"])


@pytest.mark.parametrize("transport", ["tcp", "quic-quinn"])
def test_qlog_splits_a_flow_into_its_connections(transport: str, tmp_path: Path) -> None:
    text = f"""
format = 1
name = "each"
duration = "60 s"
bearer.preset = "umts-r99-384"
[[flow]]
kind = "transactions"
connections = "each"
transactions = 3
request = "300 B"
response = "4 kB"
{f'transport = "{transport}"' if transport != "tcp" else ""}
"""
    result = airpath.run(text, out=tmp_path / "run")
    traces = json.loads(export.qlog(result, tmp_path / "q").read_text())["traces"]
    names = ["transactions", "transactions, connection 1", "transactions, connection 2"]
    assert [trace["title"] for trace in traces] == [f"{name}, {end}" for name in names for end in ("server", "mobile")]
    assert len({trace["common_fields"]["group_id"] for trace in traces}) == 3
    for trace in traces:
        assert _numbers(trace["events"], "sent")[0] == 0
        assert any(event["name"] == "recovery:metrics_updated" for event in trace["events"])
        if transport == "tcp":
            offsets = _offsets(trace["events"])
            assert offsets == sorted(set(offsets)), "each byte once"
    total = sum(len(_numbers(trace["events"], "sent")) for trace in traces)
    assert total == (result.packets if transport == "tcp" else result.quic).filter(step="sent").height
    opened = [trace["events"][0]["time"] for trace in traces if trace["title"].endswith("mobile")]
    ended = result.app.filter(step="arrived")["time"] / 1e6
    assert opened == [0, *ended[:2]], "at the end of the transaction before"


def test_qlog_has_the_losses_that_a_sender_of_tcp_repaired(tmp_path: Path) -> None:
    result = airpath.run(LOSSY, out=tmp_path / "run")
    server = json.loads(export.qlog(result, tmp_path / "q").read_text())["traces"][0]["events"]
    lost = [event["data"]["header"]["packet_number"] for event in server if event["name"] == "recovery:packet_lost"]
    dropped = result.packets.filter(step="dropped")["packet"]
    sent = result.packets.filter(component="server", step="sent")["packet"].to_list()
    # A tail loss probe repeats bytes that its sender does not consider lost.
    assert lost and {sent[number] for number in lost} <= set(dropped)
    assert len(dropped) - len(lost) <= result.tcp.filter(trigger="tail-probe").height
