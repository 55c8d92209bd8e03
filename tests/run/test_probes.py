"""Probes of either end, and datagrams in bursts."""

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from airpath import ScenarioError, run

SCENARIO = """\
format = 1
duration = "10 min"
bearer.preset = "umts-dch-384"
[[flow]]
"""


@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_requests_of_a_ping_go_in_their_direction(tmp_path: Path, direction: str) -> None:
    text = SCENARIO + f'kind = "ping"\nrequests = 20\ndirection = "{direction}"\n'
    (tmp_path / "ping.toml").write_text(text)
    result = run(tmp_path / "ping.toml", out=tmp_path / "out")
    (flow,) = result.summary["flows"]
    assert (flow["sent"], flow["received"]) == (20, 20)
    sent = result.scan("packets").filter(pl.col("step") == "sent").sort("time").collect()["direction"].to_list()
    other = {"up": "down", "down": "up"}[direction]
    assert sent == [direction, other] * 20


def test_bursts_come_at_random_times(tmp_path: Path) -> None:
    spacing = 'spacing = { from = "5 s", to = "10 s", burst = 3 }'
    text = SCENARIO + f'kind = "datagrams"\ndirection = "down"\nduration = "300 s"\nsize = 36\n{spacing}\n'
    (tmp_path / "bursts.toml").write_text(text)
    result = run(tmp_path / "bursts.toml", out=tmp_path / "out")
    sent = result.scan("packets").filter(pl.col("step") == "sent").sort("time").collect()["time"].to_list()
    bursts = sent[::3]
    assert len(sent) == 3 * len(bursts)
    assert all(sent[3 * at : 3 * at + 3] == [time] * 3 for at, time in enumerate(bursts))
    assert all(5e9 <= later - sooner <= 10e9 for sooner, later in pairwise(bursts))
    assert len(bursts) >= 30


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "give `rate` or `spacing`"),
        ('rate = "1 kbit/s"\nspacing = { from = "1 s", to = "2 s" }', "remove one"),
        ('spacing = { from = "3 s", to = "2 s" }', "`to` is shorter than `from`"),
        ('spacing = { from = "0 s", to = "2 s" }', "`from` must be above zero"),
        ('spacing = { from = "10 us", to = "10 us", burst = 10000 }', "at least 10 us for each datagram"),
        ('rate = "1000 Gbit/s"\nsize = 1', "more than 1,000,000,000 datagrams"),
        ('spacing = { from = "1 s", to = "2 s", burst = 0 }', "`burst` must be 1 to 10000"),
    ],
)
def test_a_stream_has_a_rate_or_a_spacing(tmp_path: Path, keys: str, message: str) -> None:
    text = SCENARIO + f'kind = "datagrams"\ndirection = "down"\nduration = "1 s"\n{keys}\n'
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(ScenarioError, match=message):
        run(tmp_path / "wrong.toml", out=tmp_path / "out")


def test_a_stream_is_finished_when_all_have_arrived(tmp_path: Path) -> None:
    text = SCENARIO + 'kind = "datagrams"\ndirection = "down"\nduration = "2 s"\nrate = "8 kbit/s"\nsize = 72\n'
    # The run ends before the time-out of the last datagrams, or before the last is sent.
    for duration, outcome in (("3 s", "finished"), ("1 s", "unfinished")):
        (tmp_path / "short.toml").write_text(text)
        result = run(tmp_path / "short.toml", set={"duration": duration}, out=tmp_path / duration)
        (flow,) = result.summary["flows"]
        assert flow["outcome"] == outcome
