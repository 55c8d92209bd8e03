"""Write `walk.down` and `walk.up`: a link whose rate rises and falls, with one gap.

Each line of such a file is the millisecond at which a packet of 1500 bytes may leave. The files
contain no random numbers, so they are the same each time.
"""

from math import pi, sin
from pathlib import Path

SECONDS = 20
GAP_MS = range(12_000, 13_500)


def opportunities(mean_bps: float) -> list[int]:
    """Return the milliseconds at which a packet may leave.

    The rate varies around `mean_bps`, in bits per second.
    """
    times: list[int] = []
    credit = 0.0
    for millisecond in range(1, SECONDS * 1000 + 1):
        slow, fast = sin(2 * pi * millisecond / 7000), sin(2 * pi * millisecond / 900)
        rate = 0.0 if millisecond in GAP_MS else mean_bps * (1 + 0.5 * slow + 0.2 * fast)
        credit += rate / 1000
        while credit >= 1500 * 8:
            credit -= 1500 * 8
            times.append(millisecond)
    return times


if __name__ == "__main__":
    for name, mean_bps in (("walk.down", 2e6), ("walk.up", 0.5e6)):
        lines = "".join(f"{time}\n" for time in opportunities(mean_bps))
        Path(__file__).with_name(name).write_text(lines)
