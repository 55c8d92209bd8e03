"""Sweeps on emulated links: each run is a command."""

import os
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest

import airpath
from support import Command
from support.link import LinkCommand, descendants_of, until

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
    # The connections of a server have one mean, though each has another port.
    [server] = result.flow_names("rtt_min_s")
    assert server.startswith("tcp ") and server.endswith(":8000")
    assert result.means_by_flow("rtt_min_s")["n"].to_list() == [2, 2]


def test_what_a_sweep_of_links_does_not_use_is_noted(
    link: LinkCommand, airpath_command: Command, tmp_path: Path
) -> None:
    assert link
    (tmp_path / "wired.toml").write_text('format = 1\nbearer.preset = "wired"\n[tcp]\necn = true\n')
    (tmp_path / "plan.toml").write_text(
        'format = 1\nscenario = "wired.toml"\n[axes]\nchange.0.at = ["1 ms", "60 s"]\n[set]\nchange.0.outage = "1 ms"\n'
        '[link]\ncommand = ["ping", "-c", "1", "server"]\nserve = "python3 -m http.server 8000"\n'
    )
    text = (tmp_path / "wired.toml").read_text() + '[[change]]\nat = "1 s"\noutage = "1 s"\n'
    (tmp_path / "wired.toml").write_text(text)
    done = airpath_command("sweep", "plan.toml", "--out", "out")
    unused, late = [line for line in done.err.splitlines() if line.startswith("note: ")]
    assert unused.startswith("note: a link does not use [tcp] of the scenario")
    assert late.startswith(
        "note: change.0 at 60 s has no effect in 1 of 2 runs: the last of them ended with its command, "
    )


def test_a_command_that_fails_is_a_failure_of_its_runs(link: LinkCommand, tmp_path: Path) -> None:
    assert link
    (tmp_path / "wired.toml").write_text('format = 1\nname = "wired"\n[bearer]\npreset = "wired"\n')
    plan = PLAN.replace("repeat = 2", "repeat = 1").replace('["curl"', '["false", "curl"')
    (tmp_path / "plan.toml").write_text(plan)
    result = airpath.sweep(airpath.read_plan(tmp_path / "plan.toml"), out=tmp_path / "sweep")
    assert [each["error"] for each in result.failures] == ["RuntimeError: the command ended with 1:"] * 2


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_sweep_that_is_ended_leaves_no_process_and_no_folder(
    link: LinkCommand, airpath_command: Command, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    assert link
    (tmp_path / "wired.toml").write_text('format = 1\nname = "wired"\n[bearer]\npreset = "wired"\n')
    (tmp_path / "plan.toml").write_text(
        'format = 1\nscenario = "wired.toml"\nrepeat = 2\n'
        '[link]\ncommand = ["sh", "-c", "touch started; sleep 60"]\nserve = "python3 -m http.server 8000"\n'
    )
    (tmp_path / "tmp").mkdir()
    line = airpath_command.line("sweep", "plan.toml", "--out", "out")
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(line, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until((tmp_path / "started").exists, "the command of the first run has started", 30)
        # Worker, resource tracker, link, server and command.
        processes = descendants_of(process.pid)
        assert len(processes) >= 5
        process.send_signal(sent)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes), "all its processes have ended")
    assert list((tmp_path / "tmp").iterdir()) == []
