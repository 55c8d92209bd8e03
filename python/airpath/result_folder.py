"""The folder of a new result: what the result may replace there, and how the folder is cleared."""

import json
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from airpath.files import check_folder_writable
from airpath.result import is_result

# The files that runs and reports write into a result folder; no other file is ever removed.
_WRITTEN_BY_A_RUN = frozenset(
    {"scenario.toml", "inputs", "summary.json", "events", "captures", "headers", "report.html", "server.log"}
    | {"page.har", "page.json", "filmstrip"}
    # Files are replaced by renaming a draft; a killed run may leave one.
    | {"scenario.toml.draft", "summary.json.draft"}
)
# `airpath report --shared-library` writes it beside the report.
_LIBRARY = "plotly-*.min.js"


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


def prepare_result_folder(out: Path, new: NewResult, *, keep: Iterable[Path] = ()) -> None:
    """Check that a new result may be written to a folder, and remove an earlier one of the same.

    Args:
        out: The result folder.
        new: What is about to be written.
        keep: Files that the command reads; they are kept if they are inputs of the earlier result.

    Raises:
        FileExistsError: The folder holds something else, or more; nothing was removed.
        OSError: The folder cannot be written, or there is no room; nothing was removed.
    """
    entries = _entries(out)
    fault = _fault(out, new) if entries else None
    if fault is not None:
        raise FileExistsError(refusal(out, fault))
    _clear(out, entries, keep)


def refusal(out: Path, holds: str) -> str:
    """Return the message that a folder is not replaced, because of what it holds."""
    return (
        f"{out} has {holds}: nothing was run; name another folder, or remove this one first: "
        f"`rm -r {shlex.quote(str(out))}`"
    )


def clear_result_folder(folder: Path, *, keep: Iterable[Path] = ()) -> None:
    """Remove an earlier result from a folder, and no other files.

    Args:
        folder: The result folder.
        keep: Files that are kept if they are inputs of the result.

    Raises:
        FileExistsError: The folder has a file that no run wrote, or is a file.
        OSError: The folder cannot be written, or there is no room; nothing was removed.
    """
    _clear(folder, _entries(folder), keep)


def _entries(folder: Path) -> list[Path]:
    """Return what a folder holds.

    Raises:
        FileExistsError: It has a file that no run wrote, or is a file.
    """
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; select a folder for the result")
    entries = list(folder.iterdir())
    if (folder / "sweep.json").is_file():
        raise FileExistsError(f"{folder} is the folder of a sweep; name a new or an empty folder")
    if entries and not is_result(folder):
        raise FileExistsError(f"{folder} is not empty and holds no airpath result; name a new or an empty folder")
    foreign = sorted(entry.name for entry in entries if not is_written_by_a_run(entry.name))
    if foreign:
        raise FileExistsError(f"{folder} holds '{foreign[0]}', which no run wrote; move it away or name another folder")
    return entries


def _fault(out: Path, new: NewResult) -> str | None:
    """Return what an earlier result has that a new one in its place would lose; `None` for nothing.

    An earlier result without a summary, or with one that cannot be read, has nothing to lose.
    """
    try:
        summary = json.loads((out / "summary.json").read_bytes())
        repetitions = len(summary["repetitions"])
        earlier = tomllib.loads((out / "scenario.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if repetitions == 0:
        return None
    return _other_input(out, summary, earlier, new) or _more(out, repetitions, new)


def _other_input(out: Path, summary: Mapping[str, Any], earlier: Mapping[str, Any], new: NewResult) -> str | None:
    """Return what an earlier result is if another command wrote it, or from other inputs."""
    if (command := _command_of(summary)) != new.command:
        return f"a result of `airpath {command}`"
    if _is_same_scenario(earlier, new.scenario, out):
        return _other_programs(summary, new)
    seeds = earlier.get("seed"), new.scenario.get("seed")
    other = {**earlier, "seed": new.scenario.get("seed")}
    if seeds[0] != seeds[1] and _is_same_scenario(other, new.scenario, out):
        return f"a result with seed {seeds[0]}"
    return f"the result of another {_INPUTS[command]}"


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


def _command_of(summary: Mapping[str, Any]) -> str:
    """Return the command that wrote a summary."""
    if "measurement" in summary:
        return "measure"
    if "emulation" in summary:
        return "proxy" if "configuration" in summary["emulation"] else "link"
    # A run has flows; a replay has the packets of flows only.
    return "run" if summary.get("flows") else "replay"


def _other_programs(summary: Mapping[str, Any], new: NewResult) -> str | None:
    """Return what the link of an earlier result had that the new one has not."""
    if new.programs is None:
        return None
    emulation = summary["emulation"]
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


def _clear(folder: Path, entries: Iterable[Path], keep: Iterable[Path]) -> None:
    """Remove the entries of a result folder but for the files in `keep`."""
    if not folder.exists():
        return
    check_folder_writable(folder)  # on a full disk the earlier result would be lost for nothing
    kept = {path.resolve() for path in keep}
    for entry in entries:
        if not entry.is_dir():
            entry.unlink()
        elif not any(entry.resolve() in path.parents for path in kept):
            shutil.rmtree(entry)
        else:
            for path in entry.iterdir():
                if path.resolve() not in kept:
                    path.unlink()
