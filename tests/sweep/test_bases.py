"""The bases of plans: pages, traces, links, real browsers, and experiments of studies."""

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import study
from airpath.sweep import estimate, estimation, pool, task
from airpath.sweep.kinds import VIEWS, LinkCommand, PageLoad, Simulation, from_dict
from airpath.sweep.report import commands
from airpath.sweep.work import Batch, Lines, Task, Until, to_dict
from support import DOWNLOAD, PAGE, ROOT, Command
from support.executors import Inline


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Read a plan beside the scenarios of a download and of a page."""
    (tmp_path / "small.toml").write_text(DOWNLOAD)
    (tmp_path / "page.toml").write_text(PAGE)

    def read(text: str) -> airpath.Plan:
        path = tmp_path / "plan.toml"
        path.write_text("format = 1\n" + text)
        return airpath.read_plan(path)

    return read


def test_pages_and_their_objects_are_tables(read, tmp_path: Path):
    plan = read('scenario = "page.toml"\nrepeat = 2\n[axes]\nbearer.bler = [0.0, 0.1]\n')
    result = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    alone = airpath.run(tmp_path / "page.toml", set={"bearer.bler": 0.1}, repeat=2)
    pages = result.table("pages")
    assert pages.filter(case=1)["page_time_s"].to_list() == alone.pages["page_time_s"].to_list()
    assert result.table("objects").filter(case=1)["finished_s"].to_list() == alone.objects["finished_s"].to_list()
    assert result.means("page_time_s")["n"].to_list() == [2, 2]
    until = read('scenario = "page.toml"\nrepeat = { figure = "page_time_s", within = 0.5, least = 2, most = 4 }\n')
    assert until.repeat == Until("page_time_s", None, 0.5, 2, 4)
    with pytest.raises(airpath.PlanError, match="page_time_s is a figure of pages; remove 'flow'"):
        read('scenario = "page.toml"\nrepeat = { figure = "page_time_s", within = 0.5, flow = "page" }\n')


def test_traces_of_runs_are_a_table(read, tmp_path: Path):
    plan = read('scenario = "small.toml"\ntrace = true\nrepeat = 2\n[axes]\nfixed.loss = [0.0, 0.05]\n')
    result = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    connections = result.table("connections")
    assert connections.select("case", "repetition").rows() == [(0, 0), (0, 1), (1, 0), (1, 1)]
    alone = airpath.run(tmp_path / "small.toml", set={"fixed.loss": 0.05}, repeat=2, capture=True)
    traced = airpath.trace(alone.path, repetition=1).connections
    assert connections["duration_s"].to_list()[3] == traced["duration_s"][0]
    assert result.flows.height == 4


def test_the_study_base_has_the_figures_of_the_study(read, tmp_path: Path):
    plan = read(
        'study = { id = "hsdpa-sim", experiment = "rtt" }\nrepeat = 4\n[axes]\nfixed.delay = ["50 ms", "60 ms"]\n'
    )
    assert plan.columns == ("channel", "bler", "fixed.delay")
    result = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    means = result.means("round-trip")
    assert means.height == 8
    # Both directions of the fixed network have the delay.
    paired = means.partition_by("channel", "bler")
    for pair in paired:
        assert pair["mean"][1] - pair["mean"][0] == pytest.approx(20, abs=1)
    unchanged = read('study = { id = "hsdpa-sim", experiment = "rtt" }\nrepeat = 4\n')
    ours = airpath.sweep(unchanged, executor=Inline()).means("round-trip")["mean"].to_list()
    rows = study.run("hsdpa-sim", only="rtt", repeat=4).rows
    assert ours == pytest.approx([row.interval.mean for row in rows if row.metric == "round-trip"], rel=1e-12)
    # The command of a point runs the scenario of the study with the settings of its axes.
    first = commands(result)[0]
    assert "studies/hsdpa-sim/round-trip.toml" in str(Path(first.split()[2]).resolve())
    assert "--set bearer.preset=umts-dch-384" in first
    with pytest.raises(airpath.PlanError, match=r"plan\.toml:2: study: no experiment .* 'rt'.*did you mean 'rtt'"):
        read('study = { id = "hsdpa-sim", experiment = "rt" }\n')
    with pytest.raises(airpath.PlanError, match="no study 'hsdpa'"):
        read('study = { id = "hsdpa", experiment = "rtt" }\n')


def test_real_time_bases_may_name_a_preset_and_go_one_by_one(read, monkeypatch):
    link = read('scenario = "gprs"\nlink = { command = ["true"] }\n')
    assert 'preset = "gprs"' in link.text
    page = read('scenario = "gprs"\npage = { name = "static-site", protocol = "http/1.0" }\n')
    assert page.work == PageLoad("static-site", "http/1.0")
    for cores, runs in ((2, 1), (4, 1), (16, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert (pool.cores(link), pool.cores(page)) == (runs, runs)
    assert 'preset = "gprs"' in read('scenario = "gprs"\n').text
    with pytest.raises(airpath.PlanError, match="one of link, page and study"):
        read('scenario = "gprs"\nlink = { command = ["true"] }\npage = { name = "static-site" }\n')
    with pytest.raises(airpath.PlanError, match="no protocol 'http/3'"):
        read('scenario = "gprs"\npage = { name = "static-site", protocol = "http/3" }\n')


def test_a_page_load_is_a_run(read, tmp_path: Path, monkeypatch):
    """The browser is replaced; `test_page_loads_in_a_browser` has a real one."""
    page_load, seen = import_module("airpath.page.load"), []

    def loaded(page, scenario, out, **options):
        seen.append((page, options["overrides"], options["seed"]))
        result = airpath.run(PAGE, out=out, log=False)
        view = {"run": 0, "view": 0, "page": page, "page_time_s": 2.0 + len(seen), "missing": []}
        return page_load.Loaded([view], airpath.Linked(0, result, None, None), None)

    monkeypatch.setattr(page_load, "load", loaded)
    plan = read('scenario = "gprs"\nrepeat = 2\nseed = 5\npage = { name = "static-site" }\n')
    result = airpath.sweep(plan, executor=Inline(), workers=1, out=tmp_path / "out")
    assert [each[2] for each in seen] == [5, 6]
    assert result.means("page_time_s")["mean"].to_list() == [3.5]
    assert result.flows.height == 2
    command = commands(result)[0]
    assert command.startswith(f"airpath page load static-site --link {tmp_path / 'out' / 'scenario.toml'} ")


def test_the_views_have_all_times_and_a_page_file_its_absolute_path(read, tmp_path: Path, monkeypatch):
    assert {"speed_index_s", "content_loaded_s"} <= set(VIEWS)
    page = tmp_path / "front.page"
    page.write_text((ROOT / "pages" / "static-site.page").read_text())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text('format = 1\nscenario = "gprs"\npage = { name = "front.page" }\n')
    plan = airpath.read_plan("plan.toml")
    assert isinstance(plan.work, PageLoad)
    assert plan.work.page == str(page)


def test_a_recorded_site_is_a_page_of_a_plan(read, tmp_path: Path, airpath_command: Command):
    site = tmp_path / "recorded" / "shop"
    site.mkdir(parents=True)
    response = {"status": 200, "headers": [], "content": {"size": 2, "mimeType": "text/html", "text": "hi"}}
    entries = [{"request": {"url": "http://a.test/"}, "response": response}]
    (site / "site.har").write_text(json.dumps({"log": {"entries": entries}}))
    (site / "site.page").write_text((ROOT / "pages" / "static-site.page").read_text())
    for name in ("recorded/shop", "recorded/shop/site.har"):
        work = read(f'scenario = "gprs"\npage = {{ name = "{name}" }}\n').work
        assert (work.page, work.unused_recording) == (str(tmp_path / name), None)
    work = read('scenario = "gprs"\npage = { name = "recorded/shop/site.page" }\n').work
    assert (work.page, work.unused_recording) == (str(site / "site.page"), site)
    done = airpath_command("sweep", "plan.toml", "--out", "plan.toml/x")
    assert f'page.name = "{site}" loads the recorded site' in done.err
    wrong = {
        "recorded": "recorded is a folder without a recorded site",
        "recorded/shops": "no page file or recorded site '.*recorded/shops'; check the path",
        "http://a.test/": r"is a URL, .*`airpath page record http://a\.test/ -o FOLDER`",
    }
    for name, message in wrong.items():
        with pytest.raises(airpath.PlanError, match=rf"plan\.toml:3: page: .*{message}"):
            read(f'scenario = "gprs"\npage = {{ name = "{name}" }}\n')
    (site / "site.har").write_text("{")
    with pytest.raises(airpath.PlanError, match=r"site\.har:1: this is not JSON"):
        read('scenario = "gprs"\npage = { name = "recorded/shop" }\n')


def test_a_scenario_that_changes_during_a_sweep_is_a_failure(read, tmp_path: Path, monkeypatch):
    page_load = import_module("airpath.page.load")

    def loaded(page, scenario, out, **_):
        view = {"run": 0, "view": 0, "page": page, "page_time_s": 2.0, "missing": []}
        result = airpath.run(PAGE, out=out, log=False)
        with scenario.open("a") as file:
            file.write("# changed\n")
        return page_load.Loaded([view], airpath.Linked(0, result, None, None), None)

    monkeypatch.setattr(page_load, "load", loaded)
    plan = read('scenario = "small.toml"\nrepeat = 2\nseed = 5\npage = { name = "static-site" }\n')
    result = airpath.sweep(plan, executor=Inline(), workers=1, out=tmp_path / "out")
    assert [(each["first"], each["error"].split("; ")[0]) for each in result.failures] == [
        (1, f"RuntimeError: {tmp_path / 'small.toml'}: changed during the sweep")
    ]


@pytest.mark.real_time
def test_page_loads_in_a_browser(read, tmp_path: Path, need, link):
    need("chromium")
    plan = read('scenario = "hs-dsch-1152-shared"\npage = { name = "static-site" }\n')
    result = airpath.sweep(plan, out=tmp_path / "out")
    assert result.failures == []
    assert result.table("pages")["page_time_s"][0] > 0
    assert result.flows.height > 0


@pytest.mark.real_time
def test_links_are_a_base_and_have_traces(read, tmp_path: Path, link):
    command = 'link = { command = ["curl", "-s", "http://server:8000/"], serve = "python3 -m http.server 8000" }\n'
    plan = read(f'scenario = "hs-dsch-1152-shared"\ntrace = true\n{command}')
    result = airpath.sweep(plan, out=tmp_path / "out")
    assert result.failures == []
    assert result.table("connections")["server_port"].to_list() == [8000]


def test_kinds_are_stored_and_read_again(read):
    plan = read('study = { id = "hsdpa-sim", experiment = "rtt" }\n')
    for work in (Simulation(True), LinkCommand(("true",), None), PageLoad("x"), plan.work):
        assert from_dict(to_dict(work)) == work


def test_the_flow_of_repeat_is_checked_before_the_sweep(read, tmp_path: Path, airpath_command: Command):
    text = 'scenario = "small.toml"\nrepeat = { figure = "duration_s", within = 0.1, flow = "downlod", least = 4 }\n'
    plan = read(text)
    message = r"no flow 'downlod' in .*small\.toml; did you mean 'download'"
    with pytest.raises(airpath.PlanError, match=message):
        airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    assert not (tmp_path / "out" / "sweep.json").exists()
    with pytest.raises(airpath.PlanError, match=message):
        estimate(plan)
    done = airpath_command("sweep", "plan.toml", "--out", "x")
    assert (done.code, "did you mean 'download'" in done.err) == (2, True)


def test_the_flow_of_repeat_may_be_a_group(read, tmp_path: Path):
    until = '{ figure = "duration_s", within = 0.9, flow = "download", least = 2, most = 2 }'
    mobiles = "[set]\nmobile.count = 3\n[axes]\nfixed.loss = [0, 0.1]\n"
    plan = read(f'scenario = "small.toml"\nrepeat = {until}\n{mobiles}')
    result = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    assert result.means("duration_s", flow="download")["n"].to_list() == [2, 2]
    rows = result.flows.filter(case=1)
    [samples] = task.samples(rows, plan.repeat).values()
    assert (
        samples
        == rows.group_by("repetition", maintain_order=True).agg(pl.col("duration_s").mean())["duration_s"].to_list()
    )


def test_an_estimate_measures_several_cases(read):
    plan = read('scenario = "small.toml"\nrepeat = 10\n[axes]\nflow.0.bytes = ["10 kB", "100 kB", "1 MB"]\n')
    found = estimate(plan, workers=2)
    assert (found.cases, found.runs, found.fewest, found.measured, found.workers) == (3, 30, 30, 3, 2)
    assert found.seconds_per_run > 0


def test_a_long_run_is_measured_once(read, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    runs: list[int] = []
    run = Simulation.run

    def counted(self: Simulation, task: Task, batch: Batch) -> Lines:
        runs.append(batch.case)
        return run(self, task, batch)

    monkeypatch.setattr(Simulation, "run", counted)
    monkeypatch.setattr(estimation, "TASK_SECONDS", 1e-9)
    until = '{ figure = "duration_s", within = 0.5, flow = "download", least = 2, most = 2 }'
    plan = read(f'scenario = "small.toml"\nrepeat = {until}\n[axes]\nfixed.loss = [0, 0.1]\n')
    assert estimate(plan, workers=1).measured == 2
    assert runs == [0, 1]
    runs.clear()
    airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    assert runs == [0, 0, 1], "one more than the tasks"


def test_an_estimate_reports_a_failure_and_runs_a_link_once(read, monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []

    def fail_later(_: Any, task: Task, batch: Batch) -> Lines:
        calls.append(batch.case)
        if len(calls) > 1:
            raise RuntimeError("no server")
        return {}

    plan = read('scenario = "small.toml"\n[axes]\nfixed.loss = [0, 0.1]\n[link]\ncommand = ["true"]\n')
    monkeypatch.setattr(LinkCommand, "run", fail_later)
    assert estimate(plan, workers=1).measured == 1
    assert calls == [0]
    with pytest.raises(airpath.PlanError, match="case 0 fails: RuntimeError: no server"):
        estimate(plan, workers=1)


def test_a_sweep_of_a_text_prints_a_command_that_runs(tmp_path: Path, airpath_command: Command):
    plan = airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.2]})
    result = airpath.sweep(plan, executor=Inline(), out=tmp_path / "sweep")
    words = commands(result)[0].split()
    assert words[:2] == ["airpath", "run"]
    done = airpath_command(*words[1:])
    assert done.code == 0, done.err
    again = airpath.load(tmp_path / "sweep-0")
    assert again.flows["duration_s"].to_list() == result.flows["duration_s"].to_list()
    assert again.captures()


def test_a_changed_scenario_does_not_change_the_commands(read, tmp_path: Path):
    result = airpath.sweep(read('scenario = "small.toml"\n'), executor=Inline(), out=tmp_path / "out")
    assert result.scenario == str(tmp_path / "small.toml")
    (tmp_path / "small.toml").write_text(DOWNLOAD.replace("200 kB", "300 kB"))
    assert result.scenario == str(tmp_path / "out" / "scenario.toml")


def test_the_plans_of_the_examples_are_valid():
    for path in sorted((ROOT / "examples" / "plans").glob("*.toml")):
        assert airpath.read_plan(path).cases, path
