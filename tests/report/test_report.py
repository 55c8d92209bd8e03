"""The report: one self-contained file with the values of the frames; it lists what is missing."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest
from plotly.offline import get_plotlyjs

import airpath
from airpath import report, theme
from airpath.plot.selection import drawn
from airpath.quantities import number_of, rate, relative_change, seconds
from airpath.report import metrics
from airpath.report.commands import commands, not_again
from airpath.report.page import library, move_library
from airpath.study import report as study_report
from support import DOWNLOAD, ROOT, Command
from support.report_page import Page

DCH = DOWNLOAD.replace("hs-dsch-384", "umts-dch-384").replace('"small"', '"DCH"')


@pytest.fixture(scope="module")
def results() -> list[airpath.Result]:
    """A download over HS-DSCH, and one over DCH."""
    return [airpath.run(DOWNLOAD), airpath.run(DCH)]


@pytest.fixture(scope="module")
def one(results: list[airpath.Result], tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of one run."""
    return Page(report.write(results[:1], tmp_path_factory.mktemp("one") / "report.html"))


@pytest.fixture(scope="module")
def two(results: list[airpath.Result], tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of two runs."""
    return Page(report.write([result.path for result in results], tmp_path_factory.mktemp("two") / "report.html"))


@pytest.mark.parametrize("which", ["one", "two"])
def test_a_page_can_be_read_without_eyes_or_mouse(which: str, request: pytest.FixtureRequest) -> None:
    page: Page = request.getfixturevalue(which)
    assert page.all("html", lang="en")
    assert len(page.texts["h1"]) == 1
    ids = [found["id"] for _, found in page.elements if found.get("id")]
    assert len(ids) == len(set(ids))
    targets = [str(found["href"])[1:] for found in page.all("a")]
    assert set(targets) <= set(ids)
    figures = page.all("figure")
    plots = page.all("div", role="img")
    assert len(figures) == len(plots) >= 9
    assert all(plot["tabindex"] == "0" and len(str(plot["aria-label"])) > 20 for plot in plots)
    assert len(page.texts["figcaption"]) == len(figures)
    assert all(text.strip().endswith((".", ")")) for text in page.texts["figcaption"])
    assert len(page.texts["caption"]) == len(page.all("table")) >= 3
    assert all("scope" in found for found in page.all("th"))
    assert all(found.get("type") == "button" for found in page.all("button"))


def test_a_page_needs_nothing_from_outside(two: Page) -> None:
    assert "://" not in two.html
    assert not [found for _, found in two.elements if "src" in found]
    [policy] = [found["content"] for found in two.all("meta") if "http-equiv" in found]
    assert str(policy).startswith("default-src 'none';")


def test_the_library_is_there_once(results: list[airpath.Result], tmp_path: Path) -> None:
    html = report.write(results, tmp_path / "report.html").read_text(encoding="utf-8")
    assert html.count(library()) == 1
    assert len(html) < len(get_plotlyjs()) / 2


def test_reports_of_a_folder_can_share_the_library(
    results: list[airpath.Result], tmp_path: Path, browse: Callable[..., str]
) -> None:
    for name in ("one.html", "two.html"):
        path = report.write(results, tmp_path / name)
        shared = move_library(path)
        assert path.stat().st_size < 500_000
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one.html", shared.name, "two.html"]
    assert 'data-drawn="all"' in browse(path)


def test_the_tiles_hold_the_figures_of_the_frames(one: Page, results: list[airpath.Result]) -> None:
    result = results[0]
    flow = result.flows.row(0, named=True)
    values = [text.strip() for text in re.findall(r'class="value">([^<]*)<', one.html)]
    trips = result.tcp["round_trip"].drop_nulls() / 1e9
    lost = result.packets.filter(step="dropped").height
    sent = result.packets.filter(step="sent").height
    pdus = result.radio.select(pl.col("pdus").sum(), pl.col("repeated").sum()).row(0)
    assert values == [
        seconds(flow["duration_s"]),
        rate(flow["throughput_bps"]),
        seconds(trips.quantile(0.5, "linear") or 0),
        f"{lost / sent * 100:.3g} %",
        f"{pdus[1] / pdus[0] * 100:.3g} %",
    ]
    assert f"95 % within {seconds(trips.quantile(0.95, 'linear') or 0)}" in one.words
    assert f"{number_of(flow['retransmitted_packets'], 'segment')} retransmitted" in one.words
    assert f"{flow['delivered_bytes'] / 1e3:.0f} kB in {seconds(flow['duration_s'])}" in one.words


def test_the_conditions_come_with_the_result(one: Page, results: list[airpath.Result]) -> None:
    assert "Conditions: seed 3, airpath" in one.words
    assert results[0].summary["airpath"] in one.words
    assert "all settings" in one.words
    assert results[0].summary["flows"][0]["tcp"]["profile"] in one.words
    assert results[0].scenario.strip() in "".join(one.texts["code"]).replace("&#34;", '"')


def test_links_are_seen_to_conserve(one: Page, results: list[airpath.Result]) -> None:
    for link in results[0].links.filter(pl.col("offered_packets") > 0).iter_rows(named=True):
        row = f"{link['component']} {link['direction']} {link['offered_packets']:,} {link['delivered_packets']:,}"
        assert row in one.words
    assert " NO " not in one.words


def test_runs_are_compared_on_one_axis(two: Page, results: list[airpath.Result]) -> None:
    longest = max(result.repetitions["simulated_s"].item() for result in results)
    over_time = [each for each in two.figures.values() if each["layout"]["xaxis"]["title"]["text"] == "time (s)"]
    assert len(over_time) >= 6
    for each in over_time:
        assert each["layout"]["xaxis"]["range"] == [0, longest]
    lines = [each for each in two.figures["Congestion window"]["data"] if each["mode"] == "lines"]
    assert len({each["line"]["dash"] for each in lines}) == len({each["line"]["color"] for each in lines}) == 2


def test_differences_are_to_the_first_run(two: Page, results: list[airpath.Result]) -> None:
    first, second = (result.flows["duration_s"].item() for result in results)
    assert f"completion time {seconds(first)} {seconds(second)}" in two.words
    assert f"({(second - first) / first:+.1%})".replace("%", " %").replace("-", "−") in two.words
    assert "a difference may be chance" in two.words
    assert "bearer.model" in two.words
    names = {"small", "DCH"}
    winner = "small" if first < second else "DCH"
    assert f"{winner} finishes first" in two.words
    assert all(name in two.texts["h1"][0] for name in names)


def test_repetitions_are_means_with_intervals(tmp_path: Path) -> None:
    several = [airpath.run(DOWNLOAD, repeat=8, seed=seed) for seed in (1, 2)]
    page = Page(report.write(several, tmp_path / "report.html"))
    interval = metrics.interval_of(several[0].flows["duration_s"].to_list())
    assert interval is not None
    assert f"95 % interval {seconds(interval.low)} to {seconds(interval.high)}, n = 8" in page.words
    assert "Completion time" in page.figures
    # The same scenario twice with other seeds: the text must match the result, whichever it is.
    apart = metrics.difference(*(each.flows["duration_s"].to_list() for each in several))
    assert apart is not None
    assert ("not distinguishable at n = 8" in page.texts["p"][0] + page.words) or not apart.low <= 0 <= apart.high
    few = Page(report.write([airpath.run(DOWNLOAD, repeat=3)], tmp_path / "few.html"))
    assert "n = 3 is too small" in few.words


def test_a_difference_is_welchs() -> None:
    ours, base = [20.1, 19.8, 20.4, 20.0], [18.0, 19.0, 17.5, 18.9, 18.6]
    apart = metrics.difference(ours, base)
    assert apart is not None
    assert apart.mean == pytest.approx(fmean(ours) - fmean(base))
    # By hand: the variances of the means are 0.015625 and 0.081; the standard error is 0.31085 with
    # 5.42 degrees of freedom.
    assert apart.high - apart.mean == pytest.approx(2.5706 * 0.31085, rel=1e-4)
    assert metrics.difference([1.0], base) is None
    assert metrics.difference([1.0, 1.0], [2.0, 2.0]) is None


def test_a_long_run_is_thinned_but_keeps_what_counts(tmp_path: Path) -> None:
    long = airpath.run(DOWNLOAD, set={"flow.0.bytes": "16 MB"})
    path = report.write([long], tmp_path / "report.html")
    assert path.stat().st_size - len(library()) < 2_000_000
    page = Page(path)
    assert "Thinned to the extremes of each of 1,000 spans of time" in page.words
    [again] = [
        each for each in page.figures["Time–sequence of download"]["data"] if each["name"].startswith("retransmitted")
    ]
    assert len(again["x"]) == long.flows["retransmitted_packets"].item() > 0


def test_the_report_of_a_run_without_log_lists_what_is_missing(tmp_path: Path) -> None:
    page = Page(report.write([airpath.run(DOWNLOAD, log=False)], tmp_path / "report.html"))
    assert "Not everything could be drawn." in page.words
    assert "run the scenario again with this log on" in page.words
    assert "quantiles need the event log" in page.words
    assert not page.all("figure")
    assert "Transfers" in page.words


def test_a_partial_run_carries_a_banner(tmp_path: Path) -> None:
    result = airpath.run(DOWNLOAD, out=tmp_path / "cut")
    summary = result.summary | {"complete": False, "stopped": "interrupted"}
    (tmp_path / "cut" / "summary.json").write_text(json.dumps(summary))
    page = Page(report.write([tmp_path / "cut"], tmp_path / "report.html"))
    assert "Partial result. The run did not finish (interrupted)" in page.words


def test_a_damaged_table_costs_its_figures_alone(tmp_path: Path) -> None:
    airpath.run(DOWNLOAD, out=tmp_path / "hurt")
    for part in (tmp_path / "hurt" / "events" / "packets").glob("*.parquet"):
        part.write_bytes(part.read_bytes()[:100])
    page = Page(report.write([tmp_path / "hurt"], tmp_path / "report.html"))
    assert re.search(r"Queue, [^:]*: a table of the log is damaged", page.words)
    assert "Radio" in page.figures


def test_a_broken_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(airpath.UnreadableResultError, match="no such result folder"):
        report.write([tmp_path / "nowhere"], tmp_path / "report.html")
    with pytest.raises(ValueError, match="at least one result"):
        report.write([], tmp_path / "report.html")


def test_names_are_text_not_markup(tmp_path: Path) -> None:
    named = airpath.run(DOWNLOAD.replace('"small"', '"</script><b>&"'))
    page = Page(report.write([named, named], tmp_path / "report.html"))
    assert "<b>" not in page.html
    assert "</script><b>&" in page.texts["h1"][0]


def test_the_commands_make_it_again(two: Page, results: list[airpath.Result]) -> None:
    lines = two.texts["code"][0].splitlines()
    assert [shlex.split(line)[:2] for line in lines] == [["airpath", "run"]] * 2 + [["airpath", "report"]]
    assert all(str(result.path) in lines[2] for result in results)
    path = Path(shlex.split(lines[0])[2])
    assert airpath.run(path.read_text(encoding="utf-8")).summary["flows"] == results[0].summary["flows"]


def test_only_commands_that_can_make_it_again_are_printed(tmp_path: Path) -> None:
    """Summaries as each command writes them, in place of the one of a run."""
    link = {"mtu": 1500, "parameters": [], "precise": True, "serve": None, "command": ["true"]}
    cases = {
        "run": ({}, "airpath run "),
        "link": ({"emulation": link}, "airpath link "),
        "proxy": ({"emulation": {"configuration": "proxy.toml"}}, "airpath proxy run "),
        "page": ({"emulation": link}, "the command line of `airpath page load` is not stored"),
        "measure": ({"measurement": {}}, "the command line of `airpath measure` is not stored"),
        "replay": ({"flows": []}, "the result that was replayed is not stored"),
    }
    airpath.run(DOWNLOAD, out=tmp_path / "whole", log=False)
    for name, (changes, words) in cases.items():
        folder = tmp_path / name
        shutil.copytree(tmp_path / "whole", folder)
        summary = json.loads((folder / "summary.json").read_text()) | changes
        (folder / "summary.json").write_text(json.dumps(summary))
        if name == "page":
            (folder / "page.json").write_text("[]")
        runs = drawn(folder)
        *made, report_line = commands(runs, tmp_path / "report.html", None)
        sentences = not_again(runs, None)
        assert report_line.startswith("airpath report ")
        assert [words in text for text in (*made, *sentences)] == [True], name
        assert made == [] or made[0].startswith(words)
    page = Page(report.write([tmp_path / "replay"], tmp_path / "report.html"))
    assert "the result that was replayed is not stored" in page.words


STUDY = {
    "study": "some-study",
    "seed": 5,
    "version": "0.1.0",
    "rows": [
        {
            "experiment": "rtt",
            "case": {"channel": "DCH", "bler": bler},
            "metric": "round-trip",
            "unit": "ms",
            "published": published,
            "ours": 262.5,
            "low": 260.0,
            "high": 265.0,
            "n": 30,
        }
        for bler, published in (("1 %", 264), ("10 %", 346), ("20 %", None))
    ],
    "findings": [
        {"id": "falls", "text": "It falls.", "holds": True},
        {"id": "rises", "text": "It rises.", "holds": False},
    ],
}


def test_a_study_is_reported_row_by_row(tmp_path: Path) -> None:
    page = Page(study_report.write(STUDY, tmp_path / "study.html", command="make study"))
    assert "DCH, BLER 1 % round-trip (ms) 264 262.5 260.0 to 265.0 −1.5 −0.6 % 30" in page.words
    assert "DCH, BLER 10 % round-trip (ms) 346 262.5 260.0 to 265.0 −83.5 −24.1 % 30" in page.words
    assert "DCH, BLER 20 % round-trip (ms) – 262.5 260.0 to 265.0 – 30" in page.words
    assert "It falls. ✓ holds It rises. ✗ does not hold" in page.words
    assert "1 of 2 published figures lie within the 95 % interval of ours. 1 of 2 findings hold." in page.words
    assert "make study" in page.words
    ours, published = page.figures["rtt: round trip"]["data"]
    assert (len(ours["x"]), published["x"]) == (3, [264, 346])


def test_counts_have_no_unit_and_rows_without_scatter_need_no_repetitions(tmp_path: Path) -> None:
    row = STUDY["rows"][0] | {"metric": "cycles", "unit": "1", "n": 2}
    fixed, varying = row | {"ours": 4.0, "low": 4.0, "high": 4.0}, row | {"ours": 4.0, "low": 3.9, "high": 4.1}
    page = Page(study_report.write(STUDY | {"rows": [*STUDY["rows"], fixed]}, tmp_path / "fixed.html"))
    assert "DCH, BLER 1 % cycles 264 4.000" in page.words
    assert "too small" not in page.words
    assert page.figures["rtt: cycles"]["layout"]["xaxis"]["title"]["text"] == "cycles"
    page = Page(study_report.write(STUDY | {"rows": [varying]}, tmp_path / "it varies.html"))
    assert f"--report '{tmp_path / 'it varies.html'}'" in page.words
    assert "n = 2 is too small" in page.words


def test_a_study_that_was_run_reports_which_rows_agree(tmp_path: Path) -> None:
    from airpath import study

    result = study.run("hsdpa-sim", only=["rtt"], repeat=2)
    result.report(tmp_path / "my study.html")
    page = Page(tmp_path / "my study.html")
    command = "airpath study run hsdpa-sim --seed 1 --only rtt --repeat 2"
    assert f"{command} --report '{tmp_path / 'my study.html'}'" in page.words
    assert f"`{command} --format markdown`" in result.render_markdown()
    agree, published = result.agreement
    assert f"{agree} of {published} published figures agree within the study's tolerances" in page.words
    assert page.words.count("✓ yes") == agree
    assert "start of the clock" in page.words
    assert {"href": "#choices"} in page.all("a")


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_browser_draws_every_figure(
    colours: str, two: Page, results: list[airpath.Result], tmp_path: Path, browse: Callable[..., str]
) -> None:
    seen = browse(report.write(results, tmp_path / "report.html"), f"?theme={colours}")
    assert 'data-drawn="all"' in seen
    assert f'data-theme="{colours}"' in seen
    assert seen.count('class="main-svg"') >= len(two.all("figure"))


# Zooms one figure, moves another with a key, changes the colours, then records all figures.
_USE = """<script>(async () => {
  const until = async (done) => { while (!done()) await new Promise((wake) => setTimeout(wake, 50)); };
  await until(() => document.documentElement.dataset.drawn === "all");
  const plots = [...document.querySelectorAll("figure[data-time] .plot")];
  const ranges = () => new Set(plots.map((plot) => plot.layout.xaxis.range.map((end) => end.toFixed(3)).join("-")));
  const noted = [];
  const note = async (wanted) => {
    await until(() => ranges().size === 1 && ranges().has(wanted));
    noted.push(wanted);
  };
  await Plotly.relayout(plots[1], { "xaxis.range[0]": 1, "xaxis.range[1]": 2 });
  await note("1.000-2.000");
  plots[2].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  await note("1.200-2.200");
  document.querySelector('input[value="dark"]').click();
  await until(() => plots.every((plot) => plot.layout.template.layout.paper_bgcolor === "DARK"));
  await note("1.200-2.200");
  document.body.dataset.noted = noted.join(" ");
})();</script></body>"""


def test_time_axes_move_together(results: list[airpath.Result], tmp_path: Path, browse: Callable[..., str]) -> None:
    page = report.write(results, tmp_path / "report.html")
    html = page.read_text(encoding="utf-8").replace("</body>", _USE.replace("DARK", theme.PAGE.dark))
    page.write_text(html, encoding="utf-8")
    assert 'data-noted="1.000-2.000 1.200-2.200 1.200-2.200"' in browse(page)


@pytest.mark.parametrize("name", ["report", "trace", "page"])
def test_the_pictures_of_the_documents_are_made_by_a_command(name: str) -> None:
    picture = ROOT / "docs" / "images" / f"{name}.png"
    assert picture.stat().st_size < 300_000
    assert (ROOT / "docs" / "render.py").is_file()


def test_the_command_writes_it(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    assert airpath_command("run", scenario(), "--out", "one").code == 0
    done = airpath_command("report", "one", "-o", "report.html")
    assert (done.code, done.out) == (0, "report.html\n"), done.err
    assert "airpath report one -o report.html" in (airpath_command.folder / "report.html").read_text(encoding="utf-8")


def test_labels_of_the_command_name_the_results(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    for name in ("one", "two"):
        assert airpath_command("run", scenario(), "--out", name).code == 0
    labels = ("--label", "with a proxy", "--label", "Reno")
    assert airpath_command("report", "one", "two", *labels, "-o", "report.html").code == 0
    page = Page(airpath_command.folder / "report.html")
    assert "with a proxy against Reno" in page.words
    assert "airpath report one two --label 'with a proxy' --label Reno -o report.html" in page.words
    done = airpath_command("report", "one", "two", "--label", "one", "-o", "report.html")
    assert (done.code, "1 label for 2 results" in done.err) == (2, True)


def test_large_differences_are_factors() -> None:
    assert relative_change(0.125) == "+12.5\u00a0%"
    assert relative_change(-0.979) == "−97.9\u00a0%"
    assert relative_change(125.697) == "127 times"
