"""Figures for papers: `airpath plot`."""

import asyncio
import contextlib
import itertools
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest

import airpath
from airpath import plot
from airpath.plot import image
from airpath.sweep.figures import draw_lines
from support import Command

POINTS_PER_MM = 72 / 25.4


@pytest.fixture
def result(airpath_command: Command, scenario: Callable[..., Path], need: Callable[..., str]) -> str:
    need("chromium")
    assert airpath_command("run", scenario(), "--out", "result").code == 0
    return "result"


def test_a_pdf_has_the_width_of_the_column_and_its_fonts(airpath_command: Command, result: str) -> None:
    done = airpath_command("plot", result, "--what", "time-sequence", "--width", "88mm", "-o", "figure.pdf")
    assert done.code == 0, done.err
    assert done.out == "figure.pdf\n"
    assert "Each dot is a sent segment" in done.err
    pdf = (airpath_command.folder / "figure.pdf").read_bytes()
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert len(boxes) == 1
    assert abs(float(boxes[0][0]) - 88 * POINTS_PER_MM) < 1
    assert b"/FontFile" in pdf
    # The image fills the page, and its pixels have 3/4 points, so that text has its size.
    content = max((_inflated(pdf[start.end() :]) for start in re.finditer(rb"stream\r?\n", pdf)), key=len)
    scales = re.findall(rb"([\d.]+) 0 0 -?([\d.]+) 0 [\d.]+ cm", content)[:2]
    assert [float(scales[0][i]) * float(scales[1][i]) for i in range(2)] == pytest.approx([0.75, 0.75], abs=1e-3)
    assert {round(float(size) * 0.75, 1) for size in re.findall(rb" ([\d.]+) Tf", content)} == {7.2, 8}


def _inflated(stream: bytes) -> bytes:
    """Return what a compressed stream of operators contains; nothing for other streams."""
    with contextlib.suppress(zlib.error):
        operators = zlib.decompressobj().decompress(stream)
        return operators if b" cm\n" in operators else b""
    return b""


@pytest.mark.parametrize("what", ["window", "round-trip-share", "throughput"])
def test_an_svg_is_a_vector_graphic_of_the_stated_size(what: str, airpath_command: Command, result: str) -> None:
    size = ("--width", "10cm", "--height", "2in")
    assert airpath_command("plot", result, result, "--what", what, *size, "-o", "figure.svg").code == 0
    svg = (airpath_command.folder / "figure.svg").read_text()
    width, height = re.findall(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', svg)[0]
    assert abs(float(width) - 100 / 25.4 * 96) < 1
    assert abs(float(height) - 2 * 96) < 1
    assert "<path" in svg


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--what", "window", "-o", "figure.gif"), "name a file that ends in .pdf, .svg, .png"),
        (("--what", "window", "-o", "no/figure.pdf"), "no/figure.pdf"),
        (("--what", "window", "-o", "figure.pdf", "--width", "3"), "--width 3 is no length"),
        (("--what", "window", "-o", "figure.pdf", "--width", "3mm"), "outside 10 mm to 2 m"),
        (("--what", "proxy-tracks", "-o", "figure.pdf"), "nothing to draw"),
        (("--what", "queue", "-o", "figure.pdf", "--flow", "1"), "--flow does not apply to queue"),
    ],
)
def test_a_wrong_input_is_named(
    arguments: tuple[str, ...], message: str, airpath_command: Command, result: str
) -> None:
    done = airpath_command("plot", result, *arguments)
    assert done.code in (2, 3)
    assert message in done.err
    assert not (airpath_command.folder / "figure.pdf").exists()


@pytest.mark.parametrize(("panels", "width_mm", "font_pt"), [(2, 88, 8), (2, 60, 8), (4, 88, 10), (5, 88, 8)])
def test_titles_of_panels_have_room(panels: int, width_mm: float, font_pt: float) -> None:
    rows = [(bler, cc, queue) for bler in (0.0, 0.1) for cc in ("cubic", "bbr") for queue in range(1, panels + 1)]
    means = pl.DataFrame(
        {
            "case": range(len(rows)),
            "bearer.bler": [row[0] for row in rows],
            "tcp.congestion.algorithm": [row[1] for row in rows],
            "fixed.queue.packets": [100 * row[2] for row in rows],
            "mean": [row[0] for row in rows],
            "low": [row[0] for row in rows],
            "high": [row[0] for row in rows],
        }
    )
    axes = ["bearer.bler", "tcp.congestion.algorithm", "fixed.queue.packets"]
    drawn = image._for_paper(draw_lines(means, axes, "duration_s", {}, order=axes), width_mm, None, font_pt)
    size = drawn.layout.font.size
    titles = drawn.layout.annotations
    assert " ".join(titles[-1].text.split("<br>")) == f"fixed network: queue (packets) {100 * panels}"
    inside = drawn.layout.width - drawn.layout.margin.l - drawn.layout.margin.r
    places = sorted({title.x for title in titles})
    longest = max(len(line) for title in titles for line in title.text.split("<br>"))
    assert longest * 0.5 * 0.9 * size < (places[1] - places[0]) * inside
    # Between rows there is room for the titles, and for nothing more.
    high = drawn.layout.height - drawn.layout.margin.t - drawn.layout.margin.b
    domains = sorted({axis.domain for axis in drawn.select_yaxes()}, reverse=True)
    lines = max(title.text.count("<br>") + 1 for title in titles)
    for upper, lower in itertools.pairwise(domains):
        axis = 0 if panels == 4 else 5 * size
        assert lines * size < (upper[0] - lower[1]) * high < (1.3 * lines + 1.5) * size + axis
        assert any(title.y == lower[1] for title in titles)
    # The least height of a panel.
    assert all((high_end - low_end) * high >= 5 * size for low_end, high_end in domains)


@pytest.mark.parametrize(("width_mm", "font_pt"), [(88, 8), (60, 8), (88, 12)])
def test_a_state_has_its_name_where_it_fits(width_mm: float, font_pt: float) -> None:
    drawn: Any = image._for_paper(plot.tracks(airpath.run("gprs-4+1")), width_mm, None, font_pt)
    layout = drawn.layout
    inside = layout.width - layout.margin.l - layout.margin.r
    named = 0
    for band in drawn.select_traces({"type": "bar"}):
        for name, length in zip(band.text, band.x, strict=True):
            named += bool(name)
            assert 0.55 * band.insidetextfont.size * len(name) <= length * inside / layout.xaxis.range[1]
    assert named >= 4


class _Browser:
    """A browser as Kaleido drives it, that does not answer one of its requests."""

    silent = "close"

    def __init__(self, **options: object) -> None:
        pass

    async def open(self) -> None:
        await self.answer("open")

    async def calc_fig(self, figure: object, options: object) -> bytes:
        await self.answer("draw")
        return b"an image"

    async def close(self) -> None:
        await self.answer("close")

    async def answer(self, request: str) -> None:
        while request == self.silent:
            await asyncio.sleep(1)


def test_an_image_is_written_though_the_browser_does_not_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kaleido = pytest.importorskip("kaleido")
    monkeypatch.setattr(kaleido, "Kaleido", _Browser)
    monkeypatch.setattr(image, "_CLOSE_S", 0.1)
    path = tmp_path / "figure.pdf"
    image.write_image(go.Figure(layout={"height": 300}), path)
    assert path.read_bytes() == b"an image"


@pytest.mark.parametrize("request_", ["open", "draw"])
def test_a_browser_that_does_not_answer_is_an_error(
    request_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kaleido = pytest.importorskip("kaleido")
    monkeypatch.setattr(_Browser, "silent", request_)
    monkeypatch.setattr(kaleido, "Kaleido", _Browser)
    monkeypatch.setattr(image, "_DRAW_S", 0.1)

    async def in_a_notebook() -> None:
        image.write_image(go.Figure(layout={"height": 300}), tmp_path / "figure.pdf")

    with pytest.raises(image.ImageError, match=f"it did not {request_} within 0.1 s"):
        asyncio.run(in_a_notebook())
