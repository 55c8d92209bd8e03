"""`airpath plot`: one figure as an image for a paper."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.label_option import Labels, check_labels, labelled
from airpath.cli.messages import Problem, check_outputs, explained, problem_of, writing
from airpath.suggest import did_you_mean

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
    LATENCY = "latency"
    LATENCY_SHARE = "latency-share"


_OF_A_FLOW = (What.TIME_SEQUENCE, What.WINDOW, What.ROUND_TRIP, What.HOPS, What.WATERFALL)


def _complete_what(incomplete: str) -> list[str]:
    return [name for name in What if name.startswith(incomplete)]


def plot(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="DIR", help="Result folders, several are overlaid; or the folder of a sweep."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The image: .pdf, .svg or .png.")],
    what: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The figure, one of those in the list above.", autocompletion=_complete_what),
    ] = None,
    figure: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a sweep: the figure whose means are drawn.")
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(metavar="X[,LINES[,...]]", help="Of a sweep: the key on the axis, that of the lines, of panels."),
    ] = None,
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
    label: Labels = None,
) -> None:
    """Draw one figure of results as an image for a paper.

    PDF and SVG are vector graphics with the size of the paper's column. The path of the file goes
    to standard output, the explanation of the figure to standard error. Needs Chrome or Chromium,
    and `pip install 'airpath[plot]'`.

    \b
    Figures of runs (--what):
      time-sequence     bytes sent and acknowledged over time
      window            congestion window, threshold, data in flight
      round-trip        round trips over time
      round-trip-share  distribution of the round trips
      throughput        rate over time
      queue             packets in the queues
      hops              time of each packet on each hop
      losses            dropped packets by place and cause
      radio             transmissions of each TTI
      tracks            states of the radio: cell, scheme, RRC, slots
      proxy-tracks      budget and queue of a proxy
      waterfall         requests of a web page
      playback          buffer and stalls of a video
      quality           qualities of an adaptive video
      latency           how long each interaction took, over time
      latency-share     distribution of the times of interactions

    \b
    Examples:
      airpath plot runs/one --what time-sequence -o figure.pdf
      airpath plot runs/cubic runs/reno --what window --label CUBIC --label Reno -o window.svg
      airpath plot runs/sweep --figure duration_s --axes bearer.bler,fixed.delay -o sweep.pdf
    """
    from airpath import load
    from airpath import plot as figures
    from airpath.plot.image import ImageError, write_image

    size = (_millimetres("--width", width), None if height is None else _millimetres("--height", height))
    check_labels(label, results)
    with explained():
        check_outputs(out)
        try:
            if (results[0] / "sweep.json").is_file():
                if what is not None or len(results) > 1 or flow is not None or label:
                    next_step = "select with --figure and --axes, and name one folder"
                    raise Problem(f"{results[0]} is a sweep, whose means are drawn", next_step=next_step)
                drawn = _of_sweep(results[0], figure, axes)
            else:
                if figure or axes:
                    load(results[0])  # that there is no such result is the first error
                    raise Problem("--figure and --axes are for the folder of a sweep", next_step="use --what for a run")
                drawn = _of_runs(results, _named(what), flow, label)
            with writing(out):
                write_image(drawn, out, width_mm=size[0], height_mm=size[1], font_pt=font)
        except figures.NothingToDrawError as error:
            raise Problem(f"nothing to draw: {error}") from None
        except ImageError as error:
            raise problem_of(error) from None
    caption = figures.caption_of(drawn)
    for line in (caption.title, caption.read, *caption.notes):
        typer.echo(line, err=True)
    typer.echo(out)


_OTHER_NAMES = {"cwnd": What.WINDOW, "rtt": What.ROUND_TRIP, "cdf": What.ROUND_TRIP_SHARE, "rate": What.THROUGHPUT}
"""Names of figures in other tools."""


def _named(what: str | None) -> What:
    """Return the figure of a name.

    Raises:
        Problem: There is none.
    """
    names = ", ".join(What)
    if what is None:
        raise Problem("--what is missing: which figure of the run?", next_step=f"one of {names}")
    if what in list(What):
        return What(what)
    meant = _OTHER_NAMES.get(what)
    hint = f"; did you mean '{meant}'?" if meant else did_you_mean(what, What)
    raise Problem(f"--what: no figure '{what}'{hint}", next_step=f"one of {names}")


def _of_runs(results: list[Path], what: What, flow: int | None, labels: list[str] | None) -> "go.Figure":
    from airpath import plot as figures

    if flow is not None and what not in _OF_A_FLOW:
        raise Problem(f"--flow does not apply to {what}", next_step=f"remove it, or draw {', '.join(_OF_A_FLOW)}")
    if what is What.WATERFALL and len(results) > 1:
        raise Problem("a waterfall is drawn of one result", next_step="name one folder")
    draw: Callable[..., go.Figure] = getattr(figures, what.replace("-", "_"))
    loaded = labelled(results, labels)
    shown = loaded[0] if len(loaded) == 1 else loaded
    return draw(shown) if flow is None else draw(shown, flow=flow)


def _of_sweep(folder: Path, figure: str | None, axes: str | None) -> "go.Figure":
    """Draw the means of a sweep over its axes, in the given order or one of its own."""
    from airpath.sweep import SweepFolderError, SweepResult
    from airpath.sweep.figures import draw_lines
    from airpath.sweep.report import main_figures

    try:
        result = SweepResult(folder)
    except SweepFolderError as error:
        raise Problem(str(error)) from None
    present = result.present()
    if figure is None:
        if not (found := main_figures(result)):
            raise Problem("no run of the sweep has a figure")
        figure = found[0]
    elif figure not in present:
        raise Problem(f"--figure: no figure '{figure}'{did_you_mean(figure, present)}", next_step=", ".join(present))
    known = [axis for axis in result.axes if result.cases[axis].n_unique() > 1]
    order = [] if axes is None else [axis.strip() for axis in axes.split(",")]
    for axis in order:
        if axis not in known or order.count(axis) > 1:
            next_step = f"the axes are {', '.join(known)}"
            raise Problem(f"--axes: no further axis '{axis}'{did_you_mean(axis, known)}", next_step=next_step)
    return draw_lines(result.means(figure), known, figure, {}, order=order)


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
