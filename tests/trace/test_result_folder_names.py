"""Traces of result folders: the names of connections, and runs without any."""

import pytest

from airpath.trace.messages import name_of
from support import DOWNLOAD, Command


@pytest.mark.parametrize(
    ("flow", "name"),
    [
        (None, "10.0.0.2:1 → 192.0.2.1:80"),
        ("page of car", "page of car, 10.0.0.2:1 → 192.0.2.1:80"),
        ("10.0.0.2:1 → 192.0.2.1:80", "10.0.0.2:1 → 192.0.2.1:80"),
        ("10.0.0.2:1 → 192.0.2.1:80 of car", "10.0.0.2:1 → 192.0.2.1:80 of car"),
    ],
)
def test_the_name_of_a_connection_has_its_ends_once(flow: str | None, name: str) -> None:
    assert name_of({"client": "10.0.0.2:1", "server": "192.0.2.1:80", "flow_name": flow}) == name


def test_a_run_in_which_no_packet_arrived_is_reported(airpath_command: Command) -> None:
    (airpath_command.folder / "lost.toml").write_text(DOWNLOAD.replace("loss = 0.01", "loss = 1.0"))
    done = airpath_command("run", "lost.toml", "--set", "duration=30 s", "--out", "lost")
    assert done.code == 0, done.err
    failed = airpath_command("trace", "lost")
    assert failed.code == 2
    assert "lost: none of its " in failed.err
    assert "TCP packets arrived" in failed.err
    assert "next: `airpath report lost`" in failed.err
