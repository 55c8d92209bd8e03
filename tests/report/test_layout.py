"""Reports in Chromium: nothing is wider than a phone or a page of paper."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import report
from airpath.page.devtools import Chromium
from airpath.sweep import report as sweep_report
from support import DOWNLOAD, ROOT, TWO_BEARERS, Command

WIDTH = """(async () => {
  while (document.documentElement.dataset.drawn !== "all") await new Promise((done) => setTimeout(done, 20));
  return document.documentElement.scrollWidth;
})()"""
"""Pixels that the page needs, after its figures are drawn."""

OVERFLOWING = """(async () => {
  while (document.documentElement.dataset.drawn !== "all") await new Promise((done) => setTimeout(done, 20));
  const widthOf = (element) => element.getBoundingClientRect().width;
  const labels = [...document.querySelectorAll(".point .bartext-inside")].filter((label) => label.textContent);
  const wide = labels.filter((label) => widthOf(label) > widthOf(label.parentElement.querySelector("path")));
  return [labels.length, wide.map((label) => label.textContent).join()];
})()"""
"""The number of names in bands, and those that are wider than their band."""

BROKEN = """(async () => {
  while (document.documentElement.dataset.drawn !== "all") await new Promise((done) => setTimeout(done, 20));
  const broken = [];
  for (const cell of document.querySelectorAll("td:not(.number)")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((part) => part.top)).size > 1) broken.push(word[0]);
    }
  }
  return broken.join();
})()"""
"""The words in cells of tables that a line ends within."""

PHONE = 390
PAPER = 688
"""A4 within the margins of `report.css.j2`: 182 mm."""


@pytest.fixture(scope="module")
def two_bearers(tmp_path_factory: pytest.TempPathFactory) -> airpath.Result:
    """A download over each of two bearers."""
    return airpath.run(TWO_BEARERS, out=tmp_path_factory.mktemp("two") / "two-bearers-of-one-mobile")


def evaluated(expression: str, page: Path, available: int, media: str = "") -> Any:
    """Return the value of an expression on a page with the available number of pixels."""
    with Chromium([], time.monotonic() + 120) as browser:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": available, "height": 800, "deviceScaleFactor": 1, "mobile": not media}
        browser.call("Emulation.setDeviceMetricsOverride", session, **size)
        browser.call("Emulation.setEmulatedMedia", session, media=media)
        browser.call("Page.enable", session)
        browser.call("Page.navigate", session, url=page.as_uri())
        while (event := browser.next_event(time.monotonic() + 60)) is not None:
            if event.get("method") == "Page.loadEventFired":
                break
        how = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        return browser.call("Runtime.evaluate", session, **how)["result"]["value"]


def width(page: Path, available: int, media: str = "") -> int:
    return evaluated(WIDTH, page, available, media)


@pytest.mark.parametrize("available", [PHONE, 700, 1200])
def test_a_state_has_its_name_where_it_fits(available: int, tmp_path: Path, need: Callable[[str], str]) -> None:
    need("chromium")
    page = report.write([airpath.run("gprs-4+1", out=tmp_path / "run")], tmp_path / "report.html")
    labels, wide = evaluated(OVERFLOWING, page, available)
    assert labels >= 4
    assert wide == ""


@pytest.mark.parametrize("available", [PHONE, 700, 1000, 1200])
def test_no_line_of_a_table_ends_within_a_word(
    available: int, tmp_path: Path, need: Callable[[str], str], two_bearers: airpath.Result
) -> None:
    need("chromium")
    page = report.write([two_bearers], tmp_path / "report.html")
    assert evaluated(BROKEN, page, available) == ""


def test_tables_fit_on_paper(tmp_path: Path, need: Callable[[str], str]) -> None:
    need("chromium")
    runs = [airpath.run(name, out=tmp_path / name) for name in ("hs-dsch-384", "umts-dch-384")]
    assert width(report.write(runs, tmp_path / "report.html"), PAPER, "print") <= PAPER


def test_a_headless_browser_prints_figures_that_are_drawn(tmp_path: Path, need: Callable[[str], str]) -> None:
    page = report.write([airpath.run("hs-dsch-384", out=tmp_path / "run")], tmp_path / "report.html")
    # It writes the document at the load event, as it prints it.
    options = ["--headless", "--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([need("chromium"), *options, page.as_uri()], capture_output=True, text=True, check=True)
    assert 'data-drawn="all"' in done.stdout
    assert 'class="main-svg"' in done.stdout
    assert "<iframe" not in done.stdout


@pytest.mark.parametrize(("available", "media"), [(PHONE, ""), (PAPER, "print")])
def test_a_trace_with_a_long_path_fits(tmp_path: Path, need: Callable[[str], str], available: int, media: str) -> None:
    need("chromium")
    capture = tmp_path / f"{'a-long-name-' * 8}.pcapng"
    shutil.copy(ROOT / "tests" / "captures" / "http-separate.pcapng", capture)
    page = tmp_path / "report.html"
    assert Command(tmp_path)("trace", capture, "-o", page).code == 0
    assert width(page, available, media) <= available


def test_the_means_of_the_cases_of_a_sweep_fit_the_page(tmp_path: Path, need: Callable[[str], str]) -> None:
    need("chromium")
    keys = ["fixed.delay", "bearer.downlink.queue.packets", "tcp.receive_buffer.clamp", "tcp.recovery.tail_loss_probe"]
    values = (["10 ms", "20 ms"], [20, 50], ["10 kB", "200 kB"], [True, False])
    plan = airpath.make_plan(DOWNLOAD, dict(zip(keys, values, strict=True)), repeat=1)
    result = airpath.sweep(plan, out=tmp_path / "sweep", workers=1)
    figures = ["duration_s", "throughput_bps", "first_byte_s", "rtt_mean_s"]
    page = sweep_report.write(result, tmp_path / "report.html", names=figures)
    scrolled = WIDTH.replace(
        "document.documentElement.scrollWidth", "document.querySelector('#cases table').scrollWidth"
    )
    assert evaluated(scrolled, page, 1400) <= 1400 - 2 * 130
