"""Runs scenarios, and reads them: what `airpath.run` and the command line share."""

import json
import operator
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from airpath.files import check_folder_writable
from airpath.result import is_result
from airpath.scenario import read_scenario, repetitions_of

MAX_SEED = 2**63 - 1
"""The largest seed: TOML has integers of 64 bits with a sign."""

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


def execute(scenario: str | Path | Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Run a scenario and return its summary alone; without `out` nothing is written to disk.

    The options are those of `execute_to_json`.
    """
    text, _ = execute_to_json(scenario, **options)
    return json.loads(text)


def execute_to_json(
    scenario: str | Path | Mapping[str, Any],
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    first: int = 0,
    repeat: int | None = None,
    out: Path | None = None,
    capture: bool = False,
    log: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[bytes, str]:
    """Run a scenario and return the content of its `summary.json`. See `airpath.run`.

    `first` is the number of the first repetition; `repeat` is by default `repetitions_of` the
    scenario. The second result has the outcomes of the summary alone, for `warn_about`: a large
    summary takes long to parse.
    """
    from airpath import _native

    for option, truth in (("capture", capture), ("log", log)):
        if not isinstance(truth, bool):
            raise TypeError(f"{option} is a {type(truth).__name__}; give True or False")
    repeat = repetitions_of(scenario) if repeat is None else whole_number("repeat", repeat)
    seed = None if seed is None else whole_number("seed", seed)
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; a run has at least one")
    if repeat < 1:
        raise ValueError(f"repeat is {repeat}; a run has at least one repetition")
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed is {seed}; select one from 0 to {MAX_SEED}")
    text, name = read_scenario(scenario)
    sets = override_texts(set)
    if out is not None:
        needed = _native.files(
            text, name, sets
        )  # before an earlier result is removed: a wrong scenario must not cost it
        _check_earlier_result(
            out,
            tomllib.loads(_native.resolve(text, name, sets)) | ({} if seed is None else {"seed": seed}),
            repeat=repeat,
            capture=capture,
            log=log,
        )
        clear_result_folder(out, keep=needed)
    folder = None if out is None else str(out)
    return _native.run(text, name, sets, seed, first, repeat, folder, capture, log, threads, progress)


def resolve(scenario: str | Path | Mapping[str, Any], *, set: Mapping[str, Any] | None = None) -> str:
    """Return a scenario as TOML with overrides and presets applied, without running it.

    Raises:
        ScenarioError: The scenario is invalid.
        FileNotFoundError: There is no such scenario file and no such preset.
    """
    from airpath import _native

    text, name = read_scenario(scenario)
    return _native.resolve(text, name, override_texts(set))


def override_texts(overrides: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return overrides as on the command line: text unchanged, other values as TOML."""
    if overrides is not None and not isinstance(overrides, Mapping):
        raise TypeError(f"set is a {type(overrides).__name__}; write a dictionary, as in {{'bearer.bler': 0.1}}")
    texts = []
    for key, value in (overrides or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"a key of set has type {type(key).__name__}; write a path, as in {{'bearer.bler': 0.1}}")
        texts.append((key, str(value) if isinstance(value, str | Path) else _inline(value)))
    return texts


def plain(value: Any) -> Any:
    """Return a scalar or an array of NumPy, or a series of pandas, as Python's own values."""
    to_list = None if isinstance(value, type) else getattr(value, "tolist", None)
    return to_list() if callable(to_list) else value


def whole_number(name: str, value: Any) -> int:
    """Return an argument that is a whole number, also one of NumPy.

    Raises:
        TypeError: It is another one.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a {type(value).__name__}; give a whole number") from None


def _inline(value: Any) -> str:
    """Return a value as TOML on one line, which TOML libraries do not offer."""
    match plain(value):
        case bool() as truth:
            return "true" if truth else "false"
        case int() | float() as number:
            return repr(number)
        case str() | Path():
            # A JSON string is a TOML basic string except for DEL, which TOML requires escaped (TOML
            # 1.0, String).
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping() as table:
            return "{" + ", ".join(f"{_inline(key)} = {_inline(each)}" for key, each in table.items()) + "}"
        case Iterable() as values:
            return "[" + ", ".join(_inline(each) for each in values) + "]"
        case _:
            raise TypeError(f"{type(value).__name__} is no TOML value; use text, a number, a list or a dictionary")


def _check_earlier_result(out: Path, scenario: dict[str, Any], *, repeat: int, capture: bool, log: bool) -> None:
    """Check that a run in `out` loses nothing that an earlier one there has.

    An earlier result without a summary, or with one that cannot be read, has nothing to lose.

    Args:
        out: The result folder.
        scenario: The resolved scenario of the new run.
        repeat: The number of repetitions of the new run.
        capture: Whether it has captures.
        log: Whether it has event tables.

    Raises:
        FileExistsError: The earlier result has another scenario or seed, or more.
    """
    try:
        repetitions = len(json.loads((out / "summary.json").read_bytes())["repetitions"])
        earlier = tomllib.loads((out / "scenario.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return
    if repetitions == 0:
        return
    fault = None
    if not _is_same_scenario(earlier, scenario, out):
        seeds = earlier.get("seed"), scenario.get("seed")
        other = earlier | {"seed": scenario.get("seed")}
        same_but_seed = seeds[0] != seeds[1] and _is_same_scenario(other, scenario, out)
        fault = f"a result with seed {seeds[0]}" if same_but_seed else "the result of another scenario"
    elif repetitions > repeat:
        fault = f"{repetitions} repetitions, and this run has {repeat}"
    elif (out / "captures").is_dir() and not capture:
        fault = "captures, and this run has none"
    elif (out / "events").is_dir() and not log:
        fault = "event tables, and this run has none"
    if fault is not None:
        raise FileExistsError(
            f"{out} has {fault}: nothing was run; name another folder, or remove this one first: "
            f"`rm -r {shlex.quote(str(out))}`"
        )


def _is_same_scenario(earlier: Any, new: Any, out: Path) -> bool:
    """Return whether resolved scenarios are equal; a file equals a copy with its content."""
    if isinstance(earlier, dict) and isinstance(new, dict):
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


def clear_result_folder(folder: Path, *, keep: Iterable[Path] = ()) -> None:
    """Remove an earlier result from a folder, and no other files.

    Args:
        folder: The result folder.
        keep: Files that the new run reads; they are kept if they are inputs of the earlier result.

    Raises:
        FileExistsError: The folder has a file that no run wrote, or is a file.
        OSError: The folder cannot be written, or there is no room; nothing was removed.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; select a folder for the result")
    entries = list(folder.iterdir())
    if entries and not is_result(folder):
        raise FileExistsError(f"{folder} is not empty and holds no airpath result; name a new or an empty folder")
    foreign = sorted(entry.name for entry in entries if not is_written_by_a_run(entry.name))
    if foreign:
        raise FileExistsError(f"{folder} holds '{foreign[0]}', which no run wrote; move it away or name another folder")
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
