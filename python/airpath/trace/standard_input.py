"""Reading of standard input until Ctrl-C, even if its writer goes on or is silent."""

import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_GRACE_S = 0.5
"""After Ctrl-C, time in which a capturing program that got the signal too may write its last
packets and end. A choice."""
_BYTES = 1 << 16
"""Bytes that are copied at once: the default size of a pipe."""


@contextmanager
def ended_by_interrupt() -> Iterator[Callable[[], bool]]:
    """End standard input at Ctrl-C (SIGINT), so that what was read until then is analysed.

    Within the block, descriptor 0 is a pipe to which a thread copies standard input. A second
    Ctrl-C is a `KeyboardInterrupt`.

    Yields:
        Whether Ctrl-C was pressed.
    """
    if not _may_block() or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    interrupted = threading.Event()
    woken, waker = os.pipe()

    def interrupt(number: int, frame: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()
        os.write(waker, b"!")

    before = signal.signal(signal.SIGINT, interrupt)
    source = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    copier = threading.Thread(target=_copy, args=(source, writer, woken, interrupted), daemon=True)
    copier.start()
    try:
        yield interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, before)
        # The only reader of the pipe: a copier that waits to write gets an error.
        os.dup2(source, 0)
        os.close(waker)
        copier.join()
        os.close(woken)
        os.close(source)


def _may_block() -> bool:
    """Return whether a read of standard input may wait for a writer: it is no file."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _copy(source: int, writer: int, woken: int, interrupted: threading.Event) -> None:
    """Copy from one descriptor to another until the end, Ctrl-C, or the end of the analysis."""
    until = None
    watched = [source, woken]
    try:
        while True:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            ready, _, _ = select.select(watched, [], [], left)
            if woken in ready:
                if not interrupted.is_set():
                    return
                watched = [source]
                until = time.monotonic() + _GRACE_S
            elif source in ready:
                block = memoryview(os.read(source, _BYTES))
                if not block:
                    return
                while block:
                    block = block[os.write(writer, block) :]
    except BrokenPipeError:
        # The analysis ended before the input.
        return
    finally:
        os.close(writer)
