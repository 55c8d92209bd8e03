"""The command that a file, a folder or a name belongs to, for messages about a wrong command."""

import json
import shlex
from pathlib import Path

from airpath.input_kind import is_capture

_OTHER_NAMES = {
    "analyse": "airpath trace",
    "analyze": "airpath trace",
    "completion": "airpath --install-completion",
    "diff": "airpath compare",
    "emulate": "airpath link",
    "exec": "airpath link",
    "help": "airpath --help",
    "list": "airpath presets list",
    "ping": "airpath measure ping",
    "shell": "airpath link",
    "show": "airpath presets show NAME",
    "sim": "airpath run",
    "simulate": "airpath run",
    "validate": "airpath study run",
    "version": "airpath --version",
}
"""Commands of other tools, each with the command for the same."""


def command_for(word: str, group: str = "airpath") -> str | None:
    """Return the command for which `word` is an argument, with it; `None` for an unknown word.

    Args:
        word: A file, a folder, or the name of a preset, page or study.
        group: The group of commands in which the user wrote it, as `airpath presets`.
    """
    path = Path(word)
    quoted = shlex.quote(word)
    if group == "airpath" and word in _OTHER_NAMES:
        return _OTHER_NAMES[word]
    if group == "airpath proxy" and path.suffix == ".toml":
        return f"airpath proxy run {quoted}"
    if path.is_dir():
        return f"airpath report {quoted}" if _has_result(path) else None
    if path.is_file():
        return _command_for_file(path, quoted)
    return _command_for_name(word, group)


def _has_result(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("summary.json", "sweep.json"))


def _command_for_file(path: Path, quoted: str) -> str | None:
    from airpath.scenario import is_plan

    if is_capture(path):
        return f"airpath trace {quoted}"
    match path.suffix:
        case ".toml" if is_plan(path):
            return f"airpath sweep {quoted} --out DIR"
        case ".toml":
            return f"airpath run {quoted}"
        case ".page":
            return f"airpath page show {quoted}"
        case ".har":
            return f"airpath page import {quoted} -o FILE.page"
        case _:
            return None


def _command_for_name(word: str, group: str) -> str | None:
    from airpath import ScenarioError, _native
    from airpath.page import names
    from airpath.study import studies

    try:
        kind = json.loads(_native.preset(word))["kind"]
    except (ScenarioError, UnicodeEncodeError):
        kind = None
    if kind is not None:
        command = "run" if kind == "bearer" and group != "airpath presets" else "presets show"
        return f"airpath {command} {word}"
    if word in names():
        return f"airpath page show {word}"
    if any(study.id == word for study in studies()):
        return f"airpath study run {word}"
    return None
