"""Causes of downloads that share a link at the same time: a full one, and one that is not."""

from pathlib import Path

import polars as pl
import pytest

import airpath

VIEWS = ("server", "mobile", "both")
FULL = ("path_rate_s", "queueing_s", "sharing_s")


def traces(folder: Path) -> dict[str, airpath.Trace]:
    server, mobile = (folder / "captures" / f"0000-{end}.pcapng" for end in ("server", "mobile"))
    return {
        "server": airpath.trace(server),
        "mobile": airpath.trace(mobile),
        "both": airpath.trace(server, peer=mobile),
    }


def downloads(number: int, size: str, tcp: str = "") -> str:
    return f'[[flow]]\nkind = "download"\nbytes = "{size}"\n{tcp}\n' * number


def seconds(trace: airpath.Trace, *columns: str) -> float:
    """The sum of columns over all connections."""
    return sum(float(trace.connections[column].sum()) for column in columns)


def used(folder: Path, bits_per_second: float) -> float:
    """The share of the time of a link in which it transmitted, by the event log."""
    packets = airpath.load(folder).scan("packets").filter(pl.col("direction") == "down", pl.col("step") == "received")
    size, begin, end = (
        packets.select(pl.sum("size"), pl.min("time").alias("begin"), pl.max("time").alias("end")).collect().row(0)
    )
    return size * 8 / bits_per_second / ((end - begin) / 1e9)


@pytest.mark.parametrize("discipline", ["codel", "fq-codel", "cake", "pie"])
def test_two_downloads_fill_a_link_whose_queue_is_kept_short(discipline: str, tmp_path: Path) -> None:
    link = f'rate = "5 Mbit/s"\nqueue.discipline = "{discipline}"'
    airpath.run(
        f'format = 1\nfixed.delay = "20 ms"\n[bearer]\npreset = "wired"\n{link}\n{downloads(2, "5 MB")}',
        out=tmp_path / "run",
        capture=True,
    )
    assert used(tmp_path / "run", 5e6) > 0.94
    for view, trace in traces(tmp_path / "run").items():
        time, full = seconds(trace, "duration_s"), seconds(trace, *FULL)
        # The mobile's capture has no times of sending below a millisecond.
        assert full > (0.65 if view == "mobile" else 0.85) * time, (view, full / time)
        # Each carries half of the data.
        assert 0.4 * full < seconds(trace, "sharing_s") < 0.6 * full


@pytest.mark.parametrize(
    ("tcp", "cause"),
    [
        ("tcp.window_limit = 25", "congestion_window_s"),
        ('tcp.receive_buffer = { initial = "40 kB", maximum = "40 kB" }', "receive_window_s"),
        ('tcp.congestion = "bbr"\ntcp.window_limit = 25', "congestion_window_s"),
    ],
    ids=["clamp", "receive-window", "bbr-clamp"],
)
def test_downloads_that_leave_a_part_of_the_link_do_not_fill_it(tcp: str, cause: str, tmp_path: Path) -> None:
    airpath.run(
        'format = 1\nfixed.delay = "10 ms"\n[bearer]\nmodel = "wired"\n'
        'downlink = { rate = "20 Mbit/s", delay = "30 ms", queue = { packets = 200 } }\n'
        'uplink = { rate = "20 Mbit/s", delay = "30 ms" }\n' + downloads(4, "3 MB", tcp),
        out=tmp_path / "run",
        capture=True,
    )
    assert 0.6 < used(tmp_path / "run", 20e6) < 0.8
    for view, trace in traces(tmp_path / "run").items():
        time = seconds(trace, "duration_s")
        assert seconds(trace, cause) > 0.85 * time, view
        assert seconds(trace, *FULL) < 0.05 * time, view
