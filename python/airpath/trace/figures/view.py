"""A connection as the figures use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from airpath.trace.columns import table

if TYPE_CHECKING:
    from airpath.trace.data import TraceData

SENDERS = ("server", "client")
"""The senders, the direction towards the client first."""
_LITTLE = 20
"""A direction is not drawn if the other one has more than this multiple of its data."""


@dataclass(frozen=True)
class FlowView:
    """One connection with all its segments, or a QUIC flow, on a time axis from its start.

    Data to the client is drawn as down, data from it as up, whichever end is the mobile.
    """

    flow: Mapping[str, Any]
    """Its row of `Trace.connections`, or that of a QUIC flow, of `quic.flows`."""
    segments: pl.DataFrame
    """Its rows of `Trace.observations`."""
    reports: pl.DataFrame
    """Its rows of `Trace.selective`: the blocks of selective acknowledgements."""
    causes: pl.DataFrame
    """Its rows of `Trace.causes`: the causes of its elapsed time."""
    transits: pl.DataFrame
    """Its rows of `Trace.transits`: the fate of each packet, with a capture of the other end."""

    @classmethod
    def of(cls, trace: "TraceData", flow: Mapping[str, Any]) -> Self:
        """Return the connection of a trace whose row of `Trace.connections` is `flow`.

        The files are read again, but not for a row of `quic.flows`.
        """
        if "quic" in flow:
            return cls.outline(trace, flow)
        number = flow["connection"]
        own = pl.col("connection") == number
        segments, reports = trace.observations(number), trace.selective(number)
        return cls(flow, segments, reports, trace.causes.filter(own), trace.transits.filter(own))

    @classmethod
    def outline(cls, trace: "TraceData", flow: Mapping[str, Any]) -> Self:
        """Return the same without its segments; no file is read again."""
        none = (table(name, {}) for name in ("observations", "selective", "transits"))
        segments, reports, transits = none
        own = {"quic": flow["quic"]} if "quic" in flow else {"connection": flow["connection"]}
        return cls(flow, segments, reports, trace.causes.filter(**own), transits)

    @property
    def name(self) -> str:
        """Its title: its number and its ends."""
        if "quic" in self.flow:
            return f"{self.flow['quic']}: {self.flow['client']} to {self.flow['server']}"
        name = f"{self.flow['flow_name']}, " if self.flow.get("flow_name") else ""
        return f"{self.flow['connection']}: {name}{self.flow['client']} to {self.flow['server']}"

    @cached_property
    def span(self) -> float:
        """Its seconds from the first segment to the last."""
        return max(float(self.flow["duration_s"]), 1e-6)

    @cached_property
    def sent(self) -> pl.DataFrame:
        """Its segments, with `t` in seconds from its start and `end`, where their payload ends."""
        return self.since_start(self.segments).with_columns(end=pl.col("offset") + pl.col("length_bytes"))

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Its selectively acknowledged blocks, with `t` in seconds from its start."""
        return self.since_start(self.reports)

    @cached_property
    def pieces(self) -> pl.DataFrame:
        """Its causes, with `t`, in seconds from its start, and `length`."""
        return self.causes.with_columns(
            t=(pl.col("start") - self.flow["start"]) / 1e9, length=(pl.col("end") - pl.col("start")) / 1e9
        )

    def since_start(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows with `t`, the seconds from the start of the flow to their `time`."""
        return frame.with_columns(t=(pl.col("time") - self.flow["start"]) / 1e9)

    def data(self, sender: str) -> pl.DataFrame:
        """Return the segments with payload that an end sent."""
        return self.sent.filter((pl.col("from") == sender) & (pl.col("length_bytes") > 0))

    @cached_property
    def senders(self) -> list[str]:
        """The ends that sent data, the main sender first."""
        bytes_of = {sender: int(self.data(sender)["length_bytes"].sum()) for sender in SENDERS}
        return sorted((sender for sender in SENDERS if bytes_of[sender]), key=lambda sender: -bytes_of[sender])

    @cached_property
    def main_senders(self) -> list[str]:
        """The senders whose data is drawn: not an end that sent only requests."""
        sizes = {sender: int(self.data(sender)["length_bytes"].sum()) for sender in self.senders}
        return [sender for sender in self.senders if _LITTLE * sizes[sender] >= max(sizes.values())]


def direction_of(sender: str) -> str:
    """Return the direction in which an end sends: `down` from the server, `up` from the client."""
    return "down" if sender == "server" else "up"


def other(sender: str) -> str:
    """Return the other end."""
    return "client" if sender == "server" else "server"
