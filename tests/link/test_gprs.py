"""A real ping over GPRS: the first packet waits for a TBF, the following packets do not."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest

from support.link import LinkCommand

Need = Callable[..., str]

PREPARED_MS = 400
"""Less than the preset's set-up of two TBFs, one each way, with fixed delays: 500 ms or more."""


def trips(report: str) -> list[float]:
    """Return the round trips in the output of `ping`, in milliseconds, in the order of sending."""
    return [
        float(time) for _, time in sorted((int(a), b) for a, b in re.findall(r"icmp_seq=(\d+) .*time=([\d.]+)", report))
    ]


def scenario(link: LinkCommand, more: str = "") -> str:
    """Write a scenario with C/I so high that no block is retransmitted, which would add delay."""
    path = link.folder / "gprs.toml"
    path.write_text(f'format = 1\nname = "gprs"\n[bearer]\npreset = "gprs-3+1"\nconditions.ci = "40 dB"\n{more}')
    return str(path)


@pytest.mark.parametrize("preset", ["gprs-3+1", "good radio"])
def test_the_first_packet_of_a_burst_waits_and_the_others_follow_it(link: LinkCommand, need: Need, preset: str) -> None:
    ping = f"{need('ping', 'iputils-ping')} -c 3 -i 0.01 server"
    way = scenario(link) if preset == "good radio" else preset
    done = link("sh", "-c", f"{ping}; sleep 3; {ping}", link=way, options="--budget 50ms")
    first, second = done.out.split(" ping statistics ")[:2]
    for report in (first, second):
        sent = [10 * place for place in range(3)]
        arrived = [at + trip for at, trip in zip(sent, trips(report), strict=True)]
        assert arrived[0] > PREPARED_MS
        if preset == "good radio":
            # The packets behind it arrive at the rate of the blocks.
            assert max(later - earlier for earlier, later in pairwise(arrived)) < arrived[0] / 4


def test_only_the_first_packet_waits_where_flows_are_kept(link: LinkCommand, need: Need) -> None:
    kept = scenario(link, 'tbf.delayed_release = "5 s"\ntbf.extended_uplink = "5 s"\n')
    done = link(need("ping", "iputils-ping"), "-c", 8, "-i", 0.5, "server", link=kept, options="--budget 50ms")
    first, *others = trips(done.out)
    assert first > PREPARED_MS
    assert max(others) < first
    assert sorted(others)[len(others) // 2] < first - 100
