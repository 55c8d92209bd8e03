"""Packets of the kernel over a bearer with header compression (RFC 3095, 5225 and 6846)."""

import random
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from support import Command
from support.link import LinkCommand, python, summary
from support.needs import needs
from support.parity import check_parity

CONNECTIONS = 3
"""One after another: the later ones start from the context of the first one (IR-CR)."""

FETCH = (
    "import sys, urllib.request as request\n"
    f"for number in range({CONNECTIONS}):\n"
    "    with request.urlopen('http://server:8000/file') as response:\n"
    "        open(f'got{number}', 'wb').write(response.read())\n"
)

DATAGRAMS = 100

pytestmark = needs("tun")


def _scenario(link: LinkCommand, name: str, compression: str, loss: float) -> Path:
    scenario = link.folder / f"{name}.toml"
    scenario.write_text(
        f'format = 1\n[fixed]\ndelay = "10 ms"\nup.loss = {loss}\ndown.loss = {loss}\n'
        f'[bearer]\npreset = "umts-r99-384"\nheader_compression = {{ {compression} }}\n',
        encoding="utf-8",
    )
    return scenario


def _counters(link: LinkCommand, name: str) -> dict[str, Any]:
    """Return the counters of the bearer."""
    return summary(link.folder / name)["emulation"]["middleboxes"]["cell"]


def _fetch(link: LinkCommand, name: str, compression: str, loss: float) -> dict[str, Any]:
    """Fetch a file over the bearer; return the counters of the bearer."""
    scenario = _scenario(link, name, compression, loss)
    payload = random.Random(1).randbytes(60_000)
    (link.folder / "file").write_bytes(payload)
    serve = f"exec {shlex.join([sys.executable, '-m', 'http.server', '8000'])}"
    link(*python(FETCH), link=scenario, serve=serve, options=f"--out {name}")
    for number in range(CONNECTIONS):
        assert (link.folder / f"got{number}").read_bytes() == payload, "the payload passes byte for byte"
    return _counters(link, name)


@pytest.mark.parametrize("loss", [0, 0.03])
def test_headers_of_the_kernel_shrink_and_are_restored(link: LinkCommand, loss: float) -> None:
    """The header of a data segment has 52 bytes with timestamps."""
    profiles = 'mode = "optimistic", profiles = ["tcp", "udp", "ip"]'
    counters = _fetch(link, "tcp", profiles, loss)
    for direction in ("down", "up"):
        before, after, *others = (
            counters[f"rohc_{direction}_{name}"]
            for name in ("header_bytes", "compressed_header_bytes", "failures", "undetected", "contexts")
        )
        assert others == [0, 0, CONNECTIONS], "nothing is lost below the compression"
        assert before > 40 * 52
        assert after < before / 2, (direction, counters)
        assert counters[f"rohc_{direction}_feedback_bytes"] > 0


def test_without_the_profile_only_the_ip_header_shrinks(link: LinkCommand) -> None:
    counters = _fetch(link, "ip", 'mode = "optimistic"', 0)
    assert counters["rohc_down_header_bytes"] > 20 * 40
    assert counters["rohc_down_compressed_header_bytes"] < counters["rohc_down_header_bytes"] / 3
    assert counters["rohc_down_failures"] == 0


@pytest.mark.parametrize("mode", ["unidirectional", "optimistic"])
def test_a_link_with_header_compression_is_replayed(link: LinkCommand, airpath_command: Command, mode: str) -> None:
    """The result has the headers of the kernel's packets, with addresses and options."""
    _fetch(link, "live", f'mode = "{mode}", profiles = ["tcp", "udp", "ip"]', 0.03)
    check_parity(airpath_command, link.folder / "live")


def test_a_replay_that_is_refused_leaves_nothing(link: LinkCommand, airpath_command: Command) -> None:
    _fetch(link, "live", 'mode = "optimistic"', 0)
    (link.folder / "live" / "headers" / "0000.pcapng").unlink()
    done = airpath_command("replay", link.folder / "live", "--out", link.folder / "again")
    assert done.code == 2
    assert "`bearer.header_compression`" in done.err
    assert not (link.folder / "again").exists()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_headers_of_datagrams_shrink_and_are_restored(link: LinkCommand, version: str) -> None:
    """A datagram of IPv4 has 28 bytes of headers, and a checksum that stays."""
    scenario = _scenario(link, version, f'mode = "optimistic", profiles = ["udp", "ip"], version = "{version}"', 0)
    call = python("echo.py", "call", "server", DATAGRAMS)
    link(*call, link=scenario, serve=shlex.join(python("echo.py", "serve")), options=f"--out {version}")
    counters = _counters(link, version)
    for direction in ("down", "up"):
        assert counters[f"rohc_{direction}_failures"] == counters[f"rohc_{direction}_undetected"] == 0
        before, after = (counters[f"rohc_{direction}_{name}"] for name in ("header_bytes", "compressed_header_bytes"))
        assert before >= DATAGRAMS * 28
        assert after < before / 3, (direction, counters)
