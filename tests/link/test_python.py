"""`airpath.link`: real programs on an emulated link, from Python."""

import subprocess
import sys
from pathlib import Path

import pytest

import airpath
from support.needs import needs

pytestmark = needs("network-namespace")


def test_a_command_runs_and_its_packets_are_logged() -> None:
    program = "import socket; socket.create_connection(('server', 80)).sendall(b'x' * 3000); print('done')"
    linked = airpath.link(
        "wired",
        [sys.executable, "-c", program],
        serve=f"exec {sys.executable} -m http.server 80",
        set={"fixed.delay": "30 ms"},
        capture_output=True,
    )
    assert (linked.returncode, linked.stdout) == (0, b"done\n")
    assert linked.result.flows.height >= 1
    assert linked.result.packets.height > 0
    assert linked.result.summary["emulation"]["exit"] == "ended with exit code 0"


def test_a_scenario_may_be_a_dictionary(tmp_path: Path) -> None:
    scenario = {"format": 1, "name": "mine", "bearer": {"preset": "wired"}}
    serve = f"exec {sys.executable} -m http.server 80"
    linked = airpath.link(scenario, ["sh", "-c", "exit 7"], serve=serve, out=tmp_path / "out", capture_output=True)
    assert linked.returncode == 7
    assert linked.result.summary["scenario"] == "mine"


def test_what_cannot_be_made_is_an_error() -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        airpath.link("no-such-preset", ["true"], capture_output=True)
    assert b"no-such-preset" in error.value.stderr


def test_hosts_are_those_of_the_command() -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        airpath.link("wired", ["true"], serve="true", hosts=["LOCALHOST"], capture_output=True)
    assert b"--host LOCALHOST: it has an address already" in error.value.stderr
