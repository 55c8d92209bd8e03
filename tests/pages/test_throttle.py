"""DevTools' throttling delays responses, not connections."""

import json
from collections.abc import Callable
from pathlib import Path

from airpath.page.load import load
from support.needs import needs

LATENCY = 0.3


@needs("tun")
def test_throttling_delays_each_response_and_no_handshake(tmp_path: Path, need: Callable[..., str]) -> None:
    need("chromium")
    limits = {"latency": LATENCY * 1e3, "downloadThroughput": 1e6, "uploadThroughput": 1e6}
    out = tmp_path / "result"
    (view,) = load("umts-live-yahoo", "wired", out, throttle=limits).views
    entries = json.loads((out / "page.har").read_text())["log"]["entries"]
    assert len(entries) == view["requests"] == 15
    for entry in entries:
        assert entry["timings"]["wait"] / 1e3 > 0.9 * LATENCY
    # Six connections carry 14 objects after the document.
    assert view["page_time_s"] > 4 * 0.9 * LATENCY
    opened = [entry["timings"]["connect"] for entry in entries if entry["timings"]["connect"] >= 0]
    assert opened
    assert sorted(opened)[len(opened) // 2] / 1e3 < LATENCY / 2
