"""A repetition as a trace in the JSON format that Perfetto and Chrome read.

Each mobile is a process. Its named states are slices on tracks, one for each aspect and direction of the radio log;
its numbers, such as C/I, are counters. Each hop is a process with counters of the bytes that are inside, and with its
losses as instants; each flow one with counters of its windows. Times are microseconds from the run's origin.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from airpath.export.trace_events import Event, counter, micros, named, write
from airpath.plot.selection import Drawn, median_repetition
from airpath.result import NotLoggedError, Result

_HOPS = 10_000
"""Numbers of processes: mobiles count from 1, hops from here."""
_FLOWS = 20_000
"""And flows from here."""
_WINDOWS = ("congestion_window", "in_flight", "peer_window")


def perfetto(result: Result, out: Path, *, repetition: int | None = None) -> Path:
    """Write one repetition of a result as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing.

    Args:
        result: The result.
        out: The file, JSON.
        repetition: The repetition; by default the median one.

    Returns:
        `out`.

    Raises:
        OSError: The file cannot be written.
    """
    number = median_repetition(result) if repetition is None else repetition
    run = Drawn(result, str(result.summary["scenario"]), 0, number)
    return write(_events(run), out)


def _events(run: Drawn) -> Iterator[Event]:
    for part in (_states, _hops, _flows):
        try:
            yield from part(run)
        except NotLoggedError:
            continue


def _states(run: Drawn) -> Iterator[Event]:
    """Yield the radio log of each mobile."""
    rows = run.events("states").select("t", "user", "direction", "aspect", "name", "number").collect()
    for (user,), own in sorted(rows.group_by("user"), key=lambda group: group[0]):
        process = int(str(user)) + 1
        yield named("process_name", process, 0, run.user(process - 1))
        lanes = own.sort("t", maintain_order=True).partition_by("aspect", "direction", maintain_order=True)
        for track, lane in enumerate(sorted(lanes, key=lambda lane: [lane[key][0] or "" for key in _LANE]), 1):
            aspect, direction = (lane[key][0] for key in _LANE)
            title = aspect if direction is None else f"{aspect} {direction}"
            if lane["name"].null_count() == lane.height and aspect != "cell":
                yield from counter(process, title, lane["t"], lane["number"], aspect)
                continue
            yield named("thread_name", process, track, title)
            bands = lane.with_columns(length=pl.col("t").shift(-1).fill_null(run.span) - pl.col("t"))
            for begin, name, value, length in bands.select("t", "name", "number", "length").rows():
                band = {"name": name or f"{value:g}", "cat": "radio", "ph": "X", "pid": process, "tid": track}
                yield band | {"ts": micros(begin), "dur": micros(max(length, 0.0))}


_LANE = ("aspect", "direction")


def _hops(run: Drawn) -> Iterator[Event]:
    """Yield what is inside each hop, and what is lost there."""
    steps = run.events("packets").filter(pl.col("step").is_in(["queued", "delivered", "dropped"]))
    columns = ("t", "component", "direction", "step", "size", "cause", "packet")
    rows = steps.select(*columns).sort("t", maintain_order=True).collect()
    names = rows["component"].unique().sort().to_list()
    for process, hop in enumerate(names, _HOPS):
        yield named("process_name", process, 0, hop)
        for direction in ("down", "up"):
            own = rows.filter(component=hop, direction=direction)
            if own.height == 0:
                continue
            # A packet that is dropped at the entry was never inside.
            taken = own.filter(step="queued")["packet"].implode()
            sign = pl.when(pl.col("step") == "queued").then(1).when(pl.col("packet").is_in(taken)).then(-1).otherwise(0)
            inside = own.with_columns(bytes=(sign * pl.col("size")).cum_sum())
            yield from counter(process, f"inside {direction}", inside["t"], inside["bytes"], "bytes")
            for begin, cause, packet in own.filter(step="dropped").select("t", "cause", "packet").rows():
                lost = {"name": f"lost {direction}: {cause}", "cat": "loss", "ph": "i", "s": "p", "pid": process}
                yield lost | {"tid": 0, "ts": micros(begin), "args": {"packet": packet}}


def _flows(run: Drawn) -> Iterator[Event]:
    """Yield the windows of each TCP sender."""
    rows = run.events("tcp").select("t", "flow", "direction", *_WINDOWS).collect()
    names = {flow["flow"]: flow["name"] for flow in run.flows}
    for (flow, direction), own in sorted(rows.group_by("flow", "direction"), key=lambda group: str(group[0])):
        process = _FLOWS + int(str(flow))
        yield named("process_name", process, 0, f"flow {names.get(flow, flow)}")
        for window in _WINDOWS:
            title = f"{window.replace('_', ' ')} {direction}"
            yield from counter(process, title, own["t"], own[window], "bytes")
