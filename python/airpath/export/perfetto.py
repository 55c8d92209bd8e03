"""A repetition of a result as a trace for Perfetto and chrome://tracing.

Each mobile is a process. Its named states are slices, on one track per aspect and direction of the
radio log; its numbers, such as C/I, are counters. Each hop is a process with counters of the queued
bytes, and with its losses as instants. Each flow is a process with counters of its windows. Times
count from the run's origin.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from airpath.perfetto import Event, counter, instant, interval, process_name, track_name, write
from airpath.plot.selection import Drawn, median_repetition
from airpath.result import NotLoggedError, Result

_HOPS = 10_000
"""Process numbers: mobiles count from 1, hops from this number."""
_FLOWS = 20_000
"""Flows count from this number."""
_WINDOWS = ("congestion_window", "in_flight", "peer_window")


def perfetto(result: Result, out: Path, *, repetition: int | None = None) -> Path:
    """Write one repetition of a result as a trace for Perfetto and chrome://tracing.

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
        yield process_name(process, run.user(process - 1))
        tracks = own.sort("t", maintain_order=True).partition_by("aspect", "direction", maintain_order=True)
        tracks.sort(key=lambda states: [states[key][0] or "" for key in _TRACK_KEYS])
        for track, states in enumerate(tracks, 1):
            aspect, direction = (states[key][0] for key in _TRACK_KEYS)
            title = aspect if direction is None else f"{aspect} {direction}"
            if states["name"].null_count() == states.height and aspect != "cell":
                yield from counter(process, title, states["t"], states["number"], aspect)
                continue
            yield track_name(process, track, title)
            bands = states.with_columns(length=pl.col("t").shift(-1).fill_null(run.span) - pl.col("t"))
            for begin, name, value, length in bands.select("t", "name", "number", "length").rows():
                yield interval(process, track, "radio", name or f"{value:g}", begin, length)


_TRACK_KEYS = ("aspect", "direction")


def _hops(run: Drawn) -> Iterator[Event]:
    """Yield the queued bytes and the losses of each hop."""
    steps = run.events("packets").filter(pl.col("step").is_in(["queued", "delivered", "dropped"]))
    columns = ("t", "component", "direction", "step", "size", "cause", "packet")
    rows = steps.select(*columns).sort("t", maintain_order=True).collect()
    names = rows["component"].unique().sort().to_list()
    for process, hop in enumerate(names, _HOPS):
        yield process_name(process, hop)
        for direction in ("down", "up"):
            own = rows.filter(component=hop, direction=direction)
            if own.height == 0:
                continue
            # A packet that is dropped at the entry was never queued.
            taken = own.filter(step="queued")["packet"].implode()
            sign = pl.when(pl.col("step") == "queued").then(1).when(pl.col("packet").is_in(taken)).then(-1).otherwise(0)
            inside = own.with_columns(bytes=(sign * pl.col("size")).cum_sum())
            yield from counter(process, f"inside {direction}", inside["t"], inside["bytes"], "bytes")
            for begin, cause, packet in own.filter(step="dropped").select("t", "cause", "packet").rows():
                yield instant(process, "loss", f"lost {direction}: {cause}", begin, {"packet": packet})


def _flows(run: Drawn) -> Iterator[Event]:
    """Yield the windows of each TCP sender."""
    senders = run.of_repetition(run.result.scan_radio_senders())
    rows = senders.select("t", "flow", "direction", *_WINDOWS).collect()
    names = {flow["flow"]: flow["name"] for flow in run.flows}
    for (flow, direction), own in sorted(rows.group_by("flow", "direction"), key=lambda group: str(group[0])):
        process = _FLOWS + int(str(flow))
        yield process_name(process, f"flow {names.get(flow, flow)}")
        for window in _WINDOWS:
            title = f"{window.replace('_', ' ')} {direction}"
            yield from counter(process, title, own["t"], own[window], "bytes")
