"""The report of a sweep: its figures, the commands of its points, and its errors."""

import random
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath.plot.selection import NothingToDrawError
from airpath.sweep.axis_names import words_of
from airpath.sweep.figures import (
    draw_effects,
    draw_lines,
    draw_map,
    effects,
    join_confounded,
    partly_confounded,
    scale,
    title_of,
)
from airpath.sweep.folder import SweepFolder
from airpath.sweep.kinds import LinkCommand
from airpath.sweep.report import commands, main_figures, write
from support import DOWNLOAD, Command
from support.executors import Inline

GRID = {"fixed.delay": ["10 ms", "100 ms", "400 ms"], "bearer.bler": [0.0, 0.3], "tcp.timestamps": [True, False]}


def means(**columns) -> pl.DataFrame:
    frame = pl.DataFrame(columns)
    return frame.with_row_index("case").with_columns(low=pl.col("mean") - 1, high=pl.col("mean") + 1)


def test_scales_are_numbers_only_with_units_of_one_kind():
    assert scale("x", ["10 ms", "200 ms"]).numbers == {"10 ms": 10.0, "200 ms": 200.0}
    assert scale("x", ["10 ms", "400 ms"]).is_log
    assert scale("fixed.delay", ["10 ms"]).title == "fixed network: delay (ms)"
    assert scale("x", ["1 s", "30 ms"]).numbers == {"1 s": 1000.0, "30 ms": 30.0}
    assert scale("x", ["1 s", "30 ms"]).unit == "ms"
    assert scale("x", ["10 ms", "1 kB"]).numbers == {}
    assert scale("x", [1, 2.5]).numbers == {1: 1.0, 2.5: 2.5}
    assert scale("x", ["cubic", "new-reno"]).numbers == {}
    assert scale("x", [True, False]).numbers == {}


def test_the_effect_of_an_axis_is_its_share_of_the_variance():
    # Two a + b without interaction: variances 1 and 0.25 of 1.25.
    frame = means(a=[0, 0, 1, 1], b=[0, 1, 0, 1], mean=[0.0, 1.0, 2.0, 3.0])
    assert effects(frame, ["b", "a"]) == pytest.approx({"a": 0.8, "b": 0.2})
    assert list(effects(frame, ["b", "a"])) == ["a", "b"]


def test_the_figures_have_every_case_and_its_command():
    rows = [(a, b, 10.0 * a + (b == "y")) for a in (1, 2, 3) for b in ("x", "y")]
    frame = means(a=[row[0] for row in rows], b=[row[1] for row in rows], mean=[row[2] for row in rows])
    again = {case: f"run {case}" for case in range(6)}
    found = draw_map(frame, ["a", "b"], "duration_s", again).to_dict()["data"][0]
    assert sorted(command for line in found["customdata"] for command in line) == sorted(again.values())
    lines = draw_lines(frame, ["a", "b"], "duration_s", again).to_dict()["data"]
    assert [line["name"] for line in lines] == ["x", "y"]
    assert list(lines[1]["customdata"]) == ["run 1", "run 3", "run 5"]
    assert list(lines[0]["error_y"]["array"]) == [1.0] * 3


def test_the_main_figure_of_transactions_is_their_delay(tmp_path: Path) -> None:
    flow = '[[flow]]\nkind = "transactions"\nresponse = "10 kB"\nthink = "1 s"\nduration = "5 s"\n'
    scenario = 'format = 1\nname = "timed"\nbearer.preset = "wired"\n'
    vary = {"fixed.delay": ["10 ms", "100 ms"]}
    result = airpath.run(scenario + flow, vary=vary, out=tmp_path / "timed")
    assert main_figures(result) == ["delay_p50_s", "delay_p95_s", "lost", "transactions_per_s"]
    page = write(result, tmp_path / "timed.html").read_text(encoding="utf-8")
    assert "duration_s" not in page
    command = Command(tmp_path)
    swept = command("sweep", tmp_path / "timed")
    assert "delay_p50_s" in swept.out
    download = '[[flow]]\nkind = "download"\nbytes = "10 kB"\n'
    both = airpath.run(scenario + flow + download, vary=vary, out=tmp_path / "both")
    assert main_figures(both)[0] == "duration_s"


def test_categories_have_points_without_lines():
    rows = [(preset, algorithm) for preset in ("lte-10mhz", "lte-20mhz") for algorithm in ("cubic", "bbr")]
    presets, algorithms = zip(*rows, strict=True)
    frame = means(**{"bearer.preset": presets, "algorithm": algorithms}, mean=[4.0, 3.0, 2.0, 1.0])
    figure = draw_lines(frame, ["bearer.preset", "algorithm"], "duration_s", {}, order=["bearer.preset"])
    points = figure.to_dict()["data"]
    assert [line["mode"] for line in points] == ["markers", "markers"]
    assert figure.layout.scattermode == "group"
    assert len({line["offsetgroup"] for line in points}) == len({line["marker"]["symbol"] for line in points}) == 2
    numbers = means(delay=["1 ms", "2 ms"], mean=[1.0, 2.0])
    assert draw_lines(numbers, ["delay"], "duration_s", {}).to_dict()["data"][0]["mode"] == "lines+markers"


def test_axes_are_in_the_order_of_their_quantities_and_have_names():
    delays, rates = ["1 s", "200 ms", "90 ms"], ["10 Mbit/s", "900 kbit/s", "2 Mbit/s"]
    rows = [(delay, rate, bler) for delay in delays for rate in rates for bler in (0.2, 0.1)]
    columns = {"fixed.delay": 0, "fixed.rate": 1, "bearer.bler": 2}
    frame = means(
        **{name: [row[index] for row in rows] for name, index in columns.items()},
        mean=[float(9 * delays.index(a) + 3 * rates.index(b) + c) for a, b, c in rows],
    )
    figure = draw_map(frame, ["fixed.delay", "fixed.rate"], "duration_s", {})
    (found,) = figure.to_dict()["data"]
    assert list(found["x"]) == ["90 ms", "200 ms", "1 s"]
    assert list(found["y"]) == ["900 kbit/s", "2 Mbit/s", "10 Mbit/s"]
    assert figure.layout.xaxis.title.text == "fixed network: delay"
    assert figure.layout.annotations[0].text == "fixed network: rate ↓"
    figure = draw_lines(frame, list(columns), "duration_s", {}, order=["bearer.bler", "fixed.rate", "fixed.delay"])
    panels = [each.text for each in figure.layout.annotations]
    assert panels == [f"fixed network: delay {delay}" for delay in ("90 ms", "200 ms", "1 s")]
    lines = dict.fromkeys(line["name"] for line in figure.to_dict()["data"])
    assert list(lines) == ["900 kbit/s", "2 Mbit/s", "10 Mbit/s"]
    assert figure.layout.legend.title.text == "fixed network: rate"
    assert {each.title.text for each in (figure.layout.xaxis, figure.layout.xaxis2)} == {"bearer: block error rate"}
    over = draw_lines(frame, ["fixed.delay", "fixed.rate"], "duration_s", {}, order=["fixed.delay"])
    assert over.layout.xaxis.title.text == "fixed network: delay (ms)"
    places = over.to_dict()["data"][0]["x"]
    assert sorted(set(places)) == list(dict.fromkeys(places)) == [90.0, 200.0, 1000.0]


def test_the_lines_of_a_table_of_cases_are_in_the_legend_and_their_panels_share_an_axis():
    # Ten panels; `bytes` and `profile` change together.
    cases = [("1 MB", None), ("2 MB", "linux-2.4")]
    rows = [(delay, loss, *case) for delay in (1, 2, 3) for loss in range(5) for case in cases]
    frame = means(
        **{name: [row[index] for row in rows] for index, name in enumerate(("delay", "loss", "bytes", "profile"))},
        mean=[100.0 * (row[3] is not None) + row[0] for row in rows],
    )
    axes = ["delay", "loss", "bytes", "profile"]
    figure = draw_lines(frame, axes, "duration_s", {}, order=["delay", "bytes"])
    data = figure.to_dict()["data"]
    assert {line["name"] for line in data if line["showlegend"]} == {"1 MB", "2 MB"}
    assert sum(line["showlegend"] for line in data) == 2
    assert all(len(line["x"]) == 3 for line in data)
    titles = [each.text for each in figure.layout.annotations]
    assert any("profile of the scenario" in title for title in titles)
    assert [each.matches for each in figure.select_yaxes()][:10] == [None, *["y"] * 9]
    labelled = [each.title.text for each in figure.select_xaxes() if each.showticklabels]
    assert labelled == ["delay"] * 3
    drawn = draw_map(frame, axes, "duration_s", {})
    names = {drawn.layout.annotations[0].text, drawn.layout.xaxis.title.text}
    assert names in ({"delay ↓", "bytes"}, {"delay", "bytes ↓"}, {"delay", "profile ↓"}, {"delay ↓", "profile"})


def test_keys_that_change_together_are_one_axis():
    cases = [("1 MB", None, "a"), ("2 MB", "linux-2.4", "b"), ("4 MB", "linux-6", "b")]
    rows = [(delay, *case) for delay in ("1 ms", "2 ms") for case in cases]
    names = ("fixed.delay", "flow.bytes", "tcp.profile", "channel")
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    frame, axes = join_confounded(means(**columns, mean=[float(n) for n in range(6)]), list(names))
    assert axes == ["fixed.delay", "flow.bytes + tcp.profile + channel"]
    assert frame[axes[1]].to_list() == columns["flow.bytes"]
    (bars,) = draw_effects(frame, axes, "duration_s").to_dict()["data"]
    assert list(bars["y"]) == ["flow: bytes + TCP: profile + 1 more", "fixed network: delay"]
    # Of a sample, each axis is one.
    points = [((7 * n) % 20) / 20 for n in range(20)]
    sample = means(a=[n / 20 for n in range(20)], b=points, mean=points)
    assert join_confounded(sample, ["a", "b"])[1] == ["a", "b"]


def test_axes_that_change_together_in_part_are_named():
    cases = {"bearer.bler": [0.0, 0.0, 0.1, 0.1], "tcp.profile": ["a", "b", "b", "b"]}
    frame = means(**cases, mean=[1.0, 2.0, 4.0, 5.0])
    assert partly_confounded(frame, list(cases)) == [("bearer.bler", "tcp.profile")]
    text = str(draw_effects(frame, list(cases), "duration_s").to_dict()["layout"])
    assert "These change together in part" in text
    assert "bearer: block error rate and TCP: profile." in text
    grid = pl.DataFrame({"bearer.bler": [0.0, 0.1]}).join(pl.DataFrame({"tcp.profile": ["a", "b"]}), how="cross")
    frame = means(**grid.to_dict(as_series=False), mean=[1.0, 2.0, 4.0, 5.0])
    assert partly_confounded(frame, grid.columns) == []
    assert "together in part" not in str(draw_effects(frame, grid.columns, "duration_s").to_dict()["layout"])
    drawn = random.Random(1)
    sample = {axis: [drawn.choice("xyz") for _ in range(100)] for axis in "ab"} | {"c": list(range(100))}
    assert partly_confounded(means(**sample, mean=[0.0] * 100), list(sample)) == []


def test_names_of_axes_in_words():
    names = {
        "tcp.congestion.algorithm": "TCP: congestion control",
        "flow.0.bytes": "flow 0: bytes",
        "bearer.downlink.harq.processes": "bearer: downlink H-ARQ processes",
        "channel": "channel",
    }
    assert {path: words_of(path) for path in names} == names


def test_a_sample_is_drawn_as_points_and_has_no_map():
    values = [((7 * n) % 20) / 20 for n in range(20)]
    frame = means(a=[n / 20 for n in range(20)], b=values, mean=[float(n) for n in range(20)])
    with pytest.raises(NothingToDrawError):
        draw_map(frame, ["a", "b"], "duration_s", {})
    (points,) = draw_lines(frame, ["a", "b"], "duration_s", {}).to_dict()["data"]
    assert points["mode"] == "markers"
    assert next(iter(effects(frame, ["b", "a"]))) == "a"


def test_without_a_difference_there_is_no_effect():
    with pytest.raises(NothingToDrawError):
        draw_effects(means(a=[0, 1], b=[0, 1], mean=[1.0, 1.0]), ["a", "b"], "lost")


def test_the_command_of_a_point_on_a_link_has_its_programs(tmp_path: Path):
    (tmp_path / "small.toml").write_text(DOWNLOAD)
    plan = airpath.make_plan(tmp_path / "small.toml", {"bearer.bler": [0.1]})
    plan = replace(plan, work=LinkCommand(("curl", "http://server:8000/"), "python3 -m http.server 8000"))
    folder = SweepFolder(tmp_path / "sweep")
    with folder.locked():
        folder.begin(plan, "1", 1)
    command = commands(airpath.SweepResult(folder.path))[0]
    assert command.startswith(f"airpath link {tmp_path / 'small.toml'} --set bearer.bler=0.1 --seed 3 ")
    assert command.endswith("--capture --serve 'python3 -m http.server 8000' -- curl http://server:8000/")


def test_the_report_of_a_sweep(tmp_path: Path, airpath_command: Command):
    (tmp_path / "small.toml").write_text(DOWNLOAD)
    plan = airpath.make_plan(tmp_path / "small.toml", GRID, repeat=3)
    airpath.sweep(plan, out=tmp_path / "sweep", workers=1)
    done = airpath_command("report", "sweep", "-o", "sweep.html")
    assert (done.code, done.out) == (0, "sweep.html\n")
    page = (tmp_path / "sweep.html").read_text()
    assert "12 cases, 36 rows" in page
    assert "duration (s) over fixed network: delay" in page
    assert "fixed network: delay (fixed.delay)" in page
    command = f"airpath run {tmp_path / 'small.toml'} --set 'fixed.delay=10 ms' --set bearer.bler=0.0"
    assert f"{command} --set tcp.timestamps=true --seed 3 --out sweep-0 --capture" in page
    # The command gives the run of the point.
    assert airpath_command("run", "small.toml", "--set", "fixed.delay=10 ms", "--set", "tcp.timestamps=true").code == 0
    assert airpath_command("report", "sweep", "-o", "sweep.html", "--figure", "timeouts").code == 0
    assert "airpath report sweep -o sweep.html --figure timeouts" in (tmp_path / "sweep.html").read_text()
    assert "no figure 'speed'" in airpath_command("report", "sweep", "-o", "x.html", "--figure", "speed").err
    assert airpath_command("report", "small.toml", "-o", "x.html", "--figure", "lost").code == 2


def test_each_figure_is_computed_once(tmp_path: Path, monkeypatch):
    result = airpath.sweep(airpath.make_plan(DOWNLOAD, GRID, repeat=2), out=tmp_path / "sweep", executor=Inline())
    computed, means = [], airpath.SweepResult.means

    def counted(self: airpath.SweepResult, figure: str, *, flow: str | None = None) -> pl.DataFrame:
        computed.append(figure)
        return means(self, figure, flow=flow)

    monkeypatch.setattr(airpath.SweepResult, "means", counted)
    write(result, tmp_path / "sweep.html", names=["duration_s", "throughput_bps"])
    assert computed == ["duration_s", "throughput_bps"]


def test_columns_have_their_unit_in_titles():
    titles = {name: title_of(name) for name in ("duration_s", "throughput_bps", "retransmitted_packets")}
    assert list(titles.values()) == ["duration (s)", "throughput (bit/s)", "retransmitted packets"]
