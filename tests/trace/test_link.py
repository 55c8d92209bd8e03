"""Traces of real programs over a link: from captures of both ends, and from the event log alone."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import airpath
from support.link import BROWSER, LinkCommand, python
from support.report_page import Page

RATE = 2e6
DELAY_S = 0.05


@pytest.fixture
def loaded(link: LinkCommand, web: str, need: Callable[..., str]) -> tuple[Path, int]:
    """A page load over 2 Mbit/s, 50 ms each way: captures of both ends, number of objects."""
    slow = link.wire(rate=f"{RATE:.0f} bit/s", delay=f"{1e3 * DELAY_S:g} ms", queue="{ packets = 100 }")
    page = subprocess.run(python("page.py", link.folder / "files"), capture_output=True, text=True, check=True)
    profile = f"--user-data-dir={link.folder / 'profile'}"
    browser = [need("chromium"), *BROWSER, profile, "--dump-dom", "http://server/index.html"]
    kept = link.folder / "kept"
    link(*browser, link=slow, serve=web, options=f"--out {shlex.quote(str(kept))} --capture", timeout=100)
    return kept, json.loads(page.stdout)["objects"]


def test_a_page_load_is_traced_from_both_ends(loaded: tuple[Path, int], tmp_path: Path) -> None:
    kept, objects = loaded
    trace = airpath.trace(kept)
    # The document, its objects, and at most one request of the browser's own.
    assert objects < trace.exchanges.height <= objects + 2
    # As in the browser: no first byte arrived earlier than one round trip after its request.
    waited = pl.col("response_first") - pl.col("request_first")
    assert trace.exchanges.filter(waited < 2e9 * DELAY_S).height == 0
    assert set(trace.exchanges["connection"]) <= set(trace.connections["connection"])
    entries = trace.archive["log"]["entries"]
    assert {int(entry["connection"]) for entry in entries} == set(trace.exchanges["connection"])
    one = trace.exchanges["connection"][0]
    assert airpath.trace(kept, flow=one).exchanges.equals(trace.exchanges.filter(connection=one))
    assert trace.one_way.filter(pl.col("delay_min_ns") < 1e9 * DELAY_S).height == 0
    page = Page(trace.report(tmp_path / "report.html"))
    assert any(name.startswith("Page of ") for name in page.figures)
    assert len(page.all("span", **{"class": "shares"})) == trace.connections.height
    assert "One-way delay" in page.figures

    # The same from the event log alone, without the application data, which no log has.
    shutil.rmtree(kept / "captures")
    logged = airpath.trace(kept)
    carried = ["client", "server", "unique_bytes", "from"]
    of_both = [
        each.directions.join(each.connections, on="connection").select(carried).sort("client", "from")
        for each in (trace, logged)
    ]
    assert of_both[0].equals(of_both[1])
    assert logged.exchanges.height == 0
