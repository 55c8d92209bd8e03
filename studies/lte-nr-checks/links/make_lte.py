"""Write `lte.down` and `lte.up`: the cell of row M14 as a saturator records it.

Each line of such a file is the millisecond at which a packet of 1500 bytes arrives while more is
sent than the bearer carries (the format of mahimahi). Prints half of the least round trip of a
ping, which a user of such files takes for the delay of the path.

    python studies/lte-nr-checks/links/make_lte.py
"""

import tempfile
from pathlib import Path

import polars as pl

import airpath

FOLDER = Path(__file__).parent
CELL = {
    "bearer.preset": "lte-20mhz",
    "bearer.conditions.ci": "40 dB",
    "bearer.drx.inactivity": "1 h",
    "bearer.rrc.inactivity": "1 h",
}
"""A mobile near the cell that never sleeps."""
BEGIN_MS, MILLISECONDS = 2000, 500
"""What is recorded, from the begin of the saturation on."""


def arrivals(direction: str) -> list[int]:
    """Return the milliseconds of the arrivals, from 1 on."""
    flow = {"flow.0.direction": direction, "flow.0.rate": "200 Mbit/s", "flow.0.size": 1472}
    with tempfile.TemporaryDirectory() as folder:
        result = airpath.run(
            FOLDER.parent / "datagrams.toml", set=CELL | flow | {"flow.0.duration": "4 s"}, out=Path(folder) / "out"
        )
        times = result.scan("app").filter(pl.col("step") == "arrived").select(pl.col("time") / 1e6).collect()
    millis = sorted(int(time) - BEGIN_MS for time in times["time"])
    return [time for time in millis if 1 <= time <= MILLISECONDS]


if __name__ == "__main__":
    for direction in ("down", "up"):
        times = arrivals(direction)
        (FOLDER / f"lte.{direction}").write_text("".join(f"{time}\n" for time in times))
        print(f"{direction}: {len(times) * 1500 * 8 / MILLISECONDS / 1e3:.1f} Mbit/s")
    pings = airpath.run(FOLDER.parent / "ping.toml", set=CELL | {"flow.0.requests": 1000})
    print(f"half of the least round trip: {1e3 * pings.flows['delay_min_s'][0] / 2:.3f} ms")
