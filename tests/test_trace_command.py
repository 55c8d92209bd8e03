"""`airpath trace`: captures in, words, tables and a report out."""

import io
import json
import os
from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath.trace import stream
from airpath.trace.tables import TABLES
from support import DOWNLOAD, ROOT, Command

_SHARED = Path(os.environ.get("AIRPATH_SHARED", ROOT.parent / "shared")) / "data" / "captures"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """A captured run with a lossy download and an upload."""
    folder = tmp_path_factory.mktemp("traced") / "run"
    scenario = DOWNLOAD + '\n[[flow]]\nkind = "upload"\nbytes = "20 kB"\nstart = "1 s"\n'
    return airpath.run(scenario, out=folder, capture=True)


@pytest.fixture(scope="module")
def server(run: airpath.Result) -> Path:
    """The capture at the server, where the download is sent."""
    return next(path for path in run.captures() if path.name.endswith("server.pcapng"))


@pytest.fixture(scope="module")
def traced(server: Path) -> airpath.Trace:
    """Its analysis."""
    return airpath.trace(server)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def shared(name: str) -> Path:
    """Return a capture of the shared set, which is no part of the repository."""
    path = _SHARED / name
    if not path.is_file():
        pytest.skip(f"NOT TESTED: no {path}; AIRPATH_SHARED names the folder that has data/captures")
    return path


def test_the_frames_have_the_columns_that_are_documented(traced: airpath.Trace) -> None:
    frames = {
        "connections": traced.connections,
        "observations": traced.observations(1),
        "selective": traced.selective(1),
    }
    for name, frame in frames.items():
        assert frame.height, name
        assert {column: str(kind) for column, kind in frame.schema.items()} == TABLES[name]


def test_every_segment_of_the_run_is_observed(run: airpath.Result, traced: airpath.Trace) -> None:
    sent = run.flows.filter(kind="download")
    seen = traced.observations(1).filter(pl.col("from") == "server", pl.col("length") > 0)
    assert seen.height == sent["data_packets"].item()
    assert seen["length"].sum() == sent["data_bytes"].item()
    assert seen["retransmission"].count() == sent["retransmitted_packets"].item()
    assert (seen["offset"] + seen["length"]).max() == sent["bytes"].item()


@pytest.mark.parametrize("selector", ["2", "10.0.0.2", "192.0.2.1", ":80"])
def test_connections_are_selected_by_what_they_have(selector: str, server: Path, traced: airpath.Trace) -> None:
    wanted = traced.connections.filter(
        (pl.col("connection").cast(pl.String) == selector)
        | (pl.col("client_address") == selector)
        | (pl.col("server_address") == selector)
        | (pl.format(":{}", "server_port") == selector)
    )
    if wanted.height == 0:
        with pytest.raises(airpath.TraceError, match="no connection matches"):
            airpath.trace(server, flow=selector)
    else:
        assert airpath.trace(server, flow=selector).connections.equals(wanted)


def test_both_ends_of_a_connection_select_it(server: Path, traced: airpath.Trace) -> None:
    first = traced.connections.row(0, named=True)
    for end in ("client", "server"):
        assert 1 in airpath.trace(server, flow=first[end]).connections["connection"]


def test_a_stream_tells_of_the_same_connections(server: Path, traced: airpath.Trace) -> None:
    lines: list[str] = []
    reading = stream(server, lines.append)
    told = [json.loads(line) for line in lines]
    assert {each.pop("type") for each in told} == {"connection"}
    assert sorted(told, key=lambda each: each["connection"]) == traced.connections.to_dicts()
    assert reading == traced.reading


def test_a_result_folder_is_its_capture_at_the_server(
    run: airpath.Result, server: Path, command: Command, traced: airpath.Trace
) -> None:
    told = command("trace", run.path, "--format", "json")
    assert (told.code, told.err) == (0, "")
    assert told.json["connections"] == traced.connections.to_dicts()
    assert told.json["reading"]["files"][0]["name"] == str(server)


def test_text_lists_the_longest_first(server: Path, command: Command, traced: airpath.Trace) -> None:
    told = command("trace", server)
    assert told.code == 0
    frames = traced.reading["files"][0]["frames"]
    assert f"{frames:,} frames" in told.out
    numbers = [line.split()[0] for line in told.out.splitlines() if " → " in line]
    by_time = traced.connections.sort("duration_s", descending=True)["connection"].cast(pl.String).to_list()
    assert numbers == by_time


def test_other_formats_have_all_connections(server: Path, command: Command, traced: airpath.Trace) -> None:
    told = command("trace", server, "--format", "csv")
    assert pl.read_csv(io.StringIO(told.out)).height == traced.connections.height
    lines = command("trace", server, "--format", "jsonl").out.splitlines()
    assert len(lines) == traced.connections.height


def test_the_report_is_one_file_with_every_figure(server: Path, command: Command) -> None:
    told = command("trace", server, "--flow", "1", "-o", "report.html")
    assert told.code == 0
    assert "the report is in report.html" in told.err
    page = (command.folder / "report.html").read_text(encoding="utf-8")
    for title in ("Time–sequence, down", "Outstanding data", "Round trip", "Throughput"):
        assert f"<h3>{title}</h3>" in page
    assert f"airpath trace {server} --flow 1 -o report.html" in page
    assert "http://" not in page.replace("http://www.w3.org", "").split("<script>")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such.pcap"], "no-such.pcap: No such file"),
        (["README.md"], "README.md: not a capture"),
        (["."], "no captures of repetition 0 in it"),
        (["{server}", "--flow", "99"], "no connection matches '99': there are 2"),
        (["{server}", "--flow", "http"], "'http' selects no flow"),
        (["{server}", "-o", "no/such/folder.html"], "no/such/folder.html cannot be written"),
    ],
)
def test_what_cannot_be_traced_is_said(arguments: list[str], said: str, server: Path, command: Command) -> None:
    (command.folder / "README.md").write_text("# no capture\n", encoding="utf-8")
    told = command("trace", *(each.format(server=server) for each in arguments))
    assert told.code == (3 if "-o" in arguments else 2)
    assert said in told.err
    assert "next:" in told.err or "`airpath run SCENARIO.toml --out" in told.err


def test_a_cut_capture_is_told_of_as_far_as_it_goes(command: Command) -> None:
    told = command("trace", shared("own/variant_cut_midpacket.pcap"), "--format", "json")
    assert told.code == 0
    assert "it ends within a record" in told.err
    assert len(told.json["connections"]) == 2


@pytest.mark.parametrize(
    ("capture", "retransmitted"), [("clean", 64), ("loss1", 117), ("loss1_nosack", 555), ("loss1_plain", 431)]
)
def test_retransmissions_of_the_shared_captures_are_exact(capture: str, retransmitted: int) -> None:
    """The truth is that of INDEX.md, from a comparison of both ends packet by packet."""
    trace = airpath.trace(shared(f"own/{capture}_snd.pcap"))
    seen = sum(trace.observations(number)["retransmission"].count() for number in trace.connections["connection"])
    assert seen == retransmitted
