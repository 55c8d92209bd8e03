"""Waterfalls of web pages, and pages compared in a report."""

import base64
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest

import airpath
from airpath import plot, report, theme
from airpath.page.devtools import Chromium
from airpath.page.timings import View, lengths_of
from airpath.page.views import views
from airpath.plot.selection import drawn
from airpath.plot.waterfall import waterfall_of
from airpath.statistics import mean_interval
from support import ROOT, Command
from support.report_page import Page

EXAMPLE = ROOT / "examples" / "news.page"
SCENARIO = f"""
format = 1
name = "secure"
[bearer]
preset = "gprs-3+1"
[tcp]
profile = "linux-6"
[[flow]]
kind = "page"
page = "{EXAMPLE}"
tls = "TLSv1.3"
dns = true
"""


@pytest.fixture(scope="module")
def secure() -> airpath.Result:
    """A page with look-ups and TLS over GPRS, viewed again from the cache."""
    return airpath.run(SCENARIO, set={"flow.0.views": 2}, repeat=3)


@pytest.fixture(scope="module")
def view(secure: airpath.Result) -> View:
    """The first view of the first repetition."""
    return next(each for each in views(secure) if (each.run, each.number) == (0, 0))


def test_the_phases_of_a_request_fill_its_time(secure: airpath.Result) -> None:
    key = ("repetition", "view", "origin", "name")
    rows = {tuple(row[each] for each in key): row for row in secure.objects.iter_rows(named=True)}
    seen = 0
    for view in views(secure):
        for request in view.requests:
            row = rows[view.run, view.number, request.host, request.name]
            assert request.start == pytest.approx(row["found_s"])
            assert request.end == pytest.approx(row["finished_s"])
            # A phase below a microsecond is left out.
            assert sum(lengths_of(request).values()) == pytest.approx(row["finished_s"] - row["found_s"], abs=1e-5)
            assert all(a.end <= b.start + 1e-5 for a, b in zip(request.phases, request.phases[1:], strict=False))
            seen += 1
    assert seen == secure.objects.height


def test_set_up_is_that_of_the_packets(secure: airpath.Result, view: View) -> None:
    """Look-ups and handshakes are packets, so their times follow from them."""
    document = view.requests[0]
    own = secure.packets.filter((pl.col("repetition") == 0) & (pl.col("flow") == 0))
    answer = own.filter((pl.col("step") == "received") & (pl.col("direction") == "down"))["time"][0] / 1e9
    assert [phase.name for phase in document.phases] == ["dns", "connect", "tls", "wait", "receive"]
    assert document.time_of("connect") == pytest.approx(answer)
    # TLS 1.3 takes one round trip, connecting too, and both are shorter than the first byte.
    lengths = lengths_of(document)
    assert 0 < lengths["connect"] < lengths["tls"] < (document.time_of("receive") or 0)
    hosts = {request.host for request in view.requests}
    assert sum(request.time_of("dns") is not None for request in view.requests) == len(hosts)
    opened = [each for each in view.requests if request_opens(each)]
    assert len(opened) == len(view.connections) == view.figures["connections"]
    again = next(each for each in views(secure) if (each.run, each.number) == (0, 1))
    assert again.repeated
    assert not any(request.time_of("dns") is not None for request in again.requests)


def test_look_ups_of_names_of_equal_length_are_not_mixed_up() -> None:
    """A connection to a host begins when its name is known, also if queries are lost."""
    objects = "".join(
        f'[[flow.page.object]]\nname = "{host}"\ntype = "image"\nsize = "1 kB"\nat = "{at} kB"\n'
        f'origin = "{host}.example.com"\n'
        for host, at in (("a", 1), ("b", 9))
    )
    scenario = f"""
    format = 1
    bearer.preset = "umts-dch-384"
    fixed.loss = 0.15
    [[flow]]
    kind = "page"
    dns = true
    [flow.page]
    name = "p"
    [[flow.page.object]]
    name = "index.html"
    type = "document"
    size = "10 kB"
    {objects}"""
    result = airpath.run(scenario, repeat=12)
    assert set(result.pages["look_ups"]) == {3}, "a repeated query is the same look-up"
    ends = {
        request.host: phase.end
        for view in views(result)
        for request in view.requests
        for phase in request.phases
        if phase.name == "dns" and request.time_of("connect") != pytest.approx(phase.end)
    }
    assert not ends


def test_tls_of_an_earlier_view_is_not_drawn_again() -> None:
    """A connection that stays open has one handshake, in the view that opened it."""
    result = airpath.run(SCENARIO, set={"flow.0.views": 2, "flow.0.cache": False, "flow.0.reading": "1 s"})
    first, second = views(result)
    setups = {each.key: {phase.name: phase.end - phase.start for phase in each.setup} for each in first.connections}
    kept = [each for each in second.connections if each.opened < 0]
    assert kept
    for each in kept:
        assert {phase.name: phase.end - phase.start for phase in each.setup} == pytest.approx(setups[each.key])
        assert all(phase.end <= 0 for phase in each.setup)
    carried = [request for request in second.requests if request.connection == kept[0].key]
    assert all(request.time_of("tls") is None for request in carried)
    drawn = {each["name"] for each in bars(plot.connections(result, view=1), "y")}
    assert ("TLS" in drawn) == any(each.opened >= 0 for each in second.connections)


def test_only_flows_with_tls_have_its_phase() -> None:
    """Connections that were opened ahead wait for their request without it."""
    clear = '[[flow]]\nkind = "page"\npage = "umts-live-yahoo"\nspeculative = 2\n'
    found = {
        view.page: {phase.name for request in view.requests for phase in request.phases}
        for view in views(airpath.run(SCENARIO + clear))
    }
    assert ["tls" in phases for phases in found.values()] == [True, False]


def request_opens(request: Any) -> bool:
    """Return whether a request waited for the handshake of its connection."""
    return request.time_of("connect") is not None


def test_a_waterfall_shows_objects_connections_radio_and_queue(secure: airpath.Result, view: View) -> None:
    figure = plot.waterfall(secure, run=0)
    received = [bar for bar in bars(figure, "y2") if bar["name"] in theme.OBJECTS and len(bar["marker"]["color"]) == 7]
    ends = sorted(sum(pair) for bar in received for pair in zip(bar["base"], bar["x"], strict=True))
    assert ends == pytest.approx(sorted(request.end for request in view.requests), abs=1e-4)
    starts = sorted(base for bar in received for base in bar["base"])
    assert starts == pytest.approx(sorted(request.time_of("receive") or 0 for request in view.requests), abs=1e-4)
    names = figure.to_plotly_json()["layout"]["yaxis2"]["ticktext"]
    assert len(names) == len(view.requests)
    assert names[0] == "index.html"
    labels = [axis.get("ticktext", [""])[0] for key, axis in layout(figure).items() if key.startswith("yaxis")]
    texts = [note["text"] for note in layout(figure)["annotations"]]
    assert {"mode", "TBF ↓", "air ↓"} <= set(labels)
    assert {"<b>Connections</b>", "queue kB ↓", "kbit/s ↓"} <= set(texts)
    page_time = view.figures["page_time_s"]
    lines = [shape["x0"] for shape in layout(figure)["shapes"]]
    assert lines == pytest.approx([view.figures["first_byte_s"], page_time])
    assert any(text.startswith(" page time ") for text in texts)
    used = set(re.findall(r"#[0-9a-f]{6}", figure.to_json() or ""))
    assert used <= set(theme.dark_of())


def test_one_connection_is_in_the_singular(tmp_path: Path) -> None:
    page = 'format = 1\nname = "one"\nbearer.preset = "lte"\n[[flow]]\nkind = "page"\npage = "static-site"\n'
    result = airpath.run(f'{page}protocol = "h3"\n', out=tmp_path / "one")
    written = report.write([result], tmp_path / "report.html").read_text(encoding="utf-8")
    assert " on 1 connection." in written
    assert "1 connections" not in written


def test_no_mark_crosses_the_labels_of_bars(secure: airpath.Result, view: View) -> None:
    figure = waterfall_of(drawn(secure)[0], view)
    marks = [each for each in layout(figure)["shapes"] if each["type"] == "line" and each["yref"] == "paper"]
    assert len(marks) >= len(set(view.marks.values()))
    # Lines are below the labels, and the outline of a label covers them.
    assert {each["layer"] for each in marks} == {"between"}
    labels = [each for each in figure.to_plotly_json()["data"] if each.get("mode") == "text"]
    assert labels
    assert all(theme.PAGE.light in each["textfont"]["shadow"] for each in labels)


def test_each_response_is_on_the_timeline_of_its_connection(secure: airpath.Result, view: View) -> None:
    figure = plot.waterfall(secure, run=0)
    hovers = [text for bar in bars(figure, "y3") for text in bar["customdata"]]
    for number, connection in enumerate(view.connections, 1):
        own = [request for request in view.requests if request.connection == connection.key]
        mine = [text for text in hovers if f"<b>connection {number}</b>" in text]
        assert all(any(request.name in text for text in mine) for request in own)


def test_the_connections_of_a_page_have_a_figure_of_their_own(secure: airpath.Result, view: View) -> None:
    figure = plot.connections(secure, run=0)
    hovers = {text for bar in bars(figure, "y") for text in bar["customdata"]}
    for request in view.requests:
        assert any(request.name in text for text in hovers)
    numbers = [str(number) for number in range(1, len(view.connections) + 1)]
    assert list(layout(figure)["yaxis"]["ticktext"]) == numbers
    with pytest.raises(plot.NothingToDrawError):
        plot.connections(secure, view=7)


def test_a_page_without_packets_has_a_waterfall_without_radio(tmp_path: Path) -> None:
    off = {f"log.{table}": False for table in ("packets", "radio", "tcp", "app")}
    result = airpath.run(SCENARIO, set=off, out=tmp_path / "silent")
    figure = plot.waterfall(result)
    assert "did not log" in plot.caption_of(figure).notes[0]
    # The look-ups of names are in the table of objects.
    assert views(result)[0].requests[0].phases[0].name == "dns"
    with pytest.raises(plot.NothingToDrawError):
        plot.waterfall(result, view=7)


def test_pages_are_compared_with_intervals(secure: airpath.Result, tmp_path: Path) -> None:
    clear = airpath.run(SCENARIO, set={"flow.0.tls": "none", "name": "clear"}, repeat=3)
    page = Page(report.write([secure, clear], tmp_path / "report.html"))
    times = secure.pages.filter(view=0)["page_time_s"].to_list()
    interval = mean_interval(times)
    for value in (fmean(times), interval.low, interval.high):
        assert airpath.quantities.seconds(value) in page.words
    figures = [name for name in page.figures if name.startswith("Waterfall of")]
    assert len(figures) == 3
    assert {"Page time"} <= set(page.figures)
    ranges = {tuple(page.figures[name]["layout"]["xaxis"]["range"]) for name in figures}
    assert len(ranges) == 1
    assert len(page.all("figure", **{"data-time": "page"})) == 3
    assert "headline.woff2" in page.words


def test_views_of_a_page_are_called_views(tmp_path: Path) -> None:
    result = airpath.run(SCENARIO, set={"flow.0.views": 5, "flow.0.reading": "1 s"})
    times = result.pages["page_time_s"].to_list()
    page = Page(report.write([result], tmp_path / "report.html"))
    seconds = airpath.quantities.seconds
    over_views = f"median of 5 views {seconds(sorted(times)[2])}, {seconds(min(times))} to {seconds(max(times))}"
    assert f"Page time {seconds(times[0])} first view; {over_views}" in page.words
    assert "Page times: 5 views, the shortest" in page.words
    assert "Each dot is a view. " in page.words
    titles = {f"Waterfall of news, view {number}" for number in range(1, 6)}  # words: allow news (its name)
    assert titles <= set(page.figures)
    assert not re.search(r"\bcases?\b", page.words)


@pytest.mark.parametrize("repeat", [1, 2])
def test_each_mobile_of_a_shared_page_is_a_dot(repeat: int, tmp_path: Path) -> None:
    mobiles = SCENARIO.replace("[tcp]", '[[mobile]]\nname = "mobile"\ncount = 4\n[tcp]')
    runs = [airpath.run(mobiles, set={"flow.0.tls": tls, "name": tls}, repeat=repeat) for tls in ("none", "TLSv1.3")]
    page = Page(report.write(runs, tmp_path / "report.html"))
    seconds = airpath.quantities.seconds
    times = runs[0].pages["page_time_s"].to_list()
    dots = page.figures["Page time"]["data"][0]["x"]
    assert len(dots) == len(times) == 4 * repeat
    of = f"mean of {len(times)} views, {seconds(min(times))} to {seconds(max(times))}"
    assert f"{seconds(fmean(times))} {of}" in page.words
    assert f"on the mean of {len(times)} views" in page.words
    assert f"Each dot is a view of a mobile{' in a repetition' * (repeat > 1)}." in page.words
    counted = "1 repetition" if repeat == 1 else "2 repetitions"
    assert f"the views of a repetition share the network, so run more than {counted}" in page.words
    assert f"http/1.1 {len(times)} {seconds(fmean(times))}" in page.words


def test_pictures_of_the_page_stand_at_their_times(secure: airpath.Result, view: View, tmp_path: Path) -> None:
    pictures = [tmp_path / f"{number}.png" for number in range(3)]
    for picture in pictures:
        picture.write_bytes(picture.name.encode())
    times = (0.0, 1.0, view.span / 2)
    seen = replace(view, frames=list(zip(times, pictures, strict=True)))
    images = layout(waterfall_of(drawn(secure)[0], seen))["images"]
    assert [base64.b64decode(each["source"].partition(",")[2]).decode() for each in images] == [
        "0.png",
        "1.png",
        "2.png",
    ]
    assert all(each["x"] >= time for each, time in zip(images, times, strict=True))


def test_a_view_of_a_browser_is_read_from_its_files(secure: airpath.Result, tmp_path: Path) -> None:
    folder = browsed(secure, tmp_path / "real")
    (seen,) = views(airpath.load(folder))
    document, cached = seen.requests
    assert (seen.start, seen.marks) == (2.0, {"FCP": 0.4, "page time": 0.9})
    phases = {phase.name: phase for phase in document.phases}
    # `connect` of HAR 1.2 contains `ssl`.
    assert list(phases) == ["queued", "connect", "tls", "send", "wait", "receive"]
    assert phases["tls"].start == pytest.approx(0.01 + 0.06)
    assert document.end == pytest.approx(0.9)
    assert (document.type, document.status, document.protocol) == ("document", "200", "h2")
    assert (cached.source, cached.connection, cached.bytes) == ("cache", None, 0)
    drawn = plot.waterfall(airpath.load(folder))
    assert plot.caption_of(drawn).title == "Waterfall of news, load 1"  # words: allow news (its name)


@pytest.mark.parametrize("fault", ["{", '{"log": {"pages": [], "entries": []}}', '{"log": 1}', "[]", None])
def test_damaged_files_of_a_browser_are_an_error(
    fault: str | None, secure: airpath.Result, tmp_path: Path, airpath_command: Command
) -> None:
    folder = browsed(secure, tmp_path / "real")
    if fault is None:
        (folder / "page.har").unlink()
    else:
        (folder / "page.har").write_text(fault)
    failed = airpath_command("report", str(folder), "-o", "report.html")
    assert failed.code == 2, failed.err
    assert "page.har: damaged" in failed.err
    assert "load the page again" in failed.err


def browsed(result: airpath.Result, folder: Path) -> Path:
    """Write a result folder with a view of a browser."""
    shutil.copytree(result.path, folder)
    summary = json.loads((folder / "summary.json").read_text())
    summary["emulation"] = {"started_s": 1000.0}
    (folder / "summary.json").write_text(json.dumps(summary))
    figures = {"page_time_s": 0.9, "first_contentful_paint_s": 0.4, "first_byte_s": None, "filmstrip": []}
    page = {"run": 0, "view": 0, "page": "news"} | figures  # words: allow news (a name)
    (folder / "page.json").write_text(json.dumps([page]))
    timings = {"blocked": 10, "dns": -1, "connect": 100, "ssl": 40, "send": 1, "wait": 200, "receive": 589}
    none = {"blocked": 0, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": 0, "receive": 1}
    started = "1970-01-01T00:16:42.000000Z"
    document = entry(started, "https://www.example.com/", "text/html", timings, 900) | {"connection": "7"}
    style = entry("1970-01-01T00:16:42.700000Z", "https://www.example.com/a.css", "text/css", none, 0)
    log = {"pages": [{"id": "run_0_view_0", "startedDateTime": started}]}
    log["entries"] = [style | {"_fromCache": "memory", "connection": ""}, document]
    (folder / "page.har").write_text(json.dumps({"log": log}))
    return folder


def entry(started: str, url: str, media_type: str, timings: Mapping[str, float], size: int) -> dict[str, Any]:
    """Return an entry of a HAR file."""
    response = {"status": 200, "statusText": "OK", "httpVersion": "h2", "_transferSize": size}
    response["content"] = {"mimeType": media_type, "size": size}
    request = {"url": url}
    names = {"pageref": "run_0_view_0", "startedDateTime": started}
    return names | {"request": request, "response": response, "timings": timings}


def test_names_of_objects_are_text_not_markup(tmp_path: Path) -> None:
    described = EXAMPLE.read_text().replace("lead.jpg", "<img src=x>.jpg")
    (tmp_path / "odd.page").write_text(described)
    result = airpath.run(SCENARIO.replace(str(EXAMPLE), str(tmp_path / "odd.page")))
    written = report.write([result], tmp_path / "report.html").read_text()
    assert "<img src=x" not in written


def bars(figure: go.Figure, axis: str) -> list[dict[str, Any]]:
    """Return the bars on a vertical axis."""
    data = figure.to_plotly_json()["data"]
    return [each for each in data if each["type"] == "bar" and each.get("yaxis", "y") == axis]


def layout(figure: go.Figure) -> dict[str, Any]:
    """Return the layout of a figure."""
    return figure.to_plotly_json()["layout"]


LABELS = """(async () => {
  while (document.documentElement.dataset.drawn !== "all") await new Promise((done) => setTimeout(done, 20));
  return [...document.querySelectorAll(".plot")].flatMap((plot) =>
    [...plot.querySelectorAll(".textpoint")].map((label) =>
      [plot.getBoundingClientRect().right - label.getBoundingClientRect().right, label.textContent]));
})()"""
"""Pixels from the end of each label at a bar to the right end of its figure, and the label."""


@pytest.mark.parametrize("width", [390, 1200])
def test_the_labels_of_objects_are_whole_at_each_width(
    secure: airpath.Result, tmp_path: Path, need: Callable[[str], str], width: int
) -> None:
    need("chromium")
    page = report.write([secure], tmp_path / "report.html")
    with Chromium([], time.monotonic() + 120) as browser:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 640}
        browser.call("Emulation.setDeviceMetricsOverride", session, **size)
        browser.call("Page.enable", session)
        browser.call("Page.navigate", session, url=page.as_uri())
        while (event := browser.next_event(time.monotonic() + 60)) is not None:
            if event.get("method") == "Page.loadEventFired":
                break
        how = {"expression": LABELS, "awaitPromise": True, "returnByValue": True}
        labels = browser.call("Runtime.evaluate", session, **how)["result"]["value"]
    assert len(labels) > len(views(secure)[0].requests)
    assert all(left >= 0 for left, _ in labels), labels
    assert all((", " in label) == (width > 640) for _, label in labels)
