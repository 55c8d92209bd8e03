"""A Dask cluster of separate processes, which a test can kill one by one."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


class Cluster:
    """A scheduler and workers of one thread each; none of them is restarted by Dask itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start_scheduler(self) -> None:
        """Start the scheduler, always at the same address."""
        port = self.address.rpartition(":")[2]
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")

    def start_worker(self) -> None:
        """Start a worker."""
        self.workers.append(self._start("worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"))

    def kill(self, process: "subprocess.Popen[bytes] | None") -> None:
        """Kill a process of the cluster."""
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process in self.workers:
            self.workers.remove(process)

    def close(self) -> None:
        """Kill all processes."""
        for process in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            process.kill()
            process.wait()

    def _start(self, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
        line = [sys.executable, "-m", f"distributed.cli.dask_{role}", *arguments]
        return subprocess.Popen(line, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_workers(client: Any, number: int) -> None:
    """Wait until the scheduler of a client has exactly this number of workers."""
    deadline = time.monotonic() + 60
    while len(client.nthreads()) != number:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def QueuedCluster() -> Any:  # noqa: N802
    """Return a cluster that starts without workers, as those of batch systems do."""
    from dask.distributed import LocalCluster

    return LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0")
