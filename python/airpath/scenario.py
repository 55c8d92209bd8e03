"""Scenarios as they are given: a file, a preset's name, text, or a dictionary."""

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from airpath.files import printable, read_text
from airpath.input_kind import kind_of_folder
from airpath.suggest import most_similar
from airpath.summary_outline import outline_of

COMMAND_LINE = "command line"
"""The name of a scenario that is made from an argument: it has no lines."""
DICTIONARY = "<dictionary>"
"""The name of a scenario without a file, such as that of a preset's name."""


def read_scenario(scenario: str | Path | Mapping[str, Any]) -> tuple[str, str]:
    """Return a scenario's TOML text, and its name for messages.

    The name of a bearer's preset is a download of 100 kB over it, as of `airpath run`. A result
    folder has the scenario of its run.

    Raises:
        FileNotFoundError: There is no such scenario file and no such preset.
        ScenarioError: The preset is not of a bearer.
        NotTextError: The file is not UTF-8 text.
    """
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, "<text>"
    if not isinstance(scenario, Mapping):
        if not isinstance(scenario, str | Path):
            raise TypeError(
                f"scenario has type {type(scenario).__name__}; give a path, a preset's name, TOML or a dictionary"
            )
        path = Path(scenario)
        if (repeated := scenario_of_result(path)) is not None:
            return read_text(repeated), printable(repeated)
        if path.is_dir() and (kind := kind_of_folder(path)) is not None:
            raise IsADirectoryError(f"{path} is {kind[0]}, not a scenario; {kind[1]}")
        # Another folder is no file either; reading it reports that.
        if path.exists():
            return read_text(path), printable(scenario)
        name = bearer_preset(path)
        if name is None:
            match = similar(path)
            hint = f"; did you mean '{match}'?" if match else "; name a file, or a preset of airpath.presets()"
            raise FileNotFoundError(f"no scenario file '{printable(scenario)}'{hint}")
        scenario = download_over(name)
    import tomli_w

    return tomli_w.dumps(scenario), DICTIONARY


def scenario_of_result(folder: Path) -> Path | None:
    """Return the file of the resolved scenario in a result folder; `None` of other paths."""
    scenario = folder / "scenario.toml"
    return scenario if scenario.is_file() and (folder / "summary.json").is_file() else None


def repetitions_of(scenario: str | Path | Mapping[str, Any]) -> int:
    """Return the number of repetitions of a result folder; of other scenarios 1."""
    if not isinstance(scenario, str | Path) or (isinstance(scenario, str) and "\n" in scenario):
        return 1  # reading another type reports it
    folder = Path(scenario)
    if scenario_of_result(folder) is None:
        return 1
    outline = outline_of(folder)
    return 1 if outline is None else max(1, outline.repetitions)


def is_plan(file: Path) -> bool:
    """Return whether a file is the plan of a sweep and not a scenario."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "bearer" not in data and bool({"scenario", "axes", "study"} & data.keys())


def download_over(name: str) -> dict[str, Any]:
    """Return a scenario: a download of 100 kB over a bearer's preset."""
    return {
        "format": 1,
        "name": f"download over {name}",
        "bearer": {"preset": name},
        "flow": [{"kind": "download", "bytes": "100 kB"}],
    }


def name_after(scenario: str, preset: str | None, kind: str = "download") -> str | None:
    """Return the name of a scenario of `download_over` with another preset or kind of flow.

    Args:
        scenario: The scenario, as TOML.
        preset: The preset; `None` for that of the scenario.
        kind: The kind of its flow.

    Returns:
        `None` if the scenario has a name of its own, or cannot be read.
    """
    own, _ = _generated(scenario)
    return None if own is None else f"{kind} over {preset or own}"


def has_download(scenario: str) -> bool:
    """Return whether a scenario, as TOML, is one of `download_over` with its flow."""
    return _generated(scenario)[1]


@lru_cache(maxsize=4)
def _generated(scenario: str) -> tuple[str | None, bool]:
    """Return the preset of a scenario of `download_over`, and whether its flow is the same.

    A sweep calls it for each case.
    """
    try:
        data = tomllib.loads(scenario)
        preset = data["bearer"]["preset"]
        generated = download_over(preset)
    except (ValueError, KeyError, TypeError):
        return None, False
    if data.get("name") != generated["name"]:
        return None, False
    return preset, data.get("flow") == generated["flow"]


def bearer_preset(scenario: Path) -> str | None:
    """Return the name of the bearer's preset that was given in place of a scenario file.

    Raises:
        ScenarioError: It is a preset of another kind.
    """
    from airpath import _native

    if len(scenario.parts) != 1 or scenario.suffix:
        return None
    try:
        found = json.loads(_native.preset(str(scenario)))
    except (_native.ScenarioError, UnicodeEncodeError):  # a file's name may be any bytes, a preset's is text
        return None
    if found["kind"] != "bearer":
        raise _native.ScenarioError(f"'{scenario}' is a preset of kind {found['kind']}; a run needs one of a bearer")
    return found["name"]


def similar(scenario: Path) -> str | None:
    """Return the scenario file, or the bearer's preset, whose name is most similar."""
    from airpath import _native

    known = {each.stem: str(each) for each in scenario.parent.glob("*.toml")}
    if len(scenario.parts) == 1 and scenario.suffix != ".toml":
        presets = (each for each in json.loads(_native.presets()) if each["kind"] == "bearer")
        common = {name: name for name, _ in _native.common_names()}
        known = common | {each["name"]: each["name"] for each in presets} | known
    match = most_similar(scenario.name.removesuffix(".toml"), known, cutoff=0.6)
    return known[match] if match else None


def next_step_without(scenario: Path) -> str:
    """Return what to do about a scenario file that does not exist."""
    match = similar(scenario)
    if match:
        return f"did you mean '{match}'?"
    if scenario.parts[:1] == ("examples",):
        return "the examples are in the repository, not in the package; a preset needs no file: `airpath run gprs`"
    return "check the path, or name a preset: `airpath presets list`"
