"""An executor on a Dask cluster that survives the loss of workers and of the scheduler.

That of Dask (`Client.get_executor`) waits forever for a task if no worker is left, and ends all
tasks with the scheduler. This one looks at its tasks all the time, and submits lost ones again.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dask.distributed import Client

ATTEMPTS = 5
"""How often a task that is lost is submitted in all. Dask itself repeats a task whose worker ended
(its setting `distributed.scheduler.allowed-failures`); then it counts as lost once."""
IDLE_SECONDS = 300.0
"""How long a cluster that had workers may be without any."""
CHECK_SECONDS = 5.0
"""Interval between questions to the scheduler which tasks it has."""

_POLL_SECONDS = 0.5
_RESULT_SECONDS = 10.0
"""How long a result may take to arrive before other tasks are looked at."""


@dataclass(eq=False, slots=True)
class _Task:
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: "Future[Any]" = field(default_factory=Future)
    remote: Any = None
    """Dask's future of the latest attempt."""
    attempts: int = 0
    unknown: int = 0
    """How many checks in sequence the scheduler did not have it."""


class DaskExecutor(Executor):
    """Runs functions on the cluster of a client."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._tasks: set[_Task] = set()
        self._lock = Lock()
        self._changed = Event()
        self._had_workers = False
        self._last_workers = time.monotonic()
        self._broken: str | None = None
        self._closed = False
        self._watcher = Thread(target=self._watch, name="airpath-dask", daemon=True)
        self._watcher.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Submit a call; see `concurrent.futures.Executor`."""
        if self._broken is not None:
            raise BrokenExecutor(self._broken)
        task = _Task(fn, args, kwargs)
        task.result.set_running_or_notify_cancel()
        self._start(task)
        with self._lock:
            self._tasks.add(task)
        return task.result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor; tasks that are not finished are cancelled on the cluster."""
        self._closed = True
        self._changed.set()
        if wait:
            self._watcher.join(_RESULT_SECONDS)
        left = [task.remote for task in self._snapshot()]
        if left and self._client.status == "running":
            self._client.cancel(left)

    def _start(self, task: _Task) -> None:
        task.attempts += 1
        task.unknown = 0
        task.remote = self._client.submit(task.call, *task.arguments, pure=False, **task.keywords)
        task.remote.add_done_callback(lambda _: self._changed.set())

    def _again(self, task: _Task, error: BaseException) -> None:
        """Submit a lost task again, up to a limit."""
        if task.attempts >= ATTEMPTS:
            self._end(task, error=error)
        else:
            self._start(task)

    def _end(self, task: _Task, *, value: Any = None, error: BaseException | None = None) -> None:
        with self._lock:
            self._tasks.discard(task)
        if error is None:
            task.result.set_result(value)
        else:
            task.result.set_exception(error)

    def _watch(self) -> None:
        checked = time.monotonic()
        while not self._closed:
            self._changed.wait(_POLL_SECONDS)
            self._changed.clear()
            try:
                self._collect()
                if time.monotonic() - checked > CHECK_SECONDS:
                    self._check()
                    checked = time.monotonic()
            except Exception as error:  # whatever it is, this thread must not end: callers wait for it
                if self._client.status not in ("running", "connecting"):
                    self._break(f"the connection to the Dask scheduler was lost ({type(error).__name__})")
            if self._client.status == "closed":
                self._break("the Dask scheduler ended")

    def _collect(self) -> None:
        """Take what is finished, and submit again what is lost."""
        from dask.distributed import KilledWorker

        tasks = self._snapshot()
        self._take([task for task in tasks if task.remote.status == "finished"])
        for task in tasks:
            match task.remote.status:
                case "error":
                    error = task.remote.exception(timeout=_RESULT_SECONDS)
                    if isinstance(error, KilledWorker):
                        self._again(task, error)
                    else:
                        self._end(task, error=error)
                case "cancelled" | "lost":
                    # Of a scheduler that ended. While the client connects again, nothing is sent.
                    if self._client.status == "running":
                        self._again(task, CancelledError("the cluster lost the task"))

    def _take(self, finished: list[_Task]) -> None:
        """Fetch the results of tasks, all at once if no worker has ended meanwhile."""
        if not finished:
            return
        try:
            values: Any = self._client.sync(_gathered, self._client, [task.remote for task in finished])
            for task, value in zip(finished, values, strict=True):
                self._end(task, value=value)
        except Exception:  # of one of them: look at each
            for task in finished:
                try:
                    self._end(task, value=task.remote.result(timeout=_RESULT_SECONDS))
                except OSError:
                    pass  # no answer: Dask computes it again, or the scheduler ended
                except CancelledError as error:
                    self._again(task, error)
                except Exception as error:  # the result cannot be read
                    self._end(task, error=error)

    def _check(self) -> None:
        """Compare with what the scheduler has."""
        if self._client.status != "running":
            return
        tasks = self._snapshot()
        found: Any = self._client.run_on_scheduler(_unknown, keys=[task.remote.key for task in tasks])
        unknown, workers = set(found[0]), found[1]
        for task in tasks:
            is_unknown = task.remote.key in unknown and task.remote.status == "pending"
            task.unknown = task.unknown + 1 if is_unknown else 0
            # Once may be a task that is in flight.
            if task.unknown > 1:
                self._again(task, CancelledError("the scheduler does not have the task"))
        now = time.monotonic()
        self._had_workers |= workers > 0
        if workers or not tasks or not self._had_workers:
            self._last_workers = now
        elif now - self._last_workers > IDLE_SECONDS:
            self._break(f"the cluster has had no worker for {IDLE_SECONDS:.0f} s")

    def _break(self, reason: str) -> None:
        """End all tasks with an error, and take no further ones."""
        self._broken = reason
        for task in self._snapshot():
            self._end(task, error=BrokenExecutor(reason))

    def _snapshot(self) -> list[_Task]:
        with self._lock:
            return list(self._tasks)


async def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of finished tasks.

    Raises:
        TimeoutError: One is computed again, as its worker ended.
    """
    return await asyncio.wait_for(client.gather(futures, asynchronous=True), _RESULT_SECONDS)


def _unknown(dask_scheduler: Any, keys: list[str]) -> tuple[list[str], int]:
    """Return the keys that the scheduler does not have, and the number of its workers."""
    return [key for key in keys if key not in dask_scheduler.tasks], len(dask_scheduler.workers)
