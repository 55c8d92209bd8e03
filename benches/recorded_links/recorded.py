"""Runs a download over a recorded link, and measures utilisation and delays."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from setups import ABC, Controller, SetUp

import airpath

OPPORTUNITY = 1500
"""Bytes that each line of a recorded link delivers."""

HIGH = 0.95
"""The quantile of the delays of all three papers."""

LOW = 0.05
"""A quantile that shows whether the queue is ever empty."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A controller on a link."""

    capacity_kbps: float
    """The opportunities of the link in the measured time."""
    rate_kbps: float
    """The IP packets that the link delivered."""
    low_delay_ms: float
    packet_delay_ms: float
    """The time in queue and link that 5 % and 95 % of the delivered packets do not exceed."""
    omniscient_ms: float
    """95 % end-to-end delay of a sender whose packets enter when the link can deliver them."""
    self_inflicted_ms: float
    """95 % end-to-end delay less that of the omniscient sender."""
    pacing_bps: int | None
    """The least pacing rate in the last minute, of a controller that has one."""

    @property
    def utilisation(self) -> float:
        """Delivered bytes by the bytes of all opportunities, in per cent."""
        return 100 * self.rate_kbps / self.capacity_kbps

    @property
    def path_delay_ms(self) -> float:
        """The delay of ABC's figures: that of the packets, and the round trip of an empty path."""
        return self.packet_delay_ms + 2 * ABC.delay_ms


def run(setup: SetUp, controller: Controller, link: str, folder: Path) -> Figures:
    """Run a download over a link, and measure it."""
    with tempfile.TemporaryDirectory() as temporary:
        queue = dict(setup.codel if controller.codel else setup.queues.get(controller.name, setup.queue))
        if setup.acks is None:
            ack_link = {"recorded": str(folder / other_direction(link)), "queue": queue}
        else:
            constant = Path(temporary) / "acks"
            constant.write_text("1\n" * setup.acks)
            ack_link = {"recorded": str(constant), "queue": {}}
        tcp: dict[str, Any] = {"profile": "linux-6", "congestion": {"algorithm": controller.congestion, **setup.keys}}
        if setup.receive_buffer is not None:
            tcp["receive_buffer"] = {"maximum": setup.receive_buffer}
        scenario = {
            "format": 1,
            "name": f"{controller.name} over {link}",
            "duration": f"{setup.seconds} s",
            "fixed": {"delay": f"{setup.delay_ms} ms"},
            "bearer": {
                "model": "recorded",
                "downlink": {"recorded": str(folder / link), "queue": queue},
                "uplink": ack_link,
            },
            "flow": [{"kind": "download", "bytes": "100 GB", "tcp": tcp}],
        }
        result = airpath.run(scenario, out=Path(temporary) / "result", threads=1)
        passed, pacing = passages(result), least_pacing(result, after=setup.seconds - 60)
    entered, left, sizes = (passed[column].to_numpy() for column in ("entered", "left", "size"))
    offered = opportunities(folder / link, setup.seconds)
    begin, end = 1e3 * setup.skipped, 1e3 * setup.seconds
    measured = (left >= begin) & (left < end)
    low, high = np.quantile((left - entered)[measured], (LOW, HIGH))
    omniscient = end_to_end_delay(offered, offered - setup.delay_ms, begin, end)
    return Figures(
        capacity_kbps=8 * OPPORTUNITY * int(((offered >= begin) & (offered < end)).sum()) / (end - begin),
        rate_kbps=8 * int(sizes[measured].sum()) / (end - begin),
        low_delay_ms=float(low),
        packet_delay_ms=float(high),
        omniscient_ms=omniscient,
        self_inflicted_ms=end_to_end_delay(left, entered - setup.delay_ms, begin, end) - omniscient,
        pacing_bps=pacing,
    )


def other_direction(link: str) -> str:
    """Return the file that was recorded together with this one."""
    name, _, direction = link.rpartition(".")
    return f"{name}.{'up' if direction == 'down' else 'down'}"


def passages(result: airpath.Result) -> pl.DataFrame:
    """Return when each delivered packet entered the queue of the link and left the link, in ms."""
    at_link = (pl.col("component") == "bearer-mobile") & (pl.col("direction") == "down")
    rows = result.scan("packets").filter(at_link).select("packet", "step", "size", pl.col("time") / 1e6)
    entered = rows.filter(pl.col("step") == "queued").select("packet", entered="time")
    left = rows.filter(pl.col("step") == "delivered").select("packet", "size", left="time")
    return left.join(entered, on="packet").sort("left", "entered").collect()


def least_pacing(result: airpath.Result, after: int) -> int | None:
    """Return the least pacing rate of the server after a time in seconds, in bit/s."""
    rows = result.scan("tcp").filter(pl.col("component") == "server", pl.col("time") >= after * 1_000_000_000)
    return rows.select(pl.col("pacing_rate").min()).collect().item()


def opportunities(file: Path, seconds: int) -> NDArray[np.float64]:
    """Return the times of the opportunities of a recorded link, in ms; the file repeats."""
    times = np.loadtxt(file, dtype=np.int64)
    passes = 1 + 1000 * seconds // times[-1]
    return np.concatenate([times + number * times[-1] for number in range(passes)]).astype(float)


def end_to_end_delay(
    arrived: NDArray[np.float64], sent: NDArray[np.float64], begin: float, end: float, share: float = HIGH
) -> float:
    """Return the "95 % end-to-end delay" of Winstein et al., NSDI 2013, §5.1.

    At each time, the delay is the time since the most recently sent of the packets that have
    arrived was sent. It rises at 1 s/s until the next packet arrives. The result is what it does
    not exceed for `share` of the time from `begin` to `end`. `arrived` is sorted.
    """
    latest = np.maximum.accumulate(sent)
    starts = np.clip(arrived, begin, end)
    stops = np.append(starts[1:], end)
    allowed = (1 - share) * (end - starts[0])
    low, high = 0.0, float((stops - latest).max())
    while high - low > 1e-3:
        middle = (low + high) / 2
        above = np.clip(stops - np.maximum(starts, latest + middle), 0, None).sum()
        low, high = (middle, high) if above > allowed else (low, middle)
    return high
