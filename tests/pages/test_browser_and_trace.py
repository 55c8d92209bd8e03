"""`airpath trace` of Chromium's capture and Chromium's own HAR file agree.

The capture at the mobile has the packets at the network interface. Chromium has its own clock
readings: before it writes a request, and after it was woken up to read a response. So a response
cannot be earlier in the HAR file than in the capture, nor a request later, but for what the two
clocks differ. How much later depends on the scheduler: 0.3 ms in the median on an idle core, and
up to about a time slice of each other process where the machine is busy. The same holds for the
difference of the clocks, where Chromium waits for the processor between its two readings.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import airpath
from airpath.page.timings import View
from airpath.page.views import views
from support import ROOT, Command
from support.needs import needs

CLOCKS = 0.003
"""Seconds: Chromium's dates are its monotonic clock and an offset, which it determines at times."""
USUAL = 0.01
"""Seconds within which half of the times are."""
BUSY = 0.25
"""Seconds that Chromium waits at most for a processor."""

Times = tuple[float, float, float]
"""Request, first and last byte of the response, in seconds after 1970."""


@needs("tun")
@pytest.mark.parametrize("protocol", ["http/1.0", "http/1.1"])
def test_trace_and_browser_agree_on_every_object(
    protocol: str, tmp_path: Path, airpath_command: Command, need: Callable[..., str]
) -> None:
    need("chromium")
    page = ROOT / "examples" / "news.page"
    folder = tmp_path / "real"
    options = ("--link", "umts-dch-384", "--protocol", protocol, "--repeat-view", "-o", str(folder))
    done = airpath_command("page", "load", str(page), *options)
    assert done.code == 0, done.err
    capture = folder / "captures" / "0000-mobile.pcapng"
    traced = airpath_command("trace", str(capture), "--har", "trace.har")
    assert traced.code == 0, traced.err
    in_capture = entries(airpath_command.folder / "trace.har")
    in_browser = [entry for entry in entries(folder / "page.har") if entry["response"]["_transferSize"]]
    assert len(in_browser) == len(in_capture) == 8 + 5
    pairs = list(zip(sorted(in_browser, key=key), sorted(in_capture, key=key), strict=True))
    errors: list[tuple[float, float, float]] = []
    for own, other in pairs:
        assert path(own) == path(other)
        sent, first, last = (a - b for a, b in zip(times(own), times(other), strict=True))
        errors.append((-sent, first, last))
    for name, late in zip(("request", "first byte", "last byte"), zip(*errors, strict=True), strict=True):
        assert sorted(late)[len(late) // 4] > -CLOCKS, (name, sorted(late))
        assert min(late) > -BUSY, (name, sorted(late))
        assert median(late) < USUAL, (name, sorted(late))
        assert max(late) < BUSY, (name, sorted(late))
    result = airpath.load(folder)
    connections(views(result), pairs, result.summary["emulation"]["started_s"])


def connections(found: list[View], pairs: list[tuple[Any, Any]], origin: float) -> None:
    """The connections of the report are those of the capture, with their SYNs."""
    same = {(own["connection"], other["connection"]) for own, other in pairs}
    assert len(same) == len({own for own, _ in same}) == len({other for _, other in same})
    # The first entry of a connection starts with its SYN.
    syns = {own["connection"]: date(other) for own, other in pairs if other["timings"]["connect"] >= 0}
    waited = sorted(
        syns[connection.key] - (origin + view.start + connection.opened)
        for view in found
        for connection in view.connections
        if connection.key in syns and connection.opened > 0
    )
    assert len(waited) >= 4
    # Chromium reads its clock, then calls the kernel; it may wait for a processor.
    assert waited[-1] < BUSY, waited
    # A request may get a connection that was opened for an earlier one. Chromium then reports the
    # start of the request as that of the connection, which is later than the SYN.
    assert median(waited) > -CLOCKS, waited


def entries(har: Path) -> list[dict[str, Any]]:
    """Return the entries of a HAR file."""
    return json.loads(har.read_text())["log"]["entries"]


def key(entry: Mapping[str, Any]) -> tuple[str, float]:
    """Return what orders the entries of both files in the same way."""
    return path(entry), times(entry)[0]


def path(entry: Mapping[str, Any]) -> str:
    """Return the URL without its port, which a browser omits."""
    return entry["request"]["url"].replace(":8000", "")


def date(entry: Mapping[str, Any]) -> float:
    """Return the start of an entry, in seconds after 1970."""
    return datetime.fromisoformat(entry["startedDateTime"]).timestamp()


def times(entry: Mapping[str, Any]) -> Times:
    """Return the times of an entry. `connect` contains `ssl` (HAR 1.2)."""
    phases = {name: max(0.0, value or 0.0) / 1e3 for name, value in entry["timings"].items()}
    sent = date(entry) + phases["blocked"] + phases["dns"] + phases["connect"]
    first = sent + phases["send"] + phases["wait"]
    return sent, first, first + phases["receive"]
