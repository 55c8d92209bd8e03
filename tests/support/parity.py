"""Replay parity: a replay gives each packet of a result exactly its fate."""

from pathlib import Path

import polars

import airpath
from support import Command


def fates(folder: Path) -> polars.DataFrame:
    """Return the fate of each packet at each hop, with its exact time."""
    packets = airpath.load(folder).packets.filter(polars.col("step") != "sent")
    return packets.select("packet", "component", "step", "direction", "time", "cause", "ecn", "size").sort(
        "packet", "time", "component", "step"
    )


def check_parity(command: Command, folder: Path) -> polars.DataFrame:
    """Replay the result of a link, compare each packet, and return the fates."""
    again = folder.with_name("again")
    done = command("replay", folder, "--out", again)
    assert done.code == 0, done.err
    emulated, simulated = fates(folder), fates(again)
    assert emulated.height > 100
    assert emulated.equals(simulated), emulated.join(simulated, on=emulated.columns, how="anti", nulls_equal=True)
    return emulated
