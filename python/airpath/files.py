"""Reading and writing of files: text in UTF-8, output files that are complete or absent."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airpath.next_step import WithNextStep


class NotTextError(WithNextStep, ValueError):
    """A file is not UTF-8 text. The message has the file, the line and the next step."""


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        NotTextError: It is not UTF-8 text.
        OSError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise NotTextError(
            f"{printable(path)}:{line}: not UTF-8 text ({error.reason})",
            next_step="save the file as UTF-8, or check its name",
        ) from None


def printable(path: str | Path) -> str:
    r"""Return a path as UTF-8 text: bytes of the name that are not UTF-8 are written as `\udcXX`."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def write_text(path: Path, text: str) -> None:
    """Write a text file; an earlier file is kept until the new one is complete.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as draft:
        # A text may name files whose names are not UTF-8.
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_bytes(path: Path, contents: bytes) -> None:
    """Write a file; an earlier file is kept until the new one is complete.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as draft:
        draft.write_bytes(contents)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a draft, which replaces `path` when the block ends without an error.

    Devices and pipes are written directly.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    # Hidden, and of this process: it replaces no file of the user.
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(target)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        # The error of a write, as on a full disk, has no name.
        if isinstance(error, OSError) and error.filename is None and not isinstance(error, BrokenPipeError):
            error.filename = str(path)
        raise


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder, and remove it also while killed processes still write to it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        until = time.monotonic() + 10
        shutil.rmtree(folder, ignore_errors=True)
        while folder.exists() and time.monotonic() < until:
            time.sleep(0.05)
            shutil.rmtree(folder, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Check that a file can be written at `path`, before long work starts.

    Raises:
        OSError: It cannot be written.
    """
    if path.is_dir():
        raise IsADirectoryError(21, os.strerror(21), str(path))
    if path.exists() and not path.is_file():
        return
    with tempfile.TemporaryFile(dir=path.resolve().parent):
        pass


_ROOM = 64 * 1024
"""Bytes that a folder must have room for before a result is written to it."""


def check_folder_writable(folder: Path) -> None:
    """Check that files can be written in `folder`, or that it can be created.

    There must be some room, so that a full disk is reported before long work.

    Raises:
        OSError: They cannot.
    """
    existing = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(bytes(_ROOM))
    except OSError as error:
        # Its own name is that of the temporary file, or none.
        raise OSError(error.errno, error.strerror, str(existing)) from None
