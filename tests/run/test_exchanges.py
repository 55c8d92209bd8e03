"""Remote terminals and mail: latencies, settings of TCP, recorded sessions."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.run import execute

DELAY = 0.1
ROUND_TRIP = 2 * DELAY
SESSION = """kind,waits,pause_ms,request_bytes,response_bytes,server_ms
key,yes,1000,36,44,0
key,no,20,36,44,0
key,no,20,36,44,0
open,yes,2000,36,30000,250
"""


def _scenario(**flow: object) -> dict[str, Any]:
    """A scenario whose only delay is that of the fixed network."""
    return {"format": 1, "bearer": {"preset": "wired"}, "fixed": {"delay": f"{DELAY} s"}, "flow": [flow]}


def _run(folder: Path, **flow: object) -> dict[str, Any]:
    return airpath.run(_scenario(**flow), out=folder).flows.row(0, named=True)


def test_an_echo_takes_a_round_trip_without_nagle(tmp_path: Path) -> None:
    flow = _run(tmp_path / "run", kind="terminal", session={"rounds": 3}, tcp={"nagle": "off"})
    assert flow["outcome"] == "finished"
    assert flow["exchange_key_count"] == 120
    assert flow["exchange_key_p50_s"] == pytest.approx(ROUND_TRIP, abs=0.005)
    assert flow["exchange_key_max_s"] == pytest.approx(ROUND_TRIP, abs=0.005)
    # The server takes 100 ms, and 30 kB need a second flight.
    assert flow["exchange_open_p50_s"] > ROUND_TRIP + 0.1
    assert flow["sent"] == flow["received"] == 3 * 62


def test_nagle_makes_keystrokes_wait_for_echoes(tmp_path: Path) -> None:
    session = {"rounds": 3, "key_interval": "50 ms"}
    slow = _run(tmp_path / "nagle", kind="terminal", session=session, tcp={"nagle": "rfc896"})
    fast = _run(tmp_path / "none", kind="terminal", session=session, tcp={"nagle": "off"})
    # A keystroke waits for the acknowledgement of those before it: up to a round trip more.
    assert fast["exchange_key_p95_s"] < ROUND_TRIP + 0.005
    assert ROUND_TRIP + 0.1 < slow["exchange_key_p95_s"] <= 2 * ROUND_TRIP + 0.01


def test_a_recorded_session_is_kept_and_runs_again(tmp_path: Path) -> None:
    session = tmp_path / "session.csv"
    session.write_text(SESSION)
    result = airpath.run(_scenario(kind="terminal", session=str(session)), out=tmp_path / "run")
    flow = result.flows.row(0, named=True)
    assert (flow["exchange_key_count"], flow["exchange_open_count"]) == (3, 1)
    assert flow["exchange_open_max_s"] > ROUND_TRIP + 0.25
    assert result.scripts.rows() == [(0, 0, 0, 3, "key"), (0, 0, 3, 1, "open")]
    arrived = result.scan("app").filter(pl.col("step") == "arrived").collect()
    assert arrived["sequence"].to_list() == [0, 1, 2, 3]
    session.unlink()
    again = airpath.run(tmp_path / "run" / "scenario.toml")
    assert again.flows.row(0, named=True) == flow


def test_a_bad_session_is_named_with_its_line(tmp_path: Path) -> None:
    session = tmp_path / "session.csv"
    session.write_text(SESSION.replace("30000", "many"))
    with pytest.raises(airpath.ScenarioError, match=r"session.csv:5.*response_bytes.*`many`"):
        execute(_scenario(kind="terminal", session=str(session)))
    with pytest.raises(airpath.ScenarioError, match=r"missing.csv.*cannot be read"):
        execute(_scenario(kind="terminal", session=str(tmp_path / "missing.csv")))
    with pytest.raises(airpath.ScenarioError, match=r"no key `rounds`"):
        execute(_scenario(kind="terminal", rounds=3))
    with pytest.raises(airpath.ScenarioError, match="rounds"):
        execute(_scenario(kind="terminal", session={"rounds": 0}))


@pytest.mark.parametrize(
    ("protocol", "round_trips"),
    # TCP's handshake, and commands until the first message: greeting included, which takes half of
    # a round trip after the handshake.
    [("imap", 1 + 5), ("pop3", 1 + 6), ("smtp", 1 + 6)],
)
def test_a_message_is_read_after_the_round_trips_of_its_protocol(
    tmp_path: Path, protocol: str, round_trips: int
) -> None:
    flow = _run(tmp_path / "run", kind="mail", protocol=protocol, message="1 kB")
    assert flow["protocol"] == protocol
    # The greeting follows the handshake's last packet: the client has it a round trip after it.
    assert flow["first_message_s"] == pytest.approx(round_trips * ROUND_TRIP, abs=ROUND_TRIP / 4)
    assert flow["last_message_s"] == flow["first_message_s"]
    assert flow["outcome"] == "finished"


def test_pipelining_saves_round_trips(tmp_path: Path) -> None:
    mail = {"kind": "mail", "protocol": "pop3", "messages": 10, "message": "1 kB"}
    plain, pipelined = (_run(tmp_path / str(on), **mail, pipelining=on) for on in (False, True))
    # RETR and DELE of nine more messages.
    assert plain["last_message_s"] - pipelined["last_message_s"] > 15 * ROUND_TRIP


def test_wrong_settings_of_mail_are_named() -> None:
    for wrong in ({"protocol": "uucp"}, {"messages": 0}, {"message": "0 B"}):
        with pytest.raises(airpath.ScenarioError, match=next(iter(wrong))):
            execute(_scenario(**({"kind": "mail", "protocol": "imap"} | wrong)))
