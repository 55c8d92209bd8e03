"""Quantities in words, as the terminal and the reports print them, and what they mean."""

TRANSFER_CLOCK = (
    "Time runs from the start of a flow, any handshake included, until the last byte reaches the receiving "
    "application; throughput is the bytes over that time."
)
"""What the times and rates of transfers mean."""
DELAY_CLOCK = (
    "The delay of a ping is its round trip, that of a datagram the way there, that of a transaction from its request "
    "(its connection, if it has one of its own) to the last byte of its response."
)
"""What the delays of pings, datagrams and transactions mean."""


def seconds(value: float) -> str:
    """Return a span in words: three or four digits, `ms` below a second."""
    return f"{value * 1e3:.4g} ms" if value < 1 else f"{value:,.1f} s" if value >= 1000 else f"{value:.4g} s"


def rate(value: float) -> str:
    """Return bits per second in words."""
    return _scaled(value, "bit/s", 4)


def size(value: float) -> str:
    """Return bytes in words, with decimal prefixes."""
    return _scaled(value, "B", 4)


def parse_size(text: str) -> int:
    """Return the bytes that a size in words means, as a resolved scenario has it: `20 kB`, `40 B`, `64 KiB`.

    Raises:
        ValueError: It is no size.
    """
    number, _, unit = text.partition(" ")
    factors = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    if unit not in factors:
        raise ValueError(f"'{text}' is no size")
    return round(float(number) * factors[unit])


def count(value: float) -> str:
    """Return a count, whole where it is whole."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _scaled(value: float, unit: str, digits: int) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.{digits}g} {prefix}{unit}"
    return f"{value:.{digits}g} {unit}"
