"""The elapsed time of a client: the causes of all its connections, each moment once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

Row = Mapping[str, Any]

FULL = ("queueing", "path-rate", "sharing")
"""The causes of a full link."""

_ORDER = (
    "spurious",
    *FULL,
    "radio",
    "timer",
    "recovery",
    "receive-window",
    "congestion-window",
    "slow-start",
    "latency",
    "set-up",
    "application",
    "closing",
)
"""If several connections have different causes at a moment, the first of these counts: what the
link carries, then what holds data back, then what waits for the ends."""

_LEAST_FULL_S = 0.1
"""From a shorter time with a full link no rate is computed."""


@dataclass(frozen=True)
class Elapsed:
    """The elapsed time of some connections of one client."""

    span_s: float
    """Seconds from the first segment to the last."""
    causes: Mapping[str, float]
    """Seconds by cause; their sum is `span_s`. Time without a connection is `application`, and
    `sharing` is `path-rate`."""
    received_bytes: int
    """Bytes that the client received, and that it sent."""
    sent_bytes: int
    full_s: float
    """Seconds in which the link was full."""
    full_bytes: tuple[float, float]
    """Bytes delivered in that time: from the client, from the server."""

    @property
    def is_download(self) -> bool:
        """Whether the client received more than it sent while the link was full."""
        return self.full_bytes[1] >= self.full_bytes[0]

    @property
    def rate_bps(self) -> float | None:
        """Bits of data per second while the link was full; `None` if it hardly was."""
        if self.full_s < _LEAST_FULL_S or not max(self.full_bytes):
            return None
        return 8 * max(self.full_bytes) / self.full_s

    @property
    def least_s(self) -> float | None:
        """The seconds that all data needs at that rate."""
        data = self.received_bytes if self.is_download else self.sent_bytes
        return 8 * data / self.rate_bps if self.rate_bps else None


def elapsed(flows: Iterable[Row], pieces: "pl.DataFrame", directions: "pl.DataFrame") -> Elapsed:
    """Return the elapsed time of connections of one client.

    Args:
        flows: Rows of `Trace.connections`, at least one.
        pieces: `Trace.causes`.
        directions: `Trace.directions`.
    """
    import numpy as np
    import polars as pl

    rows = list(flows)
    numbers = pl.Series([row["connection"] for row in rows])
    begin = min(row["start"] for row in rows)
    finish = max(row["start"] + round(row["duration_s"] * 1e9) for row in rows)
    own = pieces.filter(pl.col("connection").is_in(numbers.implode()) & (pl.col("end") > pl.col("start")))
    starts, ends = own["start"].to_numpy(), own["end"].to_numpy()
    names = own["cause"].to_numpy()
    # The time between two successive edges has the same causes throughout.
    edges = np.unique(np.concatenate([[begin, finish], starts, ends])).astype(np.int64)
    first, last = np.searchsorted(edges, starts), np.searchsorted(edges, ends)
    lengths = np.diff(edges)
    free = np.ones(len(lengths), dtype=bool)
    full = np.zeros(len(lengths), dtype=bool)
    causes = dict.fromkeys(_ORDER, 0.0)
    for name in _ORDER:
        change = np.zeros(len(edges), dtype=np.int64)
        np.add.at(change, first[names == name], 1)
        np.add.at(change, last[names == name], -1)
        here = free & (np.cumsum(change)[:-1] > 0)
        free &= ~here
        full |= here & (name in FULL)
        # Together, the connections have the link for themselves.
        causes["path-rate" if name == "sharing" else name] += float(lengths[here].sum()) / 1e9
    causes["application"] += float(lengths[free].sum()) / 1e9
    # The data of a piece is spread over its time.
    before = np.concatenate([[0.0], np.cumsum(lengths * full)])
    share = (before[last] - before[first]) / np.maximum(ends - starts, 1)
    delivered = (float((own[f"from_{end}_bytes"].to_numpy() * share).sum()) for end in ("client", "server"))
    both = directions.filter(pl.col("connection").is_in(numbers.implode()))
    sent, received = (int(both.filter(pl.col("from") == end)["unique_bytes"].sum()) for end in ("client", "server"))
    return Elapsed(
        (finish - begin) / 1e9,
        {name: length for name, length in causes.items() if length},
        received,
        sent,
        float(lengths[full].sum()) / 1e9,
        (next(delivered), next(delivered)),
    )
