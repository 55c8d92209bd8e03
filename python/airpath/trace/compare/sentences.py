"""How the connections of several traces differ, in a sentence."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from airpath.quantities import relative_change, seconds
from airpath.trace.causes import CAUSES, seconds_of
from airpath.trace.compare.figures import Shown
from airpath.trace.data import TraceData
from airpath.trace.format import Row

_MOST_CAUSES = 3
"""A sentence of differences names at most this number of causes."""


@dataclass(frozen=True)
class Compared:
    """A compared trace, and its longest connection or QUIC flow, which is drawn."""

    trace: TraceData
    label: str
    index: int
    flows: list[Row]
    """Its connections and QUIC flows, the longest first."""
    shown: Shown

    @property
    def name(self) -> str:
        """The name of the drawn connection in a sentence."""
        return self.label if len(self.flows) == 1 else f"the longest connection of {self.label}"

    @cached_property
    def page(self) -> Row | None:
        """The page with most HTTP requests; `None` without HTTP."""
        pages = self.trace.pages.sort("requests", descending=True)
        return pages.row(0, named=True) if pages.height else None

    @cached_property
    def sent(self) -> Row:
        """The figures of the direction with more data of that connection.

        Those of a QUIC flow are encrypted, but for its bytes, which are UDP payload.
        """
        if "quic" in self.flows[0]:
            return {"unique_bytes": self.flows[0][f"{self.shown.sender}_bytes"]}
        of_flow = self.trace.directions.filter(connection=self.flows[0]["connection"])
        return of_flow.filter(**{"from": self.shown.sender}).row(0, named=True)


def against(each: Compared, first: Compared) -> str:
    """Return the difference in duration from the first trace, with its largest causes."""
    own, others = (seconds_of(compared.flows[0]) for compared in (each, first))
    changes = {cause: own.get(cause.name, 0.0) - others.get(cause.name, 0.0) for cause in CAUSES}
    whole = each.flows[0]["duration_s"] - first.flows[0]["duration_s"]
    sentence = f"{each.name[0].upper() if len(each.flows) > 1 else each.name[0]}{each.name[1:]} took"
    sentence += f" {seconds(each.flows[0]['duration_s'])}"
    if not any(changes.values()):
        return f"{sentence}, from the same causes as {first.name}."
    largest = sorted(changes, key=lambda cause: -abs(changes[cause]))[:_MOST_CAUSES]
    causes = ", ".join(f"{cause.words} {signed(changes[cause], seconds)}" for cause in largest if changes[cause])
    length = f"{_more(whole)} than" if whole else "as long as"
    return f"{sentence}, {length} {first.name}{_relative(whole, first)}: {causes}."


def _more(change: float) -> str:
    return f"{seconds(abs(change))} {'more' if change > 0 else 'less'}"


def _relative(change: float, first: Compared) -> str:
    base = first.flows[0]["duration_s"]
    return f" ({percent(change / base)})" if base and change else ""


def percent(share: float) -> str:
    """Return a relative change in per cent, with its sign."""
    return relative_change(share)


def signed(change: float, words: Callable[[float], str]) -> str:
    """Return a change as text, with its sign."""
    return f"{'+' if change > 0 else '−'}{words(abs(change))}"
