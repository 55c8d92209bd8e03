"""The use of a cell by all of its mobiles, in the table of a report."""

from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath import report
from airpath.plot.selection import drawn
from airpath.quantities import rate
from airpath.report.cell_use import cell_uses
from support.report_page import Page

SCENARIO = """
format = 1
duration = "3 s"
bearer.preset = "{preset}"
[[mobile]]
name = "phone"
[[mobile]]
name = "tablet"
[[flow]]
kind = "download"
mobile = "phone"
bytes = "1 GB"
[[flow]]
kind = "download"
mobile = "tablet"
bytes = "1 GB"
"""


@pytest.mark.parametrize(
    ("preset", "blocks", "most"), [("lte-10mhz", 50, 1.0), ("nr-n78-100mhz-sa", 273, 0.8), ("lte-2x20mhz", 200, 1.0)]
)
def test_a_full_cell_uses_its_resource_blocks(preset: str, blocks: int, most: float) -> None:
    result = airpath.run(SCENARIO.format(preset=preset))
    [down, up] = cell_uses(drawn(result)[0])
    assert (down.direction, down.all_blocks, up.direction) == ("down", blocks, "up")
    sent = result.radio.filter(direction="down")
    assert down.bits_per_second == pytest.approx(8 * sent["bytes"].sum() / 3)
    assert down.blocks is not None
    assert 0.85 * blocks < down.blocks <= blocks
    # NR has U slots, and the set-up of the connections takes time.
    assert 0.7 * most < down.busy <= most
    assert up.blocks is not None
    assert up.all_blocks is not None
    assert up.blocks < up.all_blocks


def test_the_table_has_what_was_on_the_air(tmp_path: Path) -> None:
    result = airpath.run(SCENARIO.format(preset="lte-10mhz"), out=tmp_path / "run")
    words = Page(report.write([result], tmp_path / "report.html")).words
    total = int(result.radio_totals.filter(pl.col("direction") == "down")["bytes"].sum())
    assert f"cell down {rate(8 * total / 3)}" in words
    gprs = airpath.run("gprs", set={"flow.bytes": "5 kB"})
    assert cell_uses(drawn(gprs)[0]) == []
    assert cell_uses(drawn(airpath.run("lte-10mhz", log=False))[0]) == []
