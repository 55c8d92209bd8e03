"""The table of differences in the report of several traces."""

from collections.abc import Callable, Sequence

from airpath.quantities import count, rate, seconds, size
from airpath.report.tables import Cell, Table
from airpath.trace.avoidable import avoidable
from airpath.trace.causes import CAUSES, Cause, seconds_of
from airpath.trace.compare.sentences import Compared, percent, signed

Value = Callable[[Compared], float | None]


def _of_cause(cause: Cause) -> Value:
    return lambda each: seconds_of(each.flows[0]).get(cause.name, 0.0)


def _sent(column: str) -> Value:
    def value(each: Compared) -> float | None:
        return each.sent.get(column)

    return value


def _page_seconds(each: Compared) -> float | None:
    return None if each.page is None else (each.page["end"] - each.page["start"]) / 1e9


_FIGURES: Sequence[tuple[str, Value, Callable[[float], str]]] = (
    ("time", lambda each: each.flows[0]["duration_s"], seconds),
    ("page", _page_seconds, seconds),
    ("avoidable", lambda each: avoidable(each.flows[0]), seconds),
    *((cause.words, _of_cause(cause), seconds) for cause in CAUSES),
    ("bytes", _sent("unique_bytes"), size),
    ("throughput", _sent("throughput_bps"), rate),
    ("segments with data", _sent("data_segments"), count),
    ("retransmitted", _sent("retransmissions"), count),
    ("by the timer", _sent("timeouts"), count),
    ("fast", _sent("fast_retransmissions"), count),
    ("tail probes", _sent("tail_probes"), count),
    ("spurious", _sent("spurious"), count),
    ("out of order", _sent("out_of_order"), count),
    ("round trip, least", _sent("shortest_round_trip_s"), seconds),
    ("round trip, mean", _sent("mean_round_trip_s"), seconds),
    ("round trip, most", _sent("longest_round_trip_s"), seconds),
    ("round trip, outages included, mean", _sent("mean_echo_round_trip_s"), seconds),
    ("round trip, outages included, most", _sent("longest_echo_round_trip_s"), seconds),
    ("maximum in flight", _sent("largest_outstanding_bytes"), size),
    ("mean queueing", _sent("mean_queueing_s"), seconds),
    ("initial burst", _sent("initial_window_segments"), count),
    ("largest segment", _sent("largest_segment_bytes"), size),
    ("longest pause", _sent("longest_idle_s"), seconds),
)
"""The compared figures: name, value, format."""


def differences(compared: Sequence[Compared]) -> Table:
    """Return the figures that differ, each with its difference from the first trace's figure."""
    rows = []
    same = 0
    for name, value, words in _FIGURES:
        values = [value(each) for each in compared]
        if not any(values):
            continue
        if len({None if figure is None else words(figure) for figure in values}) == 1 and len(values) > 1:
            same += 1
            continue
        cells = [_figure(figure, None if index == 0 else values[0], words) for index, figure in enumerate(values)]
        rows.append([Cell(name, number=False), *cells])
    caption = (
        "Figures of the connections drawn above, in the direction with more data. Below each figure is its difference "
        f"from {compared[0].label}."
    )
    if any(each.page is not None for each in compared):
        caption += " The page is the one with most requests, from its first byte to its last, over all its connections."
    notes = (
        [f"{same} more figures are the same in all."] if same > 1 else ["One more figure is the same in all."] * same
    )
    return Table("Differences", caption, ["figure", *(each.label for each in compared)], rows, notes)


def _figure(value: float | None, base: float | None, words: Callable[[float], str]) -> Cell:
    if value is None:
        return Cell("–")
    if base is None:
        return Cell(words(value))
    change = value - base
    if change == 0:
        return Cell(words(value), "the same")
    relative = f" ({percent(change / base)})" if base else ""
    return Cell(words(value), f"{signed(change, words)}{relative}")
