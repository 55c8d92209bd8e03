"""The waterfall of a web page: objects, connections, radio and queue on one time axis."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import polars as pl

from airpath import theme
from airpath.page.timings import Connection, Request, View, lengths_of
from airpath.page.views import views
from airpath.plot.queue import backlog_of, fullest_queues
from airpath.plot.rates import nice_step, rates_of
from airpath.plot.selection import Drawn, NothingToDrawError, drawn, loaded
from airpath.plot.template import Caption, blank, captioned
from airpath.plot.track import BAND, GAP, HEAD, Stack, Track
from airpath.plot.tracks import radio_tracks
from airpath.quantities import number_of, seconds, size
from airpath.result import NotLoggedError, Result

_LEFT = 190
"""Pixels of the names."""
_LETTERS = 30
"""Letters that fit there."""
_MARGIN = 1.12
"""The axis is longer than the page by this factor, for sizes at the ends of rows."""
_ROW, _LOW_ROW, _MANY_ROWS = 19, 13, 50
"""Pixels of a row, the same where there are more than `_MANY_ROWS`."""
_TIMELINE, _LOW_TIMELINE, _STREAM, _HIGHEST_TIMELINE = 15, 9, 5, 110
_FRAME, _FRAMES = 64, 8
"""Pixels of the pictures of the page, and their most."""
_SOON = 0.05
"""Seconds by which a picture may be later than its place."""
_TIER = 14
"""Pixels of the name of a mark."""
_CELLS = 300
"""Cells of time in which the use of the radio is shown."""
_READ = (
    "One row for each object, in the order of start, below pictures of the page if there are any. Thin line: queued "
    "in the browser; thin bars: look-up, connect, TLS; pale bar: from the request to the first byte; full bar: from "
    "the first to the last byte, in the colour of the type. Below, on the same axis: connections, radio and queue."
)
_READ_CONNECTIONS = (
    "One row for each connection, from its SYN to its last packet. Thin bars: look-up, connect, TLS; pale bar: from a "
    "request to the first byte; full bar: from the first to the last byte, in the colour of the type."
)
_OUTLINE = ", ".join(
    f"{x}px {y}px {theme.PAGE.light}" for x in (-2, -1, 0, 1, 2) for y in (-1, 0, 1) if (x, y) != (0, 0)
)
"""The outline of the labels at bars, in the colour of the page: they stay readable on a line."""
_LINES = {
    "first byte": (theme.MUTED, "dot"),
    "FCP": (theme.GOOD, "dash"),
    "LCP": (theme.GOOD, "dashdot"),
    "load": (theme.ALERT, "dash"),
    "page time": (theme.INK, "solid"),
}
"""The marks of a page: colour and dash."""


def waterfall(
    result: Result | str | Path, *, run: int | None = None, view: int = 0, flow: int | None = None
) -> go.Figure:
    """Draw a view of a web page, simulated or loaded in a browser.

    Args:
        result: The result, or the path of its folder.
        run: Number of the load, or of the repetition of a simulation; by default the one of median
            page time.
        view: Number of the view in its run.
        flow: Number of the flow of a simulation; by default its first page.

    Raises:
        NothingToDrawError: There is no such view.
        UnreadableResultError: A file of the browser is damaged.
    """
    result = loaded(result)
    found = [each for each in views(result) if each.number == view and run in (None, each.run)]
    flows = sorted({each.flow for each in found if each.flow is not None})
    if flow is not None or flows:
        found = [each for each in found if each.flow == (flows[0] if flow is None else flow)]
    if not found:
        raise NothingToDrawError("there is no such view of a web page")
    chosen = median_view(found)
    return waterfall_of(drawn(result)[0], chosen)


def median_view(several: Sequence[View]) -> View:
    """Return the view of median page time, the lower one of two."""
    ordered = sorted(several, key=lambda each: each.figures.get("page_time_s") or float("inf"))
    return ordered[(len(ordered) - 1) // 2]


def name_of(view: View, run: Drawn, *, several: bool) -> str:
    """Return the name of a view; `several` to name its run, too."""
    parts = [run.label] if several else []
    parts.append(view.page)
    real = view.flow is None
    if view.number or (not real and any(page["view"] for page in run.result.summary["pages"])):
        parts.append(f"view {view.number + 1}")
    if run.result.repetitions.height > 1 or real:
        parts.append(f"{'load' if real else 'repetition'} {view.run + real}")
    if view.flow is not None and len({page["flow"] for page in run.result.summary["pages"]}) > 1:
        parts.append(next(flow["name"] for flow in run.flows if flow["flow"] == view.flow))
    return ", ".join(parts)


def waterfall_of(run: Drawn, view: View, *, span: float | None = None, several: bool = False) -> go.Figure:
    """Draw a view of a selected run.

    Args:
        run: The run.
        view: One of its views.
        span: Seconds of the axis, for figures that share it; by default those of the view.
        several: Whether figures of several runs are beside each other.
    """
    span = span or view.span or 1.0
    own = Drawn(run.result, run.label, run.index, 0 if view.flow is None else view.run)
    end = view.span or span
    tracks, notes = _tracks(own, view, end)
    timelines = [_streams(connection, view.requests, end / 250) for connection in view.connections]
    low = len(view.requests) > _MANY_ROWS
    row = _LOW_ROW if low else _ROW
    timeline = _LOW_TIMELINE if len(timelines) > 12 else _TIMELINE
    heights = [min(max(timeline, _STREAM * len(streams) + 3), _HIGHEST_TIMELINE) for streams in timelines]
    label_height = _TIER * max(len(_marks(view)), 1)
    total = label_height + GAP + row * len(view.requests) + GAP
    total += _FRAME + GAP if view.frames else 0
    total += HEAD + sum(heights) + GAP if timelines else 0
    total += HEAD + sum(track.height + GAP for track in tracks) if tracks else 0
    figure = blank(total + 100, x_title="time (s) from the start of the view", span=span * _MARGIN, top=44)
    figure.update_layout({"margin": figure.layout["margin"].to_plotly_json() | {"l": _LEFT}, "showlegend": True})
    stack = Stack(figure, total)
    if view.frames:
        _filmstrip(stack, view, span * _MARGIN)
    stack.axis(label_height, showticklabels=False, showgrid=False, showline=False, range=[0, 1])
    _rows(stack, view, row)
    if timelines:
        stack.heading("Connections")
        _timelines(stack, view, timelines, heights, end)
    if tracks:
        parts = "Radio and queue" if any(track.name.startswith("air") for track in tracks) else "Rate and queue"
        stack.heading(f"{parts} of {own.user(_user(own, view))}")
        for track in tracks:
            stack.track(track, end)
    stack.finish()
    _mark(figure, view, total, span * _MARGIN)
    name = name_of(view, run, several=several)
    return captioned(figure, Caption(f"Waterfall of {name}", _READ, _words(view, tracks, end), notes))


def connections(result: Result | str | Path, *, run: int | None = None, view: int = 0) -> go.Figure:
    """Draw the connections of a view of a web page, with the requests on each.

    Args:
        result: The result, or the path of its folder.
        run: Number of the load, or of the repetition of a simulation; by default the one of median
            page time.
        view: Number of the view in its run.

    Raises:
        NothingToDrawError: There is no such view, or it has no connection.
        UnreadableResultError: A file of the browser is damaged.
    """
    result = loaded(result)
    found = [each for each in views(result) if each.number == view and run in (None, each.run)]
    chosen = median_view(found) if found else None
    if chosen is None or not chosen.connections:
        raise NothingToDrawError("there is no such view of a web page with a connection")
    end = chosen.span or 1.0
    timelines = [_streams(connection, chosen.requests, end / 250) for connection in chosen.connections]
    row = _STREAM + 1 if len(timelines) > _MANY_ROWS else _TIMELINE
    heights = [max(row, min(_STREAM * len(streams) + 3, _HIGHEST_TIMELINE)) for streams in timelines]
    figure = blank(sum(heights) + 100, x_title="time (s) from the start of the view", span=end * 1.02, top=44)
    stack = Stack(figure, sum(heights))
    _timelines(stack, chosen, timelines, heights, end, legend=True)
    stack.finish()
    figure.update_layout(showlegend=True)
    figure.update_yaxes(title_text="connection", ticktext=_numbers(heights))
    connections, requests = number_of(len(timelines), "connection"), number_of(len(chosen.requests), "request")
    words = f"{connections} with {requests} in {seconds(end)}"
    return captioned(figure, Caption(f"Connections of {chosen.page}", _READ_CONNECTIONS, f"{words}."))


def _numbers(heights: Sequence[int]) -> list[str]:
    """Return the numbers of the connections that have a label."""
    return [str(number + 1) for number in range(0, len(heights), _every(heights))]


def _user(run: Drawn, view: View) -> int:
    """Return the number of the mobile that loads the page."""
    mobile = next((flow["mobile"] for flow in run.flows if flow["flow"] == view.flow), None)
    return run.users.index(mobile) if mobile in run.users else 0


def _rows(stack: Stack, view: View, height: int) -> None:
    names = [_label(each, view.requests[0].host) for each in view.requests]
    count = len(view.requests)
    axis = stack.axis(
        height * count,
        range=[count - 0.5, -0.5],
        tickmode="array",
        tickvals=list(range(count)),
        ticktext=names,
        tickfont={"size": 11 if height == _ROW else 10, "color": theme.INK.light},
        showgrid=False,
    )
    bars = _Bars(stack.figure, axis)
    for number, request in enumerate(view.requests):
        bars.request(request, number, _hover(request))
    bars.draw(legend=True)
    stack.figure.add_trace(
        go.Scatter(
            x=[each.end for each in view.requests],
            y=list(range(count)),
            text=[f" {_amount(each)}" for each in view.requests],
            mode="text",
            textposition="middle right",
            textfont={"size": 10, "color": theme.MUTED.light, "shadow": _OUTLINE},
            yaxis=axis,
            hoverinfo="skip",
            showlegend=False,
        )
    )


class _Bars:
    """The bars of requests on one vertical axis, collected by their look."""

    def __init__(self, figure: go.Figure, axis: str) -> None:
        self._figure = figure
        self._axis = axis
        self._of: dict[tuple[str, str], dict[str, list[Any]]] = {}

    def request(self, request: Request, row: float, hover: str, thickness: float = 0.74) -> None:
        """Add the phases of a request."""
        for phase in request.phases:
            thin = phase.name in theme.SETUP
            width = {"queued": 0.12}.get(phase.name, 0.45 if thin else 1.0) * thickness
            kind = (
                (phase.name, "")
                if thin or phase.name == "queued"
                else (phase.name.replace("send", "wait"), request.type)
            )
            self.add(kind, phase.start, phase.end, row, width, hover)

    def add(self, kind: tuple[str, str], start: float, end: float, row: float, width: float, hover: str) -> None:
        """Add a bar; `kind` is its phase and the type of its object."""
        own = self._of.setdefault(kind, {"base": [], "x": [], "y": [], "width": [], "customdata": []})
        values = (round(start, 5), round(end - start, 5), row, width, hover)
        for name, value in zip(own, values, strict=True):
            own[name].append(value)

    def draw(self, *, legend: bool) -> None:
        """Draw the bars, with an entry for each look in the legend."""
        order = ["open", "queued", *theme.SETUP, "wait", "receive"]
        types = list(theme.OBJECTS)
        kinds = sorted(self._of, key=lambda kind: (order.index(kind[0]), types.index(kind[1]) if kind[1] else -1))
        for phase, kind in kinds:
            colour = theme.OBJECTS[kind].light if kind else theme.SETUP.get(phase, theme.LINE).light
            marker: dict[str, Any] = {"color": f"{colour}59" if phase == "wait" else colour, "line": {"width": 0}}
            if kind == "media":
                marker["pattern"] = {"shape": "/", "size": 5, "solidity": 0.3, "fgcolor": theme.PAGE.light}
            self._figure.add_trace(
                go.Bar(
                    orientation="h",
                    yaxis=self._axis,
                    marker=marker,
                    name=_NAMES.get(phase, kind),
                    showlegend=legend and phase != "wait",
                    legendgroup=kind or phase,
                    hovertemplate="%{customdata}<extra></extra>",
                    **self._of[phase, kind],
                )
            )


_NAMES = {"open": "open", "queued": "queued", "dns": "DNS", "connect": "connect", "tls": "TLS"}
"""The names of phases that do not have the colour of a type."""


def _streams(connection: Connection, requests: Sequence[Request], tolerance: float) -> list[list[Request]]:
    """Return the requests of a connection in rows without visible overlap."""
    rows: list[list[Request]] = []
    for request in sorted((each for each in requests if each.connection == connection.key), key=_sent):
        row = next((row for row in rows if row[-1].end <= _sent(request) + tolerance), None)
        if row is None:
            rows.append([request])
        else:
            row.append(request)
    return rows


def _sent(request: Request) -> float:
    for phase in ("send", "wait"):
        if (start := request.time_of(phase)) is not None:
            return start
    return request.start


def _every(heights: Sequence[int]) -> int:
    """Return of how many connections one has a label."""
    return -(-10 // min(heights))


def _timelines(
    stack: Stack,
    view: View,
    timelines: Sequence[Sequence[Sequence[Request]]],
    heights: Sequence[int],
    end: float,
    *,
    legend: bool = False,
) -> None:
    """Draw the connections with the requests on each, as timelines of connections show them."""
    middles, top = [], 0.0
    for height in heights:
        middles.append(top + height / 2)
        top += height
    every = _every(heights)
    axis = stack.axis(
        sum(heights),
        range=[top, 0],
        tickmode="array",
        tickvals=middles[::every],
        ticktext=[
            f"{number + 1} {_shortened(connection.host, _LETTERS - 4)}"
            for number, connection in enumerate(view.connections)
        ][::every],
        tickfont={"size": 10},
        showgrid=False,
    )
    bars = _Bars(stack.figure, axis)
    for number, (connection, rows, height, middle) in enumerate(
        zip(view.connections, timelines, heights, middles, strict=True)
    ):
        title = f"<b>connection {number + 1}</b>, {escape(connection.host)}"
        opened, closed = max(connection.opened, 0.0), connection.closed
        last = end if closed is None else min(closed, end)
        words = [title, number_of(sum(map(len, rows)), "request")]
        if connection.opened < 0:
            words.append("opened before this view")
        words += [f"{_NAMES[each.name]} {seconds(each.end - each.start)}" for each in connection.setup]
        if closed is not None and connection.closed is not None and closed <= end:
            words.append(f"last packet at {seconds(closed)}")
        hover = "<br>".join(words)
        bars.add(("open", ""), opened, last, middle, 1.5, hover)
        for phase in connection.setup:
            if phase.end > 0:
                bars.add((phase.name, ""), max(phase.start, 0.0), phase.end, middle, height * 0.4, hover)
        thickness = (height - 3) / len(rows)
        for at, row in enumerate(rows):
            place = middle - height / 2 + 1.5 + thickness * (at + 0.5)
            for request in row:
                text = f"{title}<br>{_hover(request)}"
                for phase in request.phases:
                    if phase.name in ("send", "wait", "receive"):
                        kind = (phase.name.replace("send", "wait"), request.type)
                        bars.add(kind, phase.start, phase.end, place, thickness * 0.86, text)
    bars.draw(legend=legend)


def _filmstrip(stack: Stack, view: View, span: float) -> None:
    """Place pictures of the page at their times, as many as fit beside each other."""
    axis = stack.axis(_FRAME, showticklabels=False, showgrid=False, showline=False, range=[0, 1])
    # White pages stay visible on a white page.
    ground = {"xref": "paper", "x0": 0, "x1": 1, "yref": axis, "y0": 0, "y1": 1, "layer": "below"}
    stack.figure.add_shape(type="rect", fillcolor=theme.GRID.light, line={"width": 0}, **ground)
    step = span / _FRAMES
    last = None
    for number in range(_FRAMES):
        start = number * step
        seen = next((path for time, path in reversed(view.frames) if time <= start + _SOON), None)
        if seen is None or seen == last or start > view.span:
            continue
        last = seen
        kind = "png" if seen.suffix == ".png" else "jpeg"
        data = base64.b64encode(seen.read_bytes()).decode()
        place = {"x": start, "y": 0.5, "xref": "x", "yref": axis, "xanchor": "left", "yanchor": "middle"}
        stack.figure.add_layout_image(source=f"data:image/{kind};base64,{data}", sizex=step * 0.96, sizey=1, **place)


def _tracks(run: Drawn, view: View, span: float) -> tuple[list[Track], list[str]]:
    """Return radio, rate and queue of the mobile, and notes about what the run did not log."""
    user = _user(run, view)
    try:
        # A constant number, or the only cell, needs no track.
        radio = [each for each in radio_tracks(run, user, view.start, span) if _varies(each)]
        found = [*radio, *_air(run, user, view.start, span)]
        return [*found, *_rate(run, user, view.start, span), *_queue(run, user, view.start, span)], []
    except NotLoggedError as error:
        return [], [f"Radio and queue are not drawn: {error}."]


def _varies(track: Track) -> bool:
    return track.name not in ("cell", "C/I (dB)") or track.rows.select(pl.last()).n_unique() > 1


def _within(events: pl.LazyFrame, start: float, span: float) -> pl.LazyFrame:
    return events.with_columns(t=pl.col("t") - start).filter(pl.col("t").is_between(0, span))


def _air(run: Drawn, user: int, start: float, span: float) -> list[Track]:
    """Return whether the radio carries data of the mobile, by cells of time."""
    used = _within(run.events("radio").filter(pl.col("user") == user), start, span)
    cell = span / _CELLS
    cells = used.group_by("direction", cell=(pl.col("t") / cell).floor().cast(pl.Int64)).agg(pl.col("repeated").sum())
    by_direction = cells.collect()
    found = []
    for direction in ("down", "up"):
        own = by_direction.filter(direction=direction)
        if own.height == 0:
            continue
        every = pl.DataFrame({"cell": range(_CELLS)}, schema={"cell": pl.Int64}).join(own, on="cell", how="left")
        state = pl.when(pl.col("repeated") > 0).then(pl.lit("repeats"))
        name = state.when(pl.col("repeated") == 0).then(pl.lit("transfer")).otherwise(pl.lit("idle"))
        rows = every.sort("cell").select(t=pl.col("cell") * cell, name=name)
        rows = rows.filter(pl.col("name").ne_missing(pl.col("name").shift()))
        found.append(Track(f"air {direction}", rows, direction, BAND, steps=False))
    return found


def _rate(run: Drawn, user: int, start: float, span: float) -> list[Track]:
    """Return the rate of packets that arrive at the mobile."""
    arrived = run.events("packets").filter(
        (pl.col("step") == "received") & (pl.col("direction") == "down") & (pl.col("user") == user)
    )
    packets = _within(arrived, start, span).select("t", pl.col("size").cast(pl.Int64)).collect()
    if packets.height == 0:
        return []
    rates = rates_of(packets, nice_step(span / 60), span).select("t", number=pl.col("rate") / 1e3)
    return [Track("kbit/s down", rates, "down", 40, steps=True)]


def _queue(run: Drawn, user: int, start: float, span: float) -> list[Track]:
    """Return the fullest queue towards the mobile, in kB."""
    queues = [each for each in fullest_queues(run, 8) if each["direction"] == "down" and each["user"] in (user, -1)]
    if not queues:
        return []
    rows = _within(backlog_of(run, queues[0]).lazy(), start, span).collect()
    if rows.height == 0:
        return []
    kept = rows.select("t", number=pl.col("backlog_bytes") / 1e3)
    begin = pl.DataFrame({"t": [0.0], "number": [0.0]})
    return [Track("queue kB down", pl.concat([begin, kept]), "down", 40, steps=True)]


def _marks(view: View) -> list[tuple[str, float]]:
    """Return the times to be marked with their names, in the order of time; equal ones as one."""
    by_text: dict[str, list[str]] = {}
    for name, time in sorted(view.marks.items(), key=lambda mark: mark[1]):
        by_text.setdefault(seconds(time), []).append(name)
    return [(", ".join(names), view.marks[names[0]]) for names in by_text.values()]


def _mark(figure: go.Figure, view: View, total: float, span: float) -> None:
    """Draw the times of the page as lines across all parts, each named on its own line."""
    top = 1 - (_FRAME + GAP) / total if view.frames else 1.0
    for number, (name, time) in enumerate(_marks(view)):
        colour, dash = _LINES[name.partition(",")[0]]
        height = top - _TIER * number / total
        line = {"color": colour.light, "width": 1.2, "dash": dash}
        across = {"xref": "x", "x0": time, "x1": time, "yref": "paper", "y0": 0, "y1": height}
        figure.add_shape(type="line", line=line, layer="between", **across)
        figure.add_annotation(
            text=f" {name} {seconds(time)} ",
            x=time,
            y=height,
            xref="x",
            yref="paper",
            xanchor="right" if time > 0.6 * span else "left",
            yanchor="top",
            showarrow=False,
            font={"size": 10, "color": colour.light},
        )


def _amount(request: Request) -> str:
    """Return the bytes and the time of a request."""
    amount = size(request.bytes) if request.source == "network" else request.status
    return f"{amount}, {seconds(request.end - request.start)}"


def _label(request: Request, main: str) -> str:
    """Return the name of a row: the last part of the path, with the host if it is another."""
    path = request.name.rstrip("/").rpartition("/")[2] or "/"
    name = path if request.host == main else f"{request.host}/{path.lstrip('/')}"
    return escape(_shortened(name, _LETTERS))


def _shortened(text: str, letters: int) -> str:
    """Return a text with its middle left out if it is too long."""
    if len(text) <= letters:
        return text
    head = letters // 2 - 1
    return f"{text[:head]}…{text[head + 1 - letters :]}"


def _hover(request: Request) -> str:
    """Return all that is known of a request."""
    of = [f"<b>{escape(_shortened(request.name, 70))}</b>", escape(request.host)]
    connection = "" if request.connection is None else f", connection {escape(request.connection)}"
    of.append(f"{request.type}, {size(request.bytes)}, {escape(request.status)} {escape(request.protocol)}{connection}")
    of.append(f"from {seconds(request.start)} to {seconds(request.end)}: {seconds(request.end - request.start)}")
    of += [f"{_NAMES.get(name, name)} {seconds(length)}" for name, length in lengths_of(request).items() if length]
    return "<br>".join(of)


def _words(view: View, tracks: Sequence[Track], span: float) -> str:
    """Return the figure as text."""
    marks = ", ".join(f"{name} {seconds(time)}" for name, time in view.marks.items())
    slowest = sorted(view.requests, key=lambda each: each.start - each.end)[:3]
    longest = ", ".join(f"{each.name} {seconds(each.end - each.start)}" for each in slowest)
    state = "; ".join(track.words(span) for track in tracks)
    objects, connections = number_of(len(view.requests), "object"), number_of(len(view.connections), "connection")
    return f"Waterfall of {view.page}: {objects} on {connections}; {marks}; longest {longest}. {state}."
