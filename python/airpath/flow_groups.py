"""Groups of flows: those of one `[[flow]]` table over the mobiles of one `[[mobile]]` table."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_NUMBERED = re.compile(r"(.+)-\d+")


def group_names(flows: Iterable[tuple[str, str]], scenario: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the name of the group of each flow.

    It is the name of the `[[flow]]` table, with that of the mobiles' group if the table has flows
    of several. A flow that is alone keeps its own name.

    Args:
        flows: The names of each flow and of its mobile.
        scenario: The scenario, as it was written or resolved, with overrides by dotted path.
    """
    tables = _names(scenario, "flow", "kind")
    mobiles = {"mobile", *_names(scenario, "mobile", "name")}
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for flow, mobile in dict.fromkeys(flows):
        groups.setdefault((_table(flow, tables), _table(mobile, mobiles)), []).append((flow, mobile))
    several = [table for table, _ in groups]
    found = {}
    for (table, mobile), members in groups.items():
        name = table if several.count(table) == 1 else f"{table} of {mobile}"
        found |= {member: name if members[1:] else member[0] for member in members}
    return found


def own_name() -> "pl.Expr":
    """Return the expression of a flow's own name: of a real program's connection its server.

    The name of such a connection has the client's port, which differs each time.
    """
    import polars as pl

    has_server = pl.col("remote").is_not_null()
    return pl.when(has_server).then(pl.format("{} {}", "kind", "remote")).otherwise(pl.col("name"))


def is_named(table: str) -> "pl.Expr":
    """Return whether a flow has this name, or is one of several of the `[[flow]]` table of it."""
    import polars as pl

    return (pl.col("name") == table) | pl.col("name").str.contains(rf"^{re.escape(table)}-\d+$")


def names_group(name: str, group: str) -> bool:
    """Whether a name is that of a group, or of the table of a group."""
    return group == name or group.startswith(f"{name} of ")


def known_names(groups: Iterable[str]) -> list[str]:
    """Return the names of groups and of their tables."""
    return list(dict.fromkeys(name for group in groups for name in (group.partition(" of ")[0], group)))


def _table(name: str, tables: set[str]) -> str:
    """Return the table of a flow or mobile by its name, which has a number if they are several."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match and name not in tables and match[1] in tables else name


def _names(scenario: Mapping[str, Any], key: str, default: str) -> set[str]:
    return set(_names_in(scenario, key, default))


def _names_in(scenario: Mapping[str, Any], key: str, default: str) -> Iterator[str]:
    tables = scenario.get(key, [])
    if isinstance(tables, str):  # an override of the whole list
        with suppress(ValueError):
            tables = tomllib.loads(f"{key} = {tables}")[key]
    for table in tables if isinstance(tables, list) else []:
        if isinstance(name := table.get("name", table.get(default)), str):
            yield name
    for path, value in scenario.items():
        if path.startswith(f"{key}.") and path.endswith((".name", f".{default}")):
            yield str(value)
