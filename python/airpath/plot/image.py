"""Figures as image files for papers: PDF, SVG or PNG of a stated width.

Needs the extra `airpath[plot]` (Kaleido), and Chrome or Chromium.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from airpath import extras
from airpath.files import write_bytes

FORMATS = (".pdf", ".svg", ".png")

_PER_MM = 96 / 25.4
"""CSS pixels per millimetre."""
_POINTS_PER_PIXEL = 0.75
_PAGE_MM = 180
"""The width for which the figures are drawn: two columns of a journal."""
_DOTS_PER_INCH = 600
_DRAW_S = 90
"""The limit of the browser to open, and to draw."""
_CLOSE_S = 5
_PAGE_STYLE = "<style>@page { margin: 0 } img { display: block }</style>"
"""With Kaleido's margins, Chromium shrinks the image of a PDF to 0.94 of its size."""
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


class ImageError(Exception):
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
        font_pt: The size of axis titles and legend in points. Tick labels, titles of panels and
            notes have nine tenths of it.

    Raises:
        ExtraMissingError: Kaleido is not installed.
        ImageError: The format is unknown, a browser is missing, or it failed.
        OSError: The file cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        what = f"the format '{path.suffix}' is not known" if path.suffix else f"'{path.name}' has no format"
        raise ImageError(f"{what}; name a file that ends in {', '.join(FORMATS)}")
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
    height = math.floor(max(own, width * 5 / 8) if height_mm is None else height_mm * _PER_MM)
    # The titles of panels are between the axes and the legend.
    titles = max(((text.text or "").count("<br>") + 1 for text in drawn.layout.annotations if text.y == 1), default=0)
    above, below = (2.5 + 1.4 * titles) * size, 3.5 * size
    legend_y = 1.01 + 1.4 * titles * size / max(height - above - below, size)
    small = {"size": size * 0.9}
    for trace in drawn.data:
        _thin(trace, max(reduction, 0.6))
    drawn.update_layout(
        title=None,
        width=width,
        height=height,
        font={"family": _FONT, "size": size},
        margin={"l": 4.5 * size, "r": size, "t": above, "b": below},
        legend={"font": {"size": size}, "itemwidth": 30, "itemsizing": "trace", "y": legend_y},
    )
    axis = {"tickfont": small, "title": {"font": {"size": size}, "standoff": 3}, "automargin": True}
    drawn.update_xaxes(axis)
    drawn.update_yaxes(axis)
    drawn.update_annotations(font=small)
    return drawn


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
        raise ImageError(f"the browser drew no image: {reason}; images need Chrome or Chromium") from error
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
