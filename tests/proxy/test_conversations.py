"""Random conversations of kernel ends through a live proxy arrive and end as they were ended."""

import pytest

from support.conversations import SEED, check
from support.link import python, until
from support.proxy import SERVER, Network


@pytest.mark.parametrize(("count", "parallel"), [(200, 50), pytest.param(10_000, 200, marks=pytest.mark.soak)])
def test_conversations_arrive(network: Network, count: int, parallel: int) -> None:
    server, mobile = network.folder / "server", network.folder / "mobile"
    talk = python("converse.py", "talk", SEED, mobile, SERVER, count, parallel)
    with network.started("server", *python("converse.py", "serve", SEED, server)), network.proxy():
        until(lambda: ":4200 " in network.run("server", "ss", "-ltn").out, "the server listens")
        network.run("mobile", *talk, timeout=900)
        state = network.proxy_state()
    assert state["opened"] == count
    ends = check(server, mobile, count)
    assert ends["unreported"] == 0, ends
