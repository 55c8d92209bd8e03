"""Figures of the air interface and TCP together.

Shares of schemes and slots, gaps, and the cost of a gap.

They are computed from a run's event log (`docs/result-folder.md`): radio states from `states`, on
one time axis with TCP's events from `tcp` and `packets`.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from airpath.result import Result
from airpath.study.metrics import Flow, Inputs, Metric

KEY = "air"
"""The key of the observation in a flow."""

_SECOND = 1e9
_SUSPENDED = {"reselection", "no-coverage"}
"""Modes in which the mobile receives nothing."""
_LOST_WITH_THE_FLOW = {"handover", "attempts-exhausted"}
"""Causes of a loss that ends a TBF."""
_AVERAGED = 10
"""Segments over which tcptrace averages throughput by default."""


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval in which the network has data for a mobile and sends none; times in seconds."""

    start: float
    end: float
    """When data is sent again."""
    lost: int
    """Packets that the network dropped in it."""
    back: float
    """Arrival of the first of ten segments whose rate is at least the mean rate outside of gaps."""
    restart: float
    """When TCP's slow start begins: the end of the gap, or its last time-out if that is later."""
    slow_start: float
    """Duration of TCP's slow start after the gap's time-outs, until the congestion window reaches
    the threshold; 0 without a time-out."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Figures of one download."""

    schemes: Mapping[int, float]
    """Share of the downlink radio blocks by number of the coding scheme; control blocks have
    CS-1 (TS 45.003 §5.1.1.4)."""
    changes: int
    """Number of changes of the scheme."""
    slots: Mapping[int, float]
    """Share of the time with a downlink TBF, by number of timeslots."""
    rate_a_slot: float
    """New RLC data per timeslot and second, in bits."""
    gaps: Sequence[Gap]
    timeouts: int
    timeouts_elsewhere: int
    """Time-outs outside of gaps."""


def observe(result: Result) -> list[Observation]:
    """Return an observation for each flow of a run, in the order of its summary.

    Each must be a download.
    """
    log = _read(result)
    return [_observe(log[flow["repetition"]], flow) for flow in result.summary["flows"]]


@dataclass(slots=True)
class _Track:
    """A value over time."""

    times: list[float] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def spans(self, start: float, end: float) -> Iterator[tuple[float, float, Any]]:
        """Yield (start, end, value) of each interval with one value, between two times."""
        at = max(bisect_right(self.times, start) - 1, 0)
        for place in range(at, len(self.times)):
            until = self.times[place + 1] if place + 1 < len(self.times) else end
            low, high = max(self.times[place], start), min(until, end)
            if low < high:
                yield low, high, self.values[place]

    def first(self, value: Any, since: float, end: float) -> float:
        """Return the first time since `since` at which it has a value; `end` if there is none."""
        return next((low for low, _, each in self.spans(since, end) if each == value), end)


@dataclass(slots=True)
class _Repetition:
    """The log of a repetition in the order of time; seconds."""

    tracks: defaultdict[str, _Track] = field(default_factory=lambda: defaultdict(_Track))
    drops: list[float] = field(default_factory=list)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    """Time and size of segments that arrive at the mobile."""
    timeouts: list[float] = field(default_factory=list)
    past_threshold: list[float] = field(default_factory=list)
    """Times at which the congestion window was at least the slow-start threshold."""
    blocks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """Of each coding scheme: its number, RLC blocks, those of them that are repetitions, their
    bytes, control blocks."""


def _read(result: Result) -> Mapping[int, _Repetition]:
    import polars as pl

    log: defaultdict[int, _Repetition] = defaultdict(_Repetition)

    def rows(table: str, condition: pl.Expr, *columns: str) -> list[tuple[Any, ...]]:
        found = result.scan(table).filter(condition).sort("repetition", "time", maintain_order=True)
        return found.select("repetition", pl.col("time") / _SECOND, *columns).collect().rows()

    down = pl.col("direction") == "down"
    tracks = down & pl.col("aspect").is_in(["tbf", "scheme", "slots"]) | (pl.col("aspect") == "mode")
    for repetition, time, aspect, name, number in rows("states", tracks, "aspect", "name", "number"):
        track = log[repetition].tracks[aspect]
        track.times.append(time)
        track.values.append(number if name is None else name)
    lost = down & (pl.col("step") == "dropped") & pl.col("cause").is_in(sorted(_LOST_WITH_THE_FLOW))
    for repetition, time in rows("packets", lost):
        log[repetition].drops.append(time)
    arrived = down & (pl.col("step") == "received")
    for repetition, time, size in rows("packets", arrived, "size"):
        log[repetition].arrivals.append((time, size))
    for repetition, time in rows("tcp", down & (pl.col("trigger") == "timeout")):
        log[repetition].timeouts.append(time)
    past = down & (pl.col("congestion_window") >= pl.col("slow_start_threshold"))
    for repetition, time in rows("tcp", past):
        log[repetition].past_threshold.append(time)
    by_scheme = result.scan("radio").filter(down).group_by("repetition", "level", maintain_order=True)
    sums = by_scheme.agg(pl.col("pdus", "repeated", "bytes", "control").sum())
    for repetition, scheme, pdus, repeated, size, control in sums.collect().rows():
        log[repetition].blocks.append((scheme, pdus, repeated, size, control))
    return log


def _observe(log: _Repetition, flow: Flow) -> Observation:
    start = flow["start_s"]
    last = log.arrivals[-1][0] if log.arrivals else start
    end = last if flow["duration_s"] is None else start + flow["duration_s"]
    tbf = log.tracks["tbf"]
    sending = [(low, high) for low, high, phase in tbf.spans(start, end) if phase == "transfer"]
    slots = _times(log.tracks["slots"], sending)
    slot_time = sum(number * time for number, time in slots.items())
    _, blocks, repeated, size, _ = (sum(column) for column in zip((0, 0, 0, 0, 0), *log.blocks, strict=True))
    gaps = _gaps(log, start, end)
    explained = sum(any(gap.start <= time <= gap.back for gap in gaps) for time in log.timeouts)
    return Observation(
        schemes=_shares(_radio_blocks(log.blocks)),
        changes=sum(1 for _ in log.tracks["scheme"].spans(start, end)) - 1,
        slots=_shares(slots),
        rate_a_slot=8 * size * (1 - repeated / blocks) / slot_time if slot_time else 0.0,
        gaps=gaps,
        timeouts=len(log.timeouts),
        timeouts_elsewhere=len(log.timeouts) - explained,
    )


def _radio_blocks(blocks: Sequence[tuple[int, int, int, int, int]]) -> dict[int, float]:
    """Return the number of radio blocks by coding scheme, of GPRS: each has one RLC block."""
    counts = {scheme: float(data) for scheme, data, *_ in blocks}
    counts[1] = counts.get(1, 0.0) + sum(control for *_, control in blocks)
    return counts


def _times(track: _Track, within: Sequence[tuple[float, float]]) -> dict[Any, float]:
    """Return the duration of each value within the intervals."""
    times: defaultdict[Any, float] = defaultdict(float)
    for start, end in within:
        for low, high, value in track.spans(start, end):
            times[value] += high - low
    return dict(times)


def _shares(times: Mapping[Any, float]) -> dict[Any, float]:
    total = sum(times.values()) or 1.0
    return {value: time / total for value, time in times.items()}


def _gaps(log: _Repetition, start: float, end: float) -> list[Gap]:
    """Return the gaps: from when the mobile is unreachable or its TBF ends, until data is sent."""
    modes = log.tracks["mode"].spans(start, end)
    begun = [(low, high) for low, high, mode in modes if mode in _SUSPENDED]
    begun += [(time, time) for time in log.drops if start <= time < end]
    spans: list[tuple[float, float]] = []
    for low, high in sorted(begun):
        until = log.tracks["tbf"].first("transfer", high, end)
        if spans and low <= spans[-1][1]:
            # An event before data is sent again belongs to the same gap.
            begin, so_far = spans.pop()
            spans.append((begin, max(so_far, until)))
        else:
            spans.append((low, until))
    between = end - start - sum(until - low for low, until in spans)
    rate = sum(size for _, size in log.arrivals) / between if between else 0.0
    return [_gap(log, low, until, end, rate) for low, until in spans]


def _gap(log: _Repetition, start: float, until: float, end: float, rate: float) -> Gap:
    back = _back_at_rate(log.arrivals, until, end, rate)
    timeouts = [time for time in log.timeouts if start <= time <= back]
    lost = bisect_right(log.drops, until) - bisect_left(log.drops, start)
    restart, slow_start = until, 0.0
    if timeouts:
        restart = max(until, timeouts[-1])
        place = bisect_right(log.past_threshold, restart)
        slow_start = (log.past_threshold[place] if place < len(log.past_threshold) else end) - restart
    return Gap(start, until, lost, back, restart, slow_start)


def _back_at_rate(arrivals: Sequence[tuple[float, int]], since: float, end: float, rate: float) -> float:
    """Return the arrival of the first of ten segments that have at least this rate.

    `end` if there are none.
    """
    for place in range(bisect_right(arrivals, (since, 0)), len(arrivals) - _AVERAGED):
        span = arrivals[place + _AVERAGED][0] - arrivals[place][0]
        if sum(size for _, size in arrivals[place + 1 : place + 1 + _AVERAGED]) >= rate * span:
            return arrivals[place][0]
    return end


def _mean(figure: Callable[[Observation], float]) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of a figure's mean over the flows."""
    return lambda flows, _: fmean(figure(flow[KEY]) for flow in flows)


def _by_gap(figure: Callable[[Gap], float]) -> Callable[[Sequence[Flow], Inputs], float]:
    """Return the formula of a figure's mean over the gaps; 0 if there are none."""
    return _mean(lambda air: fmean(map(figure, air.gaps)) if air.gaps else 0.0)


def _scheme_share(scheme: int) -> Callable[[Sequence[Flow], Inputs], float]:
    return _mean(lambda air: 100 * air.schemes.get(scheme, 0.0))


AIR_METRICS = {
    name: Metric(name, unit, decimals, formula, observer_name=KEY)
    for name, unit, decimals, formula in (
        *((f"share-of-cs-{number}", "%", 1, _scheme_share(number)) for number in range(1, 5)),
        ("share-of-one-slot", "%", 1, _mean(lambda air: 100 * air.slots.get(1, 0.0))),
        ("share-of-two-slots", "%", 1, _mean(lambda air: 100 * air.slots.get(2, 0.0))),
        ("share-of-three-slots", "%", 1, _mean(lambda air: 100 * air.slots.get(3, 0.0))),
        ("share-of-four-slots", "%", 1, _mean(lambda air: 100 * air.slots.get(4, 0.0))),
        ("share-of-fewer-slots", "%", 1, _mean(lambda air: 100 * (1 - air.slots.get(4, 0.0)))),
        ("rate-a-slot", "kbit/s", 2, _mean(lambda air: air.rate_a_slot / 1e3)),
        ("scheme-changes", "1", 1, _mean(lambda air: air.changes)),
        ("gaps", "1", 2, _mean(lambda air: len(air.gaps))),
        ("time-in-gaps", "s", 2, _mean(lambda air: sum(gap.end - gap.start for gap in air.gaps))),
        ("lost-in-a-gap", "packets", 2, _by_gap(lambda gap: gap.lost)),
        ("back-at-rate", "s", 2, _by_gap(lambda gap: gap.back - gap.end)),
        ("slow-start", "s", 2, _by_gap(lambda gap: gap.slow_start)),
        ("timeouts", "1", 2, _mean(lambda air: air.timeouts)),
        ("timeouts-elsewhere", "1", 2, _mean(lambda air: air.timeouts_elsewhere)),
    )
}
"""The metrics by name. Counts are per transfer; the cost of a gap is a mean over the gaps of a
transfer."""
