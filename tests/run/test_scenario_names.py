"""A preset in place of a scenario: what Python accepts is what the commands accept."""

import json
from pathlib import Path

import pytest

import airpath
from support import Command
from support.executors import Inline


def test_a_preset_is_a_scenario_in_python_as_on_the_command_line(airpath_command: Command) -> None:
    printed = json.loads(airpath_command("run", "gprs", "--seed", "3", "--format", "json").out)
    result = airpath.run("gprs", seed=3)
    assert result.summary["flows"] == printed["flows"]
    assert airpath.run(Path("gprs"), seed=3).summary["flows"] == printed["flows"]
    assert 'name = "download over gprs-4+1"' in airpath.resolve("gprs")
    rows = airpath.run("umts-dch-64", vary={"tcp.congestion": ["reno", "cubic"]}).flows
    assert rows.height == 2


def test_the_name_of_a_download_follows_its_preset() -> None:
    assert 'name = "download over wired"' in airpath.resolve("gprs", set={"bearer.preset": "wired"})
    own = airpath.resolve("gprs", set={"bearer.preset": "wired", "name": "own"})
    assert 'name = "own"' in own
    kept = {"format": 1, "name": "mine", "bearer": {"preset": "gprs"}, "flow": [{"kind": "ping", "requests": 1}]}
    assert 'name = "mine"' in airpath.resolve(kept, set={"bearer.preset": "wired"})
    plan = airpath.make_plan("gprs", {"bearer.preset": ["wired", "umts-dch-64"]})
    assert airpath.sweep(plan, executor=Inline()).workload == "download of 100 kB"


def test_another_kind_of_flow_replaces_the_download_over_a_preset() -> None:
    ping = {"flow.kind": "ping", "flow.requests": 3}
    [flow] = (result := airpath.run("wired", set=ping, log=False)).flows.to_dicts()
    assert (result.summary["scenario"], flow["name"], flow["sent"]) == ("ping over wired", "ping", 3)
    assert 'name = "ping over lte-10mhz"' in airpath.resolve("gprs", set=ping | {"bearer.preset": "lte-10mhz"})
    upload = airpath.resolve("wired", set={"flow.0.kind": "upload"})
    assert 'bytes = "100 kB"' in upload
    assert 'name = "upload over wired"' in upload
    with pytest.raises(airpath.ScenarioError, match="there is no workload `pingg`"):
        airpath.resolve("wired", set={"flow.kind": "pingg"})
    own = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "download", "bytes": "1 kB"}]}
    with pytest.raises(airpath.ScenarioError, match=r"flow\.0\.bytes: unknown key"):
        airpath.resolve(own, set=ping)


def test_a_sweep_replaces_the_download_by_another_kind_of_flow(airpath_command: Command, tmp_path: Path) -> None:
    vary = ("--vary", "flow.kind=download,ping,upload", "--format", "csv")
    done = airpath_command("run", "wired", *vary)
    assert done.code == 0, done.err
    rows = done.out.splitlines()
    head = rows[0].split(",")
    assert [row.split(",")[head.index("name")] for row in rows[1:]] == ["download", "ping", "upload"]
    pings = airpath.run("wired", vary={"fixed.delay": ["1 ms", "2 ms"]}, set={"flow.kind": "ping"})
    assert pings.flows["kind"].to_list() == ["ping", "ping"]
    assert pings.workload == "ping over wired: ping"
    plan = tmp_path / "plan.toml"
    plan.write_text('format = 1\nscenario = "wired"\n[axes]\nflow.kind = ["ping", "download"]\n')
    both = airpath.sweep(plan, out=tmp_path / "rows")
    assert both.flows["kind"].to_list() == ["ping", "download"]
    assert both.workload == "flow"


def test_a_file_comes_before_a_preset_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = airpath.resolve("wired").replace("download over wired", "own")
    Path("gprs").write_text(text)
    assert 'name = "own"' in airpath.resolve("gprs")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("umts-dch-65", r"no scenario file 'umts-dch-65'; did you mean 'umts-dch-64'\?"),
        ("/nonexistent/gprs", "no scenario file '/nonexistent/gprs'; name a file, or a preset"),
        ("n\udce9", "no scenario file"),
    ],
)
def test_a_missing_scenario_is_named_with_the_most_similar(name: str, message: str) -> None:
    with pytest.raises(FileNotFoundError, match=message):
        airpath.run(name)


def test_a_preset_of_another_kind_is_refused() -> None:
    with pytest.raises(airpath.ScenarioError, match="'driving' is a preset of kind environment"):
        airpath.run("driving")


def test_a_plan_varies_a_preset(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('format = 1\nscenario = "umts-dch-64"\n[axes]\ntcp.congestion.algorithm = ["new-reno", "cubic"]\n')
    assert airpath.sweep(airpath.read_plan(plan), out=tmp_path / "rows").flows.height == 2
