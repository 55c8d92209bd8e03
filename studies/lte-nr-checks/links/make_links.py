"""Write `lte.down`, `lte.up`, `nr.down` and `nr.up`: cells of row M14 as a saturator records them.

Each line of such a file is the millisecond at which a packet of 1500 bytes arrives while more is
sent than the bearer carries (the format of mahimahi). Prints half of the least round trip of a
ping, which a user of such files takes for the delay of the path.

    python studies/lte-nr-checks/links/make_links.py
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import airpath

FOLDER = Path(__file__).parent
AWAKE = {"bearer.conditions.ci": "40 dB", "bearer.drx": False, "bearer.rrc.inactivity": "1 h"}
"""A mobile near the cell that never sleeps."""
BEGIN_MS = 2000
"""When the recording begins, after the begin of the saturation."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that is recorded."""

    name: str
    preset: str
    rate: str
    """What is sent: more than it carries."""
    milliseconds: int
    """The length of the recording. A link repeats it."""


CELLS = (
    Cell("lte", "lte-20mhz", "200 Mbit/s", 500),
    Cell("nr", "nr-n78-100mhz-sa", "2 Gbit/s", 100),
)


def arrivals(cell: Cell, direction: str) -> list[int]:
    """Return the milliseconds of the arrivals, from 1 on."""
    flow = {"flow.0.direction": direction, "flow.0.rate": cell.rate, "flow.0.size": 1472, "flow.0.duration": "4 s"}
    with tempfile.TemporaryDirectory() as folder:
        result = airpath.run(
            FOLDER.parent / "datagrams.toml",
            set={"bearer.preset": cell.preset} | AWAKE | flow,
            out=Path(folder) / "out",
        )
        times = result.scan("app").filter(pl.col("step") == "arrived").select(pl.col("time") / 1e6).collect()
    millis = sorted(int(time) - BEGIN_MS for time in times["time"])
    return [time for time in millis if 1 <= time <= cell.milliseconds]


if __name__ == "__main__":
    for cell in CELLS:
        for direction in ("down", "up"):
            times = arrivals(cell, direction)
            (FOLDER / f"{cell.name}.{direction}").write_text("".join(f"{time}\n" for time in times))
            print(f"{cell.name}, {direction}: {len(times) * 1500 * 8 / cell.milliseconds / 1e3:.1f} Mbit/s")
        pings = airpath.run(
            FOLDER.parent / "ping.toml", set={"bearer.preset": cell.preset} | AWAKE | {"flow.0.requests": 1000}
        )
        print(f"{cell.name}: half of the least round trip: {1e3 * pings.flows['delay_min_s'][0] / 2:.3f} ms")
