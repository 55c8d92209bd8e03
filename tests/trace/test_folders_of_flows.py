"""Traces of result folders: flows of several mobiles, and flows over QUIC."""

from pathlib import Path

import polars as pl
import pytest

import airpath

CELL = """
format = 1
duration = "5 s"
bearer.preset = "lte-20mhz"
[[mobile]]
count = 4
[[flow]]
kind = "download"
bytes = "100 MB"
"""


@pytest.mark.parametrize("capture", [True, False])
def test_each_connection_is_joined_with_itself(capture: bool, tmp_path: Path) -> None:
    # All begin at the same time with the same initial sequence numbers. The SYNs of the mobiles
    # arrive in another order than they were sent.
    result = airpath.run(CELL, out=tmp_path / "run", capture=capture)
    drops = result.packets.filter(pl.col("step") == "dropped").height
    one_way = airpath.trace(tmp_path / "run").one_way
    assert one_way.height == 8
    assert one_way["lost"].sum() <= drops
    assert max(one_way["delay_max_ns"].to_list()) < 2e9


def test_a_folder_with_quic_alone_has_its_connections(tmp_path: Path) -> None:
    text = """
    format = 1
    bearer.preset = "lte-20mhz"
    [[flow]]
    kind = "download"
    transport = "quic-quinn"
    bytes = "200 kB"
    """
    airpath.run(text, out=tmp_path / "captured", capture=True)
    trace = airpath.trace(tmp_path / "captured")
    [row] = trace.quic.rows(named=True)
    assert row["established"] > row["first"]
    # The bearer takes longer than this for each round trip, and the download several of them.
    assert row["spin_bit"] == "spinning"
    assert row["round_trips"] > 2
    assert 0.01e9 < row["round_trip_min_ns"] <= row["round_trip_p50_ns"] <= row["round_trip_max_ns"] < 1e9
    airpath.run(text, out=tmp_path / "logged")
    with pytest.raises(airpath.UnreadableResultError, match="run it again with `--capture`"):
        airpath.trace(tmp_path / "logged")
