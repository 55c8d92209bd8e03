"""Executors on a Dask cluster; Dask is an optional extra."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from airpath import extras
from airpath.next_step import WithNextStep

_CLUSTERS = {
    "local": ("dask.distributed", "LocalCluster"),
    "slurm": ("dask_jobqueue", "SLURMCluster"),
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster"),
}
"""Dask's own classes by name; they read their settings from Dask's configuration."""

CONNECT_SECONDS = 10
"""How long a scheduler may take to answer."""


RECONNECT_SECONDS = 60
"""How long a scheduler that ended may take to return."""


class ClusterError(WithNextStep):
    """A cluster cannot be used. The message has the fault and the next step."""


@contextmanager
def executor_of(cluster: str | None, workers: int | None = None) -> Iterator[tuple[Executor | None, int | None]]:
    """Yield an executor on a cluster, and its number of workers; `None` is this machine.

    Args:
        cluster: The address of a scheduler, or `local`, `slurm` or `kubernetes`.
        workers: The number of workers to request from `slurm` and `kubernetes`; for an address
            the number of tasks at the same time, by default that of the threads now.

    Raises:
        ExtraMissingError: Dask is not installed.
        ClusterError: The cluster does not answer.
    """
    if cluster is None:
        yield None, workers
        return
    extras.require("dask", "distributed")
    from dask.distributed import Client

    from airpath.sweep.dask_executor import DaskExecutor

    with ExitStack() as stack:
        address = cluster if ":" in cluster else stack.enter_context(_started(cluster, workers))
        try:
            # A wrong address is reported soon; a scheduler that ends later has longer to return.
            Client(address, timeout=CONNECT_SECONDS).close()
            client = stack.enter_context(Client(address, timeout=RECONNECT_SECONDS))
            nthreads: Any = client.nthreads()
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"the Dask cluster {cluster} does not answer: {error}", next_step="check its address"
            ) from None
        executor = stack.enter_context(DaskExecutor(client))
        threads = sum(nthreads.values())
        yield executor, workers or max(threads, 1)


def _started(cluster: str, workers: int | None) -> Any:
    """Return a new cluster of Dask's class of this name.

    Raises:
        ClusterError: There is no such cluster, or Dask cannot start it.
    """
    if cluster not in _CLUSTERS:
        raise ClusterError(
            f"no cluster '{cluster}'",
            next_step=f"write an address such as tcp://scheduler:8786, or {', '.join(_CLUSTERS)}",
        )
    if cluster != "local" and workers is None:
        raise ClusterError(f"{cluster} has no workers at its start", next_step="add --workers N, the number to request")
    module, name = _CLUSTERS[cluster]
    try:
        made = getattr(import_module(module), name)()
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise ClusterError(f"{package} is not installed", next_step=f"`pip install {package}` adds it") from None
    except Exception as error:  # each class has its own, as for a setting that is missing
        raise _not_started(cluster, error) from None
    if workers is not None:
        try:
            made.scale(workers)
        except Exception as error:
            made.close()
            raise _not_started(cluster, error) from None
    return made


def _not_started(cluster: str, error: Exception) -> ClusterError:
    return ClusterError(
        f"the Dask cluster {cluster} cannot be started: {error or type(error).__name__}",
        next_step="check Dask's configuration",
    )
