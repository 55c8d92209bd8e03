"""The time-line of a page: the client's connections as lines, the objects as bars on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.plot.selection import NothingToDrawError
from airpath.plot.template import Caption, blank, captioned
from airpath.quantities import number_of, seconds, size

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

_READ = (
    "Each row is a connection: a thin line from its SYN to its end or the page's end, with a dot when it was "
    "established. Each object is a bar: pale from its request to the first byte of its response, full until the "
    "client's acknowledgement of the last byte passed. So at a server a bar includes the way to the client, and the "
    "queue in front of the link. The shortest bar is drawn two pixels wide."
)
_ROW = 17
"""Height of a row in pixels. A connection has several rows if its exchanges overlap."""
_MOST_ROWS = 60
_WIDTH = 1000
"""Least width in pixels that is assumed for the time axis."""
_NARROWEST = 2
"""Width in pixels of the narrowest bar."""


_RECEIVING = "receiving"
"""Name of the bars of responses."""


@dataclass(frozen=True)
class PageView:
    """The requests of one client, on a time axis from the page's start."""

    page: Mapping[str, Any]
    """Its row of `Trace.pages`."""
    exchanges: pl.DataFrame
    """Its rows of `Trace.exchanges`."""
    timelines: pl.DataFrame
    """Its rows of `Trace.timelines`."""
    label: str = ""
    """The name of its trace, among several."""
    until: float = 0.0
    """The minimal end of the time axis, in seconds."""

    @classmethod
    def of(cls, trace: "TraceData", page: Mapping[str, Any]) -> Self:
        """Return the page of a trace whose row of `Trace.pages` is `page`."""
        own = trace.connections.filter(client_address=page["client_address"])["connection"].implode()
        is_own = pl.col("connection").is_in(own)
        return cls(page, trace.exchanges.filter(is_own), trace.timelines.filter(is_own))

    @property
    def name(self) -> str:
        """Its title."""
        name = f"Page of {self.page['client_address']}"
        return f"{self.label}: {name.lower()}" if self.label else name

    @property
    def span(self) -> float:
        """The page's duration in seconds, without the time of idle connections after it."""
        return max((self.page["end"] - self.page["start"]) / 1e9, 1e-6)

    @property
    def acknowledged(self) -> float:
        """The seconds until the last response was acknowledged; `span` without acknowledgements."""
        last = self.exchanges["response_acknowledged"].max()
        return self.span if last is None else max(self.span, (int(str(last)) - self.page["start"]) / 1e9)


def page_timeline(view: PageView) -> go.Figure:
    """Draw a page: connections and objects over time.

    Raises:
        NothingToDrawError: There is no request.
    """
    rows = view.exchanges.filter(pl.col("request_first").is_not_null()).sort("request_first")
    if rows.height == 0:
        raise NothingToDrawError("the capture has no HTTP request")
    placed, connections = _placed(rows, view)
    height = _ROW * max((row for _, row in placed), default=0) + _ROW
    figure = blank(height + 70, span=max(view.acknowledged, view.until), top=30)
    for name, begin, end, colour in (
        ("waiting for the first byte", "request_first", "response_first", f"{theme.DOWN.light}59"),
        (_RECEIVING, "response_first", "response_last", theme.DOWN.light),
    ):
        figure.add_trace(_bars(view, placed, name, begin, end, colour))
    for number, row in connections.items():
        _line(figure, view, number, row)
    ticks = {
        "tickmode": "array",
        "tickvals": list(connections.values()),
        "ticktext": list(map(str, connections)),
    }
    figure.update_yaxes(
        autorange=False,
        range=[height / _ROW - 0.5, -0.7],
        showgrid=False,
        zeroline=False,
        title_text="connection",
        **ticks,
    )
    figure.update_layout(barmode="overlay", bargap=0.2, showlegend=True)
    notes = [_sum(view)]
    if rows.height > len(placed):
        notes.append(f"{len(placed)} of {rows.height:,} objects are drawn: the first.")
    alt = f"{view.name}: {notes[0]}"
    return captioned(figure, Caption(view.name, _READ, alt, notes))


def _sum(view: PageView) -> str:
    """Return a sentence with the page's requests, bytes and duration, and with any pipelining."""
    page = view.page
    requests, connections = (number_of(page[f"{noun}s"], noun) for noun in ("request", "connection"))
    sentence = f"{requests} and {size(page['bytes'])} of responses on {connections} in {seconds(view.acknowledged)}"
    factors = view.timelines["pipeline_factor"].drop_nulls()
    if page["efficiency_of_reused"] is not None and factors.len() and float(str(factors.max())) > 1:
        sentence += (
            f"; pipelining efficiency η {page['efficiency_of_reused']:.3g}: the requests that were open when each one "
            "was sent, as a share of the most that is possible, on the connections with several requests"
        )
    return f"{sentence}. {_transferring(view)}"


def _transferring(view: PageView) -> str:
    """Return a sentence with the time in which responses were in transit."""
    known = view.exchanges.drop_nulls("response_first").sort("response_first")
    busy, until = 0, 0
    for row in known.iter_rows(named=True):
        end = row["response_acknowledged"] or row["response_last"] or row["response_first"]
        busy += max(0, end - max(row["response_first"], until))
        until = max(until, end)
    return f"Responses were in transit in {seconds(busy / 1e9)} of it."


Placed = list[tuple[dict[str, Any], int]]


def _placed(rows: pl.DataFrame, view: PageView) -> tuple[Placed, dict[int, int]]:
    """Assign a row to each exchange.

    The connection's first row, or one below if it overlaps with another exchange.

    Returns:
        The exchanges with their rows, and the first row of each connection.
    """
    placed: Placed = []
    connections: dict[int, int] = {}
    used = 0
    for (number,), own in rows.group_by("connection", maintain_order=True):
        if used >= _MOST_ROWS:
            break
        ends: list[int] = []
        for exchange in own.iter_rows(named=True):
            end = exchange["response_acknowledged"] or exchange["response_last"] or view.page["end"]
            track = next((track for track, until in enumerate(ends) if until <= exchange["request_first"]), len(ends))
            ends[track : track + 1] = [end]
            placed.append((exchange, used + track))
        connections[int(str(number))] = used
        used += len(ends)
    return placed, connections


def _bars(view: PageView, placed: Placed, name: str, begin: str, end: str, colour: str) -> go.Bar:
    known = [(each, row) for each, row in placed if each[begin] is not None]
    starts = [_since(view, each[begin]) for each, _ in known]
    stops = [_end(view, each, end) for each, _ in known]
    words = [
        f"{each['method']} {_short(each['url'])}, {each['status'] or 'no answer'}, {size(each['response_bytes'] or 0)}"
        for each, _ in known
    ]
    lengths = [stop - start for start, stop in zip(starts, stops, strict=True)]
    least = _NARROWEST / _WIDTH * max(view.acknowledged, view.until) if name == _RECEIVING else 0.0
    return go.Bar(
        orientation="h",
        base=starts,
        x=[max(length, least) for length in lengths],
        y=[row for _, row in known],
        name=name,
        marker={"color": colour, "line": {"width": 0}},
        customdata=list(zip(words, map(seconds, lengths), strict=True)),
        hovertemplate=f"%{{customdata[0]}}<br>{name} %{{customdata[1]}} from %{{base:.3f}} s<extra></extra>",
    )


def _end(view: PageView, exchange: Mapping[str, Any], end: str) -> float:
    """Return when a bar ends: a response with its acknowledgement, if that passed the capture."""
    time = exchange[end]
    if end == "response_last" and exchange["response_acknowledged"] is not None:
        time = exchange["response_acknowledged"]
    return _since(view, time) if time is not None else view.span


def _line(figure: go.Figure, view: PageView, number: int, row: int) -> None:
    """Draw a connection from its SYN to its end, with a dot when it was established."""
    found = view.timelines.filter(connection=number)
    if found.height == 0:
        return
    timeline = found.row(0, named=True)
    begin = _since(view, timeline["opened"] or timeline["first"])
    last = view.acknowledged
    end = min(_since(view, timeline["closed"]), last) if timeline["closed"] is not None else last
    style = {"color": theme.MUTED.light, "width": 1}
    figure.add_shape(type="line", x0=begin, x1=max(begin, end), y0=row, y1=row, line=style, layer="below")
    if timeline["established"] is not None:
        figure.add_trace(
            go.Scatter(
                x=[_since(view, timeline["established"])],
                y=[row],
                mode="markers",
                marker={"size": 5, "color": theme.INK.light},
                name="established",
                showlegend=row == 0,
                legendgroup="established",
                hovertemplate=f"connection {number} established at %{{x:.3f}} s<extra></extra>",
            )
        )


def _since(view: PageView, time: int) -> float:
    return round((time - view.page["start"]) / 1e9, 6)


def _short(url: str) -> str:
    return url if len(url) <= 80 else f"{url[:79]}…"
