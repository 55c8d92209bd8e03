"""Runs scenarios, and reads them: what `airpath.run` and the command line share."""

import json
import operator
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from airpath.result_folder import NewResult, new_result
from airpath.scenario import has_download, name_after, read_scenario, repetitions_of

MAX_SEED = 2**63 - 1
"""The largest seed: TOML has integers of 64 bits with a sign."""


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

    seed, repeat, threads = checked(scenario, seed, repeat, threads, capture=capture, log=log)
    text, name = read_scenario(scenario)
    sets = override_texts_for(text, set)
    place = nullcontext()
    if out is not None:
        resolved = tomllib.loads(_native.resolve(text, name, sets)) | ({} if seed is None else {"seed": seed})
        place = new_result(out, NewResult("run", resolved, repeat=repeat, capture=capture, log=log))
    with place as folder:
        written = None if folder is None else str(folder)
        return _native.run(text, name, sets, seed, first, repeat, written, capture, log, threads, progress)


def checked(
    scenario: str | Path | Mapping[str, Any],
    seed: int | None,
    repeat: int | None,
    threads: int | None,
    *,
    capture: bool,
    log: bool,
) -> tuple[int | None, int, int | None]:
    """Return seed, repetitions and threads of a run as numbers of Python.

    Raises:
        TypeError: An argument has another type.
        ValueError: A number is out of range.
    """
    for option, truth in (("capture", capture), ("log", log)):
        if not isinstance(truth, bool):
            raise TypeError(f"{option} is a {type(truth).__name__}; give True or False")
    repeat = repetitions_of(scenario) if repeat is None else whole_number("repeat", repeat)
    seed = None if seed is None else whole_number("seed", seed)
    threads = None if threads is None else whole_number("threads", threads)
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; a run has at least one")
    if repeat < 1:
        raise ValueError(f"repeat is {repeat}; a run has at least one repetition")
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed is {seed}; select one from 0 to {MAX_SEED}")
    return seed, repeat, threads


def resolve(scenario: str | Path | Mapping[str, Any], *, set: Mapping[str, Any] | None = None) -> str:
    """Return a scenario as TOML with overrides and presets applied, without running it.

    Raises:
        ScenarioError: The scenario is invalid.
        FileNotFoundError: There is no such scenario file and no such preset.
    """
    from airpath import _native

    text, name = read_scenario(scenario)
    return _native.resolve(text, name, override_texts_for(text, set))


def override_texts_for(text: str, overrides: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return overrides of a scenario, given as TOML, as on the command line.

    For the scenario of a preset, add a name that fits what they select. Another kind of flow
    replaces the download: it has no `bytes`.
    """
    texts = override_texts(overrides)
    values = {key.replace("flow.0.", "flow."): value.strip("\"'") for key, value in texts}
    kind = values.get("flow.kind", "download")
    name = name_after(text, values.get("bearer.preset"), kind)
    if name is None:
        return texts
    is_download = has_download(text) and kind not in ("download", "upload")
    flow = [("flow", f"[{{ kind = '{kind}' }}]")] if is_download else []
    is_named = "name" in values or name_after(text, None) == name
    return [*flow, *texts, *([] if is_named else [("name", name)])]


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
