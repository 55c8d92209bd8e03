"""The use of a cell by all of its mobiles together: rate on the air, TTIs, resource blocks."""

import tomllib
from dataclasses import dataclass
from typing import Any

import polars as pl

from airpath.plot.selection import Drawn
from airpath.quantities import split_quantity
from airpath.result import NotLoggedError, UnreadableResultError

_LTE = {1.4: 6, 3: 15, 5: 25, 10: 50, 15: 75, 20: 100}
"""Resource blocks of a carrier by its bandwidth in MHz (TS 36.101 Table 5.6-1)."""
_NR = {
    15: {5: 25, 10: 52, 15: 79, 20: 106, 25: 133, 30: 160, 35: 188, 40: 216, 45: 242, 50: 270},
    30: {5: 11, 10: 24, 15: 38, 20: 51, 25: 65, 30: 78, 35: 92, 40: 106, 45: 119, 50: 133}
    | {60: 162, 70: 189, 80: 217, 90: 245, 100: 273},
    120: {50: 32, 100: 66, 200: 132, 400: 264},
}
"""Of NR by its subcarrier spacing in kHz, too (TS 38.101-1 and 38.101-2, Table 5.3.2-1)."""


@dataclass(frozen=True)
class CellUse:
    """What all mobiles of a cell used in one direction, in the drawn repetition."""

    component: str
    direction: str
    bits_per_second: float
    """Bits of transport blocks, retransmissions and padding included, over the whole run."""
    busy: float
    """The share of the run's TTIs in which some mobile had a block."""
    blocks: float | None
    """Mean resource blocks of such a TTI; `None` if the bearer has none."""
    all_blocks: int | None
    """The resource blocks of a TTI, of all carriers."""


def cell_uses(run: Drawn) -> list[CellUse]:
    """Return the use of each cell of LTE and NR, by direction; none without a readable log."""
    found = []
    try:
        sent = run.events("radio").select("time", "component", "direction", "user", "duration", "bytes").collect()
        states = run.events("states").filter(pl.col("aspect") == "slots").collect()
    except (NotLoggedError, UnreadableResultError):
        return []
    for (component, direction), rows in sorted(sent.group_by("component", "direction"), key=lambda each: each[0]):
        bearer = _bearer(run, str(component))
        if bearer.get("model") not in ("lte-cell", "nr-cell") or not run.span:
            continue
        own = states.filter(component=component, direction=direction).select("time", "user", "number")
        known = rows.sort("time").join_asof(own.sort("time"), on="time", by="user", check_sortedness=False)
        ttis = rows["time"].n_unique()
        found.append(
            CellUse(
                str(component),
                str(direction),
                8 * int(rows["bytes"].sum()) / run.span,
                ttis * int(rows["duration"].mode().to_list()[0]) / 1e9 / run.span,
                float(known["number"].sum()) / ttis if own.height else None,
                _blocks(bearer, str(direction)),
            )
        )
    return found


def _bearer(run: Drawn, component: str) -> dict[str, Any]:
    key = "second_bearer" if component.startswith("second") else "bearer"
    return tomllib.loads(run.result.scenario).get(key, {})


def _blocks(bearer: dict[str, Any], direction: str) -> int | None:
    """Return the resource blocks of a TTI; the uplink has one carrier."""
    cell = bearer.get("cell", {})
    bandwidth, spacing = _number(cell, "bandwidth", "MHz"), _number(cell, "spacing", "kHz")
    table: dict[float, int] = {**(_LTE if bearer["model"] == "lte-cell" else _NR.get(int(spacing), {}))}
    blocks = table.get(bandwidth)
    carriers = int(cell.get("carriers", 1)) if direction == "down" else 1
    return None if blocks is None else blocks * carriers


def _number(cell: dict[str, Any], key: str, unit: str) -> float:
    """Return the number of a value with this unit, as resolved scenarios have it; else zero."""
    found = split_quantity(str(cell.get(key, "")))
    return float(found[0]) if found and found[1].strip() == unit else 0.0
