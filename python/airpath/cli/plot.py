"""`airpath plot`: one figure as an image for a paper."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.messages import Problem, check_outputs, explained, writing

if TYPE_CHECKING:
    import plotly.graph_objects as go


class What(StrEnum):
    """The figures, by their names in `airpath.plot`."""

    TIME_SEQUENCE = "time-sequence"
    WINDOW = "window"
    ROUND_TRIP = "round-trip"
    ROUND_TRIP_SHARE = "round-trip-share"
    QUEUE = "queue"
    THROUGHPUT = "throughput"
    TRACKS = "tracks"
    PROXY_TRACKS = "proxy-tracks"
    RADIO = "radio"
    LOSSES = "losses"
    HOPS = "hops"
    WATERFALL = "waterfall"
    PLAYBACK = "playback"
    QUALITY = "quality"
    LATENCY_SHARE = "latency-share"


_OF_A_FLOW = (What.TIME_SEQUENCE, What.WINDOW, What.ROUND_TRIP, What.HOPS, What.WATERFALL)


def plot(
    results: Annotated[list[Path], typer.Argument(metavar="DIR", help="Result folders; several are overlaid.")],
    what: Annotated[What, typer.Option(help="The figure.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The image: .pdf, .svg or .png.")],
    width: Annotated[
        str, typer.Option(metavar="LENGTH", help="Its width, in mm, cm or in; a column of a journal has 88mm.")
    ] = "88mm",
    height: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Its height; by default in proportion to the width.")
    ] = None,
    font: Annotated[float, typer.Option(min=4, max=40, metavar="PT", help="Size of its text, in points.")] = 8,
    flow: Annotated[
        int | None, typer.Option(min=0, metavar="N", help=f"Draw this flow only ({', '.join(_OF_A_FLOW)}).")
    ] = None,
) -> None:
    """Draw one figure of results as an image for a paper.

    PDF and SVG are vector graphics with the size of the paper's column. The path of the file goes
    to standard output, the explanation of the figure to standard error. Needs Chrome or Chromium,
    and `pip install 'airpath[plot]'`.

    \b
    Examples:
      airpath plot runs/one --what time-sequence -o figure.pdf
      airpath plot runs/cubic runs/reno --what window --width 180mm -o window.svg
    """
    from airpath import load
    from airpath import plot as figures
    from airpath.plot.image import ImageError, write_image

    if flow is not None and what not in _OF_A_FLOW:
        raise Problem(f"--flow does not apply to {what}", next_step=f"remove it, or draw {', '.join(_OF_A_FLOW)}")
    if what is What.WATERFALL and len(results) > 1:
        raise Problem("a waterfall is drawn of one result", next_step="name one folder")
    size = (_millimetres("--width", width), None if height is None else _millimetres("--height", height))
    draw: Callable[..., go.Figure] = getattr(figures, what.replace("-", "_"))
    with explained():
        check_outputs(out)
        loaded = [load(folder) for folder in results]
        shown = loaded[0] if len(loaded) == 1 else loaded
        try:
            figure = draw(shown) if flow is None else draw(shown, flow=flow)
            with writing(out):
                write_image(figure, out, width_mm=size[0], height_mm=size[1], font_pt=font)
        except figures.NothingToDrawError as error:
            raise Problem(f"nothing to draw: {error}") from None
        except ImageError as error:
            raise Problem(str(error)) from None
    caption = figures.caption_of(figure)
    for line in (caption.title, caption.read, *caption.notes):
        typer.echo(line, err=True)
    typer.echo(out)


_UNITS = {"mm": 1.0, "cm": 10.0, "in": 25.4}


def _millimetres(option: str, text: str) -> float:
    """Return a length in millimetres."""
    for unit, factor in _UNITS.items():
        number = text.strip().removesuffix(unit)
        if number != text.strip():
            try:
                length = float(number) * factor
            except ValueError:
                break
            if 10 <= length <= 2000:
                return length
            raise Problem(f"{option} {text} is outside 10 mm to 2 m")
    raise Problem(f"{option} {text} is no length", next_step="write a number and mm, cm or in, as in 88mm")
