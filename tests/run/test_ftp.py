"""FTP: control and data connections, times, the capture as tshark reads it, bad settings."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.run import execute

DELAY = 0.1
ROUND_TRIP = 2 * DELAY


def _scenario(**flow: object) -> dict[str, Any]:
    """A scenario whose only delay is that of the fixed network."""
    return {
        "format": 1,
        "bearer": {"preset": "wired"},
        "fixed": {"delay": f"{DELAY} s"},
        "flow": [{"kind": "ftp", **flow}],
    }


@pytest.mark.parametrize("mode", ["passive", "active"])
@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_session_takes_the_round_trips_of_its_commands(tmp_path: Path, mode: str, direction: str) -> None:
    # A file of a byte: each command takes a round trip, and so does each connection.
    scenario = _scenario(mode=mode, direction=direction, files=3, file="1 B")
    result = airpath.run(scenario, out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert (flow["outcome"], flow["mode"]) == ("finished", mode)
    assert (flow["files_complete"], flow["delivered_bytes"]) == (3, 3)
    assert flow["connect_s"] == pytest.approx(ROUND_TRIP, abs=0.005)
    # The greeting, three commands of the login, and the end.
    assert flow["exchange_session_count"] == 5
    assert flow["exchange_prepare_p50_s"] == pytest.approx(ROUND_TRIP, abs=0.005)
    # From the transfer command to reply 226. The server opens an active data connection before its
    # first reply, and an upload begins after that reply.
    round_trips = {("down", "passive"): 1, ("up", "passive"): 2, ("down", "active"): 2, ("up", "active"): 3}
    assert flow["exchange_file_p50_s"] == pytest.approx(round_trips[direction, mode] * ROUND_TRIP, abs=0.005)
    arrived = result.scan("app").filter(pl.col("step") == "arrived").collect()
    assert arrived["sequence"].to_list() == [0, 1, 2]


def test_a_large_file_has_the_rate_of_the_path(tmp_path: Path) -> None:
    scenario = _scenario(file="2 MB", files=2)
    scenario["bearer"] = {"preset": "umts-dch-384"}
    flow = airpath.run(scenario, out=tmp_path / "run").flows.row(0, named=True)
    assert 300e3 < flow["throughput_bps"] < 384e3
    assert flow["first_file_s"] < flow["duration_s"] / 1.9


def test_tshark_reads_the_connections(tmp_path: Path, need: Callable[[str], str]) -> None:
    for mode, opener in (("passive", "10.0.0.2"), ("active", "192.0.2.1")):
        result = airpath.run(_scenario(mode=mode, files=2), out=tmp_path / mode, capture=True)
        capture = next(path for path in result.captures() if "server" in path.name)
        words = [need("tshark"), "-n", "-r", str(capture), "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0"]
        words += ["-T", "fields", "-e", "ip.src", "-e", "tcp.srcport", "-e", "tcp.dstport"]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        control, *data = [line.split("\t") for line in output.splitlines()]
        assert (control[0], control[2]) == ("10.0.0.2", "21")
        assert [source for source, *_ in data] == [opener] * 2
        assert mode == "passive" or [port for _, port, _ in data] == ["20", "20"]


def test_a_lost_connection_aborts_the_session(tmp_path: Path) -> None:
    scenario = _scenario(file="5 MB") | {"duration": "4000 s", "change": [{"at": "1 s", "outage": "3900 s"}]}
    flow = airpath.run(scenario, out=tmp_path / "run").flows.row(0, named=True)
    assert (flow["outcome"], flow["files_complete"]) == ("aborted", 0)
    assert "reported by" in flow["cause"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"files": 0}, r"flow.0.files.*1 to 10,000"),
        ({"file": "0 B"}, r"flow.0.file.*1 byte"),
        ({"mode": "extended"}, r"flow.0.mode"),
        ({"bytes": "1 MB"}, r"flow.0.bytes"),
        ({"tcp": {"handshake": False}}, r"flow.0.tcp.handshake"),
        ({"tcp": {"whole_segments": True}}, r"flow.0.tcp.whole_segments"),
    ],
)
def test_bad_settings_are_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(airpath.ScenarioError, match=message):
        execute(_scenario(**wrong))
