"""Figures as image files for papers: PDF, SVG or PNG of a stated width.

Needs the extra `airpath[plot]` (Kaleido), and Chrome or Chromium.
"""

import asyncio
import logging
import math
import textwrap
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from airpath import extras
from airpath.files import write_bytes
from airpath.next_step import WithNextStep

FORMATS = (".pdf", ".svg", ".png")

_PER_MM = 96 / 25.4
"""CSS pixels per millimetre."""
_POINTS_PER_PIXEL = 0.75
_PAGE_MM = 180
"""The width for which the figures are drawn: two columns of a journal."""
_DOTS_PER_INCH = 600
_SMALL = 0.9
"""The size of other text, by that of axis titles."""
_LINE, _LETTER = 1.3, 0.53
"""About the height of a line and the width of a letter, by the size of the text."""
_DRAW_S = 90
"""The limit of the browser to open, and to draw."""
_CLOSE_S = 5
_PAGE_STYLE = "<style>@page { margin: 0 } img { display: block }</style>"
"""With Kaleido's margins, Chromium shrinks the image of a PDF to 0.94 of its size."""
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


class ImageError(WithNextStep):
    """A figure cannot be written as an image. The message has the reason and the next step."""


def write_image(
    figure: go.Figure, path: Path, *, width_mm: float = 88, height_mm: float | None = None, font_pt: float = 8
) -> None:
    """Write a figure without its title, with a legend above the axes.

    Args:
        figure: A figure of `airpath.plot`. It is not changed.
        path: The file; its suffix is the format, one of `FORMATS`. PDF and SVG are vector graphics;
            PNG has 600 dots per inch.
        width_mm: The width. Columns of IEEE and ACM journals have 88 and 85 mm.
        height_mm: The height; by default the figure's own at 180 mm, reduced in proportion, and at
            least five eighths of the width.
        font_pt: The size of axis titles in points. All other text has nine tenths of it.

    Raises:
        ExtraMissingError: Kaleido is not installed.
        ImageError: The format is unknown, a browser is missing, or it failed.
        OSError: The file cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        what = f"the format '{path.suffix}' is not known" if path.suffix else f"'{path.name}' has no format"
        raise ImageError(what, next_step=f"name a file that ends in {', '.join(FORMATS)}")
    extras.require("plot", "kaleido")
    drawn = _for_paper(figure, width_mm, height_mm, font_pt)
    write_bytes(path, _rendered(drawn, path.suffix.lower().removeprefix(".")))


def _for_paper(figure: go.Figure, width_mm: float, height_mm: float | None, font_pt: float) -> go.Figure:
    drawn = go.Figure(figure)
    size = font_pt / _POINTS_PER_PIXEL
    # Chromium's pages have whole pixels.
    width = math.floor(width_mm * _PER_MM)
    reduction = min(1, width / (_PAGE_MM * _PER_MM))
    several = len(list(drawn.select_yaxes())) > 2
    # Names of tracks need their height.
    own = figure.to_plotly_json()["layout"]["height"] * (max(reduction, 0.75) if several else reduction)
    small = {"size": size * _SMALL}
    for trace in drawn.data:
        _thin(trace, max(reduction, 0.6))
    drawn.update_traces(legendgroup=None)  # groups begin new rows of a legend
    # Names of tracks of numbers are left of the numbers.
    named = [text for text in drawn.layout.annotations if text.xanchor == "right" and text.xshift]
    shift = 2.3 * size
    for name in named:
        name.xshift = -shift
    longest = max((shift + _LETTER * small["size"] * len(name.text) + 2 for name in named), default=0)
    left, right = max(4.5 * size, longest), size
    _name_bands(drawn, width - left - right, small["size"])
    panels = _Panels(drawn, width - left - right, size)
    legend, highest_legend = _legend_height(drawn, width - left - right, small["size"])
    above, below = legend + panels.titles + size, 2.1 * size + panels.axis_titles
    if height_mm is not None:
        height = math.floor(height_mm * _PER_MM)
    else:
        own = above + panels.least_height + below if panels.titles else max(own, above + 0.3 * width + below)
        height = math.floor(max(own, width * 5 / 8))
    inside = max(height - above - below, size)
    panels.stack(inside)
    drawn.update_layout(
        title=None,
        width=width,
        height=height,
        font={"family": _FONT, "size": size},
        margin={"l": left, "r": right, "t": above, "b": below},
        legend={"font": small, "itemwidth": 30, "itemsizing": "trace"},
        legend_title={"side": "top", "font": small},
        legend_y=1.01 + panels.titles / inside,
        # By default a legend has at most half of the height, and scrolls.
        legend_maxheight=highest_legend + 2 * size,
    )
    axis = {"tickfont": small, "title": {"font": {"size": size}, "standoff": 3}, "automargin": True}
    drawn.update_xaxes(axis)
    drawn.update_yaxes(axis)
    drawn.update_annotations(font=small)
    return drawn


def _name_bands(drawn: Any, width: float, size: float) -> None:
    """Keep the names of states, as of the radio log, that fit into their bands."""
    for band in drawn.select_traces({"type": "bar"}):
        if drawn.layout.xaxis.range and band.insidetextfont.size:
            start, end = drawn.layout.xaxis.range
            letters = width / (end - start) / (_LETTER * size)
            band.text = [
                name if length * letters >= len(name) + 2 else ""
                for name, length in zip(band.text, band.x, strict=True)
            ]
            band.insidetextfont.size = size


class _Panels:
    """The panels of a figure that have titles: their texts wrapped, and their heights in pixels."""

    def __init__(self, drawn: go.Figure, width: float, size: float) -> None:
        headings = [text for text in drawn.layout.annotations if text.xanchor == "center" and text.yanchor == "bottom"]
        axes = list(drawn.select_xaxes())
        columns = sorted({axis.domain for axis in axes if axis.domain}) if headings else []
        self._drawn, self._headings = drawn, headings
        # Wide enough for a title that reaches into the gap beside the panel.
        share = (columns[0][1] + columns[1][0]) / 2 if len(columns) > 1 else 1
        room = width * share - size / 2
        for heading in headings:
            heading.text = _wrapped(heading.text, room / _SMALL, size)
        for axis in axes if headings else []:
            axis.title.text = _wrapped(axis.title.text or "", room, size)
            if axis.type != "category":
                axis.nticks = max(2, int(room / (4 * size)))
        self.titles = _LINE * _SMALL * size * _lines(heading.text for heading in headings)
        self.axis_titles = _LINE * size * max(_lines(axis.title.text for axis in axes), 1)
        rows: dict[tuple[float, float], list[bool]] = {}
        for axis in drawn.select_yaxes() if headings else []:
            rows.setdefault(axis.domain, [])
        self._rows = sorted(rows, reverse=True)
        # An axis above the last row, with its labels.
        low = sum(bool(axis.title.text) for axis in axes) and len(headings) % len(columns) if columns else 0
        self._gap = self.titles + size + (2.1 * size + self.axis_titles if low else 0)
        self.least_height = len(self._rows) * max(0.7 * room, 5 * size) + (len(self._rows) - 1) * self._gap

    def stack(self, height: float) -> None:
        """Set the rows one below another, with gaps of their titles only."""
        gap = self._gap / height
        each = (1 - gap * (len(self._rows) - 1)) / max(len(self._rows), 1)
        if len(self._rows) < 2 or each <= 0:
            return
        tops = {}
        for number, row in enumerate(self._rows):
            top = 1 - number * (each + gap)
            tops[row[1]] = top
            for axis in self._drawn.select_yaxes(lambda axis, row=row: axis.domain == row):
                axis.domain = (max(top - each, 0), top)
        for heading in self._headings:
            heading.y = tops.get(heading.y, heading.y)


def _wrapped(text: str, width: float, size: float) -> str:
    letters = max(int(width / (_LETTER * size)), 6)
    return "<br>".join(part for line in text.split("<br>") for part in textwrap.wrap(line, letters) or [""])


def _lines(texts: Iterable[str | None]) -> int:
    return max((text.count("<br>") + 1 for text in texts if text), default=0)


def _legend_height(drawn: go.Figure, width: float, size: float) -> tuple[float, float]:
    """Return about the height of a legend, and that with one name in each row.

    As in Plotly, the names are in one row, or in columns of the width of the longest.
    """
    every: Any = drawn.data
    traces = [trace for trace in every if trace.name and trace.showlegend is not False]
    names = list(dict.fromkeys(trace.name for trace in traces))
    layout: Any = drawn.layout
    if not names or layout.showlegend is False or (len(every) == 1 and not traces[0].showlegend):
        return 0, 0
    widths = [45 + _LETTER * size * len(name) for name in names]
    columns = len(names) if sum(widths) < width else max(int(width / max(widths)), 1)
    title = _LINE * size if layout.legend.title.text else 0
    row = max(_LINE * size, 16) + 3
    return title + -(-len(names) // columns) * row, title + len(names) * row


def _thin(trace: Any, factor: float) -> None:
    """Reduce the widths of lines and the sizes of markers that the figure states."""
    line, marker = getattr(trace, "line", None), getattr(trace, "marker", None)
    if line is not None and isinstance(line.width, int | float):
        line.width *= factor
    if marker is not None and isinstance(getattr(marker, "size", None), int | float):
        marker.size *= factor


def _rendered(figure: go.Figure, kind: str) -> bytes:
    # The driver of the browser logs parts of messages with a traceback, and goes on.
    logging.getLogger("choreographer").setLevel(logging.CRITICAL)
    drawn: Future[bytes] = Future()
    # A thread of its own, because a notebook already runs an event loop in this one.
    worker = threading.Thread(target=lambda: asyncio.run(_draw(figure, kind, drawn)), daemon=True)
    worker.start()
    # Kaleido's errors have no common type: a missing browser, its time-out, its exit.
    try:
        return drawn.result(timeout=3 * _DRAW_S)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ImageError(f"the browser drew no image: {reason}", next_step="images need Chrome or Chromium") from error
    finally:
        worker.join(timeout=4 * _CLOSE_S)


async def _draw(figure: go.Figure, kind: str, drawn: Future[bytes]) -> None:
    """Draw in a browser, with a limit for each step: Kaleido itself may wait forever."""
    browser = None
    try:
        import kaleido

        # Without MathJax, which would come from the network.
        page = kaleido.PageGenerator(mathjax=False)
        page.header += _PAGE_STYLE
        browser = kaleido.Kaleido(n=1, timeout=None, page_generator=page)
        await _limited(browser.open(), "open")
        options: Any = {"format": kind, "scale": _DOTS_PER_INCH / 96 if kind == "png" else 1}
        drawn.set_result(await _limited(browser.calc_fig(figure.to_dict(), options), "draw"))
    except Exception as error:
        drawn.set_exception(error)
    finally:
        if browser is not None:
            await _close(browser)


async def _limited(step: Coroutine[Any, Any, Any], verb: str) -> Any:
    task = asyncio.ensure_future(step)
    done, _ = await asyncio.wait({task}, timeout=_DRAW_S)
    if not done:
        task.cancel()
        raise TimeoutError(f"it did not {verb} within {_DRAW_S:g} s")
    return task.result()


async def _close(browser: Any) -> None:
    """Close the browser; kill it if it does not answer."""
    task = asyncio.ensure_future(browser.close())
    await asyncio.wait({task}, timeout=_CLOSE_S)
    process = getattr(browser, "subprocess", None)
    if process is not None and process.poll() is None:
        process.kill()
    # Cancelled, Kaleido skips the request to the browser and removes its temporary files.
    task.cancel()
    await asyncio.wait({task}, timeout=_CLOSE_S)
    if task.done() and not task.cancelled():
        task.exception()
