"""Sweeps on Dask clusters of processes: the same rows when workers, scheduler or driver die."""

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from polars.testing import assert_frame_equal

import airpath
from airpath.sweep import ExecutorLostError, Progress, clusters, dask_executor, estimation
from airpath.sweep.clusters import ClusterError, executor_of
from support import DOWNLOAD, Command
from support.dask_cluster import Cluster, wait_for_workers

distributed = pytest.importorskip("dask.distributed")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    made = Cluster(tmp_path)
    try:
        made.start_scheduler()
        made.start_worker()
        made.start_worker()
        yield made
    finally:
        made.close()


PLAN = """\
format = 1
scenario = "small.toml"
repeat = 1000

[axes]
bearer.bler = [0.0, 0.1]
fixed.loss = [0.0, 0.02]
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> airpath.Plan:
    """A plan of 4,000 runs, in tasks of about 0.05 s."""
    monkeypatch.setattr(estimation, "TASK_SECONDS", 0.05)
    (tmp_path / "small.toml").write_text(DOWNLOAD)
    (tmp_path / "plan.toml").write_text(PLAN)
    return airpath.read_plan(tmp_path / "plan.toml")


def test_the_rows_are_the_same_when_workers_are_killed(cluster: Cluster, plan: airpath.Plan, tmp_path: Path):
    drawn = random.Random(1)
    stop, killed = threading.Event(), []
    with executor_of(cluster.address, 2) as (executor, workers), distributed.Client(cluster.address) as client:
        wait_for_workers(client, 2)

        def kill_workers() -> None:
            while not stop.wait(drawn.uniform(0.1, 0.5)):
                cluster.start_worker()
                cluster.kill(cluster.workers[0])
                killed.append(time.monotonic())
                wait_for_workers(client, 2)

        killer = threading.Thread(target=kill_workers)
        killer.start()
        try:
            result = airpath.sweep(plan, executor=executor, workers=workers, out=tmp_path / "there")
        finally:
            stop.set()
            killer.join()
    assert killed
    assert result.complete
    assert result.failures == []
    assert_frame_equal(result.flows, airpath.sweep(plan).flows)


def test_a_sweep_goes_on_when_the_scheduler_is_restarted(cluster: Cluster, plan: airpath.Plan, tmp_path: Path):
    with executor_of(cluster.address, 2) as (executor, workers):
        seen = []

        def restart(now: Progress) -> None:
            seen.append(now.runs)
            if len(seen) == 5:
                cluster.kill(cluster.scheduler)
                # Workers end with their scheduler.
                for worker in list(cluster.workers):
                    cluster.kill(worker)
                cluster.start_scheduler()
                cluster.start_worker()

        result = airpath.sweep(plan, executor=executor, workers=workers, out=tmp_path / "there", progress=restart)
    assert len(seen) > 5, "the scheduler was restarted at the end only"
    assert (result.complete, result.failures) == (True, [])
    assert_frame_equal(result.flows, airpath.sweep(plan).flows)


def test_a_killed_driver_and_its_cluster_continue(
    cluster: Cluster, plan: airpath.Plan, tmp_path: Path, airpath_command: Command
):
    line = airpath_command.line("sweep", "plan.toml", "--out", "there", "--dask", cluster.address)
    process = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and not list(tmp_path.glob("there/flows/*.parquet")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = airpath_command("sweep", "plan.toml", "--out", "there", "--dask", cluster.address)
    assert done.code == 0, done.err
    assert_frame_equal(airpath.SweepResult(tmp_path / "there").flows, airpath.sweep(plan).flows)


def test_a_cluster_that_loses_its_last_worker_ends_the_sweep(
    cluster: Cluster, plan: airpath.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dask_executor, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(dask_executor, "CHECK_SECONDS", 0.1)
    # The results of the killed workers never arrive.
    monkeypatch.setattr(dask_executor, "_RESULT_SECONDS", 1.0)
    killed = []

    def kill_workers(_: Progress) -> None:
        if not killed:
            killed.extend(cluster.workers)
            for worker in killed:
                cluster.kill(worker)

    with (
        executor_of(cluster.address, 2) as (executor, workers),
        pytest.raises(ExecutorLostError, match="no worker for"),
    ):
        airpath.sweep(plan, executor=executor, workers=workers, out=tmp_path / "there", progress=kill_workers)
    assert not airpath.SweepResult(tmp_path / "there").complete


def test_a_cluster_by_name_and_errors_of_its_name(monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    with executor_of(None) as (executor, workers):
        assert (executor, workers) == (None, None)
    with pytest.raises(ClusterError, match=r"no cluster 'pbs'; .*local, slurm"), executor_of("pbs"):
        pass
    with pytest.raises(ClusterError, match="does not answer"), executor_of("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(ClusterError, match="add --workers N"), executor_of("slurm"):
        pass


def test_a_cluster_that_cannot_be_started_is_an_error(monkeypatch):
    made = []

    class Unscalable:
        closed = False

        def __init__(self) -> None:
            made.append(self)

        def scale(self, _: int) -> None:
            raise OSError("no sbatch")

        def close(self) -> None:
            self.closed = True

    class Unconfigured:
        def __init__(self) -> None:
            raise ValueError("You must specify how many cores to use")

    for broken, message in ((Unconfigured, "how many cores"), (Unscalable, "no sbatch")):
        monkeypatch.setattr("support.dask_cluster.QueuedCluster", broken)
        monkeypatch.setitem(clusters._CLUSTERS, "slurm", ("support.dask_cluster", "QueuedCluster"))
        with pytest.raises(ClusterError, match=f"slurm cannot be started: .*{message}"), executor_of("slurm", 2):
            pass
    assert [each.closed for each in made] == [True]


def test_an_error_of_the_scheduler_at_the_start_is_that_of_the_cluster(monkeypatch):
    def lost(_: object) -> None:
        raise OSError("connection reset")

    monkeypatch.setattr(distributed.Client, "nthreads", lost)
    with pytest.raises(ClusterError, match="does not answer: connection reset"), executor_of("local"):
        pass


def test_tasks_may_end_while_the_executor_is_shut_down(monkeypatch):
    client = SimpleNamespace(status="running", cancel=lambda _: None)
    monkeypatch.setattr(dask_executor.DaskExecutor, "_watch", lambda _: None)
    executor = dask_executor.DaskExecutor(cast("Any", client))

    class Ending:
        @property
        def remote(self) -> None:
            executor._tasks.discard(cast("dask_executor._Task", self))

    executor._tasks.update(cast("dask_executor._Task", Ending()) for _ in range(2))
    executor.shutdown()
    assert not executor._tasks


def test_a_cluster_without_workers_is_scaled(monkeypatch):
    # As dask-jobqueue: a cluster starts without workers.
    monkeypatch.setitem(clusters._CLUSTERS, "slurm", ("support.dask_cluster", "QueuedCluster"))
    with executor_of("slurm", 2) as (executor, workers):
        assert (executor and executor.submit(sum, (1, 2)).result(30), workers) == (3, 2)
