"""Radio logs for a trace: of a result folder, in the form in which the core reads them.

What a run told of its radio (states and changes of conditions) becomes the times in which it carried nothing, on the
clock of its captures. Nothing of the packets is looked at: it is what an operator's log would have.
"""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.result import NotLoggedError, Result, load

if TYPE_CHECKING:
    import polars as pl

Log = tuple[str | None, str, dict[str, str]]
"""The mobile's address, `None` for that of every client; the log as CSV; and which columns hold what."""

_SILENT = {
    "tbf": {"establishment", "paging"},
    "mode": {"reselection", "handover", "no-coverage"},
    "link": {"reset", "disconnected", "set-up"},
}
"""The states of each aspect in which nothing is carried."""
_SIMULATED_ORIGIN = 1_000_000_000 * 10**9
"""Where the captures of simulated runs put the beginning of the run (`docs/result-folder.md`)."""
_FIRST_MOBILE = IPv4Address("10.0.0.2")
"""The address of a simulated run's first mobile."""


def of_file(path: Path, columns: Mapping[str, str]) -> list[Log]:
    """Return the log of a CSV file."""
    return [(None, path.read_text(encoding="utf-8"), dict(columns))]


def of_result(folder: Path, repetition: int) -> list[Log]:
    """Return the log of each mobile of a result folder; none if the run did not log its radio.

    Raises:
        UnreadableResultError: The folder is no result.
    """
    result = load(folder)
    origin, emulated = origin_of(result), "emulation" in result.summary
    mobiles = mobiles_of(result)
    logs: list[Log] = []
    for user in range(len(mobiles)):
        rows = sorted(_silences(result, repetition, user), key=lambda row: row[:2])
        address = None if emulated or len(mobiles) == 1 else address_of(user)
        lines = [f"{origin + begin},{origin + end},{way or ''},{name}" for begin, end, way, name in rows]
        if lines:
            logs.append((address, "\n".join(["begin,end,direction,name", *lines]), {}))
    return logs


def addresses(folder: Path) -> dict[str, str]:
    """Return the addresses of a simulated run's mobiles by their names; of a link, whose hosts have their own, none.

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
    """Return when a run began by the clock of its captures, in nanoseconds since 1970."""
    emulated = result.summary.get("emulation")
    return round(emulated["started_s"] * 1e9) if emulated else _SIMULATED_ORIGIN


def mobiles_of(result: Result) -> list[str]:
    """Return the names of a run's mobiles, in the order of their numbers."""
    names = [component["name"] for component in result.summary["components"]]
    return names[names.index("server") + 1 :] if "server" in names else names[-1:]


def _silences(result: Result, repetition: int, user: int) -> Iterator[tuple[int, int, str | None, str]]:
    """Yield when a mobile's radio carried nothing: from, to, which way, and what it was."""
    import polars as pl

    try:
        changes = result.changes.filter(pl.col("repetition") == repetition, pl.col("duration").is_not_null())
        own = changes.filter(pl.col("user").is_null() | (pl.col("user") == user))
        for time, duration, way, kind in own.select("time", "duration", "direction", "kind").rows():
            yield time, time + duration, way, kind
        states = result.states.filter(pl.col("repetition") == repetition, pl.col("user") == user)
    except NotLoggedError:
        return
    if states.height:
        yield from _states(states.filter(pl.col("name").is_not_null()), states["time"].to_list()[-1])


def _states(states: "pl.DataFrame", last: int) -> Iterator[tuple[int, int, str | None, str]]:
    for lane in states.partition_by("component", "aspect", "direction", maintain_order=True):
        silent = _SILENT.get(str(lane["aspect"][0]), set())
        times = lane["time"].to_list()
        for begin, end, way, name in zip(times, [*times[1:], last], lane["direction"], lane["name"], strict=True):
            if name in silent and end > begin:
                yield begin, end, way, name
