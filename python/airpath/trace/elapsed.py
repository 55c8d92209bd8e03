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
    import polars as pl

    rows = list(flows)
    numbers = pl.Series([row["connection"] for row in rows])
    begin = min(row["start"] for row in rows)
    finish = max(row["start"] + round(row["duration_s"] * 1e9) for row in rows)
    own = pieces.filter(pl.col("connection").is_in(numbers.implode()) & (pl.col("end") > pl.col("start")))
    edges = pl.concat([own["start"], own["end"], pl.Series([begin, finish], dtype=own["start"].dtype)])
    # The time between two successive edges has the same causes throughout.
    spans = pl.DataFrame({"edge": edges.unique().sort()})
    lengths = (spans["edge"].shift(-1) - spans["edge"]).fill_null(0)

    def seconds(where: pl.Series) -> float:
        return int(lengths.filter(where).sum()) / 1e9

    free = pl.repeat(True, spans.height, eager=True)
    full = ~free
    causes = dict.fromkeys(_ORDER, 0.0)
    for name in _ORDER:
        here = free & _covered(spans, own.filter(pl.col("cause") == name))
        free &= ~here
        if name in FULL:
            full |= here
        # Together, the connections have the link for themselves.
        causes["path-rate" if name == "sharing" else name] += seconds(here)
    causes["application"] += seconds(free)
    # The data of a piece is spread over its time.
    before = spans.with_columns(before=(lengths * full).cum_sum().shift(1, fill_value=0))
    parts = own.join(before.rename({"edge": "start"}), on="start").join(before.rename({"edge": "end"}), on="end")
    share = (pl.col("before_right") - pl.col("before")) / (pl.col("end") - pl.col("start"))
    delivered = parts.select((pl.col(f"from_{end}_bytes") * share).sum() for end in ("client", "server")).row(0)
    both = directions.filter(pl.col("connection").is_in(numbers.implode()))
    sent, received = (int(both.filter(pl.col("from") == end)["unique_bytes"].sum()) for end in ("client", "server"))
    return Elapsed(
        (finish - begin) / 1e9,
        {name: length for name, length in causes.items() if length},
        received,
        sent,
        seconds(full),
        delivered,
    )


def _covered(spans: "pl.DataFrame", pieces: "pl.DataFrame") -> "pl.Series":
    """Return whether a piece covers the time after each edge."""
    import polars as pl

    begins, ends = (pieces.select(edge=pl.col(name), change=pl.lit(step)) for name, step in (("start", 1), ("end", -1)))
    changes = pl.concat([begins, ends]).group_by("edge").agg(pl.col("change").sum())
    return spans.join(changes, on="edge", how="left", maintain_order="left")["change"].fill_null(0).cum_sum() > 0
