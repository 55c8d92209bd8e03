"""The folder of a new result: what the result may replace there, and how it takes that place.

A new result is written to `.new` in the folder while an earlier one is there. So it needs no rights
in the parent folder and no other file system, and the folder may be `.` or a mount point.
"""

import fcntl
import json
import os
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from airpath.files import check_folder_writable
from airpath.next_step import WithNextStep
from airpath.result import is_result
from airpath.summary_outline import Outline, outline_of

# Files are replaced by renaming a draft; a killed run may leave one.
_DRAFTS = frozenset({"scenario.toml.draft", "summary.json.draft"})
# The files that runs and reports write into a result folder; no other file is ever removed.
_WRITTEN_BY_A_RUN = _DRAFTS | {
    *("scenario.toml", "inputs", "summary.json", "events", "captures", "headers", "report.html", "server.log"),
    *("page.har", "page.json", "filmstrip"),
}
# `airpath report --shared-library` writes it beside the report.
_LIBRARY = "plotly-*.min.js"

_NEW = ".new"
"""The folder, in a result folder, of a new result while the earlier one stays."""
_DONE = ".new.done"
"""Its name when it is done: the earlier result is being removed."""
_MOVING = ".new.moving"
"""Its name when the earlier result is removed: its entries are being moved to the result folder."""


class FolderInUseError(WithNextStep, FileExistsError):
    """A folder holds something that a new result may not replace."""


def is_written_by_a_run(name: str) -> bool:
    """Return whether runs and reports write a file or folder of this name into a result folder."""
    return name in _WRITTEN_BY_A_RUN or fnmatchcase(name, _LIBRARY)


@dataclass(frozen=True, slots=True)
class NewResult:
    """What a command is about to write: an earlier result may be replaced by an equal one."""

    command: str
    """`run`, `replay`, `link`, `measure` or `proxy`."""
    scenario: Mapping[str, Any]
    """The contents of its `scenario.toml`."""
    repeat: int = 1
    capture: bool = False
    log: bool = True
    """Whether it has event tables."""
    programs: Mapping[str, Any] | None = None
    """Of a link: `command`, `serve`, `parameters` and `mtu`, as in the summary."""


@contextmanager
def new_result(out: Path, new: NewResult) -> Iterator[Path]:
    """Yield the folder to which a new result is to be written: `out`, or `.new` in it.

    `out` is created and locked; it is removed if it was not there and stays empty. The folder is
    `.new` if `out` has an earlier result. At the end of the block, also after an exception,
    the new result takes the place of the earlier one, unless it has no repetition (it is removed)
    or is incomplete and the earlier one complete (both stay; see `written_to`). If the process is
    killed, the earlier result stays, or the next call completes the replacement.

    Args:
        out: The result folder.
        new: What is about to be written.

    Raises:
        FileExistsError: The folder holds something else, or more, or another command writes to it;
            nothing was changed.
        OSError: The folder cannot be written, or there is no room; nothing was changed.
    """
    if is_made := not out.is_dir():
        _check_entries(out)
    with _locked(out):
        _finish_replacement(out)
        check_result_folder(out, new)
        shutil.rmtree(out / _NEW, ignore_errors=True)  # of a command that was killed, or incomplete
        if not any(out.iterdir()):
            try:
                yield out
            finally:
                _remove_drafts(out)
                if is_made and not any(out.iterdir()):
                    # A proxy may have given up the right to.
                    with suppress(PermissionError):
                        out.rmdir()
            return
        check_folder_writable(out)
        try:
            yield out / _NEW
        finally:
            _remove_drafts(out / _NEW)
            _keep_one(out)


def has_earlier_result(out: Path) -> bool:
    """Return whether a folder has a result, also while a replacement of it is not complete."""
    return any(is_result(each) for each in (out, out / _DONE, out / _MOVING))


def written_to(out: Path) -> Path:
    """Return where the result is that a command has just written to `out`.

    This is `.new` in it if the new result is incomplete and the earlier one complete.
    """
    return out / _NEW if is_result(out / _NEW) else out


def summaries_in(out: Path) -> set[tuple[int, int]]:
    """Return what identifies the summaries of the results that `written_to` distinguishes."""
    files = {out / "summary.json", written_to(out) / "summary.json"}
    return {(status.st_ino, status.st_mtime_ns) for status in (file.stat() for file in files if file.is_file())}


def check_result_folder(out: Path, new: NewResult) -> None:
    """Check that a new result may take the place of what is in a folder.

    Raises:
        FileExistsError: The folder holds something else, or more.
    """
    fault = _fault(out, new) if _check_entries(out) else None
    if fault is not None:
        raise refusal(out, fault)


def refusal(out: Path, holds: str) -> FolderInUseError:
    """Return the error that a folder is not replaced, because of what it holds."""
    return FolderInUseError(
        f"{out} has {holds}: nothing was run",
        next_step=f"name another folder, or remove this one first: `rm -r {shlex.quote(str(out))}`",
    )


def clear_result_folder(folder: Path) -> None:
    """Remove the files of a result from a folder, and no other files.

    Raises:
        OSError: One cannot be removed.
    """
    for entry in list(folder.iterdir()):
        if not is_written_by_a_run(entry.name):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _remove_drafts(folder: Path) -> None:
    """Remove the drafts of files that could not be written."""
    for name in _DRAFTS:
        with suppress(OSError):
            (folder / name).unlink()


@contextmanager
def cleared_unless_started(folder: Path | None) -> Iterator[None]:
    """Remove the files of a link or a proxy that ends with an error before it has carried a packet.

    It has then written a summary without a repetition.
    """
    from airpath._native import LinkError

    try:
        yield
    except LinkError:
        if folder is not None and folder.is_dir() and _outline(folder) is None:
            clear_result_folder(folder)
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create a folder if needed, and lock it against other commands that write results.

    The kernel unlocks it at the latest.

    Raises:
        FileExistsError: Another command has locked it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The command that had locked it may have removed it.
            is_locked = os.path.samestat(os.fstat(descriptor), folder.stat())
        except (BlockingIOError, FileNotFoundError):
            is_locked = False
        if not is_locked:
            raise FolderInUseError(
                f"another command writes a result to {folder}", next_step="wait for its end, or name another folder"
            )
        yield
    finally:
        os.close(descriptor)


def _keep_one(out: Path) -> None:
    """Let the new result take the place of the earlier one, or remove it if it is empty.

    Both stay if only the earlier one is complete.
    """
    new, earlier = _outline(out / _NEW), _outline(out)
    if new is None:
        shutil.rmtree(out / _NEW, ignore_errors=True)
    elif new.complete or earlier is None or not earlier.complete:
        (out / _NEW).rename(out / _DONE)
        _finish_replacement(out)


def _finish_replacement(out: Path) -> None:
    """Replace the earlier result by one that is done, from the point where a killed process was."""
    done, moving = out / _DONE, out / _MOVING
    if done.is_dir():
        clear_result_folder(out)
        done.rename(moving)
    if moving.is_dir():
        for entry in list(moving.iterdir()):
            entry.rename(out / entry.name)
        moving.rmdir()


def _check_entries(folder: Path) -> bool:
    """Return whether a folder has files, all of a result.

    Raises:
        FileExistsError: It has a file that no run wrote, or is a file.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise FolderInUseError(f"{folder} is a file", next_step="select a folder for the result")
    names = [entry.name for entry in folder.iterdir() if entry.name != _NEW]
    if (folder / "sweep.json").is_file():
        raise FolderInUseError(f"{folder} is the folder of a sweep", next_step="name a new or an empty folder")
    if names and not is_result(folder):
        raise FolderInUseError(
            f"{folder} is not empty and holds no airpath result", next_step="name a new or an empty folder"
        )
    foreign = sorted(name for name in names if not is_written_by_a_run(name))
    if foreign:
        raise FolderInUseError(
            f"{folder} holds '{foreign[0]}', which no run wrote", next_step="move it away or name another folder"
        )
    return bool(names)


def _outline(folder: Path) -> Outline | None:
    """Return the outline of a result with a repetition; `None` if there is nothing to lose."""
    outline = outline_of(folder)
    return outline if outline is not None and outline.repetitions else None


def _fault(out: Path, new: NewResult) -> str | None:
    """Return what an earlier result has that a new one in its place would lose; `None` for nothing.

    An earlier result without a summary, or with one that cannot be read, has nothing to lose.
    """
    outline = _outline(out)
    try:
        earlier = tomllib.loads((out / "scenario.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if outline is None:
        return None
    return _other_input(out, outline, earlier, new) or _more(out, outline.repetitions, new)


def _other_input(out: Path, outline: Outline, earlier: Mapping[str, Any], new: NewResult) -> str | None:
    """Return what an earlier result is if another command wrote it, or from other inputs."""
    if outline.command != new.command:
        return f"a result of `airpath {outline.command}`"
    if _is_same_scenario(earlier, new.scenario, out):
        return _other_programs(outline.emulation, new)
    seeds = earlier.get("seed"), new.scenario.get("seed")
    other = {**earlier, "seed": new.scenario.get("seed")}
    if seeds[0] != seeds[1] and _is_same_scenario(other, new.scenario, out):
        return f"a result with seed {seeds[0]}"
    return f"the result of another {_INPUTS[outline.command]}"


def _more(out: Path, repetitions: int, new: NewResult) -> str | None:
    """Return what an earlier result has and a new one of the same inputs has not."""
    if repetitions > new.repeat:
        return f"{repetitions} repetitions, and this run has {new.repeat}"
    if (out / "captures").is_dir() and not new.capture:
        return "captures, and this run has none"
    if (out / "events").is_dir() and not new.log:
        return "event tables, and this run has none"
    return None


_INPUTS = {"measure": "measurement", "proxy": "configuration", **dict.fromkeys(("link", "replay", "run"), "scenario")}
"""What each command reads."""


def _other_programs(emulation: Mapping[str, Any], new: NewResult) -> str | None:
    """Return what the link of an earlier result had that the new one has not."""
    if new.programs is None:
        return None
    for name, value in new.programs.items():
        before = emulation.get(name)
        if _stable(before) == _stable(value):
            continue
        if name == "command" and isinstance(before, Sequence):
            return f"the result of another command (`{shlex.join(map(str, before))}`)"
        return f"the result of a link with another {_OPTIONS.get(name, name)}"
    return None


_OPTIONS = {"serve": "server (--serve)", "parameters": "kernel parameter (--sysctl)", "mtu": "size of packets (--mtu)"}


def _stable(value: Any) -> str:
    """Return a value without the names of airpath's temporary folders: each run has others."""
    folder = re.escape(f"{tempfile.gettempdir()}/airpath-")
    return re.sub(rf"{folder}[^/\s'\"]+", "TEMPORARY", json.dumps(value))


def _is_same_scenario(earlier: Any, new: Any, out: Path) -> bool:
    """Return whether resolved scenarios are equal; a file equals a copy with its content."""
    if isinstance(earlier, Mapping) and isinstance(new, Mapping):
        return earlier.keys() == new.keys() and all(_is_same_scenario(earlier[key], new[key], out) for key in earlier)
    if isinstance(earlier, list) and isinstance(new, list):
        return len(earlier) == len(new) and all(
            _is_same_scenario(one, other, out) for one, other in zip(earlier, new, strict=True)
        )
    if isinstance(earlier, str) and isinstance(new, str) and earlier.startswith("inputs/"):
        try:
            return (out / earlier).read_bytes() == Path(new).read_bytes()
        except OSError:
            return False
    return bool(earlier == new)
