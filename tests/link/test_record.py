"""`--record`: the record of a link is a recorded link, for both emulation and simulation."""

import shlex
from typing import Any

import pytest

from support import Command
from support.link import LinkCommand, python, summary

RATE = 3e6
SECONDS = 2

PLAYED = """\
format = 1
name = "played"

[bearer]
model = "recorded"
downlink = { recorded = "record.down", queue.packets = 50 }
uplink = { recorded = "record.up", queue.packets = 50 }

[[flow]]
kind = "datagrams"
direction = "up"
rate = "6 Mbit/s"
size = 1200
duration = "4 s"
"""


def test_a_record_is_played_back_at_the_same_rate(link: LinkCommand, airpath_command: Command) -> None:
    wire = link.wire(rate=f"{RATE:.0f} bit/s", delay="5 ms", queue="{ packets = 50 }")
    # A record has only the used capacity: twice the link's rate is offered to use all of it.
    overload = python("flood.py", "100.64.0.1", SECONDS, 2 * RATE)
    answered = f"ping -c 2 -i 0.2 server > ping; {shlex.join(overload)}"
    link("sh", "-c", answered, link=wire, options="--record record")
    # A line is a delivery opportunity for 1,500 bytes, in milliseconds.
    times = [int(line) for line in (link.folder / "record.up").read_text().split()]
    assert times == sorted(times)
    recorded = 1500 * 8 * len(times) / times[-1] * 1000
    assert 0.5 * RATE < recorded <= RATE

    (link.folder / "played.toml").write_text(PLAYED)
    link(*overload, link="played.toml", options="--out played --no-log")
    assert delivered(summary(link.folder / "played"), SECONDS) == pytest.approx(recorded, rel=0.25)
    simulated = airpath_command("run", "played.toml", "--format", "json")
    assert simulated.code == 0, simulated.err
    assert delivered(simulated.json, 4) == pytest.approx(recorded, rel=0.25)


def test_a_direction_without_deliveries_has_no_record(link: LinkCommand) -> None:
    records = [link.folder / f"record.{direction}" for direction in ("down", "up")]
    for record in records:
        record.write_text("1\n")  # of an earlier run
    done = link("true", options="--record record")
    assert not any(record.exists() for record in records)
    for record in records:
        assert f"there is no {record.name}: the link delivered less than 1,500 bytes in this direction" in done.err


def delivered(found: dict[str, Any], seconds: float) -> float:
    """Return the mean rate in bit/s at which data arrived at the server, over `seconds`."""
    [last] = [row for row in found["links"] if (row["component"], row["direction"]) == ("fixed", "up")]
    return 8 * last["delivered_bytes"] / seconds
