"""A proxy lets short downloads of kernel ends pass a long one."""

import shlex
import statistics
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from airpath.result import Result
from support.link import LinkCommand, python

Need = Callable[..., str]

SCENARIO = """\
format = 1
name = "beside"
[fixed]
delay = "1 ms"
[bearer]
model = "wired"
downlink = { rate = "400 kbit/s", delay = "150 ms", queue = { bytes = "256 kB" } }
uplink = { rate = "400 kbit/s", delay = "150 ms", queue = { bytes = "256 kB" } }
[[flow]]
kind = "ping"
"""
LONG, SHORT = 300_000, 8000
# 400 kbit/s x 330 ms x 1.15, and the time of a delayed acknowledgement.
BUDGET = "--proxy --set proxy.budget=20kB"
PERIODIC_LOSS = """\
table inet loss {
    chain arriving {
        type filter hook prerouting priority -300
        iifname "air0" numgen inc mod 40 0 drop
    }
}
"""


@pytest.fixture
def beside(link: LinkCommand) -> Callable[..., tuple[float, list[float]]]:
    """Download over the link; return the seconds of the long download and of the short ones."""
    scenario = link.folder / "beside.toml"
    scenario.write_text(SCENARIO)

    def measure(*, options: str = "", short: int = SHORT, prepare: str = "true") -> tuple[float, list[float]]:
        fetch = shlex.join(python("beside.py", "fetch", "server", LONG, short))
        done = link(
            *("sh", "-ec", f"{prepare}\nexec {fetch}"),
            link=scenario,
            serve=shlex.join(python("beside.py", "serve", "cubic")),
            options=options,
        )
        long_s, short_s = done.json
        return long_s, short_s

    return measure


def test_short_downloads_pass_a_long_one(beside: Callable[..., tuple[float, list[float]]], tmp_path: Path) -> None:
    long_s, short_s = beside()
    assert statistics.median(short_s) > 2, "without a proxy they wait in the queue"
    out = tmp_path / "kept"
    proxied_s, fast_s = beside(options=f"{BUDGET} --out {out}")
    assert max(fast_s) <= 1.2, fast_s
    assert proxied_s <= 1.05 * long_s, (proxied_s, long_s)
    down = Result(out).scan_radio_senders().filter(pl.col("direction") == "down")
    figures = (pl.col("smoothed_round_trip").max(), pl.col("round_trip").min())
    smoothed, least = down.select(*figures).collect().row(0)
    assert smoothed <= 2 * least, (smoothed, least)


@pytest.mark.soak
def test_a_long_download_alone_is_not_slower(beside: Callable[..., tuple[float, list[float]]]) -> None:
    alone_s, _ = beside(short=0)
    proxied_s, _ = beside(short=0, options=BUDGET)
    assert proxied_s <= 1.05 * alone_s, (proxied_s, alone_s)


def test_short_downloads_pass_a_long_one_with_losses(
    beside: Callable[..., tuple[float, list[float]]], tmp_path: Path, need: Need
) -> None:
    nft = need("nft", "nftables")
    (tmp_path / "loss.nft").write_text(PERIODIC_LOSS)
    _, fast_s = beside(options=BUDGET, prepare=f"{nft} -f {tmp_path}/loss.nft")
    assert max(fast_s) <= 1.3, fast_s
