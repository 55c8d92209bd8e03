"""Runs that end early: Ctrl-C, full disk, closed pipe. They keep a result marked as partial."""

import errno
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath import load
from airpath.sweep.folder import SweepFolder
from support import Command, plain_environment
from support.needs import needs

LONG = """\
format = 1
name = "long"
duration = "100000 s"

[fixed]
rate = "100 Mbit/s"
delay = "10 ms"

[bearer]
preset = "wired"

[log]
packets = false
tcp = false

[[flow]]
kind = "download"
bytes = "1000 GB"
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_a_partial_result(airpath_command: Command, sent: signal.Signals) -> None:
    process = _start(airpath_command)
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    summary = json.loads(out)
    assert (summary["complete"], summary["stopped"]) == (False, "interrupted")
    assert summary["flows"][0]["outcome"] == "unfinished"
    assert summary["flows"][0]["delivered_bytes"] > 0
    result = load(airpath_command.folder / "kept")
    assert not result.complete
    assert result.stopped == "interrupted"
    assert result.app.height > 0


@pytest.mark.parametrize(
    ("line", "is_begun"),
    [
        # The first run is measured before any task; where the folder has the plan, tasks run.
        ("run long.toml --vary fixed.loss=0,0.01", False),
        ("run long.toml --vary fixed.loss=0,0.01 --out rows", True),
        ("sweep plan.toml --out rows", False),
    ],
)
def test_ctrl_c_ends_a_long_run_of_a_sweep(airpath_command: Command, line: str, is_begun: bool) -> None:
    folder = airpath_command.folder
    (folder / "long.toml").write_text(LONG)
    (folder / "plan.toml").write_text('format = 1\nscenario = "long.toml"\n[axes]\nfixed.loss = [0, 0.01]\n')
    if is_begun:
        plan = airpath.make_plan(folder / "long.toml", {"fixed.loss": [0, 0.01]})
        rows = SweepFolder(folder / "rows")
        with rows.locked():
            rows.begin(plan, airpath.__version__, 1)
    with subprocess.Popen(
        airpath_command.line(*line.split()), cwd=folder, env=plain_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        _wait_for_work(process.pid)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert err.startswith("error: interrupted; "), err


def test_a_killed_run_keeps_what_it_had(airpath_command: Command) -> None:
    process = _start(airpath_command, "--set", "log.packets=true")
    first_part = airpath_command.folder / "kept" / "events" / "packets" / "0000-0000.parquet"
    _wait_for(first_part)
    _wait_for(first_part.with_name("0000-0001.parquet"))
    process.kill()
    process.communicate(timeout=30)
    result = load(airpath_command.folder / "kept")
    assert not result.complete
    assert "ended from outside" in str(result.stopped)
    assert result.flows.height == 0
    assert result.scan("packets").select(pl.len()).collect().item() > 0
    assert airpath_command("run", "long.toml", "--set", "duration=1 s", "--out", "kept").code == 0


def _start(airpath_command: Command, *arguments: str) -> "subprocess.Popen[str]":
    """Start the long run, and return when it has made progress."""
    (airpath_command.folder / "long.toml").write_text(LONG)
    process = subprocess.Popen(
        airpath_command.line("run", "long.toml", "--out", "kept", "--format", "json", *arguments),
        cwd=airpath_command.folder,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for(airpath_command.folder / "kept" / "summary.json")
    time.sleep(0.5)
    return process


def _wait_for_work(process: int) -> None:
    """Return when a process has used three seconds of processor: after its start it simulates."""
    deadline = time.monotonic() + 60
    ticks = os.sysconf("SC_CLK_TCK")
    while sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13])) < 3 * ticks:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.05)


def test_a_full_disk_keeps_what_was_written(
    airpath_command: Command, scenario: Callable[..., Path], small_disk: Path
) -> None:
    path = scenario(('"200 kB"', '"20 MB"'))
    done = airpath_command("run", path, "--out", small_disk / "kept", "--capture", "--format", "json")
    assert done.code == 3
    assert done.err.startswith("error: ")
    assert os.strerror(errno.ENOSPC).lower() in done.err.lower()
    assert "kept" in done.err
    assert (small_disk / "kept" / "scenario.toml").exists()


def test_a_full_disk_ends_a_run_that_captures(airpath_command: Command, small_disk: Path) -> None:
    (airpath_command.folder / "long.toml").write_text(LONG)
    done = airpath_command("run", "long.toml", "--out", small_disk / "kept", "--capture")
    assert done.code == 3
    assert os.strerror(errno.ENOSPC).lower() in done.err.lower()
    captures = sorted((small_disk / "kept" / "captures").iterdir())
    assert [path.name for path in captures] == ["0000-mobile.pcapng", "0000-server.pcapng"]
    assert sum(path.stat().st_size for path in captures) > 100_000


@needs("full-device")
def test_a_full_disk_below_standard_output(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            airpath_command.line("run", scenario(), "--format", "json"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=plain_environment(),
            check=False,
        )
    assert process.returncode == 3
    assert "standard output cannot be written: No space left on device" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_reader_that_goes_away_is_no_error(airpath_command: Command, scenario: Callable[..., Path]) -> None:
    line = " ".join(airpath_command.line("run", scenario(), "--format", "jsonl", "--repeat", "500"))
    shell = subprocess.run(f"{line} | head -n 1", shell=True, capture_output=True, text=True, check=False)
    assert json.loads(shell.stdout)["type"] == "start"
    assert "Traceback" not in shell.stderr
