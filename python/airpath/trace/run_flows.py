"""The flows of a result folder that the connections of its trace are.

A capture has addresses only. The folder has the names of flows and mobiles, and its event log what
the network did with the packets of each flow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.quantities import count, number_of
from airpath.result import NotLoggedError, Result, UnreadableResultError, load
from airpath.trace.event_log import clients
from airpath.trace.format import Row, percent
from airpath.trace.radio_log import mobiles_of

if TYPE_CHECKING:
    import polars as pl

_CE = 3
"""Congestion experienced, in the ECN field (RFC 3168 §5)."""
_POLICER = "policer"


@dataclass(frozen=True)
class RunFlow:
    """A connection as the result folder has it."""

    number: int
    name: str
    mobile: str
    """Empty if the run has one mobile."""

    @property
    def words(self) -> str:
        """The flow, with its mobile."""
        return f"{self.name} of {self.mobile}" if self.mobile else self.name


@dataclass(frozen=True)
class Signals:
    """What the network did with the packets that one end of a connection sent."""

    sender: str
    """`client` or `server`."""
    received: int
    marked: int
    """Packets with data that arrived, and those among them with the mark CE."""
    dropped: Mapping[tuple[str, str], int]
    """Packets by component and cause."""

    @property
    def limit(self) -> str | None:
        """What held the congestion window down, if that is clear: `policer`, `ecn` or `None`."""
        drops = sum(self.dropped.values())
        policed = sum(number for (_, cause), number in self.dropped.items() if cause == _POLICER)
        if policed > max(drops / 2, self.marked):
            return _POLICER
        return "ecn" if self.marked > drops else None

    @property
    def sentences(self) -> list[str]:
        """The sentences about drops of a policer, and about marks."""
        found = []
        for (component, cause), number in self.dropped.items():
            if cause == _POLICER:
                where = {"fixed": "of the fixed network", "access": "of the access network"}.get(component)
                where = where or f"of the component {component}"
                found.append(f"From the {self.sender}: the policer {where} dropped {number_of(number, 'packet')}.")
        if self.marked:
            share = percent(100 * self.marked / self.received)
            found.append(
                f"From the {self.sender}: {count(self.marked)} of {count(self.received)} packets with data ({share}) "
                "arrived with a congestion mark (ECN), at which the sender reduces its window."
            )
        return found


class RunFlows:
    """The flows of the run of a trace, by the client's address and port.

    Args:
        run: The result folder; `None` if the trace has none.
        repetition: Its repetition.
    """

    def __init__(self, run: Path | None, repetition: int) -> None:
        self._repetition = repetition
        self._result: Result | None = None if run is None else load(run)
        self._flows = {} if self._result is None else _flows_of(self._result, repetition)
        self._signals: dict[int, list[Signals]] | None = None

    def of(self, flow: Row) -> RunFlow | None:
        """Return the flow of a connection, a row of `Trace.connections`."""
        return self._flows.get(flow["client"])

    def signals(self, flow: Row) -> list[Signals]:
        """Return what happened to the packets of a connection, by sender; empty if unknown."""
        known = self.of(flow)
        if self._result is None or known is None:
            return []
        if self._signals is None:
            self._signals = _signals_of(self._result, self._repetition)
        return self._signals.get(known.number, [])


def _flows_of(result: Result, repetition: int) -> dict[str, RunFlow]:
    several = len(mobiles_of(result)) > 1
    return {
        client: RunFlow(number, flow["name"], flow["mobile"] if several else "")
        for client, number, flow in clients(result, repetition)
    }


def _signals_of(result: Result, repetition: int) -> dict[int, list[Signals]]:
    """Return the signals by the numbers of flows."""
    import polars as pl

    try:
        packets = result.scan("packets").filter(pl.col("repetition") == repetition)
        # Marks of pure acknowledgements have no effect.
        carrying = packets.filter(pl.col("step") == "sent", pl.col("length") > 0).select(
            "packet", data=pl.lit(value=True)
        )
        ends = packets.filter(pl.col("step").is_in(["dropped", "received"])).join(carrying, on="packet", how="left")
        data = pl.col("data").fill_null(value=False) & (pl.col("step") == "received")
        sums = ends.group_by("flow", "direction", "step", "component", "cause").agg(
            pl.len(), data=data.sum(), marked=(data & (pl.col("ecn") == _CE)).sum()
        )
        rows = sums.sort("len", descending=True).collect()
    except (NotLoggedError, UnreadableResultError):
        return {}
    found: dict[int, list[Signals]] = {}
    for (number, direction), own in rows.group_by("flow", "direction"):
        found.setdefault(number, []).append(_signals(str(direction), own))
    return found


def _signals(direction: str, rows: "pl.DataFrame") -> Signals:
    received = rows.filter(step="received")
    dropped = rows.filter(step="dropped").select("component", "cause", "len").rows()
    return Signals(
        "server" if direction == "down" else "client",
        int(received["data"].sum()),
        int(received["marked"].sum()),
        {(component, cause): number for component, cause, number in dropped},
    )


def limit_of(signals: Sequence[Signals], directions: Sequence[Row]) -> str | None:
    """Return the limit of the end that sent most data."""
    if not directions:
        return None
    sender = max(directions, key=lambda row: row["data_segments"])["from"]
    return next((each.limit for each in signals if each.sender == sender), None)
