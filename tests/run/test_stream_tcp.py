"""Videos by RTP over TCP: figures, aborts, settings."""

from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.run import execute
from support import ROOT

EXAMPLE = ROOT / "examples" / "stream.toml"


def _run(folder: Path, **changes: str) -> dict[str, Any]:
    changes = {f"flow.0.{key}": value for key, value in changes.items()}
    return airpath.run(EXAMPLE, set={"flow.0.transport": "tcp"} | changes, out=folder).flows.row(0, named=True)


def test_nothing_is_lost_and_playback_waits_instead(tmp_path: Path) -> None:
    flow = _run(tmp_path / "run")
    assert flow["outcome"] == "finished"
    assert flow["sent"] == flow["received"] == 2040
    assert flow["frames_decodable"] == flow["frames"] == 1800
    assert (flow["lost"], flow["retransmitted_packets"]) == (0, 0)
    # The outage of 8 s exceeds the buffer of 5 s.
    assert flow["stalls"] >= 1
    assert flow["stall_s"] > 3
    # The connection opens first: a round trip of the fixed network alone is 80 ms.
    udp = airpath.run(EXAMPLE, set={"fixed.loss": "0"}).flows.row(0, named=True)
    clean = airpath.run(EXAMPLE, set={"fixed.loss": "0", "flow.0.transport": "tcp"}).flows.row(0, named=True)
    assert 0.08 < clean["startup_s"] - udp["startup_s"] < 0.6


def test_a_server_ahead_of_real_time_bridges_the_outage(tmp_path: Path) -> None:
    flow = _run(tmp_path / "run", speed="2", ahead="30 s")
    assert (flow["stalls"], flow["frames_decodable"]) == (0, 1800)


def test_a_long_outage_ends_the_session(tmp_path: Path) -> None:
    changes = {"change.0.outage": "60 s"}
    result = airpath.run(EXAMPLE, set={"flow.0.transport": "tcp"} | changes, out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert flow["outcome"] == "aborted"
    assert "no packet arrived for 30 s" in flow["cause"]
    steps = result.scan("app").collect()["step"].to_list()
    assert (steps[:2], steps[-1]) == (["started", "connected"], "aborted")


def test_a_lost_connection_is_the_cause(tmp_path: Path) -> None:
    changes = {"change.0.outage": "900 s", "flow.0.timeout": "1 h", "duration": "2000 s"}
    changes["flow.0.tcp.retransmission_timeout.retries"] = "4"
    result = airpath.run(EXAMPLE, set={"flow.0.transport": "tcp", **changes})
    flow = result.flows.row(0, named=True)
    assert flow["outcome"] == "aborted"
    assert "reported by" in flow["cause"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("repair", '"nack"', r"flow.0.repair.*TCP retransmits"),
        ("transport", '"sctp"', r"flow.0.transport"),
        ("tcp.whole_segments", "true", r"flow.0.tcp.whole_segments"),
    ],
)
def test_settings_that_do_not_suit_tcp_are_named(key: str, value: str, message: str) -> None:
    with pytest.raises(airpath.ScenarioError, match=message):
        execute(EXAMPLE, set={"flow.0.transport": '"tcp"', f"flow.0.{key}": value})


def test_a_stream_of_datagrams_has_no_settings_of_tcp() -> None:
    with pytest.raises(airpath.ScenarioError, match=r"flow.0.tcp"):
        execute(EXAMPLE, set={"flow.0.tcp.nagle": '"off"'})
