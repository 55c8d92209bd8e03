"""Radio logs of result folders and CSV files, in the form that the core reads.

The states and changes of conditions that a run logged become the intervals in which the radio
carried nothing, or delayed data, in the time of its captures. Packets are not used: the log has
what an operator's log has.
"""

import tomllib
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.files import read_text
from airpath.result import NotLoggedError, Result, load

if TYPE_CHECKING:
    import polars as pl

Log = tuple[str | None, str, dict[str, str]]
"""The mobile's address, `None` for that of every client; the log as CSV; and its column map."""

FIXED_OUTAGE = "fixed-network-outage"
"""The name of an outage that is none of the radio; the mobile waits for it all the same."""
_FIXED = ("fixed", "access")
"""The components of the fixed network."""
_SIMULATED_ORIGIN = 1_000_000_000 * 10**9
"""The time of the run's start in captures of simulated runs (`docs/result-folder.md`)."""
_FIRST_MOBILE = IPv4Address("10.0.0.2")
"""The address of a simulated run's first mobile."""
_INTERFACES = ("100.64.0.2", "100.65.0.2")
"""The addresses of an emulated mobile with two interfaces."""


def of_file(path: Path, columns: Mapping[str, str]) -> list[Log]:
    """Return the log of a CSV file.

    Raises:
        NotTextError: It is not text.
        OSError: It cannot be read.
    """
    return [(None, read_text(path), dict(columns))]


def of_result(folder: Path, repetition: int) -> list[Log]:
    """Return the log of each interface of each mobile of a result folder.

    An empty list if the run did not log its radio, or chose the bearers of its flows: then an
    address does not show which radio carried a packet.

    Raises:
        UnreadableResultError: The folder is no result.
    """
    result = load(folder)
    origin, emulated = origin_of(result), "emulation" in result.summary
    mobiles = mobiles_of(result)
    logs: list[Log] = []
    if "steering" in tomllib.loads(result.scenario):
        return logs
    for user in range(len(mobiles)):
        rows = sorted(_intervals(result, repetition, user, mobiles[user]), key=lambda row: row[:2])
        own = _INTERFACES[user % len(_INTERFACES)] if emulated else address_of(user)
        address = None if len(mobiles) == 1 else own
        lines = [f"{origin + begin},{origin + end},{direction or ''},{name}" for begin, end, direction, name in rows]
        if lines:
            logs.append((address, "\n".join(["begin,end,direction,name", *lines]), {}))
    return logs


def addresses(folder: Path) -> dict[str, str]:
    """Return the addresses of a simulated run's mobiles by their names; of an emulated link none.

    Raises:
        UnreadableResultError: The folder is no result.
    """
    result = load(folder)
    if "emulation" in result.summary:
        return {}
    return {name: address_of(user) for user, name in enumerate(mobiles_of(result))}


def address_of(user: int) -> str:
    """Return the address of a simulated run's mobile by its number."""
    return str(_FIRST_MOBILE + user)


def origin_of(result: Result) -> int:
    """Return the time of a run's start in its captures, in nanoseconds since 1970."""
    emulated = result.summary.get("emulation")
    return round(emulated["started_s"] * 1e9) if emulated else _SIMULATED_ORIGIN


def mobiles_of(result: Result) -> list[str]:
    """Return the names of a run's mobiles, in the order of their numbers."""
    names = [component["name"] for component in result.summary["components"]]
    return names[names.index("server") + 1 :] if "server" in names else names[-1:]


def _intervals(result: Result, repetition: int, user: int, name: str) -> Iterator[tuple[int, int, str | None, str]]:
    """Yield the intervals in which the radio of a mobile `name` carried nothing, or delayed data.

    Start, end, direction, name.
    """
    import polars as pl

    try:
        changes = result.changes.filter(pl.col("repetition") == repetition, pl.col("duration").is_not_null())
        own = changes.filter(pl.col("user").is_null() | (pl.col("user") == user))
        own = own.filter(pl.col("component").is_in(_bearers(name)))
        for time, duration, direction, kind in own.select("time", "duration", "direction", "kind").rows():
            yield time, time + duration, direction, kind
        fixed = changes.filter(pl.col("component").is_in(_FIXED))
        for time, duration, direction in fixed.select("time", "duration", "direction").rows():
            yield time, time + duration, direction, FIXED_OUTAGE
        states = result.states.filter(pl.col("repetition") == repetition, pl.col("user") == user)
    except NotLoggedError:
        return
    if states.height:
        # The last state of a track lasts until the run ends.
        lengths = [row["simulated_s"] for row in result.summary["repetitions"] if row["repetition"] == repetition]
        last = max([states["time"].to_list()[-1], *(round(length * 1e9) for length in lengths)])
        yield from _states(states.filter(pl.col("name").is_not_null()), last)


def _bearers(name: str) -> list[str]:
    """Return the names that the bearer of a mobile can have, or of a second interface."""
    mobile = name.removesuffix("-second")
    prefix = "" if mobile == name else "second-"
    return [f"{prefix}cell", f"{prefix}bearer-{mobile}", "bearer"]


def _states(states: "pl.DataFrame", last: int) -> Iterator[tuple[int, int, str | None, str]]:
    """Yield the intervals in states with an effect: start, end, direction, name."""
    # Not at the top: `import airpath` must not load the core.
    from airpath._native import states_with_effect

    with_effect = frozenset(states_with_effect())
    for track in states.partition_by("component", "aspect", "direction", maintain_order=True):
        aspect = str(track["aspect"][0])
        times = track["time"].to_list()
        for begin, end, direction, name in zip(
            times, [*times[1:], last], track["direction"], track["name"], strict=True
        ):
            if (aspect, name) in with_effect and end > begin:
                yield begin, end, direction, name
