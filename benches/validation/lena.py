"""A cell of LTE in airpath and in ns-3 LENA: what both report of the same mobiles."""

import csv
import itertools
import math
import random
import statistics
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import polars as pl
from programs import FOLDER, LENA_MODULES, built, printed

import airpath

ROOT = FOLDER.parents[1]
STANDARD = ROOT / "crates" / "radio" / "data" / "3gpp"
"""Tables of TS 36.213, which airpath uses."""
BLOCKS = 100
"""Resource blocks of 20 MHz."""
GROUP = 4
"""Resource blocks of a group (TS 36.213 Table 7.1.6.1-1)."""
ELEMENTS = {1: 144, 2: 132, 3: 120}
"""Resource elements of a block that carry data, by the number of control symbols (TS 36.211)."""
PAYLOAD = 1400
"""Bytes of a datagram, without headers."""
RATE = 90e6
"""Of the datagrams of each mobile, in bit/s: more than the cell carries."""
WARM_UP = 1.0
"""Seconds of a run before the measurement, unless stated otherwise."""
ROUND_TRIP = 8_000_000
"""From an attempt of the downlink to the next at the earliest, in ns (TS 36.213 §7)."""

Model = Literal["miesm", "piro"]


@dataclass(frozen=True)
class Mobile:
    """What a mobile received after the warm-up."""

    rate: float
    """Bits of payload per second."""
    subframes: int
    """All subframes of the measurement."""
    attempts: tuple[int, ...]
    """Transmissions, by their number from the first of a block."""
    errors: tuple[int, ...]
    """Those that were not decoded."""
    block: float
    """Mean size of a block when it is sent first, in bits."""
    schemes: Counter[int]
    """Blocks by I_MCS, when they are sent first."""

    @property
    def first(self) -> float:
        """The share of subframes with the first transmission of a block."""
        return self.attempts[0] / self.subframes

    @property
    def scheme(self) -> float:
        """The mean I_MCS."""
        return sum(scheme * count for scheme, count in self.schemes.items()) / max(1, self.schemes.total())

    @property
    def useful(self) -> float:
        """Payload by bits of blocks that are sent first: headers and lost blocks are not in it."""
        seconds = self.subframes / 1000
        return self.rate * seconds / (self.attempts[0] * self.block) if self.attempts[0] else 0.0

    def error_rate(self, attempt: int) -> float | None:
        """The share of transmissions that were not decoded; none without transmissions."""
        return self.errors[attempt] / self.attempts[attempt] if self.attempts[attempt] else None


# --- Tables of the standard -----------------------------------------------------------------------


@cache
def schemes() -> tuple[tuple[int, int], ...]:
    """Return bits per symbol and I_TBS of I_MCS 0 to 28 (TS 36.213 Table 7.1.7.1-1)."""
    rows = [row for row in _rows("lte_mcs.csv") if row["table"] == "pdsch-64qam"]
    return tuple((int(row["bits_per_symbol"]), int(row["i_tbs"])) for row in rows)


@cache
def _sizes() -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, list(row.values())[1:])) for row in _rows("lte_tbs.csv"))


def block_bits(scheme: int, blocks: int = BLOCKS) -> int:
    """Return the bits of a transport block (TS 36.213 Table 7.1.7.2.1-1)."""
    return _sizes()[schemes()[scheme][1]][blocks - 1]


@cache
def efficiencies() -> tuple[float, ...]:
    """Return bits per symbol of CQI 1 to 15 (TS 36.213 Table 7.2.3-1)."""
    rows = [row for row in _rows("lte_cqi.csv") if row["table"] == "7.2.3-1"]
    return tuple(int(row["bits_per_symbol"]) * int(row["code_rate_x1024"]) / 1024 for row in rows)


def scheme_of(cqi: int, control: int = 1) -> int:
    """Return the last scheme whose block carries at most as many bits per symbol as the CQI.

    The first scheme carries more than CQI 1 allows; there is none below it.
    """
    symbols = BLOCKS * ELEMENTS[control]
    allowed = [
        scheme for scheme in range(len(schemes())) if block_bits(scheme) / symbols <= efficiencies()[max(cqi, 1) - 1]
    ]
    return max(allowed, default=0)


def code_rate(scheme: int, control: int = 1) -> float:
    """Return bits of a block with its CRC by coded bits in the whole band."""
    return (block_bits(scheme) + 24) / (BLOCKS * ELEMENTS[control] * schemes()[scheme][0])


def _rows(name: str) -> list[dict[str, str]]:
    with (STANDARD / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


# --- airpath --------------------------------------------------------------------------------------


def scenario(
    conditions: Sequence[dict[str, str]], duration: float, *, step: float | None = None, control: int = 1
) -> dict[str, Any]:
    """Return a cell whose mobiles have these radio conditions, and more datagrams than it carries.

    It is that of the preset `lte-20mhz` with one layer, without what LENA does not model: DRX, the
    inactivity timer of the RRC, and feedback that is mistaken.

    Args:
        conditions: Of each mobile.
        duration: Of the run in seconds.
        step: Of the outer loop in dB, 0 without it; by default that of the preset.
        control: OFDM symbols of control channels.
    """
    bearer = tomllib.loads((ROOT / "presets" / "lte-20mhz.toml").read_text(encoding="utf-8"))["bearer"]
    del bearer["drx"], bearer["rrc"]
    bearer["conditions"] = {"ci": "0 dB"}
    bearer["mobile"] |= {"layers": 1, "cqi_period": "2 ms", "cqi_delay": "6 ms"}
    # PfFfMacScheduler averages over 99 subframes.
    bearer["cell"] |= {"averaging_time": "99 ms", "control_symbols": control}
    if step is not None:
        bearer["cell"]["step"] = f"{step:g} dB"
    bearer["harq"]["nack_to_ack"] = 0.0
    bearer["rlc"] = {"mode": "unacknowledged", "t_reordering": "100 ms"}
    bearer["pdcp"] = {"queue": {"bytes": "300 kB"}}
    names = [f"mobile {number}" for number in range(len(conditions))]
    common = {"kind": "datagrams", "direction": "down", "rate": f"{RATE:.0f} bit/s", "size": PAYLOAD}
    return {
        "format": 1,
        "duration": f"{duration} s",
        "fixed": {"delay": "1 ms"},
        "bearer": bearer,
        "mobile": [{"name": name, "conditions": each} for name, each in zip(names, conditions, strict=True)],
        "flow": [{**common, "mobile": name, "duration": f"{duration} s"} for name in names],
    }


def constant(sinrs: Iterable[float]) -> list[dict[str, str]]:
    """Return the conditions of mobiles with a constant SINR."""
    return [{"ci": f"{sinr:.3f} dB"} for sinr in sinrs]


def airpath_cell(document: dict[str, Any], *, warm_up: float = WARM_UP, seed: int = 1) -> list[Mobile]:
    """Run a cell in airpath."""
    result = airpath.run(document, seed=seed, log=True)
    start, subframes = int(warm_up * 1e9), round(1000 * (_seconds(document) - warm_up))
    radio = result.radio.filter(pl.col("direction") == "down").sort("time")
    received = result.packets.filter(
        (pl.col("step") == "received") & pl.col("component").str.starts_with("mobile") & (pl.col("time") >= start)
    )
    counts = dict(received.group_by("user").len().iter_rows())
    mobiles = []
    for user in range(len(document["mobile"])):
        own = radio.filter(pl.col("user") == user).select("time", "repeated", "errored", "bytes", "level")
        attempts, errors, bits, chosen = [0] * 4, [0] * 4, 0, Counter[int]()
        waiting: list[tuple[int, int]] = []
        for time, repeated, errored, size, scheme in own.iter_rows():
            attempt = 0
            if repeated:
                # The block that has waited longest is sent again first.
                sent, before = waiting.pop(0)
                if time < sent + ROUND_TRIP:
                    raise AssertionError(f"the block of {sent} ns is sent again at {time} ns")
                attempt = before + 1
            if errored and attempt + 1 < len(attempts):
                waiting.append((time, attempt))
            if time < start:
                continue
            attempts[attempt] += 1
            errors[attempt] += errored
            if not repeated:
                bits += 8 * size
                chosen[scheme] += 1
        rate = counts.get(user, 0) * PAYLOAD * 8 / (subframes / 1000)
        block = bits / max(1, attempts[0])
        mobiles.append(Mobile(rate, subframes, tuple(attempts), tuple(errors), block, chosen))
    return mobiles


def _seconds(document: dict[str, Any]) -> float:
    return float(document["duration"].partition(" ")[0])


POINT = 0.1
"""The share of blocks in error that a CQI promises at most (TS 36.213 §7.2.3)."""
ENOUGH = 100
"""Blocks from which an error rate is computed."""
LARGE_STEP = 0.1
"""Of the outer loop, in dB."""


def airpath_points(control: int, duration: float = 4.0, step: float = 0.2) -> dict[int, float]:
    """Return the SINR at which a tenth of the blocks of each scheme in the whole band are in error.

    The outer loop uses a scheme where its error rate is around a tenth, and with a large step also
    several schemes beside it. The rate between two SINRs is interpolated as normal deviates.
    """
    deviate = statistics.NormalDist().inv_cdf
    rates: dict[int, list[tuple[float, float]]] = {}
    for number in range(round(32 / step)):
        sinr = -10 + step * number
        document = scenario(constant([sinr]), duration, step=LARGE_STEP, control=control)
        radio = airpath.run(document, seed=1, log=True).radio
        first = radio.filter((pl.col("direction") == "down") & (pl.col("repeated") == 0))
        for scheme, count, wrong in first.group_by("level").agg(pl.len(), pl.col("errored").sum()).iter_rows():
            if count >= ENOUGH:
                rates.setdefault(scheme, []).append((sinr, min(max(wrong / count, 1e-4), 1 - 1e-4)))
    points = {}
    for scheme, each in sorted(rates.items()):
        for (x0, y0), (x1, y1) in itertools.pairwise(each):
            if y0 > POINT >= y1:
                d0, d1 = deviate(y0), deviate(y1)
                points[scheme] = x0 + (x1 - x0) * (deviate(POINT) - d0) / (d1 - d0)
    return points


@dataclass(frozen=True)
class Oscillation:
    """What the outer loop does at a constant SINR."""

    schemes: tuple[int, int]
    """The lowest and the highest I_MCS."""
    burst: float
    """Mean number of blocks in error in a burst."""
    interval: float
    """Mean time from one burst to the next, in s."""
    rate: float
    """Bits of payload per second."""


QUIET = 20_000_000
"""Time without an error that separates two bursts, in ns: above the round trip of feedback."""


def oscillation(sinr: float, step: float, warm_up: float, measured: float) -> Oscillation:
    """Return what the outer loop does with a step in dB."""
    document = scenario(constant([sinr]), warm_up + measured, step=step)
    radio = airpath.run(document, seed=1, log=True).radio
    first = radio.filter(
        (pl.col("direction") == "down") & (pl.col("repeated") == 0) & (pl.col("time") >= int(warm_up * 1e9))
    ).sort("time")
    wrong = first.filter(pl.col("errored") > 0)["time"].to_list()
    starts = [time for before, time in itertools.pairwise([-QUIET, *wrong]) if time - before >= QUIET]
    chosen = first["level"].to_list()
    return Oscillation(
        schemes=(min(chosen), max(chosen)),
        burst=len(wrong) / len(starts),
        interval=(starts[-1] - starts[0]) / 1e9 / (len(starts) - 1),
        rate=airpath_cell(document, warm_up=warm_up)[0].rate,
    )


# --- LENA -----------------------------------------------------------------------------------------

CODE_RATES = (
    *(0.08, 0.1, 0.11, 0.15, 0.19, 0.24, 0.3, 0.37, 0.44, 0.51, 0.3, 0.33, 0.37, 0.42, 0.48),
    *(0.54, 0.6, 0.43, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.89, 0.92),
)
"""Of each scheme in the error model of LENA, McsEcrTable of lte-mi-error-model.cc (ns-3 3.37)."""


def lena(content: str = "", **options: object) -> dict[str, Any]:
    """Run lena.cc, and return what it prints.

    Raises:
        ProgramError: It cannot be built, or printed nothing.
    """
    words = [f"--{name}={option}" for name, option in options.items()]
    command = [str(built("lena", LENA_MODULES)), *words]
    return printed(command, FOLDER / "lena.cc", content, "--series=")


def lena_cell(
    sinrs: Sequence[float], model: Model, duration: float, series: Sequence[Sequence[float]] = ()
) -> list[Mobile]:
    """Run a cell in LENA; a series has the SINR of a mobile in each millisecond."""
    content = "".join(",".join(f"{value:.3f}" for value in each) + "\n" for each in series)
    found = lena(
        content, mode="cell", amc=model, duration=duration, rate=f"{RATE:.0f}", sinrs=",".join(f"{x:g}" for x in sinrs)
    )
    mobiles = []
    for number, each in enumerate(found["mobiles"]):
        if not series and not math.isclose(each["sinr"], sinrs[number], abs_tol=0.01):
            raise AssertionError(f"LENA measured {each['sinr']} dB in place of {sinrs[number]} dB")
        mobiles.append(
            Mobile(
                rate=8 * each["payload"] / found["seconds"],
                subframes=round(1000 * found["seconds"]),
                attempts=tuple(each["attempts"]),
                errors=tuple(each["errors"]),
                block=8 * each["block_bytes"] / max(1, each["attempts"][0]),
                schemes=Counter({scheme: count for scheme, count in enumerate(each["schemes"]) if count}),
            )
        )
    return mobiles


@dataclass(frozen=True)
class Selection:
    """What LENA selects at a SINR."""

    miesm: int
    """The CQI with `AmcModel` MiErrorModel."""
    piro: int
    """The CQI with PiroEW2010."""
    whole: int
    """The last scheme with at most a tenth of errors in the whole band."""
    group: int
    """The same in a group of resource blocks, from which a mobile computes its CQI."""
    errors: tuple[float, ...]
    """Error rate of each scheme in the whole band."""


def lena_selections(sinrs: Sequence[float]) -> list[Selection]:
    """Return what LENA selects at these SINRs."""
    content = ",".join(f"{sinr:.3f}" for sinr in sinrs) + "\n"
    found = lena(content, mode="schemes", blocks=BLOCKS, group=GROUP)
    names = ("miesm", "piro", "whole", "group")
    rows = zip(*(found[name] for name in names), found["errors"], strict=True)
    return [Selection(*row[:4], errors=tuple(row[4])) for row in rows]


def lena_points(step: float = 0.02) -> dict[int, float]:
    """Return the same of LENA."""
    sinrs = [-12 + step * number for number in range(round(36 / step))]
    points: dict[int, float] = {}
    for sinr, selection in zip(sinrs, lena_selections(sinrs), strict=True):
        for scheme, errors in enumerate(selection.errors):
            if errors <= POINT:
                points.setdefault(scheme, sinr)
    return points


# --- Fading ---------------------------------------------------------------------------------------

PATHS = 16
"""Sinusoids of a fading channel."""


def rayleigh(mean: float, doppler: float, duration: float, seed: str) -> list[float]:
    """Return the SINR in each millisecond over a flat Rayleigh channel, in dB (Clarke's model)."""
    draw = random.Random(seed)
    paths = [(draw.uniform(0, 2 * math.pi), draw.uniform(0, 2 * math.pi)) for _ in range(PATHS)]

    def power(time: float) -> float:
        phases = [2 * math.pi * doppler * time * math.cos(angle) + phase for angle, phase in paths]
        return (math.fsum(map(math.cos, phases)) ** 2 + math.fsum(map(math.sin, phases)) ** 2) / PATHS

    return [mean + 10 * math.log10(max(power(step / 1000), 1e-4)) for step in range(round(1000 * duration))]


def faded_cell(series: Sequence[Sequence[float]], duration: float, step: float | None = None) -> list[Mobile]:
    """Run a cell in airpath whose mobiles have these SINRs in each millisecond."""
    with tempfile.TemporaryDirectory(prefix="airpath-") as name:
        conditions = []
        for number, each in enumerate(series):
            path = Path(name) / f"mobile-{number}.csv"
            lines = [f"{step / 1000:.3f},{value:.3f}" for step, value in enumerate(each)]
            path.write_text("time,ci\n" + "\n".join(lines) + "\n", encoding="utf-8")
            conditions.append({"recorded": str(path)})
        return airpath_cell(scenario(conditions, duration, step=step))
