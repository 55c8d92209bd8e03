"""Random and malformed packets through the device: no panic, no growth, every packet is counted."""

import re
import shutil
from pathlib import Path

import pytest

from support.link import DEVICES, LinkCommand, python, summary, words_of

CAUSES = {
    *("not-ip", "malformed", "header-checksum", "offload", "group-membership", "neighbour-discovery", "link-local"),
    *("martian", "not-taken"),
}


@DEVICES
def test_random_packets_are_refused_with_a_cause_or_carried(link: LinkCommand, device: str) -> None:
    soak(link, device, seconds=1, options="--capture")
    # The captures are large: a packet in a routing loop is captured at every router.
    shutil.rmtree(link.folder / "kept" / "captures")


@pytest.mark.soak
@DEVICES
def test_a_million_random_packets(link: LinkCommand, device: str) -> None:
    assert soak(link, device, seconds=60) >= 1_000_000


def soak(link: LinkCommand, device: str, seconds: float, options: str = "") -> int:
    """Send hostile packets for some seconds; return their number."""
    kept = link.folder / "kept"
    # Then the link must work as before.
    hostile = " ".join(python("hostile.py", seconds, 1))
    script = f"{hostile} && echo sent && read go; exec ping -c 3 -i 0.2 server"
    fast = link.wire(rate="10 Gbit/s", delay="1 ms")
    options = f"--device {device} --out {kept} --no-log {options}"
    with link.started("sh", "-c", script, link=fast, options=options, popen={"stdin": -1}) as process:
        sent = int(words_of(process.stdout, "sent"))
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert process.stdin is not None
        out, err = process.communicate("go\n", timeout=60)
    assert process.returncode == 0, err
    assert "panicked" not in err
    assert "3 received" in out
    resident = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert resident is not None
    assert int(resident[1]) < 200_000
    found = summary(kept)
    refused = found["emulation"]["refused"]
    assert set(refused) <= CAUSES
    assert len(refused) >= 6
    carried = max(row["offered_packets"] for row in found["links"])
    assert carried > 0
    # Every packet that reached the link is counted. The kernel drops some of the sent packets.
    assert carried + sum(refused.values()) > sent / 4
    return sent
