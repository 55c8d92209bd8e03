"""Selectors of connections and QUIC flows, as `--flow` takes them."""

from collections.abc import Iterable

Selector = str | int
"""The number of a connection and a QUIC flow (of one kind: `tcp:3`, `quic:3`), an address, a port
(`:443`), or both (`192.0.2.1:443`)."""
Selection = Selector | Iterable[Selector]
"""One selector, or several that select the connections of each."""


def selectors(flow: Selection | None) -> tuple[str, ...]:
    """Return the selectors as texts; an empty tuple selects all connections."""
    if flow is None:
        return ()
    return (str(flow),) if isinstance(flow, str | int) else tuple(map(str, flow))


def connection_number(selector: str) -> int | None:
    """Return the number of the connection that a selector selects; `None` if it has no number."""
    number = selector.removeprefix("tcp:")
    return int(number) if number.isdecimal() else None


def arguments(flow: tuple[str, ...]) -> list[str]:
    """Return the arguments of `airpath trace` with these selectors."""
    return [word for each in flow for word in ("--flow", each)]
