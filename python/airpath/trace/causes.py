"""The causes of a connection's elapsed time: their order, texts and colours."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airpath import theme


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of elapsed time."""

    name: str
    """Its name in the tables."""
    words: str
    """Its text in sentences."""
    meaning: str
    """Which time is attributed to it."""
    colour: theme.Colour
    pattern: str
    """Plotly's name of the hatching; it distinguishes causes of the same colour."""

    @property
    def column(self) -> str:
        """The column of `Trace.connections` with its seconds."""
        return f"{self.name.replace('-', '_')}_s"


def _cause(name: str, words: str, meaning: str, family: int, pattern: str = "") -> Cause:
    return Cause(name, words, meaning, theme.CAUSES[family], pattern)


CAUSES: tuple[Cause, ...] = (
    _cause("set-up", "connection set-up", "the handshake", 0, "x"),
    _cause(
        "application",
        "waiting for the applications",
        "no data to send, and none in transit: time from request to reply, think time",
        0,
    ),
    _cause(
        "latency",
        "latency of the path",
        "the last data of a request or reply was in transit, the link not full",
        1,
        "/",
    ),
    _cause("slow-start", "slow start", "the sender had not reached the path's rate yet", 1),
    _cause("receive-window", "receiver's window", "the receive window was full", 2),
    _cause(
        "congestion-window",
        "congestion window",
        "the congestion window was smaller than the bandwidth-delay product",
        2,
        "/",
    ),
    _cause(
        "sender",
        "waiting for the sender",
        "the sender of a QUIC flow did not send, although the path could carry data: why is encrypted",
        2,
        "x",
    ),
    _cause("path-rate", "link saturated", "the link was fully used", 3),
    _cause("queueing", "queueing", "the link was fully used, with more than a round trip of data queued", 3, "/"),
    _cause("sharing", "sharing", "the link carried other connections of the same client first", 3, "x"),
    _cause(
        "radio",
        "path silent",
        "the path carried nothing: an outage, a handover or a reselection of a radio, a failed link",
        4,
    ),
    _cause(
        "timer",
        "waiting for the timer",
        "the path carried data again, the retransmission timer had not expired",
        4,
        "/",
    ),
    _cause("recovery", "loss recovery", "lost data was retransmitted", 5),
    _cause("spurious", "spurious retransmission", "data was retransmitted although it had arrived", 5, "/"),
    _cause("closing", "closing", "all data had arrived; the connection was being closed", 0, "/"),
)
"""In the order of lists and figures."""


def seconds_of(flow: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each cause with any, by its name, in the order of `CAUSES`."""
    return {each.name: flow[each.column] for each in CAUSES if flow.get(each.column)}


def of_name(name: str, *, radio: bool = False) -> Cause:
    """Return the cause of that name.

    Args:
        name: Its name.
        radio: Whether a radio log shows that the path has a radio: it carried nothing, or delayed
            packets.
    """
    cause = next(each for each in CAUSES if each.name == name)
    return replace(cause, words="waiting for the radio") if radio and name == "radio" else cause


OTHER = "of other causes"
"""The key of `cause_shares` of the causes that a sentence combines."""
_SMALL = 0.01
"""A sentence combines the causes whose share is below this, if there are several."""


def small_causes(totals: Mapping[str, float]) -> list[str]:
    """Return the causes that a sentence combines, the longest first.

    Args:
        totals: The seconds of each cause by its name.
    """
    whole = sum(totals.values())
    small = [name for name, total in totals.items() if total < _SMALL * whole]
    return sorted(small, key=lambda name: -totals[name]) if len(small) > 1 else []


def cause_shares(totals: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each cause in per cent, for text and figures alike.

    The causes that a sentence combines also have a share together, with the key `OTHER`: their own
    ones do not count in the sum of 100.

    Args:
        totals: The seconds of each cause by its name.
    """
    small = small_causes(totals)
    combined = {name: total for name, total in totals.items() if name not in small}
    if small:
        combined[OTHER] = sum(totals[name] for name in small)
    whole = sum(totals.values())
    return {name: float(round(100 * totals[name] / whole)) for name in small} | shares(combined)


def shares(parts: Mapping[str, float], digits: int = 0) -> dict[str, float]:
    """Return the parts of a whole in per cent, rounded so that their sum is 100.

    The largest remainders are rounded up (method of Hare and Niemeyer).

    Args:
        parts: The parts, none below zero.
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
