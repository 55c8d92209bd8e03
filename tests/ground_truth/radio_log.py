"""The radio log of a run, as an operator has it: states and interruptions, no packets."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

ORIGIN = 1_000_000_000 * 10**9
"""Nanoseconds: the start of the run on the clock of its captures."""

SILENT = {
    "tbf": {"establishment", "paging"},
    "mode": {"reselection", "handover", "no-coverage"},
    "link": {"reset", "disconnected", "set-up"},
}
"""The states of each aspect in which the radio carries nothing."""


@dataclass(frozen=True)
class RadioGap:
    """A time in which the radio carried nothing, in nanoseconds of the run."""

    begin: int
    end: int
    direction: str | None
    name: str


def radio_gaps(result: Path) -> list[RadioGap]:
    """Those of the first repetition of a result folder."""
    found = []
    for part in sorted((result / "events" / "changes").glob("*.parquet")):
        breaks = pl.read_parquet(part, columns=["time", "duration", "direction", "kind"]).drop_nulls("duration")
        found += [RadioGap(time, time + lasts, way, kind) for time, lasts, way, kind in breaks.iter_rows()]
    parts = sorted((result / "events" / "states").glob("*.parquet"))
    if not parts:
        return found
    states = pl.concat([pl.read_parquet(part) for part in parts]).drop_nulls("name")
    if states.is_empty():
        return found
    last = int(states["time"].max()) + 10**9  # type: ignore[arg-type]
    for track in states.filter(pl.col("aspect").is_in(list(SILENT))).partition_by("aspect", "direction"):
        times = track["time"].to_list()
        rows = zip(times, [*times[1:], last], track["aspect"], track["direction"], track["name"], strict=True)
        found += [
            RadioGap(begin, end, direction, name)
            for begin, end, aspect, direction, name in rows
            if name in SILENT[aspect] and end > begin
        ]
    return found


def write(result: Path, target: Path) -> None:
    """Writes them as CSV, on the clock of the captures."""
    lines = ["begin,end,direction,name"]
    lines += [
        f"{ORIGIN + each.begin},{ORIGIN + each.end},{each.direction or ''},{each.name}" for each in radio_gaps(result)
    ]
    target.write_text("\n".join(lines) + "\n")
