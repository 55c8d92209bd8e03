"""Executors on a Dask cluster; Dask is an optional extra."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

_CLUSTERS = {
    "local": ("dask.distributed", "LocalCluster"),
    "slurm": ("dask_jobqueue", "SLURMCluster"),
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster"),
}
"""Dask's own classes by name; they read their settings from Dask's configuration."""

CONNECT_SECONDS = 10
"""How long a scheduler may take to answer."""


class ClusterError(Exception):
    """A cluster cannot be used. The message has the fault and the next step."""


@contextmanager
def executor_of(cluster: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """Yield an executor on a cluster, and its number of workers; `None` is this machine.

    Args:
        cluster: The address of a scheduler, or `local`, `slurm` or `kubernetes`.

    Raises:
        ClusterError: Dask is not installed, or the cluster does not answer.
    """
    if cluster is None:
        yield None, None
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ClusterError("Dask is not installed; `pip install 'airpath[dask]'` adds it") from None
    try:
        client = Client(_address(cluster), timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(f"the Dask cluster {cluster} does not answer: {error}; check its address") from None
    with client:
        workers = sum(each["nthreads"] for each in client.scheduler_info()["workers"].values())
        # A task that ended its worker is run again on another one; Dask counts (its setting
        # `distributed.scheduler.allowed-failures`).
        yield client.get_executor(pure=False), max(workers, 1)


def _address(cluster: str) -> object:
    if ":" in cluster:
        return cluster
    if cluster not in _CLUSTERS:
        raise ClusterError(
            f"no cluster '{cluster}'; write an address such as tcp://scheduler:8786, or {', '.join(_CLUSTERS)}"
        )
    module, name = _CLUSTERS[cluster]
    try:
        from importlib import import_module

        return getattr(import_module(module), name)()
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise ClusterError(f"{package} is not installed; `pip install {package}` adds it") from None
