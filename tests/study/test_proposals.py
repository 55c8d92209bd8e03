"""Figures of a mobile and its server from a log with a proxy."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from airpath import result, run
from airpath.study import mobile, sender
from airpath.study.observations import OBSERVED_METRICS

DOWNLOAD = """\
format = 1
[fixed]
rate = "10 Mbit/s"
delay = "5 ms"
[bearer]
model = "wired"
downlink = { rate = "80 kbit/s", delay = "400 ms" }
uplink = { rate = "80 kbit/s", delay = "400 ms" }
[tcp]
profile = "linux-2.4"
[[flow]]
kind = "download"
bytes = "300 kB"
[[change]]
at = "15 s"
outage = "5 s"
"""


@pytest.fixture
def observed(tmp_path: Path) -> Any:
    """Run the download with overrides; return a function that computes a metric of it."""
    numbers = count()

    def figures(**overrides: str) -> Any:
        (tmp_path / "download.toml").write_text(DOWNLOAD)
        out = tmp_path / f"out-{next(numbers)}"
        run(tmp_path / "download.toml", set=overrides, out=out)
        log = result.Result(out)
        flow = log.summary["flows"][0]
        flow |= {each.KEY: each.observe(log)[0] for each in (mobile, sender)}
        inputs = {"restored": 20.0, "volume": 50_000.0}
        return lambda name: OBSERVED_METRICS[name].compute([flow], inputs)

    return figures


def test_a_proxy_acknowledges_before_the_mobile(observed: Any) -> None:
    assert observed()("acknowledged-early") == 0
    early = observed(**{"proxy.budget": "10 kB"})("acknowledged-early")
    assert 150_000 < early <= 300_000, "what the proxy stores at 10 Mbit/s"


def test_round_trips_are_those_towards_the_mobile(observed: Any) -> None:
    alone, clamped = observed(), observed(**{"proxy.budget": "10 kB"})
    # The server's own round trip to the proxy is 10 ms.
    assert 0.8 < clamped("mobile-round-trip") < 2.5
    assert alone("mobile-round-trip") > 2 * clamped("mobile-round-trip")
    assert alone("longest-mobile-round-trip") > 5


def test_recovery_takes_as_long_as_what_is_outstanding(observed: Any) -> None:
    alone, clamped = observed(), observed(**{"proxy.budget": "10 kB"})
    # 10 kB and 64 kB at 80 kbit/s, and the delay of the uplink.
    assert 0.8 < clamped("recovery-time") < 2.5
    assert 5 < alone("recovery-time") < 9
    # 50 kB at 80 kbit/s take 5 s; a window that the timeouts of the outage sent again comes first.
    assert 5 < clamped("resume-time") < 9
