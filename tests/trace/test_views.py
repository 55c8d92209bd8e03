"""Reports of several connections, comparisons of traces, and runs without captures."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import _native, quantities
from airpath.quantities import size
from airpath.report.page import library
from airpath.trace import stream
from airpath.trace.avoidable import worst_first
from airpath.trace.causes import CAUSES, seconds_of
from airpath.trace.compare import labels
from airpath.trace.compare import report as comparison
from airpath.trace.figures.page import PageView, page_timeline
from airpath.trace.figures.time_sequence import AGAIN, time_sequence
from airpath.trace.figures.view import FlowView
from airpath.trace.messages import summary
from airpath.trace.report import write
from airpath.trace.tables import TABLES
from airpath.trace.warnings import file_warnings
from support import DOWNLOAD, ROOT, Command
from support.needs import shared_capture
from support.report_page import Page

TWO = DOWNLOAD + '\n[[flow]]\nkind = "upload"\nbytes = "20 kB"\nstart = "1 s"\n'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[airpath.Result]:
    """A captured run with a lossy download and an upload, and the same on another seed."""
    folder = tmp_path_factory.mktemp("views")
    return [airpath.run(TWO, seed=seed, out=folder / f"seed-{seed}", capture=True) for seed in (3, 4)]


@pytest.fixture(scope="module")
def traces(runs: list[airpath.Result]) -> list[airpath.Trace]:
    return [airpath.trace(run.path) for run in runs]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture(scope="module")
def whole(traces: list[airpath.Trace], tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of a trace with two connections."""
    return Page(write(traces[0], tmp_path_factory.mktemp("whole") / "report.html"))


@pytest.fixture(scope="module")
def beside(traces: list[airpath.Trace], tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of two traces."""
    return Page(comparison.write(traces, tmp_path_factory.mktemp("beside") / "report.html"))


@pytest.mark.parametrize("which", ["whole", "beside"])
def test_a_page_can_be_read_without_eyes_or_mouse(which: str, request: pytest.FixtureRequest) -> None:
    page: Page = request.getfixturevalue(which)
    assert len(page.texts["h1"]) == 1
    ids = [found["id"] for _, found in page.elements if found.get("id")]
    assert len(ids) == len(set(ids))
    assert {str(found["href"])[1:] for found in page.all("a")} <= set(ids)
    plots = page.all("div", role="img")
    assert all(len(str(plot["aria-label"])) > 20 for plot in plots)
    assert "://" not in page.html


def test_every_connection_is_listed_with_a_bar_of_its_time(whole: Page, traces: list[airpath.Trace]) -> None:
    flows = worst_first(traces[0].connections.rows(named=True))
    bars = [str(found["aria-label"]) for found in whole.all("span", **{"class": "shares"})]
    assert len(bars) == len(flows)
    for bar, flow in zip(bars, flows, strict=True):
        assert bar.count("%") == len(seconds_of(flow))
    known = [traces[0].run_flows.of(flow) for flow in flows]
    names = [
        f"{flow['connection']}: {run_flow.words}, {flow['client']} to {flow['server']}"
        for flow, run_flow in zip(flows, known, strict=True)
        if run_flow is not None
    ]
    assert [text.strip() for text in whole.texts["h2"] if text.startswith("Connection ")] == [
        f"Connection {name}" for name in names
    ]


def test_a_narrow_page_hints_at_the_columns_of_a_wide_table(whole: Page) -> None:
    assert "The table has 7 columns: move it sideways to see all." in whole.words
    assert ".sideways { display: none; }" in whole.html
    narrow = whole.html.split("@media (max-width: 640px)", 1)[1]
    assert ".sideways { display: block; }" in narrow
    assert "td:not(.number):has(> small) { min-width: 13em; }" in narrow


def test_connections_have_axes_of_time_of_their_own(whole: Page) -> None:
    groups = [str(found["data-time"]) for found in whole.all("figure") if "data-time" in found]
    assert set(groups) == {"connection-1", "connection-2"}
    assert all(
        str(found["id"]).startswith(str(found["data-time"])) for found in whole.all("figure", **{"class": "figure"})
    )


def test_in_full_sets_the_number_of_drawn_connections(runs: list[airpath.Result], command: Command) -> None:
    done = command("trace", runs[0].path, "-o", "report.html", "--in-full", "1")
    assert done.code == 0
    page = Page(command.folder / "report.html")
    worst = worst_first(airpath.trace(runs[0].path).connections.rows(named=True))[0]
    assert {found["data-time"] for found in page.all("figure")} == {f"connection-{worst['connection']}"}
    assert "The first is drawn in full below" in page.words
    assert f"airpath trace {runs[0].path} --in-full 1 -o report.html" in page.words


def test_traces_are_drawn_beside_each_other(beside: Page, traces: list[airpath.Trace]) -> None:
    assert list(beside.figures) == ["Where the time went", "Time–sequence", "Throughput", "Round trip"]
    longest = [trace.connections.sort("duration_s", descending=True).row(0, named=True) for trace in traces]
    for name, figure in beside.figures.items():
        assert figure["layout"]["xaxis"]["range"][1] == max(flow["duration_s"] for flow in longest), name
    bars = beside.figures["Where the time went"]["data"]
    drawn = sum(sum(bar["x"]) for bar in bars)
    assert drawn == pytest.approx(sum(trace.connections["duration_s"].sum() for trace in traces), rel=1e-3)
    lines = [each["name"] for each in beside.figures["Throughput"]["data"]]
    assert lines == labels(traces) == ["seed-3", "seed-4"]


def test_the_table_of_differences_has_what_differs(beside: Page, traces: list[airpath.Trace]) -> None:
    [one, other] = (trace.connections.sort("duration_s", descending=True).row(0, named=True) for trace in traces)
    words = beside.words
    differing = [cause for cause in CAUSES if (one[cause.column] or 0) != (other[cause.column] or 0)]
    assert differing
    table = words[words.index("Differences Figures of the connections") :]
    assert all(f" {cause.words} " in table for cause in differing)
    assert "seed-4 took" in words


def test_the_command_compares_any_number(runs: list[airpath.Result], command: Command) -> None:
    three = [runs[0].path, runs[1].path, runs[0].path]
    done = command("trace", "compare", *three, "-o", "report.html")
    assert done.code == 0
    assert "the report is in report.html" in done.err
    assert len(Page(command.folder / "report.html").figures["Throughput"]["data"]) == 3
    figures = command("trace", "compare", *three, "--format", "json").json
    assert all(row["trace 1"] == row["trace 3"] for row in figures)
    assert any(row["trace 1"] != row["trace 2"] for row in figures)
    alone = command("trace", "compare", runs[0].path)
    assert alone.code == 2
    assert "a comparison needs two captures" in alone.err


def test_a_browser_draws_them(
    traces: list[airpath.Trace], beside: Page, tmp_path: Path, browse: Callable[..., str]
) -> None:
    seen = browse(comparison.write(traces, tmp_path / "report.html"), "?theme=dark")
    assert 'data-drawn="all"' in seen
    assert seen.count('class="main-svg"') >= len(beside.all("figure"))


# Zooms a figure of the first connection, then records the ranges of all figures.
_ZOOM = """<script>(async () => {
  const until = async (done) => { while (!done()) await new Promise((wake) => setTimeout(wake, 50)); };
  await until(() => document.documentElement.dataset.drawn === "all");
  const plots = (group) => [...document.querySelectorAll(`figure[data-time="${group}"] .plot`)];
  const ranges = (group) => [...new Set(plots(group).map((plot) => plot.layout.xaxis.range.join("-")))];
  const other = ranges("connection-2");
  await Plotly.relayout(plots("connection-1")[1], { "xaxis.range[0]": 1, "xaxis.range[1]": 2 });
  await until(() => ranges("connection-1").length === 1 && ranges("connection-1")[0] === "1-2");
  document.body.dataset.noted = other.length === 1 && ranges("connection-2").join() === other.join();
})();</script></body>"""


def test_connections_are_zoomed_one_by_one(whole: Page, tmp_path: Path, browse: Callable[..., str]) -> None:
    path = tmp_path / "zoomed.html"
    path.write_text(whole.html.replace("</head>", f"</head>{library()}").replace("</body>", _ZOOM), encoding="utf-8")
    assert 'data-noted="true"' in browse(path)


def uncaptured(run: airpath.Result, folder: Path) -> Path:
    """Return a copy of a result without its captures."""
    return Path(shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("captures")))


def test_a_run_without_captures_is_traced_from_its_events(runs: list[airpath.Result], tmp_path: Path) -> None:
    captured = airpath.trace(runs[0].path)
    logged = airpath.trace(uncaptured(runs[0], tmp_path / "run"))
    assert logged.reading["files"][0]["name"].endswith("events/packets")
    same = ["client", "server", "complete", "reset"]
    assert logged.connections.select(same).equals(captured.connections.select(same))
    counted = ["from", "unique_bytes", "data_bytes", "retransmissions"]
    of_download = [trace.directions.filter(connection=1).select(counted) for trace in (logged, captured)]
    assert of_download[0].equals(of_download[1])
    lost = [trace.one_way.filter(connection=1)["lost"].sum() for trace in (logged, captured)]
    assert lost[0] == lost[1] > 0
    numbers = runs[0].packets.filter(pl.col("step") == "sent", pl.col("flow") == 0)["packet"]
    assert set(logged.observations(1)["frame"]) <= set(numbers), "a frame is the packet of that number"


@pytest.mark.parametrize("name", ["hs-dsch", "outage", "gprs-drive", "upload"])
def test_events_and_captures_give_the_same_causes(name: str, tmp_path: Path) -> None:
    """Both record each packet at its sender; events lack only the TCP timestamps."""
    run = airpath.run(ROOT / "examples" / f"{name}.toml", out=tmp_path / "captured", capture=True)
    captured, logged = airpath.trace(run.path), airpath.trace(uncaptured(run, tmp_path / "logged"))
    of_captures, of_events = (seconds_of(trace.connections.row(0, named=True)) for trace in (captured, logged))
    figures = ["from", "segments", "timeouts", "selective_permitted", "selective_acknowledgements", "dsacks"]
    assert logged.directions.select(figures).equals(captured.directions.select(figures))
    whole = sum(of_captures.values())
    moved = sum(abs(of_captures.get(cause.name, 0) - of_events.get(cause.name, 0)) for cause in CAUSES) / 2
    assert moved < 0.05 * whole, (of_captures, of_events)


def test_transactions_on_separate_connections_are_separated(tmp_path: Path) -> None:
    scenario = DOWNLOAD[: DOWNLOAD.index("[[flow]]")] + (
        '[[flow]]\nkind = "transactions"\ntransactions = 12\nconnections = "each"\n'
        'request = "300 B"\nresponse = "4 kB"\n'
    )
    run = airpath.run(scenario, out=tmp_path / "captured", capture=True)
    captured, logged = airpath.trace(run.path), airpath.trace(uncaptured(run, tmp_path / "logged"))
    figures = ["client", "segments", "complete"]
    assert captured.connections.height == 12
    assert logged.connections.select(figures).equals(captured.connections.select(figures))


def test_one_of_several_repetitions_is_reported(command: Command) -> None:
    run = airpath.run(DOWNLOAD, repeat=3, out=command.folder / "run")
    lasted = [airpath.trace(run.path, repetition=number).connections["duration_s"].item() for number in range(3)]
    assert len(set(lasted)) == 3
    assert airpath.trace(run.path).connections["duration_s"].item() == sorted(lasted)[1], "the median one"
    done = command("trace", run.path, "--repetition", "2", "--format", "json")
    assert done.json["connections"][0]["duration_s"] == lasted[2]
    for arguments, message in (
        ((run.path, "--repetition", "3"), "has no repetition 3\n  next: it has 3, numbered from 0"),
        (("x.pcap", "--repetition", "1"), "--repetition needs a result folder"),
        ((run.path, "--in-full", "2"), "--in-full needs a report"),
        ((run.path, "--why", "--format", "csv"), "--format csv has the connections alone, and --why lists intervals"),
        ((run.path, "--why", "--format", "parquet"), "--format parquet has the connections alone"),
    ):
        done = command("trace", *arguments)
        assert (done.code, message in done.err) == (2, True)


def test_a_folder_with_neither_is_an_error(command: Command) -> None:
    scenario = DOWNLOAD + "\n[log]\npackets = false\n"
    airpath.run(scenario, out=command.folder / "run")
    done = command("trace", "run")
    assert done.code == 2
    assert "has neither captures nor a packet log of repetition 0" in done.err
    assert "--capture" in done.err


def test_a_capture_cannot_be_joined_with_a_log(runs: list[airpath.Result], command: Command) -> None:
    folder = uncaptured(runs[0], command.folder / "run")
    done = command("trace", folder, "--peer", runs[0].captures()[0])
    assert done.code == 2
    assert "has no captures for the peer" in done.err


def test_a_stream_reads_a_log_too(runs: list[airpath.Result], tmp_path: Path) -> None:
    lines: list[str] = []
    folder = uncaptured(runs[0], tmp_path / "run")
    stream(folder, lines.append)
    rows = sorted((json.loads(line) for line in lines), key=lambda each: each["connection"])
    assert [each["segments"] for each in rows] == airpath.trace(folder).connections["segments"].to_list()


@pytest.mark.parametrize("trigger", [*AGAIN, None])
def test_every_way_to_send_again_is_drawn(trigger: str | None, traces: list[airpath.Trace]) -> None:
    flow = traces[0].connections.row(0, named=True)
    view = FlowView.of(traces[0], flow)
    kind = pl.when(pl.col("retransmission").is_not_null()).then(pl.lit(trigger, pl.String))
    figure = time_sequence(replace(view, segments=view.segments.with_columns(retransmission=kind)), "server")
    names = [each["name"] for each in figure.to_plotly_json()["data"]]
    assert any(name.startswith(AGAIN[trigger][0]) for name in names) if trigger else "sent" in names


def test_round_trips_of_timestamps_stand_beside_those_by_karns_rule(tmp_path: Path) -> None:
    """Segments delayed by the outage and retransmitted: only timestamps give their round trip."""
    trace = airpath.trace(shared_capture("own/outage3_snd.pcap"))
    longest = trace.directions.sort("unique_bytes").row(-1, named=True)
    assert longest["longest_echo_round_trip_s"] > 2 * longest["longest_round_trip_s"]
    echoed = trace.observations(longest["connection"])["echo_round_trip_ns"].drop_nulls()
    assert echoed.len() > 0
    assert echoed.max() == pytest.approx(1e9 * longest["longest_echo_round_trip_s"])
    assert "of data up, by timestamps alone (" in Page(trace.report(tmp_path / "report.html")).html


def test_impossible_times_are_reported(command: Command) -> None:
    capture = shared_capture("tcptrace__http.dmp")
    trace = airpath.trace(capture)
    assert " in 4.085 years, " in summary(trace.reading, trace.connections.height)
    remarks = file_warnings(trace.reading)
    assert "frames 417 and 418 are 4.085 years apart" in remarks[0]
    assert "acknowledged bytes are not in the capture" in remarks[1]
    words = command("trace", capture).err
    assert all(remark in words for remark in remarks)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.5, "500 ms"), (7_100, "7,100.0 s"), (9_000, "2.5 h"), (3e5, "3.472 days"), (1e8, "3.169 years")],
)
def test_long_spans_are_given_in_readable_units(seconds: float, words: str) -> None:
    assert quantities.seconds(seconds) == words


def test_the_columns_of_the_directions_are_the_cores() -> None:
    names = [name for name, _ in _native.trace_figures()]
    assert list(TABLES["directions"]) == ["connection", "from", *names]
    assert len(set(names)) == len(names) > 80


def test_pages_stand_under_each_other_on_one_scale(tmp_path: Path) -> None:
    """Shared captures of one page: one connection for each object, and one pipelined connection."""
    traces = [airpath.trace(shared_capture(f"own/http_{how}.pcap")) for how in ("http10", "pipe")]
    page = Page(comparison.write(traces, tmp_path / "report.html"))
    drawn = {name: figure for name, figure in page.figures.items() if ": page of " in name}
    spans = [(trace.exchanges["response_acknowledged"].max() - trace.pages["start"].item()) / 1e9 for trace in traces]
    assert [name.split(":")[0] for name in drawn] == labels(traces)
    assert [figure["layout"]["xaxis"]["range"][1] for figure in drawn.values()] == pytest.approx([max(spans)] * 2)
    assert "The longest connection of http_http10.pcap" not in page.words, "the first is what others are measured by"
    assert "than the longest connection of http_http10.pcap" in page.words
    assert f"12 requests and {size(traces[1].pages['bytes'].item())} of responses on 1 connection in" in page.words


def test_the_objects_of_a_page_are_visible_and_end_with_their_acknowledgement() -> None:
    """At a server a response leaves at once, and is acknowledged when it has arrived."""

    def exchange(request: float, first: float, last: float, acknowledged: float | None) -> dict[str, Any]:
        marks: dict[str, float | None] = {"request_first": request, "response_first": first, "response_last": last}
        marks |= {"response_acknowledged": acknowledged}
        row = {name: None if time is None else int(time * 1e9) for name, time in marks.items()}
        return row | {"connection": 1, "method": "GET", "url": "/", "status": 200, "response_bytes": 1000}

    rows = [exchange(0.1, 0.2, 0.2001, 1.2), exchange(1.3, 1.4, 1.4, None), exchange(1.5, 1.6, 1.6, 4.0)]
    exchanges = pl.DataFrame(rows, schema_overrides={"response_acknowledged": pl.Int64})
    timelines = pl.DataFrame(
        {"connection": [1], "first": [0], "opened": [0], "established": [10**8], "closed": [None]}
        | {"pipeline_factor": [1.0]}
    )
    page = {"client_address": "192.0.2.1", "start": 0, "end": int(1.6e9), "requests": 3, "connections": 1}
    view = PageView(page | {"bytes": 3000, "efficiency": 0.5, "efficiency_of_reused": 0.5}, exchanges, timelines)
    figure = page_timeline(view).to_plotly_json()
    assert figure["layout"]["xaxis"]["range"][1] >= 4.0
    (receiving,) = (each for each in figure["data"] if each["name"] == "receiving")
    assert list(receiving["x"]) == pytest.approx([1.0, 0.008, 2.4]), "to the acknowledgement, and two of 1000 pixels"
    words = str(figure["layout"]["meta"])
    assert "3 requests and 3 kB of responses on 1 connection in 4 s. Responses were in transit in 3.4 s" in words
    assert "η" not in words, "no request was sent before the response to the one before"
    pipelined = replace(view, timelines=timelines.with_columns(pipeline_factor=2.0))
    assert "η 0.5: the requests that were open when each one was sent" in str(page_timeline(pipelined).to_plotly_json())
