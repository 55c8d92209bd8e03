"""The time–sequence plot.

Sent and acknowledged stream offsets over time, retransmissions and losses.
"""

from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.acknowledgements import received_acknowledgements
from airpath.plot.selection import Line, Results, drawn, lines
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.thin import BINS, Thinner
from airpath.plot.traces import scatter, steps
from airpath.plot.units import bytes_unit
from airpath.plot.values import largest, numbers
from airpath.quantities import number_of
from airpath.result import NotLoggedError
from airpath.tables import PROXY, is_quic

_SYN = 0x02
_READ_ONE = (
    "Each dot is a sent segment, the line below the acknowledged data: their vertical distance is the data in flight, "
    "their horizontal distance the round trip. A cross is a retransmission, a triangle a loss."
)
_READ_ACKNOWLEDGED = "Each line is the acknowledged data: a steeper line is faster, a level line is a stall."
_READ_SEVERAL = f"{_READ_ACKNOWLEDGED} A cross is a retransmission."
_READ_SEGMENTS = (
    "Each dot is a sent segment, each line the acknowledged data: a steeper line is faster, a level line is a stall. A "
    "cross is a retransmission, a star a SYN."
)


def time_sequence(
    results: Results,
    flow: int | None = None,
    *,
    repetition: int | None = None,
    bins: int = BINS,
    segments: bool = False,
) -> go.Figure:
    """Draw stream offset over time.

    All segments of one transfer, or the acknowledged data of several. Packets of QUIC have no
    offset, so a transfer over QUIC is the bytes of its acknowledged packets.

    Args:
        results: One result, or several to be overlaid.
        flow: Number of the flow; by default all transfers of one result, the median one of each of
            several.
        repetition: The repetition; by default the median one.
        bins: How finely the time is cut where there are too many points. Retransmissions and losses
            are all kept.
        segments: Of several transfers draw the sent segments, too, with the SYN of each.

    Raises:
        NotLoggedError: A run did not log the `packets` table, or of QUIC the `tcp` table.
        NothingToDrawError: There is no transfer.
    """
    runs = drawn(results, repetition)
    chosen, notes = lines(runs, flow)
    thinner = Thinner(bins)
    span = max(run.span for run in runs)
    scale, unit = bytes_unit(max(line.flow["bytes"] for line in chosen))
    over_tcp = [not is_quic(line.flow) for line in chosen]
    what = "stream offset" if all(over_tcp) else "acknowledged data"
    figure = blank(420 if len(chosen) == 1 else 380, y_title=f"{what} ({unit})", span=span)
    again = 0
    for line in chosen:
        data = _data(line)
        repeated = data.filter("retransmission")
        again += repeated.height
        if len(chosen) == 1 and over_tcp == [True]:
            notes += _one(figure, line, data, repeated, scale, thinner)
        else:
            _overlaid(figure, line, repeated, scale, thinner)
            if segments:
                _segments(figure, line, data, scale, thinner)
    if not all(over_tcp):
        notes.append("Of QUIC, the bytes of acknowledged packets are drawn, headers of QUIC included.")
    figure.update_layout(showlegend=True)
    repeats = f"; {number_of(again, 'segment')} retransmitted" if any(over_tcp) else ""
    alt = f"{what.capitalize()} over time: {'; '.join(_words(line) for line in chosen)}{repeats}."
    title = "Time–sequence" + (f" of {chosen[0].flow['name']}" if len(runs) == len(chosen) == 1 else "")
    if not any(over_tcp):
        read = _READ_ACKNOWLEDGED
    elif len(chosen) == 1:
        read = _READ_ONE
    else:
        read = _READ_SEGMENTS if segments else _READ_SEVERAL
    return captioned(figure, Caption(title, read, alt, notes + thinner.notes()))


def _one(
    figure: go.Figure, line: Line, data: pl.DataFrame, repeated: pl.DataFrame, scale: float, thinner: Thinner
) -> list[str]:
    """Draw every segment of the only line, over TCP; return notes."""
    hue, back = (theme.DOWN, theme.UP) if line.direction == "down" else (theme.UP, theme.DOWN)
    highest = largest(data["end"])
    figure.update_yaxes(range=[-0.02 * highest * scale, 1.05 * highest * scale])
    notes = []
    try:
        heard = _heard(line)
    except NotLoggedError:
        notes.append("Without the tcp table of the log, acknowledgements are not drawn.")
    else:
        edge = heard.with_columns(edge=pl.col("acknowledged") + pl.col("peer_window")).filter(pl.col("edge") <= highest)
        if edge.height:
            style = {"color": theme.MUTED.light, "width": 1.2, "dash": "dot"}
            steps(figure, edge, "edge", scale, "receiver's window", style, thinner)
        style = {"color": back.light, "width": 1.6}
        steps(figure, heard, "acknowledged", scale, "acknowledged", style, thinner)
    first = thinner(data.filter(~pl.col("retransmission")), "end", "sent")
    _marks(figure, first, scale, "sent", {"symbol": "circle", "size": 4, "color": hue.light})
    again = {"symbol": "x-thin", "size": 8, "line": {"width": 1.8, "color": theme.ALERT.light}}
    _marks(figure, repeated, scale, f"retransmitted ({repeated.height:,})", again)
    lost = _lost(line, data)
    if lost.height:
        style = {"symbol": "triangle-down-open", "size": 8, "color": theme.INK.light}
        _marks(figure, lost, scale, f"lost ({lost.height:,})", style)
    return notes


def _overlaid(figure: go.Figure, line: Line, repeated: pl.DataFrame, scale: float, thinner: Thinner) -> None:
    """Draw one line of several."""
    style = {"color": line.colour, "width": 2, "dash": line.dash}
    steps(figure, _heard(line), "acknowledged", scale, line.label, style, thinner, legendgroup=line.label)
    again = {"symbol": "x-thin", "size": 7, "line": {"width": 1.4, "color": line.colour}}
    _marks(figure, repeated, scale, f"{line.label}, retransmitted", again, legendgroup=line.label, showlegend=False)


def _segments(figure: go.Figure, line: Line, data: pl.DataFrame, scale: float, thinner: Thinner) -> None:
    """Draw the segments of one line of several, and the SYN of its client."""
    more = {"legendgroup": line.label, "showlegend": False}
    first = thinner(data.filter(~pl.col("retransmission")), "end", f"{line.label}, sent")
    style = {"symbol": "circle", "size": 4, "color": line.colour}
    _marks(figure, first, scale, f"{line.label}, sent", style, **more)
    opening = (pl.col("step") == "sent") & (pl.col("direction") != line.direction) & (pl.col("flags") & _SYN != 0)
    opened = line.of_flow("packets").filter(opening).select("t", end=pl.lit(0.0)).collect()
    style = {"symbol": "star-open", "size": 10, "color": line.colour, "line": {"width": 1.4}}
    _marks(figure, opened, scale, f"{line.label}, SYN", style, **more)


def _data(line: Line) -> pl.DataFrame:
    """Return the data segments that the sender sent; `end` is the end of their payload.

    With a proxy in the path, its end towards the mobile sends those of a download.
    """
    components = [component["name"] for component in line.run.result.summary["components"]]
    split = line.direction == "down" and PROXY in components
    sender = (pl.col("step") == "created") & (pl.col("component") == PROXY) if split else pl.col("step") == "sent"
    sent = line.of_flow("packets").filter(sender & (pl.col("direction") == line.direction) & (pl.col("length") > 0))
    columns = sent.select("t", "packet", "retransmission", end=pl.col("offset") + pl.col("length"))
    return columns.collect().sort("t", maintain_order=True)


def _lost(line: Line, data: pl.DataFrame) -> pl.DataFrame:
    """Return the segments that a link or bearer lost, at the time of the loss."""
    dropped = line.of_flow("packets").filter(pl.col("step") == "dropped").select("t", "packet").collect()
    return dropped.join(data.select("packet", "end"), on="packet").sort("t")


def _heard(line: Line) -> pl.DataFrame:
    """Return the acknowledged offset and the receive window at the sender."""
    states = line.sender_states()
    known = states.select("t", "acknowledged", "peer_window").collect().sort("t", maintain_order=True)
    if known.height:
        return known
    return (
        received_acknowledgements(line.of_flow("packets"), [line.flow])
        .select("t", "acknowledged", "peer_window")
        .collect()
    )


def _marks(figure: go.Figure, frame: pl.DataFrame, scale: float, name: str, style: dict[str, Any], **more: Any) -> None:
    x, y = numbers(frame["t"]), numbers(frame["end"], scale)
    figure.add_trace(scatter(x, y, mode="markers", name=name, marker=style, hovertemplate="%{x} s: %{y}", **more))


def _words(line: Line) -> str:
    flow = line.flow
    ended = f"took {flow['duration_s']:.4g} s" if flow["duration_s"] is not None else str(flow["outcome"])
    return f"{line.label}, {flow['delivered_bytes']:,} bytes, {ended}"
