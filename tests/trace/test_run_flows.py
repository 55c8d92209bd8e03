"""What a result folder adds to a trace: names, a policer's drops, congestion marks, outages."""

from pathlib import Path

import polars as pl

import airpath
from support import Command

SCENARIO = """
format = 1
duration = "20 s"
[bearer]
preset = "lte-10mhz"
[fixed]
delay = "20 ms"
{fixed}
[[flow]]
kind = "download"
bytes = "1 MB"
{more}
"""


def _traced(command: Command, folder: Path, fixed: str = "", more: str = "", **options) -> tuple[airpath.Result, str]:
    result = airpath.run(SCENARIO.format(fixed=fixed, more=more), out=folder, **options)
    return result, " ".join(command("trace", str(folder)).out.replace("\u00a0", " ").split())


def test_the_drops_of_a_policer_are_the_reason_of_a_small_window(airpath_command: Command, tmp_path: Path) -> None:
    policer = 'policer = { rate = "2 Mbit/s", burst = "50 kB" }'
    result, text = _traced(airpath_command, tmp_path / "run", policer)
    dropped = result.packets.filter(step="dropped", cause="policer").height
    assert f"From the server: the policer of the fixed network dropped {dropped:,} packets." in text
    assert "a policer dropped packets, so that the congestion window stayed small" in text
    assert "its congestion window was too small" not in text
    assert "the radio carried nothing" not in text


def test_congestion_marks_are_counted_at_the_receiver(airpath_command: Command, tmp_path: Path) -> None:
    more = '[tcp]\necn = true\naccurate_ecn = true\ncongestion = "prague"\n'
    more += '[bearer.pdcp.queue]\ndiscipline = "dualpi2"\n'
    result, text = _traced(airpath_command, tmp_path / "run", more=more)
    data = result.packets.filter(pl.col("step") == "sent", pl.col("direction") == "down", pl.col("length") > 0)
    arrived = result.packets.filter(step="received").join(data.select("packet"), on="packet")
    marked = arrived.filter(ecn=3).height
    assert marked > 0
    assert f"From the server: {marked:,} of {arrived.height:,} packets with data" in text
    assert "congestion marks (ECN)" in text.split("limited by", 1)[-1].split("From the server")[0]


def test_an_outage_of_the_fixed_network_is_not_the_radios(airpath_command: Command, tmp_path: Path) -> None:
    more = '[[change]]\nat = "400 ms"\nto = "fixed"\noutage = "2 s"\n'
    _, text = _traced(airpath_command, tmp_path / "run", more=more, capture=True)
    assert "the fixed network had an outage" in text
    assert "the radio carried nothing" not in text
    assert "fixed-network-outage 2 s" in text


def test_connections_have_the_names_of_flows_and_mobiles(airpath_command: Command, tmp_path: Path) -> None:
    mobiles = '[[mobile]]\nname = "phone"\n[[mobile]]\nname = "tablet"\n'
    second = '[[flow]]\nkind = "download"\nbytes = "20 kB"\nmobile = "tablet"\n'
    _, text = _traced(airpath_command, tmp_path / "run", more=f'mobile = "phone"\n{second}{mobiles}')
    assert "download of phone" in text
    assert "download of tablet" in text
    one = airpath_command("trace", str(tmp_path / "run"), "--flow", "tablet").out
    assert "Connection 2: download of tablet, 10.0.0.3:" in one
    page = airpath.trace(tmp_path / "run").report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "download of tablet" in page
    # Flows of one name of one mobile need no column.
    _, alike = _traced(airpath_command, tmp_path / "alike", more="count = 2\nname = 'x'")
    assert "x-0" in alike
    _, equal = _traced(airpath_command, tmp_path / "equal", more='[[flow]]\nkind = "download"\nbytes = "9 kB"')
    assert " flow " not in equal.split("connection time", 1)[0][-12:]
