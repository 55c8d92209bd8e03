"""Quantities as text and from text, for terminal, reports and frames; definitions of figures."""

import re
from dataclasses import dataclass
from decimal import Decimal

TRANSFER_CLOCK = (
    "Time runs from the start of a flow, any handshake included, until the last byte reaches the receiving "
    "application; throughput is the bytes over that time."
)
"""Definition of the times and rates of transfers."""
DELAY_CLOCK = (
    "The delay of a ping is its round trip, of a datagram its one-way delay, of a transaction the time from its "
    "request (or its connection, if it opens one) to the last byte of its response."
)
"""Definition of the delays of pings, datagrams and transactions."""
PAGE_CLOCK = (
    "Page time runs from the request of the user until all objects are complete and processed; idle is the part of it "
    "in which the downlink could have carried more at its highest rate."
)
"""Definition of the times of pages."""

PLAYBACK_CLOCK = (
    "Start-up is the time from the start of a stream to its first frame; a frame can be decoded if it and the frames "
    "that it refers to were complete when they were due."
)
"""Definition of the figures of videos."""

SEGMENT_CLOCK = (
    "Start-up is the time from the start of a video over HTTP to the start of playback; quality is the mean rate of "
    "the media that arrived, and a switch is a segment with another quality than the one before."
)
"""Definition of the figures of videos over HTTP."""

CALL_CLOCK = (
    "Mouth to ear is the mean time from a sound at the talker to its playout: frame, network and jitter buffer. A "
    "frame that was lost or late is not played out. MOS is the mean opinion score of the E-model (ITU-T G.107; "
    "G.107.1 for wideband codecs)."
)
"""Definition of the figures of calls."""


_LONG = (("years", 365.25 * 86_400), ("days", 86_400.0), ("h", 3_600.0))
"""The units of long spans, with their seconds."""


def seconds(value: float) -> str:
    """Return a span as text: three or four digits, `ms` below a second, hours or more if long."""
    for unit, length in _LONG:
        if abs(value) >= 2 * length:
            return f"{value / length:.4g} {unit}"
    return f"{value * 1e3:.4g} ms" if value < 1 else f"{value:,.1f} s" if value >= 1000 else f"{value:.4g} s"


def span(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 9.5 else f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def time_left(done: int, total: int, elapsed: float) -> str:
    """Return the time left, from that of what is done, as text; empty before anything is done."""
    return f"{span(elapsed * (total - done) / done)} left" if 0 < done < total else ""


def rate(value: float) -> str:
    """Return bits per second as text."""
    return _scaled(value, "bit/s", 4)


def size(value: float) -> str:
    """Return bytes as text, with decimal prefixes."""
    return _scaled(value, "B", 4)


def parse_size(text: str) -> int:
    """Parse a size of a scenario, in bytes: `20 kB`, `40 B`, `64 KiB`.

    Raises:
        ValueError: It is no size.
    """
    size = parse_quantity(text)
    if size is None or size.suffix != "bytes":
        raise ValueError(f"'{text}' is no size")
    return round(size.base)


def parse_time(text: str) -> float:
    """Parse a time, in seconds: `1 s`, `500 ms`, `0 s`.

    Raises:
        ValueError: It is no time.
    """
    time = parse_quantity(text)
    if time is None or time.suffix != "s":
        raise ValueError(f"'{text}' is no time with a unit")
    return time.base


def parse_seconds(text: str) -> float:
    """Parse a time above zero, in seconds.

    Raises:
        ValueError: It is no time, or not positive.
    """
    value = parse_time(text)
    if value <= 0:
        raise ValueError(f"'{text}' is no positive time")
    return value


_KINDS = {
    "s": {"ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600"},
    "bps": {
        "bit/s": "1",
        "kbit/s": "1e3",
        "Mbit/s": "1e6",
        "Gbit/s": "1e9",
        "bps": "1",
        "kbps": "1e3",
        "Mbps": "1e6",
        "Gbps": "1e9",
    },
    "bytes": {"B": "1", "kB": "1e3", "MB": "1e6", "GB": "1e9", "KiB": "1024", "MiB": "1048576", "GiB": "1073741824"},
    "m": {"mm": "1e-3", "m": "1", "km": "1e3"},
    "kmh": {"mm/h": "1e-6", "km/h": "1", "m/s": "3.6"},
    "hz": {"Hz": "1", "kHz": "1e3", "MHz": "1e6", "GHz": "1e9"},
    "db": {"dB": "1"},
    "share": {"%": "0.01"},
}
"""The units of a scenario, each with its factor, by the end of the name of a column in the base
unit."""
_UNITS = {unit: (suffix, Decimal(factor)) for suffix, units in _KINDS.items() for unit, factor in units.items()}
_NUMBER = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s].*?)?\s*")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, as in a scenario."""

    number: float
    """The number as it is written."""
    unit: str
    base: float
    """The number in the base unit."""
    suffix: str
    """The end of the name of a column in the base unit: `s`, `bps`, `bytes`, `share` and so on."""


def parse_quantity(text: str) -> Quantity | None:
    """Return the quantity that a text is; `None` for any other text."""
    number, unit = split_quantity(text) or (Decimal(0), "")
    if unit not in _UNITS:
        return None
    suffix, factor = _UNITS[unit]
    return Quantity(float(number), unit, float(number * factor), suffix)


def split_quantity(text: str) -> tuple[Decimal, str] | None:
    """Return a number and what follows it, of any unit or none; `None` if there is no number.

    A decimal, because 30 ms is 0.03 s, not 0.030000000000000002 s.
    """
    match = _NUMBER.fullmatch(text)
    return match and (Decimal(match[1].replace("_", "")), match[2] or "")


def base_of(unit: str) -> float:
    """Return the number of base units in a unit that `parse_quantity` has returned."""
    quantity = parse_quantity(f"1 {unit}")
    assert quantity is not None
    return quantity.base


def count(value: float) -> str:
    """Return a count as text, with a decimal only if it is not whole."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def number_of(value: float, noun: str) -> str:
    """Return a count with its noun, which has a plural with s: `1 packet`, `2,000 packets`."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def share(value: float) -> str:
    """Return a share as text, in per cent."""
    return f"{value * 100:.3g} %"


_MOST_PER_CENT = 10.0
"""From this factor on a change is text like "127 times", not per cent."""


def relative_change(ratio: float) -> str:
    """Return a relative change as text: `+12.5 %`, or `10 times` from ten times the old value on.

    Args:
        ratio: New value over old value, minus one.
    """
    if ratio + 1 >= _MOST_PER_CENT:
        return f"{ratio + 1:,.0f} times"
    return f"{ratio:+.1%}".replace("%", "\u00a0%").replace("-", "−")


def score(value: float) -> str:
    """Return a mean opinion score as text."""
    return f"{value:.2f}"


def _scaled(value: float, unit: str, digits: int) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.{digits}g} {prefix}{unit}"
    return f"{value:.{digits}g} {unit}"
