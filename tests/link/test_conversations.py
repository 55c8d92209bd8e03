"""Random conversations of kernel ends through a proxy arrive, and end as they were ended."""

import shlex

import pytest

from support.conversations import SEED, check
from support.link import LinkCommand, python, summary

SCENARIO = """\
format = 1
name = "conversations"
[fixed]
rate = "200 Mbit/s"
delay = { distribution = "normal", mean = "5 ms", deviation = "0.5 ms", reorder = true }
loss = 0.01
[bearer]
model = "wired"
downlink = { rate = "100 Mbit/s", delay = DELAY, loss = 0.01 }
uplink = { rate = "100 Mbit/s", delay = DELAY, loss = 0.01 }
[[flow]]
kind = "ping"
"""
DELAY = '{ distribution = "normal", mean = "10 ms", deviation = "1 ms", reorder = true }'


@pytest.mark.parametrize(("count", "parallel"), [(200, 50), pytest.param(10_000, 100, marks=pytest.mark.soak)])
def test_conversations_arrive_with_losses_and_reordering(link: LinkCommand, count: int, parallel: int) -> None:
    scenario = link.folder / "conversations.toml"
    scenario.write_text(SCENARIO.replace("DELAY", DELAY))
    server, mobile, kept = (link.folder / name for name in ("server", "mobile", "kept"))
    link(
        *python("converse.py", "talk", SEED, mobile, "server", count, parallel),
        link=scenario,
        serve=shlex.join(python("converse.py", "serve", SEED, server)),
        options=f"--proxy --out {kept} --no-log",
        timeout=1800,
    )
    ends = check(server, mobile, count)
    # A reset is lost as often as other packets, in each of its two directions over two networks.
    assert ends["unreported"] <= 0.05 * count, ends
    assert min(ends[end] for end in ("both", "server-last", "mobile-last", "mobile-resets", "server-resets")) > 10
    rows = [row for row in summary(kept)["links"] if row["component"] != "proxy"]
    assert all(sum(cause["packets"] for cause in row["dropped"].values()) > 0 for row in rows), rows
