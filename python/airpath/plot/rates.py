"""Rates: the mean over each step of time."""

from math import ceil, floor, log10

import polars as pl


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
    """Return the next longer step of 1, 2 or 5 by a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)
