"""What a shell completes: names of presets, and keys of `--set`."""

import tomllib
from collections.abc import Iterable
from glob import escape
from pathlib import Path
from typing import Any

import typer


def complete_preset(incomplete: str) -> list[str]:
    """Return the names of presets, and common names of bearers, that start with the given text."""
    from airpath.preset import common_names, presets

    names = [*common_names(), *(each.name for each in presets())]
    return [name for name in names if name.startswith(incomplete)]


def complete_scenario(incomplete: str) -> list[str]:
    """Return the bearers' presets, and the TOML files and folders, that start with it."""
    from airpath.preset import common_names, presets

    bearers = [*common_names(), *(each.name for each in presets() if each.kind == "bearer")]
    names = [name for name in bearers if name.startswith(incomplete)]
    paths = sorted(Path().glob(f"{escape(incomplete)}*"))
    return names + [
        f"{path}/" if path.is_dir() else str(path) for path in paths if path.is_dir() or path.suffix == ".toml"
    ]


def complete_override(context: typer.Context, incomplete: str) -> list[str]:
    """Return the keys of the command's scenario that start with the given text, each with `=`."""
    from airpath._native import ScenarioError
    from airpath.run import resolve

    # While a shell completes, arguments are not parsed yet.
    given = context.params.get("link") or next(iter(context.args), "gprs")
    try:
        resolved = tomllib.loads(resolve(given))
    except (ScenarioError, OSError, ValueError):  # there is no valid scenario
        return []
    flow = next(iter(resolved.get("flow", [])), {})
    tables = {key: table for key, table in resolved.items() if isinstance(table, dict)}
    keys = [*_dotted({"flow": flow} | tables), *_dotted({"tcp": flow.get("tcp", {})})]
    return [f"{key}=" for key in dict.fromkeys(keys) if key.startswith(incomplete)]


def _dotted(table: dict[str, Any], prefix: str = "") -> Iterable[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key
