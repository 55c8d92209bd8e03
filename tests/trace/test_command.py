"""`airpath trace`: reads captures, prints text and tables, writes a report."""

import io
import json
import re
import select
import shlex
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import airpath
from airpath.trace import stream
from airpath.trace.avoidable import avoidable
from airpath.trace.causes import CAUSES, seconds_of, shares
from airpath.trace.messages import sentence
from airpath.trace.report import page
from airpath.trace.tables import TABLES
from support import DOWNLOAD, ROOT, Command
from support.needs import shared_capture


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
    """The analysis of the server's capture."""
    return airpath.trace(server)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_the_frames_have_the_columns_that_are_documented(traced: airpath.Trace) -> None:
    frames = {
        "connections": traced.connections,
        "directions": traced.directions,
        "causes": traced.causes,
        "observations": traced.observations(1),
        "selective": traced.selective(1),
    }
    for name, frame in frames.items():
        assert frame.height, name
        assert {column: str(kind) for column, kind in frame.schema.items()} == TABLES[name]


def test_every_segment_of_the_run_is_observed(run: airpath.Result, traced: airpath.Trace) -> None:
    sent = run.flows.filter(kind="download")
    seen = traced.observations(1).filter(pl.col("from") == "server", pl.col("length_bytes") > 0)
    assert seen.height == sent["data_packets"].item()
    assert seen["length_bytes"].sum() == sent["data_bytes"].item()
    assert seen["retransmission"].count() == sent["retransmitted_packets"].item()
    assert (seen["offset"] + seen["length_bytes"]).max() == sent["bytes"].item()


@pytest.mark.parametrize("selector", ["2", "10.0.0.2", "192.0.2.1", ":80"])
def test_connections_are_selected_by_what_they_have(selector: str, server: Path, traced: airpath.Trace) -> None:
    wanted = traced.connections.filter(
        (pl.col("connection").cast(pl.String) == selector)
        | (pl.col("client_address") == selector)
        | (pl.col("server_address") == selector)
        | (pl.format(":{}", "server_port") == selector)
    )
    if wanted.height == 0:
        with pytest.raises(airpath.TraceError, match="no flow matches"):
            airpath.trace(server, flow=selector)
    else:
        assert airpath.trace(server, flow=selector).connections.equals(wanted)


def test_several_selectors_select_the_connections_of_each(
    server: Path, command: Command, traced: airpath.Trace
) -> None:
    wanted = traced.connections["connection"].to_list()[:2]
    assert len(wanted) == 2
    flows = [word for number in wanted for word in ("--flow", number)]
    for arguments in (flows, ["--flow", wanted[0], "--flow", "192.0.2.1"]):
        done = command("trace", server, *arguments, "--format", "json")
        assert [row["connection"] for row in done.json["connections"]] == wanted
    lines = command("trace", server, *flows, "--format", "jsonl").out.splitlines()
    assert {json.loads(line)["connection"] for line in lines} == set(wanted)
    report = command("trace", server, *flows, "-o", "report.html")
    assert report.code == 0
    page = (command.folder / "report.html").read_text(encoding="utf-8")
    assert f"airpath trace {server} {' '.join(map(str, flows))} -o report.html" in page
    selected = airpath.trace(server, flow=wanted)
    assert selected.connections["connection"].to_list() == wanted
    assert set(selected.observations()["connection"]) == set(wanted)
    done = command("trace", server, "--flow", "1", "--flow", "99")
    assert (done.code, "no flow matches '99'" in done.err) == (2, True), "none of them is ignored"


@pytest.mark.parametrize("option", ["--radio", "--radio-columns", "--repetition", "--format", "-o", "--har", "--xplot"])
def test_an_option_with_one_value_is_not_given_twice(option: str, server: Path, command: Command) -> None:
    done = command("trace", server, option, "1", option, "1")
    name = "--out" if option == "-o" else option
    assert (done.code, f"{name}: given twice" in done.err) == (2, True), done.err


def test_both_ends_of_a_connection_select_it(server: Path, traced: airpath.Trace) -> None:
    first = traced.connections.row(0, named=True)
    for end in ("client", "server"):
        assert 1 in airpath.trace(server, flow=first[end]).connections["connection"]


def test_a_stream_reports_the_same_connections(server: Path, traced: airpath.Trace) -> None:
    lines: list[str] = []
    reading = stream(server, lines.append, causes=True)
    rows = [json.loads(line) for line in lines]
    assert {each.pop("type") for each in rows} == {"connection"}
    rows.sort(key=lambda each: each["connection"])
    ends = [each.pop(f"from_{sender}") for each in rows for sender in ("client", "server")]
    assert ends == traced.directions.to_dicts()
    stalls = [stall for each in rows for stall in each.pop("stalls")]
    assert stalls == traced.stalls.drop("quic").to_dicts()
    assert rows == traced.connections.to_dicts()
    assert reading == traced.reading


def test_a_result_folder_is_its_capture_at_the_server(
    run: airpath.Result, server: Path, command: Command, traced: airpath.Trace
) -> None:
    done = command("trace", run.path, "--format", "json")
    assert (done.code, done.err) == (0, "")
    # The result also has the client's capture, which improves the attribution to causes.
    causes = {cause.column for cause in CAUSES}
    for ours, theirs in zip(done.json["connections"], traced.connections.to_dicts(), strict=True):
        attributed = {*causes, "main_cause", "avoidable_s"}
        assert all(ours[name] == value for name, value in theirs.items() if name not in attributed)
        assert sum(ours[name] for name in causes) == pytest.approx(ours["duration_s"])
    assert done.json["reading"]["files"][0]["name"] == str(server)


def test_text_lists_most_avoidable_time_first(server: Path, command: Command, traced: airpath.Trace) -> None:
    done = command("trace", server)
    assert done.code == 0
    frames = traced.reading["files"][0]["frames"]
    assert f"{frames:,} frames" in done.out
    numbers = [line.split()[0] for line in done.out.splitlines() if " → " in line]
    rows = traced.connections.sort("avoidable_s", descending=True)
    assert numbers == rows["connection"].cast(pl.String).to_list()


def test_rows_have_the_avoidable_time_and_the_main_cause(traced: airpath.Trace) -> None:
    path = pl.sum_horizontal("path_rate_s", "queueing_s", "sharing_s", "latency_s")
    spent = traced.connections.with_columns(
        expected=pl.col("duration_s") - path - pl.col("application_s") - pl.col("closing_s")
    )
    assert spent["avoidable_s"].to_list() == pytest.approx(spent["expected"].to_list())
    for row in spent.to_dicts():
        assert row["avoidable_s"] == pytest.approx(avoidable(row))
        assert row["main_cause"] == max(CAUSES, key=lambda cause: row[cause.column]).name


def test_losses_before_the_capture_are_in_the_text_and_in_the_report(run: airpath.Result, command: Command) -> None:
    """The capture at the mobile is behind the link that drops packets."""
    mobile = next(path for path in run.captures() if path.name.endswith("mobile.pcapng"))
    trace = airpath.trace(mobile)
    down = trace.directions.filter(pl.col("from") == "server", pl.col("lost_before_capture") > 0)
    assert down.height
    number, lost = down.select("connection", "lost_before_capture").row(0)
    dropped = run.links.select(pl.col("^dropped_.*_packets$")).sum_horizontal().sum()
    assert 0 < lost <= dropped
    what = "1 segment was" if lost == 1 else f"{lost} segments were"
    sentence = f"From the server: {what} lost before the capture point, and "
    assert sentence in command("trace", mobile, "--flow", number).out
    assert sentence in command("trace", mobile).out, "the sum over all connections"
    assert sentence in page(trace, Path("report.html"))


def test_the_causes_add_up_to_the_time(traced: airpath.Trace) -> None:
    pieces = traced.causes.with_columns(length=pl.col("end") - pl.col("start"))
    for flow in traced.connections.iter_rows(named=True):
        own = pieces.filter(connection=flow["connection"])
        assert sum(own["length"].to_list()) / 1e9 == pytest.approx(flow["duration_s"], abs=1e-9)
        assert own["start"][0] == flow["start"]
        assert own["start"][1:].equals(own["end"][:-1]), "without gaps, in order"
        by_cause = dict(own.group_by("cause").agg(pl.col("length").sum() / 1e9).rows())
        assert by_cause == pytest.approx(seconds_of(flow))


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1e6), max_size=12), st.integers(0, 2))
def test_shares_add_up_to_a_hundred(parts: dict[str, float], digits: int) -> None:
    given = shares(parts, digits)
    whole = sum(parts.values())
    if whole == 0:
        assert not any(given.values())
        return
    assert sum(given.values()) == pytest.approx(100)
    for name, part in parts.items():
        assert abs(given[name] - 100 * part / whole) <= 10**-digits + 1e-9


def test_a_sentence_attributes_the_time_to_causes(server: Path, command: Command, traced: airpath.Trace) -> None:
    output = command("trace", server, "--flow", "1", "--why").out
    attribution = sentence(traced.connections.row(0, named=True))
    lines = output.splitlines()
    assert lines[lines.index(attribution) - 1].startswith("Limited by "), "a verdict in plain words comes first"
    assert sum(int(share) for share in re.findall(r"\((\d+)\u00a0%\)", attribution)) == 100
    pieces = [line for line in output.splitlines() if re.search(r"\d+–\d+", line)]
    assert len(pieces) == traced.causes.filter(connection=1).height


def test_two_traces_are_compared_in_sums(run: airpath.Result, command: Command, traced: airpath.Trace) -> None:
    done = command("trace", "compare", run.path, run.path, "--format", "json")
    assert done.code == 0
    figures = {row["figure"]: (row["trace 1"], row["trace 2"]) for row in done.json}
    assert all(one == other for one, other in figures.values())
    assert figures["connections"][0] == traced.connections.height
    assert figures["bytes down"][0] == run.flows.filter(kind="download")["bytes"].item()
    assert figures["seconds"][0] == pytest.approx(sum(figures[each.name][0] for each in CAUSES))
    assert "difference" in command("trace", "compare", run.path, run.path, "--flow", "1").out


def test_other_formats_have_all_connections(server: Path, command: Command, traced: airpath.Trace) -> None:
    table = pl.read_csv(io.StringIO(command("trace", server, "--format", "csv").out))
    assert table.select(traced.connections.columns).height == traced.connections.height
    sent = traced.directions.filter(pl.col("from") == "server")["unique_bytes"]
    assert table["server_unique_bytes"].to_list() == sent.to_list()
    lines = command("trace", server, "--format", "jsonl").out.splitlines()
    assert len(lines) == traced.connections.height


def test_the_report_is_one_file_with_every_figure(server: Path, command: Command) -> None:
    done = command("trace", server, "--flow", "1", "-o", "report.html")
    assert done.code == 0
    assert "the report is in report.html" in done.err
    page = (command.folder / "report.html").read_text(encoding="utf-8")
    for title in ("Where the time went", "Time–sequence, down", "Outstanding data", "Round trip", "Throughput"):
        assert f"<h3>{title}</h3>" in page
    assert f"airpath trace {server} --flow 1 -o report.html" in page
    assert "http://" not in page.replace("http://www.w3.org", "").split("<script>")[0]


def test_exports_for_xplot_and_perfetto(traced: airpath.Trace, tmp_path: Path) -> None:
    plots = traced.xplot(tmp_path / "plots")
    assert {path.name for path in plots} >= {"1-server.xpl", "2-client.xpl"}
    lines = (tmp_path / "plots" / "1-server.xpl").read_text(encoding="ascii").splitlines()
    assert (lines[0], lines[-1]) == ("timeval unsigned", "go")
    first = traced.directions.row(1, named=True)
    assert lines.count("R") == first["retransmissions"]
    events = json.loads(traced.perfetto(tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    slices = [each for each in events if each["ph"] == "X"]
    assert len(slices) == traced.causes.height
    whole = traced.connections["duration_s"].sum()
    assert sum(each["dur"] for each in slices) / 1e6 == pytest.approx(whole, abs=1e-6 * len(slices))
    assert sum(each["ph"] == "i" for each in events) == traced.directions["retransmissions"].sum()


def test_captures_of_both_ends_show_lost_packets(run: airpath.Result, traced: airpath.Trace) -> None:
    both = airpath.trace(run.path)
    lost = run.links.select(pl.col("^dropped_.*_packets$")).sum_horizontal().sum()
    assert lost > 0
    assert both.transits.filter(fate="lost").height == lost
    assert both.one_way["lost"].sum() == both.transits.filter(pl.col("length_bytes") > 0, fate="lost").height
    assert both.reading["clock"] == {"offset_s": 0.0, "skew": 0.0, "uncertainty_s": None}
    assert both.connections.select("connection", "segments").equals(traced.connections.select("connection", "segments"))
    assert "<h3>One-way delay</h3>" in page(both, Path("report.html"))


def test_captures_that_share_nothing_are_refused(server: Path, command: Command) -> None:
    other = airpath.run(DOWNLOAD, seed=4, set={"tcp.profile": "linux-2.4"}, out=command.folder / "other", capture=True)
    done = command("trace", shared_capture("own/outage3_snd.pcap"), "--peer", other.captures()[0])
    assert done.code == 2
    assert "do not match" in done.err
    assert "share no connection" in done.err


def test_an_outage_is_attributed_to_the_radio(tmp_path: Path) -> None:
    longer = {"change": [{"at": "4 s", "outage": "5 s"}]}
    run = airpath.run(ROOT / "examples" / "outage.toml", set=longer, out=tmp_path / "run", capture=True)
    trace = airpath.trace(run.path, flow="mobile")
    silent = trace.causes.filter(cause="radio")
    assert trace.connections["radio_s"].item() == pytest.approx(5, abs=0.05)
    assert set(silent["confidence"]) == {"high"}
    assert trace.directions["spurious"].sum() == trace.directions["timeouts"].sum() == 1
    assert trace.stalls["fate"].to_list()[0] == "held"


def test_a_radio_log_of_another_tool_is_read_by_its_columns(server: Path, command: Command) -> None:
    log = command.folder / "drive.csv"
    log.write_text("Time,RRC\n1000000000.5,Connected\n1000000001.0,Idle\n1000000001.4,Connected\n", encoding="utf-8")
    arguments = ("trace", server, "--flow", "1", "--radio", log, "--format", "json", "--radio-columns")
    done = command(*arguments, "begin=Time,name=RRC,silent=Idle")
    radio = [piece for piece in done.json["causes"] if piece["cause"] == "radio" and piece["confidence"] == "high"]
    assert sum(piece["end"] - piece["start"] for piece in radio) == pytest.approx(0.4e9, rel=0.05)
    for columns, message in (("begin=When,name=RRC", "no column `When`"),):
        done = command(*arguments, columns)
        assert done.code == 2
        assert message in done.err
    for columns, message in (
        ("begin=Time", "`begin` and `name` are needed"),
        ("begin=Time,name=RRC,quiet=Idle", "no such entry 'quiet'"),
        ("begin=Time,name=RRC,unit=ms", "`ms` is no number"),
        ("begin,name=RRC", "'begin' has no value"),
        ("Time;RRC", "`begin` and `name` are needed"),
    ):
        done = command(*arguments, columns)
        assert done.code == 2
        assert message in done.err
        assert "next: write begin=COLUMN,name=COLUMN" in done.err
        assert "unit=SECONDS" in done.err
    done = command(*arguments, "begin=Time,begin=Time,name=RRC")
    assert "'begin' is given twice" in done.err
    done = command("trace", server, "--radio-columns", "begin=Time,name=RRC")
    assert (done.code, "--radio-columns needs a CSV file" in done.err) == (2, True)


def test_http_pages_are_reported_and_drawn(command: Command) -> None:
    """Ground truth: INDEX.md of the shared captures."""
    capture = shared_capture("own/http_pipe.pcap")
    trace = airpath.trace(capture)
    assert (trace.exchanges.height, trace.pages["connections"].item()) == (12, 1)
    assert trace.timelines["pipeline_factor"].item() == pytest.approx(5.583, abs=1e-3)
    assert trace.pages["efficiency"].item() == pytest.approx(0.859, abs=1e-3)
    assert len(trace.archive["log"]["entries"]) == 12
    assert command("trace", capture, "-o", "report.html", "--har", "page.har", "--xplot", "plots").code == 0
    assert json.loads((command.folder / "page.har").read_text(encoding="utf-8")) == trace.archive
    assert (command.folder / "plots" / "1-server.xpl").is_file()
    assert "<h3>Page of " in (command.folder / "report.html").read_text(encoding="utf-8")


def test_standard_input_is_read_once(server: Path, command: Command) -> None:
    line = command.line("trace", "-", "-o", "report.html", "--xplot", "plots")
    with server.open("rb") as capture:
        subprocess.run(line, stdin=capture, cwd=command.folder, check=True, capture_output=True, timeout=120)
    assert "<h3>Time–sequence, down</h3>" in (command.folder / "report.html").read_text(encoding="utf-8")
    assert (command.folder / "plots" / "2-client.xpl").is_file()


def test_lines_of_a_capture_that_is_being_made_come_as_connections_end(command: Command) -> None:
    def record(at_s: int, port: int, flags: int) -> bytes:
        addresses = bytes([192, 0, 2, 1, 192, 0, 2, 2])
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, port, 0, 64, 6, 0) + addresses
        tcp = struct.pack(">HHIIBBHHH", port, 80, 1, 0, 0x50, flags, 1000, 0, 0)
        return struct.pack("<IIII", at_s, 0, 40, 40) + ip + tcp

    syn, reset, raw_ip = 0x02, 0x04, 101
    heading = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, raw_ip)
    line = command.line("trace", "-", "--format", "jsonl")
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=command.folder) as process:
        assert process.stdin and process.stdout
        # The first connection was reset 999 s before the others open: no segment of it can follow.
        others = [record(1000, port, syn) + record(1001, port, reset) for port in range(1002, 1200)]
        process.stdin.write(heading + record(0, 1001, syn) + record(1, 1001, reset) + b"".join(others))
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready
        assert json.loads(process.stdout.readline())["connection"] == 1
        process.stdin.close()
        assert len(process.stdout.readlines()) == len(others)
        assert process.wait(timeout=60) == 0


def test_a_reader_that_has_had_enough_is_no_error(server: Path, command: Command) -> None:
    line = shlex.join(command.line("trace", server, "--format", "jsonl"))
    done = subprocess.run(["sh", "-c", f"{line} | true"], check=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such.pcap"], "no-such.pcap: No such file"),
        (["README.md"], "README.md: not a capture"),
        (["."], "no result, as it has no summary.json"),
        (["{server}", "--flow", "99"], "no flow matches '99': the capture has 2 TCP connections numbered from 1"),
        (["{server}", "--flow", "http"], "'http' selects no flow"),
        (["{server}", "-o", "no/such/folder.html"], "no/such/folder.html cannot be written"),
    ],
)
def test_untraceable_input_is_reported(arguments: list[str], message: str, server: Path, command: Command) -> None:
    (command.folder / "README.md").write_text("# no capture\n", encoding="utf-8")
    done = command("trace", *(each.format(server=server) for each in arguments))
    assert done.code == (3 if "-o" in arguments else 2)
    assert message in done.err
    assert "next:" in done.err or "`airpath run --out` wrote" in done.err


def test_names_with_a_semicolon_stay_whole(server: Path, command: Command) -> None:
    (command.folder / "b; c.pcap").write_text("a; b, no capture\n", encoding="utf-8")
    for words, message, next_step in (
        (["b; c.pcap"], "b; c.pcap: not a capture: it is a text file, which begins with 'a; b'", "known are pcap"),
        ([str(server), "--flow", "1; 2"], "'1; 2' selects no flow", "give a number (3, or tcp:3 or quic:3)"),
    ):
        assert command("trace", *words).err.startswith(f"error: {message}\n  next: {next_step}"), words
    with pytest.raises(airpath.TraceError) as raised:
        airpath.trace(command.folder / "b; c.pcap")
    assert raised.value.message.endswith("which begins with 'a; b'")
    assert str(raised.value) == f"{raised.value.message}; {raised.value.next_step}"


def test_a_cut_capture_is_reported_up_to_its_end(command: Command) -> None:
    done = command("trace", shared_capture("own/variant_cut_midpacket.pcap"), "--format", "json")
    assert done.code == 0
    assert "it ends within a record" in done.err
    assert len(done.json["connections"]) == 2


@pytest.mark.parametrize(
    ("capture", "retransmitted"), [("clean", 64), ("loss1", 117), ("loss1_nosack", 555), ("loss1_plain", 431)]
)
def test_retransmissions_of_the_shared_captures_are_exact(capture: str, retransmitted: int) -> None:
    """Ground truth: INDEX.md, from a packet-by-packet comparison of both ends."""
    trace = airpath.trace(shared_capture(f"own/{capture}_snd.pcap"))
    seen = sum(trace.observations(number)["retransmission"].count() for number in trace.connections["connection"])
    assert seen == retransmitted
