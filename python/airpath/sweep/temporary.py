"""The folder of the temporary files of a sweep's workers.

The driver removes it at its end. One that was killed cannot: the next sweep on the machine does. A
file in the folder is locked by the driver and its workers; the kernel unlocks it when they end.
"""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "sweep-"
"""Short: Chromium has a socket far below it, and the path of a socket has at most 107 bytes."""
_LOCK = "airpath-workers.lock"


class WorkerFolder:
    """A new temporary folder, locked by this process."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # Renamed when it is locked: a lock of that name without a holder is abandoned.
        draft = self.path / f"{_LOCK}.draft"
        draft.touch()
        self._lock = _hold(draft)
        draft.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove it. Killed processes may still write to it for a moment."""
        for _ in range(20):
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                break
            time.sleep(0.05)
        os.close(self._lock)


def join_folder(folder: Path) -> None:
    """Keep the folder until this process, a worker, has ended.

    Raises:
        OSError: The folder was removed.
    """
    _hold(folder / _LOCK)


def _hold(lock: Path) -> int:
    """Lock a file together with others, until the returned descriptor or the process ends."""
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _remove_abandoned() -> None:
    """Remove the folders of this user that no process has locked."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{_LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # of another user, or removed at this moment
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)
