"""The use of a cell by all of its mobiles together: rate on the air, TTIs, resource blocks."""

import tomllib
from dataclasses import dataclass
from typing import Any

import polars as pl

from airpath import _native
from airpath.plot.selection import Drawn
from airpath.result import NotLoggedError, UnreadableResultError


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
    blocks = _native.resource_blocks(cell["bandwidth"], cell.get("spacing"))
    carriers = int(cell.get("carriers", 1)) if direction == "down" else 1
    return None if blocks is None else blocks * carriers
