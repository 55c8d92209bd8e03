"""Rates: the mean over each step of time."""

from math import ceil, floor, log10

import polars as pl

_HOUR, _DAY = 3_600, 86_400
_LONG_STEPS = (
    *(minutes * 60 for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 5, 10, 20, 50, 100)),
)


def rates_of(packets: pl.DataFrame, step: float, span: float) -> pl.DataFrame:
    """Return the mean rate in bit/s of each step of time, from `t` on; steps without packets are 0.

    Args:
        packets: Packets with their time `t` in seconds and their `size` in bytes.
        step: The length of a step, in seconds.
        span: Where the time ends.
    """
    steps = max(ceil(span / step - 1e-9), 1)
    number = (pl.col("t") / step).floor().cast(pl.Int64).clip(upper_bound=steps - 1)
    sums = packets.group_by(bin=number).agg(bits=pl.col("size").sum() * 8)
    every = pl.DataFrame({"bin": pl.Series(range(steps), dtype=pl.Int64)}).join(sums, on="bin", how="left")
    # The whole step also where the run ends within it: a packet shortly before is no peak.
    return every.sort("bin").select(t=pl.col("bin") * step, rate=pl.col("bits").fill_null(0) / min(step, span))


def nice_step(step: float) -> float:
    """Return the next longer step: 1, 2 or 5 by a power of ten.

    From a minute on, whole minutes, hours or days.
    """
    if step > _LONG_STEPS[0] / 2 and (longer := next((each for each in _LONG_STEPS if each >= step), None)):
        return float(longer)
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)
