"""How connections of several traces differ: in a sentence, and in a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from airpath.quantities import count, rate, seconds, size
from airpath.report.tables import Cell, Table
from airpath.trace.analysis import Trace
from airpath.trace.causes import CAUSES, Cause, seconds_of
from airpath.trace.figures.compared import Shown
from airpath.trace.words import Row, lost

_TOLD = 3
"""Causes that a sentence of differences names."""


@dataclass(frozen=True)
class Compared:
    """A trace among those that are compared, and its connection that is drawn: the longest."""

    trace: Trace
    label: str
    index: int
    flows: list[Row]
    """Its connections, the longest first."""
    shown: Shown

    @property
    def name(self) -> str:
        """What is drawn of it, in a sentence."""
        return self.label if len(self.flows) == 1 else f"the longest connection of {self.label}"

    @cached_property
    def page(self) -> Row | None:
        """The page with most requests of HTTP, if there is any."""
        pages = self.trace.pages.sort("requests", descending=True)
        return pages.row(0, named=True) if pages.height else None

    @cached_property
    def sent(self) -> Row:
        """The figures of what the main sender of that connection sent."""
        of_flow = self.trace.directions.filter(connection=self.flows[0]["connection"])
        return of_flow.filter(**{"from": self.shown.sender}).row(0, named=True)


def against(each: Compared, first: Compared) -> str:
    """Return how long a trace's connection took against the first's, and which causes make the difference."""
    own, others = (seconds_of(compared.flows[0]) for compared in (each, first))
    changes = {cause: own.get(cause.name, 0.0) - others.get(cause.name, 0.0) for cause in CAUSES}
    whole = each.flows[0]["duration_s"] - first.flows[0]["duration_s"]
    said = f"{each.name[0].upper() if len(each.flows) > 1 else each.name[0]}{each.name[1:]} took"
    said += f" {seconds(each.flows[0]['duration_s'])}"
    if not any(changes.values()):
        return f"{said}, from the same causes as {first.name}."
    largest = sorted(changes, key=lambda cause: -abs(changes[cause]))[:_TOLD]
    causes = ", ".join(f"{cause.words} {_signed(changes[cause], seconds)}" for cause in largest if changes[cause])
    length = f"{_more(whole)} than" if whole else "as long as"
    return f"{said}, {length} {first.name}{_relative(whole, first)}: {causes}."


def _more(change: float) -> str:
    return f"{seconds(abs(change))} {'more' if change > 0 else 'less'}"


def _relative(change: float, first: Compared) -> str:
    base = first.flows[0]["duration_s"]
    return f" ({_percent(change / base)})" if base and change else ""


def _percent(share: float) -> str:
    return f"{share:+.1%}".replace("%", "\u00a0%").replace("-", "−")


def _signed(change: float, words: Callable[[float], str]) -> str:
    return f"{'+' if change > 0 else '−'}{words(abs(change))}"


Value = Callable[[Compared], float | None]


def _of_cause(cause: Cause) -> Value:
    return lambda each: seconds_of(each.flows[0]).get(cause.name, 0.0)


def _sent(column: str, factor: float = 1.0) -> Value:
    def value(each: Compared) -> float | None:
        figure = each.sent[column]
        return None if figure is None else figure * factor

    return value


def _page_seconds(each: Compared) -> float | None:
    return None if each.page is None else (each.page["end"] - each.page["start"]) / 1e9


_FIGURES: Sequence[tuple[str, Value, Callable[[float], str]]] = (
    ("time", lambda each: each.flows[0]["duration_s"], seconds),
    ("page", _page_seconds, seconds),
    ("lost", lambda each: lost(each.flows[0]), seconds),
    *((cause.words, _of_cause(cause), seconds) for cause in CAUSES),
    ("bytes", _sent("unique_bytes"), size),
    ("throughput", _sent("throughput", 8), rate),
    ("segments with data", _sent("data_segments"), count),
    ("sent again", _sent("retransmissions"), count),
    ("by the timer", _sent("timeouts"), count),
    ("fast", _sent("fast_retransmissions"), count),
    ("tail probes", _sent("tail_probes"), count),
    ("spurious", _sent("spurious"), count),
    ("out of order", _sent("out_of_order"), count),
    ("round trip, least", _sent("shortest_round_trip"), seconds),
    ("round trip, mean", _sent("mean_round_trip"), seconds),
    ("round trip, most", _sent("longest_round_trip"), seconds),
    ("outages included, mean", _sent("mean_echo_round_trip"), seconds),
    ("outages included, most", _sent("longest_echo_round_trip"), seconds),
    ("most outstanding", _sent("largest_outstanding"), size),
    ("mean queueing", _sent("mean_queueing"), seconds),
    ("first flight", _sent("initial_window_segments"), count),
    ("largest segment", _sent("largest_segment"), size),
    ("longest pause", _sent("longest_idle"), seconds),
)
"""What is compared of the connections that are drawn."""


def differences(compared: Sequence[Compared]) -> Table:
    """Return the figures that differ, each with its difference to the first trace's."""
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
        "Of the connections that are drawn above, and of the direction with more data; below each figure its "
        f"difference to {compared[0].label}."
    )
    if any(each.page is not None for each in compared):
        caption += " The page is that with most requests, from its first byte to its last, over all its connections."
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
    relative = f" ({_percent(change / base)})" if base else ""
    return Cell(words(value), f"{_signed(change, words)}{relative}")
