"""What a flow's time is put down to: the causes in their order, in words, and how they are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airpath import theme


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of elapsed time."""

    name: str
    """As the tables have it."""
    words: str
    """As a sentence has it."""
    meaning: str
    """When time is put down to it."""
    colour: theme.Colour
    pattern: str
    """Plotly's name of the hatching that tells it from another of the same colour."""

    @property
    def column(self) -> str:
        """The column of `Trace.connections` with its seconds."""
        return f"{self.name.replace('-', '_')}_s"


def _cause(name: str, words: str, meaning: str, family: int, pattern: str = "") -> Cause:
    return Cause(name, words, meaning, theme.CAUSES[family], pattern)


CAUSES: tuple[Cause, ...] = (
    _cause("set-up", "connection set-up", "the handshake", 0, "x"),
    _cause("application", "waiting for the applications", "they had nothing to send: request to reply, think time", 0),
    _cause("slow-start", "slow start", "the sender had not found the path's rate yet", 1),
    _cause("receive-window", "receiver's window", "the receiver had no more room", 2),
    _cause("congestion-window", "congestion window", "the sender's window was smaller than the path", 2, "/"),
    _cause("path-rate", "path at its rate", "the link was full: as fast as it gets", 3),
    _cause("queueing", "queueing", "the link was full, with more than a round trip of data in front of it", 3, "/"),
    _cause("radio", "radio silent", "nothing came through: an outage, a handover, a reselection", 4),
    _cause("timer", "waiting for the timer", "the path was back, the retransmission timer had not gone off", 4, "/"),
    _cause("recovery", "loss recovery", "what was lost was sent again", 5),
    _cause("spurious", "spurious retransmission", "what had arrived was sent again", 5, "/"),
    _cause("closing", "closing", "all data had arrived; the connection was taken down", 0, "/"),
)
"""In the order in which they are listed and drawn."""


def seconds_of(flow: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each cause that took any, by its name, in their order."""
    return {each.name: flow[each.column] for each in CAUSES if flow.get(each.column)}


def of_name(name: str) -> Cause:
    """Return the cause of that name."""
    return next(each for each in CAUSES if each.name == name)


def shares(parts: Mapping[str, float], digits: int = 0) -> dict[str, float]:
    """Return the parts of a whole in per cent, rounded so that they still add up to 100.

    The largest remainders are rounded up, as seats are given out by the method of Hare and Niemeyer.

    Args:
        parts: What each has of the whole, none below zero.
        digits: Digits after the point.
    """
    whole = sum(parts.values())
    if whole <= 0:
        return dict.fromkeys(parts, 0.0)
    units = 100 * 10**digits
    exact = {name: part / whole * units for name, part in parts.items()}
    rounded = {name: int(value) for name, value in exact.items()}
    left = units - sum(rounded.values())
    for name in sorted(exact, key=lambda name: rounded[name] - exact[name])[:left]:
        rounded[name] += 1
    return {name: value / 10**digits for name, value in rounded.items()}
