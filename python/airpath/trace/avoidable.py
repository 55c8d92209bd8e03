"""Avoidable time: its definition, its sum, and connections in the order of it."""

from collections.abc import Iterable, Mapping
from functools import cache

from airpath.quantities import seconds
from airpath.trace.causes import seconds_of
from airpath.trace.format import Row, percent

AVOIDABLE = "Avoidable is the time explained neither by the path (a full link, latency) nor by the applications."
"""Defines avoidable time."""
SUM_OF_CONNECTIONS = (
    "That of a connection may pass while others fill the link, so the sum over connections is no time that the client "
    "can gain."
)
"""Why the avoidable time of a client is less than the sum over its connections."""
_LEAST_AVOIDABLE = 0.05
"""A smaller share of avoidable time does not put a connection first."""


def avoidable(flow: Row) -> float:
    """Return the seconds explained neither by the path nor by the applications.

    Of a connection that is captured in one direction only, 0.
    """
    return 0.0 if flow.get("captured_end") else _avoidable(seconds_of(flow))


def _avoidable(totals: Mapping[str, float]) -> float:
    return sum(total for name, total in totals.items() if name not in _unavoidable())


@cache
def _unavoidable() -> frozenset[str]:
    """Return the causes that do not count as avoidable time."""
    from airpath import _native

    return frozenset(name for name, is_avoidable in _native.trace_causes() if not is_avoidable)


def avoidable_sentence(totals: Mapping[str, float]) -> str:
    """Return a sentence with the avoidable part of a time.

    Args:
        totals: The seconds of each cause by its name.
    """
    part, whole = _avoidable(totals), sum(totals.values())
    return (
        f"Avoidable: {seconds(part)} ({percent(round(100 * part / whole))})." if part and whole else "Avoidable: none."
    )


def order(connections: Iterable[Row]) -> str:
    """Return a sentence with the order of `worst_first`."""
    much = [avoidable(flow) >= _LEAST_AVOIDABLE * flow["duration_s"] for flow in connections]
    if not any(much):
        return "The longest first: none has 5\u00a0% of avoidable time."
    if all(much):
        return "Most avoidable first."
    return "Most avoidable first; then those with less than 5\u00a0%, the longest first."


def worst_first(connections: Iterable[Row]) -> list[Row]:
    """Return connections by avoidable time, the most first.

    Those with a share below 5 % come last, by duration: so little has no cause worth a search.
    """

    def key(flow: Row) -> tuple[float, float, int]:
        part = avoidable(flow)
        return (
            -part if part >= _LEAST_AVOIDABLE * flow["duration_s"] else 0.0,
            -flow["duration_s"],
            flow["connection"],
        )

    return sorted(connections, key=key)


def longest_first(connections: Iterable[Row]) -> list[Row]:
    """Return connections by duration, the longest first."""
    return sorted(connections, key=lambda flow: (-flow["duration_s"], flow["connection"]))
