"""Sweeps on emulated links: each run is a command."""

from pathlib import Path

import polars as pl

import airpath
from support.link import LinkCommand

PLAN = """\
format = 1
scenario = "wired.toml"
repeat = 2

[axes]
fixed.delay = ["10 ms", "100 ms"]

[link]
command = ["curl", "-sS", "--retry", "8", "--retry-connrefused", "-o", "/dev/null", "http://server:8000/"]
serve = "python3 -m http.server 8000"
"""


def test_each_run_is_a_command_on_a_link(link: LinkCommand, need, tmp_path: Path) -> None:
    assert link
    need("curl")
    (tmp_path / "wired.toml").write_text('format = 1\nname = "wired"\n[bearer]\npreset = "wired"\n')
    (tmp_path / "plan.toml").write_text(PLAN)
    result = airpath.sweep(airpath.read_plan(tmp_path / "plan.toml"), out=tmp_path / "sweep")
    assert result.failures == []
    trips = result.flows.filter(pl.col("rtt_min_s").is_not_null()).group_by("case").agg(pl.col("rtt_min_s").min())
    near, far = trips.sort("case")["rtt_min_s"].to_list()
    # Twice 90 ms more; the rest is the path and the host.
    assert 0.17 < far - near < 0.25
    assert set(result.flows["repetition"]) == {0, 1}
    comparison = airpath.compare(tmp_path / "sweep", tmp_path / "sweep", figures=["rtt_min_s"])
    assert len(comparison.rows) == 2


def test_a_command_that_fails_is_a_failure_of_its_runs(link: LinkCommand, tmp_path: Path) -> None:
    assert link
    (tmp_path / "wired.toml").write_text('format = 1\nname = "wired"\n[bearer]\npreset = "wired"\n')
    plan = PLAN.replace("repeat = 2", "repeat = 1").replace('["curl"', '["false", "curl"')
    (tmp_path / "plan.toml").write_text(plan)
    result = airpath.sweep(airpath.read_plan(tmp_path / "plan.toml"), out=tmp_path / "sweep")
    assert [each["error"] for each in result.failures] == ["RuntimeError: the command ended with 1:"] * 2
