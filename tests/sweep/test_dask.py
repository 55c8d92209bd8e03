"""Sweeps on a local Dask cluster with worker processes: the same rows, also when workers die."""

import os
import signal
import threading
import time

import pytest
from polars.testing import assert_frame_equal

import airpath
from airpath.sweep import clusters, driver
from airpath.sweep.clusters import ClusterError, executor_of
from support import DOWNLOAD

distributed = pytest.importorskip("dask.distributed")


@pytest.fixture
def cluster():
    """Two worker processes of one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def plan(repeat: int) -> airpath.Plan:
    return airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.0, 0.1], "fixed.loss": [0.0, 0.02]}, repeat=repeat)


def test_the_rows_are_those_of_this_machine(cluster):
    here = airpath.sweep(plan(5)).flows
    assert_frame_equal(airpath.sweep(plan(5), executor=cluster.get_executor(pure=False), workers=2).flows, here)


@pytest.mark.soak
def test_the_rows_are_the_same_when_workers_are_killed(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "TASK_SECONDS", 0.05)
    expected = airpath.sweep(plan(600), out=tmp_path / "here").flows
    stop, killed = threading.Event(), []

    def kill_workers() -> None:
        while not stop.wait(0.5):
            killed.append(next(iter(cluster.run(os.getpid).values())))
            os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_workers)
    killer.start()
    try:
        executor = cluster.get_executor(pure=False)
        result = airpath.sweep(plan(600), executor=executor, workers=2, out=tmp_path / "there")
    finally:
        stop.set()
        killer.join()
    assert killed
    # A task whose workers were killed several times is a failure, and runs again on request.
    deadline = time.monotonic() + 60
    while result.failures and time.monotonic() < deadline:
        result = airpath.sweep(
            plan(600), executor=cluster.get_executor(pure=False), workers=2, out=tmp_path / "there", retry=True
        )
    assert_frame_equal(result.flows, expected)


def test_a_cluster_by_name_and_errors_of_its_name(monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    with executor_of(None) as (executor, workers):
        assert (executor, workers) == (None, None)
    with pytest.raises(ClusterError, match=r"no cluster 'pbs'; .*local, slurm"), executor_of("pbs"):
        pass
    with pytest.raises(ClusterError, match="does not answer"), executor_of("tcp://127.0.0.1:9"):
        pass
