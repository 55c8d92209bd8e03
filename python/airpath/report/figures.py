"""The plots of a report, and the reason where one cannot be drawn."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import plotly.graph_objects as go
from polars.exceptions import PolarsError

from airpath import plot
from airpath.plot.changes import mark, mark_times
from airpath.plot.distribution import TITLES
from airpath.plot.latency import KINDS
from airpath.plot.selection import MOST_FLOWS, Drawn
from airpath.plot.template import Caption, untitled
from airpath.report import metrics
from airpath.result import NotLoggedError, Result, UnreadableResultError
from airpath.tables import VIDEOS

_MOST_HANDOVERS = 60
"""The most handovers that are marked in each figure over time."""


@dataclass(frozen=True)
class Figure:
    """A figure as a page shows it."""

    id: str
    caption: Caption
    json: str
    time: bool
    """Whether its horizontal axis is one of time, which all such figures of its group share."""
    height: int
    group: str = ""
    """The name of its time axis, on a page that has several; part of its elements' names."""


@dataclass(frozen=True)
class Missing:
    """A figure that could not be drawn, and why."""

    title: str
    reason: str
    fault: bool
    """Whether data is missing; `False` if the events did not happen."""


def over_time(runs: Sequence[Drawn]) -> list[Figure | Missing]:
    """Return the figures over time, from top to bottom."""
    results = _one_or_several(runs)
    makers: list[tuple[str, Callable[[], go.Figure]]] = [
        ("Time–sequence", lambda: plot.time_sequence(results)),
        ("Window and outstanding data", lambda: plot.window(results)),
        ("Round trip", lambda: plot.round_trip(results)),
        ("Queue", lambda: plot.queue(results)),
        ("Throughput", lambda: plot.throughput(results)),
        ("Radio log", lambda: plot.tracks(results)),
        ("Radio", lambda: plot.radio(results)),
        ("Proxy", lambda: plot.proxy_tracks(results)),
        ("Lost packets", lambda: plot.losses(results)),
    ]
    kinds = {flow["kind"] for run in runs for flow in run.flows}
    if kinds & set(KINDS):
        makers.insert(0, ("Interactions", lambda: plot.latency(results)))
    if "adaptive" in kinds:
        makers.insert(0, ("Video quality", lambda: plot.quality(results)))
    if kinds & set(VIDEOS):
        makers.insert(0, ("Playout buffer", lambda: plot.playback(results)))
    if len(runs) == 1:
        if len(runs[0].transfers) > 1:
            makers.insert(-4, ("Throughput by flow", lambda: plot.throughput(results, by_flow=True)))
        makers.append(("Where the time goes", lambda: plot.hops(results)))
    return [_draw(title, lambda make=make: _marked(make(), runs), time=True) for title, make in makers]


def _marked(figure: go.Figure, runs: Sequence[Drawn]) -> go.Figure:
    """Return a figure with marks of changed conditions, and of the handovers of one run."""
    mark(figure, runs)
    if len(runs) > 1:
        return figure
    [run] = runs
    try:
        handovers = metrics.modes(run.result, ["handover"]).filter(repetition=run.repetition)
    except (NotLoggedError, PolarsError, UnreadableResultError):
        return figure
    if not 0 < handovers.height <= _MOST_HANDOVERS:
        return figure
    mark_times(figure, handovers["start"].to_list())
    caption = plot.caption_of(figure)
    users = [run.user(user) for user in handovers["user"].unique().sort()]
    caption.notes.append(
        f"Dotted lines: {handovers.height} handover{'s' * (handovers.height > 1)} of {', '.join(users)}."
    )
    return figure.update_layout(meta=asdict(caption))


def distributions(runs: Sequence[Drawn]) -> list[Figure | Missing]:
    """Return the figures over all repetitions, flows and samples."""
    results = _one_or_several(runs)
    made = [_draw("Distribution of the round trip", lambda: plot.round_trip_share(results), time=False)]
    if any(flow["kind"] in KINDS for run in runs for flow in run.flows):
        made.insert(0, _draw("Interaction times", lambda: plot.latency_share(results), time=False))
    if len(runs) > 1:
        made.insert(0, _draw("Where the time goes", lambda: plot.hops(results), time=False))
    repeated = any(run.result.repetitions.height > 1 for run in runs)
    transfers = any(metrics.transfers(run.result).height for run in runs)
    several = any(metrics.transfers(run.result)["flow"].n_unique() > MOST_FLOWS for run in runs)
    if transfers and (repeated or several):
        of: Literal["repetitions", "flows"] = "repetitions" if repeated else "flows"
        made += [
            _draw(TITLES[metric], lambda metric=metric: plot.compare(results, metric, of=of), time=False)
            for metric in ("duration_s", "throughput_bps", "retransmitted_packets")
        ]
    return made


def figure(make: Callable[[], go.Figure], name: str, *, time: bool = False, group: str = "") -> Figure | Missing:
    """Return a figure; with `time` it shares the time axis of its group."""
    return _draw(name, make, time=time, group=group)


def _one_or_several(runs: Sequence[Drawn]) -> Result | list[Result]:
    return runs[0].result if len(runs) == 1 else [run.result for run in runs]


def _draw(title: str, make: Callable[[], go.Figure], *, time: bool, group: str = "") -> Figure | Missing:
    try:
        drawn = make()
    except NotLoggedError as error:
        return Missing(title, str(error), fault=True)
    except plot.NothingToDrawError as error:
        return Missing(title, str(error), fault=False)
    except (PolarsError, UnreadableResultError) as error:
        first = (error.message if isinstance(error, UnreadableResultError) else str(error)).splitlines()[0]
        reason = f"a table of the log is damaged ({first}); run the scenario again"
        return Missing(title, reason, fault=True)
    caption = plot.caption_of(drawn)
    data = untitled(drawn)
    identity = "".join(each if each.isalnum() else "-" for each in caption.title.lower()).strip("-")
    return Figure(identity, caption, dumped(data), time, int(data["layout"]["height"]), group)


def dumped(data: object) -> str:
    """Return data as JSON that is safe in a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
