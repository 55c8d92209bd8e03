"""Sweeps: rows, executors, sweeps that end early, folders that cannot be used."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import airpath
from airpath.cli.sweep_output import _short
from airpath.sweep import ExecutorLostError, estimation
from airpath.sweep import pool as sweep_pool
from airpath.sweep.folder import SweepFolder
from airpath.sweep.plan import Plan
from airpath.sweep.temporary import WorkerFolder
from airpath.sweep.work import Until
from airpath.tables import SUMMARY_TABLES
from support import DOWNLOAD, Command, dying_worker
from support.executors import Inline

AXES = {"bearer.bler": [0.0, 0.2], "fixed.delay": ["10 ms", "50 ms"]}
PLAN = """\
format = 1
scenario = "small.toml"
repeat = 4

[axes]
bearer.bler = [0.0, 0.2]
fixed.delay = ["10 ms", "50 ms"]
"""


def sweep(**options):
    plan = airpath.make_plan(DOWNLOAD, AXES, repeat=4)
    return airpath.sweep(plan, **options)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(DOWNLOAD)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.parametrize(
    ("fixed", "axes", "workload"),
    [
        ({}, {"bearer.bler": [0.1]}, "small: download of 200 kB"),
        ({"flow.bytes": "5 kB"}, {"bearer.bler": [0.1]}, "small: download of 5 kB"),
        ({"flow.0.bytes": "5 kB", "name": "other"}, {"bearer.bler": [0.1]}, "other: download of 5 kB"),
        ({}, {"flow.bytes": ["5 kB", "10 kB"]}, "small: download"),
        ({"flow": '[{ kind = "upload", bytes = "5 kB" }]'}, {"bearer.bler": [0.1]}, "small: upload of 5 kB"),
    ],
)
def test_the_workload_has_the_settings_of_the_plan(fixed: dict[str, str], axes: dict[str, list], workload: str):
    assert airpath.sweep(airpath.make_plan(DOWNLOAD, axes, set=fixed), executor=Inline()).workload == workload


def test_the_rows_are_those_of_single_runs():
    rows = sweep(executor=Inline()).flows
    alone = airpath.run(DOWNLOAD, set={"bearer.bler": 0.2, "fixed.delay": "50 ms"}, repeat=4)
    last = rows.filter(pl.col("case") == 3)
    assert last["bearer.bler"].to_list() == [0.2] * 4
    assert last["fixed.delay"].to_list() == ["50 ms"] * 4
    figures = ["repetition", "name", "duration_s", "throughput_bps", "retransmitted_packets", "rtt_mean_s"]
    assert_frame_equal(last.select(figures), alone.flows.select(figures))


def test_the_rows_do_not_depend_on_the_executor_or_the_size_of_tasks(monkeypatch):
    here = sweep().flows
    monkeypatch.setattr(estimation, "TASK_SECONDS", 1e-9)  # one run in each task
    with ThreadPoolExecutor(3) as threads:
        assert_frame_equal(here, sweep(executor=threads, workers=3).flows)
    assert_frame_equal(here, sweep(executor=Inline()).flows)


def test_quantities_are_also_numbers_with_their_unit(tmp_path: Path):
    axes = {
        "fixed.delay": ["1 s", "200 ms"],
        "fixed.loss": [0.0, 0.1],
        "fixed.rate": ["900 kbit/s", "1 Mbit/s"],
        "fixed.queue.bytes": ["20 kB"],
        "tcp.initial_window": ["rfc3390", 3],
    }
    numbers = ("fixed.delay_s", "fixed.rate_bps", "fixed.queue.bytes_bytes")
    result = airpath.sweep(airpath.make_plan(DOWNLOAD, axes), out=tmp_path / "out", executor=Inline())
    assert result.number_axes == numbers
    for frame in (result.cases, result.flows, result.scan("flows").collect(), result.means("duration_s")):
        assert frame.columns[: len(axes) + 4] == ["case", *axes, *numbers]
        assert set(frame["fixed.delay_s"]) == {0.2, 1.0}
        pairs = set(frame.select("fixed.rate", "fixed.rate_bps").iter_rows())
        assert pairs == {("900 kbit/s", 900_000.0), ("1 Mbit/s", 1_000_000.0)}
        assert set(frame["fixed.queue.bytes_bytes"]) == {20_000.0}
        assert frame["fixed.loss"].dtype == pl.Float64
    assert len(result.flows.sort("fixed.rate_bps", "fixed.delay_s")) == 16
    # The files keep the spelling of the plan.
    assert "fixed.delay_s" not in pl.read_parquet(tmp_path / "out" / "flows" / "*.parquet").columns


def test_repetitions_end_when_the_interval_is_narrow_enough(tmp_path):
    (tmp_path / "small.toml").write_text(DOWNLOAD)
    path = tmp_path / "plan.toml"
    path.write_text(
        'format = 1\nscenario = "small.toml"\n'
        'repeat = { figure = "duration_s", within = 0.02, least = 4, most = 60 }\n[axes]\nfixed.loss = [0, 0.03]\n'
    )
    result = airpath.sweep(airpath.read_plan(path), executor=Inline(), out=tmp_path / "out")
    means = result.means("duration_s")
    for mean, low, high, n in means.select("mean", "low", "high", "n").iter_rows():
        assert high - mean <= 0.02 * mean or n == 60
        assert low < mean < high
    # The case without loss varies less.
    assert means["n"][0] < means["n"][1]
    # The same rows when it is continued from its middle.
    parts = sorted((tmp_path / "out" / "flows").glob("*.parquet"))
    expected = result.flows
    for part in parts[len(parts) // 2 :]:
        part.unlink()
    again = airpath.sweep(airpath.read_plan(path), executor=Inline(), out=tmp_path / "out")
    assert_frame_equal(again.flows, expected)


def test_an_interval_that_stays_wide_is_noted(plan: Path, airpath_command: Command):
    until = '{ figure = "duration_s", within = 0.001, least = 2, most = 3 }'
    plan.write_text(f'format = 1\nscenario = "small.toml"\nrepeat = {until}\n[axes]\nbearer.bler = [0.1, 0.2]\n')
    wide = "the interval of duration_s is wider than `within` (0.1 % of the mean) after 3 repetitions"
    assert airpath_command("sweep", plan, "--out", "wide").err == f"note: cases 0 and 1: {wide}\n"
    plan.write_text(plan.read_text().replace("0.001", "0.9"))
    assert airpath_command("sweep", plan, "--out", "narrow").err == ""


def test_a_case_that_failed_is_not_repeated_further_when_a_sweep_continues(tmp_path, monkeypatch):
    until = Until(figure="duration_s", flow=None, within=0.001, least=2, most=8)
    plan = replace(airpath.make_plan(DOWNLOAD, {"fixed.loss": [0.03]}), repeat=until)
    monkeypatch.setattr(Plan, "overrides", lambda *_: [("fixed.los", "0")])
    first = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out").failures
    assert [(each["first"], each["count"]) for each in first] == [(0, 2)]
    assert airpath.sweep(plan, executor=Inline(), out=tmp_path / "out").failures == first
    monkeypatch.undo()
    again = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out", retry=True)
    assert (again.failures, len(again.flows)) == ([], 8)


def test_only_what_is_missing_runs_when_a_sweep_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(estimation, "TASK_SECONDS", 1e-9)
    first = sweep(executor=Inline(), out=tmp_path / "out").flows
    parts = sorted((tmp_path / "out" / "flows").glob("*.parquet"))
    parts[5].unlink()
    kept = {part: part.stat().st_mtime_ns for part in parts if part.exists()}
    again = sweep(executor=Inline(), out=tmp_path / "out")
    assert again.complete
    assert_frame_equal(again.flows, first)
    assert {part: part.stat().st_mtime_ns for part in kept} == kept


def test_a_killed_sweep_continues_and_has_every_row_once(plan: Path, airpath_command: Command, tmp_path: Path):
    plan.write_text(PLAN.replace("repeat = 4", "repeat = 400"))
    line = airpath_command.line("sweep", plan, "--out", "out")
    for _ in range(3):
        process = subprocess.Popen(line, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        before = len(list(tmp_path.glob("out/flows/*.parquet")))
        while process.poll() is None and len(list(tmp_path.glob("out/flows/*.parquet"))) < before + 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = airpath_command("sweep", plan, "--out", "out")
    assert done.code == 0, done.err
    rows = pl.read_parquet(tmp_path / "out" / "flows" / "*.parquet")
    assert len(rows) == len(rows.unique(["case", "repetition", "flow"])) == 4 * 400


def test_the_temporary_files_of_a_killed_sweep_are_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ends = "import os; from airpath.sweep.temporary import WorkerFolder as F; F(); os.kill(os.getpid(), 9)"
    running = WorkerFolder()
    killed = subprocess.run([sys.executable, "-c", ends], env=os.environ | {"TMPDIR": str(tmp_path)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    left = set(tmp_path.iterdir()) - {running.path}
    assert len(left) == 1
    started = WorkerFolder()
    assert set(tmp_path.iterdir()) == {running.path, started.path}
    for folder in (running, started):
        folder.remove()
    assert not list(tmp_path.iterdir())


def test_a_failed_batch_is_kept_and_the_rest_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(estimation, "TASK_SECONDS", 1e-9)
    recorded = tmp_path / "small.down"
    recorded.write_text("1\n2\n3\n")
    scenario = DOWNLOAD.replace(
        'preset = "hs-dsch-384"',
        f'preset = "recorded"\ndownlink.recorded = "{recorded}"\nuplink.recorded = "{recorded}"',
    )
    plan = airpath.make_plan(scenario, {"fixed.delay": ["1 ms", "2 ms"]}, set={"duration": "2 s"})

    class Losing(Inline):
        def submit(self, fn, /, *arguments, **keywords):
            """Remove a file that the task needs, and run it."""
            recorded.unlink(missing_ok=True)
            return super().submit(fn, *arguments, **keywords)

    result = airpath.sweep(plan, executor=Losing(), out=tmp_path / "out")
    assert result.complete
    assert [each["case"] for each in result.failures] == [0, 1]
    assert str(recorded) in result.failures[0]["error"]
    assert result.failures[1]["overrides"] == [["duration", "2 s"], ["fixed.delay", "2 ms"]]
    recorded.write_text("1\n2\n3\n")
    assert airpath.sweep(plan, executor=Inline(), out=tmp_path / "out").failures
    again = airpath.sweep(plan, executor=Inline(), out=tmp_path / "out", retry=True)
    assert (again.failures, len(again.flows)) == ([], 2)


def test_a_sweep_does_not_continue_with_another_input(tmp_path):
    recorded = tmp_path / "small.down"
    recorded.write_text("1\n2\n3\n")
    preset = 'preset = "recorded"\ndownlink.recorded = "small.down"\nuplink.recorded = "small.down"'
    (tmp_path / "small.toml").write_text(DOWNLOAD.replace('preset = "hs-dsch-384"', preset))
    plan = airpath.make_plan(tmp_path / "small.toml", {"fixed.delay": ["1 ms", "2 ms"]})
    folder = SweepFolder(tmp_path / "out")
    with folder.locked():
        folder.begin(plan, airpath.__version__, 1)
    recorded.write_text("1\n2\n4\n")
    with pytest.raises(airpath.SweepFolderError, match=r"small\.down has changed since the sweep began; name another"):
        airpath.sweep(plan, executor=Inline(), out=tmp_path / "out")
    recorded.write_text("1\n2\n3\n")
    assert airpath.sweep(plan, executor=Inline(), out=tmp_path / "out").complete
    recorded.write_text("1\n2\n4\n")
    assert airpath.sweep(plan, executor=Inline(), out=tmp_path / "out").flows.height == 2, "nothing runs"


def test_an_interrupted_retry_is_not_complete(tmp_path, monkeypatch):
    until = Until(figure="duration_s", flow=None, within=0.001, least=2, most=8)
    plan = replace(airpath.make_plan(DOWNLOAD, {"fixed.loss": [0.03]}), repeat=until)
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(Plan, "overrides", lambda *_: [("fixed.los", "0")])
        assert airpath.sweep(plan, executor=Inline(), out=out).complete

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        airpath.sweep(plan, executor=Inline(), out=out, retry=True, progress=interrupt)
    partial = airpath.SweepResult(out)
    assert (partial.complete, len(partial.flows)) == (False, 2)
    again = airpath.sweep(plan, executor=Inline(), out=out)
    assert (again.complete, len(again.flows)) == (True, 8)


def test_a_task_that_ends_its_worker_is_a_failure_and_the_others_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(estimation, "TASK_SECONDS", 1e-9)
    monkeypatch.setattr(sweep_pool, "run_task", dying_worker.exit_at_case_1)
    plan = airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.0, 0.1, 0.2]})
    result = airpath.sweep(plan, out=tmp_path / "out", workers=2)
    assert result.flows["case"].to_list() == [0, 2]
    assert [each["case"] for each in result.failures] == [1]
    assert "killed" in result.failures[0]["error"]


def test_a_broken_executor_of_ones_own_ends_the_sweep_without_failures(tmp_path, monkeypatch):
    monkeypatch.setattr(estimation, "TASK_SECONDS", 1e-9)
    monkeypatch.setattr(sweep_pool, "run_task", dying_worker.exit_at_case_1)
    plan = airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.0, 0.1, 0.2]})
    with ProcessPoolExecutor(2, get_context("spawn")) as processes, pytest.raises(ExecutorLostError):
        airpath.sweep(plan, executor=processes, out=tmp_path / "out", workers=2)
    assert not list((tmp_path / "out" / "failed").iterdir())


def test_the_pool_of_a_sweep_leaves_no_thread():
    before = set(threading.enumerate())
    with sweep_pool.tasks_on(None, workers=1) as pool:
        pool.executor.submit(time.sleep, 0).result()
        pool.executor.submit(time.sleep, 60)
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) <= before


def test_folders_that_cannot_be_used(tmp_path):
    out = tmp_path / "out"
    sweep(executor=Inline(), out=out)
    other = airpath.make_plan(DOWNLOAD, AXES, repeat=5)
    with pytest.raises(airpath.SweepFolderError, match=r"another plan \(changed: repeat\)"):
        airpath.sweep(other, executor=Inline(), out=out)
    with SweepFolder(out).locked(), pytest.raises(airpath.SweepFolderError, match="another sweep writes"):
        sweep(executor=Inline(), out=out)
    state = json.loads((out / "sweep.json").read_text())
    (out / "sweep.json").write_text(json.dumps({**state, "airpath": "0.0.1"}))
    with pytest.raises(airpath.SweepFolderError, match="airpath 0\\.0\\.1 wrote"):
        sweep(executor=Inline(), out=out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(airpath.SweepFolderError, match="holds no sweep"):
        sweep(executor=Inline(), out=tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_sweep_is_repeated_and_continued_from_its_folder(plan: Path, airpath_command: Command, tmp_path: Path):
    first = airpath_command("sweep", plan, "--out", "out", "--format", "csv")
    plan.unlink()
    again = airpath_command("sweep", "out", "--out", "again", "--format", "csv")
    assert (again.code, again.out) == (0, first.out)
    assert_frame_equal(airpath.SweepResult(tmp_path / "again").flows, airpath.SweepResult(tmp_path / "out").flows)
    (lost, *_) = (tmp_path / "out" / "flows").iterdir()
    lost.unlink()
    assert airpath_command("sweep", "out", "--format", "csv").out == first.out
    assert lost.exists()


def test_a_plan_with_a_width_of_the_interval_is_read_from_its_folder(tmp_path: Path):
    until = Until("throughput_bps", None, 0.5, 2, 4)
    plan = replace(airpath.make_plan(DOWNLOAD, AXES, set={"fixed.delay": "20 ms"}), repeat=until)
    airpath.sweep(plan, out=tmp_path / "out", executor=Inline())
    assert airpath.read_plan(tmp_path / "out").to_dict() == plan.to_dict()


def test_quiet_prints_the_means_only(plan: Path, airpath_command: Command):
    loud = airpath_command("sweep", plan, "--out", "loud")
    quiet = airpath_command("sweep", plan, "--out", "quiet", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, loud.out, "")


def test_the_command(plan: Path, airpath_command: Command, tmp_path: Path):
    estimate = airpath_command("sweep", plan, "--dry-run")
    assert "4 cases, 16 runs" in estimate.out
    assert not (tmp_path / "out").exists()
    for option, value in (("--out", "out"), ("--format", "json"), ("--figure", "timeouts"), ("--retry", None)):
        unused = airpath_command("sweep", plan, "--dry-run", option, *([] if value is None else [value]))
        assert (unused.code, f"{option} has no effect" in unused.err) == (2, True), unused.err
    elsewhere = airpath_command("sweep", plan, "--dry-run", "--dask", "nothing")
    assert (elsewhere.code, "--dry-run measures on this machine" in elsewhere.err) == (2, True)
    done = airpath_command("sweep", plan, "--out", "out", "--format", "csv", "--figure", "throughput_bps")
    lines = done.out.splitlines()
    assert lines[0] == "case,bearer.bler,fixed.delay,fixed.delay_s,figure,mean,low,high,n"
    assert len(lines) == 5
    table = airpath_command("sweep", plan, "--out", "out")
    assert "fixed.delay" in table.out
    assert airpath_command("sweep", plan).err.startswith("error: a sweep needs a folder")
    plan.write_text(PLAN + "bearer.blur = [1]\n")
    wrong = airpath_command("sweep", plan, "--out", "new")
    assert wrong.code == 2
    assert "plan.toml" in wrong.err
    assert not (tmp_path / "new").exists()
    plan.write_text(PLAN)
    misspelt = airpath_command("sweep", plan, "--out", "new", "--figure", "durations_s")
    assert (misspelt.code, "did you mean 'duration_s'" in misspelt.err) == (2, True)
    assert not (tmp_path / "new").exists()
    unknown = airpath_command("sweep", plan, "--out", "new", "--dask", "pbs")
    assert unknown.code == 2


def test_lines_of_json_come_with_their_tasks(plan: Path, airpath_command: Command, tmp_path: Path):
    first, again = (
        [
            json.loads(line)
            for line in airpath_command("sweep", plan, "--out", "out", "--format", "jsonl").out.splitlines()
        ]
        for _ in range(2)
    )
    assert [line["type"] for line in first] == ["flow"] * 16 + ["end"]
    assert first[-1] == {"type": "end", "complete": True, "failed": 0}
    assert sorted((line["case"], line["repetition"]) for line in first[:-1]) == [
        (c, r) for c in range(4) for r in range(4)
    ]
    rows = {(line["case"], line["repetition"]): line["duration_s"] for line in again[:-1]}
    kept = pl.read_parquet(tmp_path / "out" / "flows" / "*.parquet")
    assert rows == {(c, r): d for c, r, d in kept.select("case", "repetition", "duration_s").iter_rows()}


def test_rows_of_another_version_have_the_columns_of_this_one(plan: Path, airpath_command: Command, tmp_path: Path):
    line = ("sweep", plan, "--out", "out", "--format", "jsonl")
    assert airpath_command(*line).code == 0
    parts = sorted((tmp_path / "out" / "flows").glob("*.parquet"))
    for part in parts[::2]:
        rows = pl.read_parquet(part)
        rows.drop("marked_packets", "ecn_reductions").with_columns(of_a_later_version=1).write_parquet(part)
    flows = airpath.SweepResult(tmp_path / "out").flows
    assert set(SUMMARY_TABLES["flows"]) < set(flows.columns)
    assert "of_a_later_version" not in flows.columns
    assert 0 < flows["marked_packets"].null_count() < flows.height == flows["duration_s"].count()
    assert airpath_command("report", "out", "-o", "out.html").code == 0
    assert airpath_command("compare", "out", "out").code == 0
    again = [json.loads(each) for each in airpath_command(*line).out.splitlines()]
    assert {each["marked_packets"] for each in again[:-1]} == {None, 0}


def test_rows_are_emitted_before_the_end(plan: Path):
    seen: list[tuple[int, int]] = []
    rows = 0

    def count(table: str, found: list[dict[str, object]]) -> None:
        nonlocal rows
        rows += len(found)

    airpath.sweep(
        airpath.read_plan(plan),
        executor=Inline(),
        workers=1,
        on_rows=count,
        progress=lambda now: seen.append((now.runs, rows)),
    )
    assert len(seen) > 1
    assert all(runs == emitted for runs, emitted in seen)


def test_a_folder_that_cannot_be_written(plan: Path, airpath_command: Command, tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = airpath_command("sweep", plan, "--out", "file/out")
    assert (done.code, "file" in done.err) == (2, True)


def test_a_read_only_folder(plan: Path, airpath_command: Command, small_disk: Path):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = airpath_command("sweep", plan, "--out", small_disk / "out")
    assert (done.code, str(small_disk) in done.err, "ead-only" in done.err) == (2, True, True)


def test_a_sweep_without_a_folder_names_the_full_disk(
    plan: Path, airpath_command: Command, small_disk: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TMPDIR", str(small_disk))
    (small_disk / "filler").write_bytes(bytes(500_000))
    done = airpath_command("run", plan.parent / "small.toml", "--vary", "fixed.loss=0,0.1", "--repeat", "40")
    assert done.code == 3
    assert done.err.startswith(f"error: {small_disk}/airpath-"), done.err
    assert "No space left on device\n  next: free disk space" in done.err


def test_a_sweep_on_a_full_disk_keeps_its_rows_and_continues(plan: Path, airpath_command: Command, small_disk: Path):
    plan.write_text(PLAN.replace("repeat = 4", "repeat = 200"))
    filler, out = small_disk / "filler", small_disk / "out"
    filler.write_bytes(bytes(400_000))
    full = airpath_command("sweep", plan, "--out", out)
    assert (full.code, "No space left" in full.err, "continues" in full.err) == (3, True, True)
    kept = pl.read_parquet(out / "flows" / "*.parquet")
    assert 0 < len(kept) < 800
    parts = {path: path.stat().st_mtime_ns for path in (out / "flows").iterdir()}
    assert all(path.suffix == ".parquet" for path in parts)
    filler.unlink()
    # On a slow machine the tasks are so small that their files have more than 512 kB.
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    done = airpath_command("sweep", plan, "--out", out)
    assert done.code == 0, done.err
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    rows = pl.read_parquet(out / "flows" / "*.parquet")
    assert len(rows) == len(rows.unique(["case", "repetition", "flow"])) == 800


def test_flows_of_a_group_of_mobiles_have_one_mean(tmp_path: Path):
    mobiles = '[[mobile]]\nname = "near"\ncount = 3\n[[mobile]]\nname = "far"\n'
    ping = '[[flow]]\nkind = "ping"\nrequests = 2\nmobile = "near"\n'
    plan = airpath.make_plan(f"{DOWNLOAD}\n{mobiles}{ping}", {"bearer.bler": [0.0, 0.2]}, repeat=2)
    result = airpath.sweep(plan, out=tmp_path / "out", executor=Inline())
    assert result.flow_names("duration_s") == ["download of near", "download-3"]
    assert result.flow_names("delay_mean_s") == ["ping"]
    near = result.flows.filter(pl.col("mobile").str.starts_with("near"), case=1, kind="download")
    expected = near.group_by("repetition").agg(pl.col("duration_s").mean())["duration_s"].mean()
    assert result.means("duration_s", flow="download of near")["mean"][1] == pytest.approx(expected)
    assert set(result.means_by_flow("duration_s")["flow"]) == {"download of near", "download-3"}
    one = result.means("duration_s", flow="download-1")["mean"][1]
    assert one == pytest.approx(near.filter(name="download-1")["duration_s"].mean())


def test_groups_are_found_where_an_override_has_the_flows(tmp_path: Path):
    overrides = {"flow": [{"kind": "ping", "requests": 2}], "mobile.count": 3}
    plan = airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.0]}, set=overrides)
    assert airpath.sweep(plan, out=tmp_path / "out", executor=Inline()).flow_names("delay_mean_s") == ["ping"]


def test_flows_of_several_names_have_means_of_their_own(tmp_path: Path, airpath_command: Command):
    second = '[[flow]]\nname = "late"\nkind = "download"\nbytes = "20 kB"\nstart = "1 s"\n'
    (tmp_path / "two.toml").write_text(f"{DOWNLOAD}\n{second}")
    arguments = ("run", "two.toml", "--vary", "bearer.bler=0,0.2", "--repeat", "3", "--out", "out")
    text = airpath_command(*arguments).out
    assert [line.split()[2] for line in text.splitlines()[2:6]] == ["download", "late", "download", "late"]
    rows = airpath_command("sweep", _plan_of(tmp_path), "--out", "swept", "--format", "json").json
    assert [(each["case"], each["flow"], each["figure"]) for each in rows[:2]] == [
        (0, "download", "duration_s"),
        (0, "late", "duration_s"),
    ]
    result = airpath.SweepResult(tmp_path / "out")
    assert result.flow_names("duration_s") == ["download", "late"]
    means = result.means_by_flow("duration_s").filter(flow="late")
    assert_frame_equal(means.drop("flow"), result.means("duration_s", flow="late"))
    assert airpath_command("report", "out", "-o", "out.html").code == 0
    assert "duration (s) of late" in (tmp_path / "out.html").read_text()


def _plan_of(folder: Path) -> Path:
    path = folder / "plan.toml"
    path.write_text('format = 1\nscenario = "two.toml"\nrepeat = 3\n[axes]\nbearer.bler = [0, 0.2]\n')
    return path


def test_the_heads_of_the_table_have_the_names_of_their_tables():
    axes = ["tcp.congestion.algorithm", "flow.0.bytes", "bearer.bler", "seed"]
    assert _short(axes) == ["congestion.algorithm", "flow.0.bytes", "bearer.bler", "seed"]
