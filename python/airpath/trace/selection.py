"""Selectors of connections, as `--flow` takes them."""

from collections.abc import Iterable

Selector = str | int
"""The number of a connection, an address, a port (`:443`), or both (`192.0.2.1:443`)."""
Selection = Selector | Iterable[Selector]
"""One selector, or several that select the connections of each."""


def selectors(flow: Selection | None) -> tuple[str, ...]:
    """Return the selectors as texts; an empty tuple selects all connections."""
    if flow is None:
        return ()
    return (str(flow),) if isinstance(flow, str | int) else tuple(map(str, flow))


def arguments(flow: tuple[str, ...]) -> list[str]:
    """Return the arguments of `airpath trace` with these selectors."""
    return [word for each in flow for word in ("--flow", each)]
