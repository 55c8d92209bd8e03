"""What ends simulations early: signals, and the end of the sweep that has them in threads.

The processes of a pool need none of it: they are terminated.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Check = Callable[..., None]
"""Called all the time during a simulation; its exception ends the simulation."""

_of_thread = threading.local()


def check_of_thread() -> Check | None:
    """Return the check of the simulations of this thread, if they have one."""
    return getattr(_of_thread, "check", None)


def set_check(check: Check | None) -> None:
    """Set the check of the simulations of this thread."""
    _of_thread.check = check


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and other signals end the simulations of this thread during the block."""
    earlier = check_of_thread()
    set_check(earlier or (lambda *_: None))
    try:
        yield
    finally:
        set_check(earlier)
