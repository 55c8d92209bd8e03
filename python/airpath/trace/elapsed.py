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
    "sender",
    "latency",
    "set-up",
    "application",
    "closing",
)
"""If several connections have different causes at a moment, the first of these counts: what the
link carries, then what holds data back, then what waits for the ends."""

LINKS = {"client": "uplink", "server": "downlink", None: "link"}
"""The direction of a link by the end whose packets fill it."""

_LEAST_FULL_S = 0.1
"""From a shorter time with a full link no rate is computed."""
_LEAST_SHARE = 0.1
"""From a rate in a smaller share of the time no least time is computed."""


@dataclass(frozen=True)
class Elapsed:
    """The elapsed time of some connections of one client."""

    span_s: float
    """Seconds from the first segment to the last."""
    causes: Mapping[str, float]
    """Seconds by cause; their sum is `span_s`. Time without a connection is `application`, and
    `sharing` is `path-rate`."""
    full_s: float
    """Seconds in which the link was full, in either direction."""
    filled: Mapping[str, Mapping[str | None, float]]
    """The seconds of each cause with a full link, by the end whose packets filled it."""
    links: Mapping[str | None, "FullLink"]
    """The directions in which it was, by the end whose packets filled it, `None` where that is not
    known; the longest first."""

    @property
    def rate_bps(self) -> float | None:
        """Bits of data per second in the direction that was full for longest."""
        return next((link.rate_bps for link in self.links.values()), None)


@dataclass(frozen=True)
class FullLink:
    """A direction of a client's link while it was full."""

    end: str | None
    """The end whose packets filled it."""
    full_s: float
    """Seconds in which it was full."""
    full_bytes: float
    """Bytes of data delivered in that time, in this direction."""
    moved: str
    """Whether the client `received` or `sent` in this direction."""
    bytes: int
    """All bytes of data in this direction."""
    opposite_bytes: int
    """Those in the other."""
    span_s: float
    """Seconds in which the client had all this data."""

    @property
    def rate_bps(self) -> float | None:
        """Bits of data per second while the link was full; `None` if it hardly was."""
        if self.full_s < _LEAST_FULL_S or not self.full_bytes:
            return None
        return 8 * self.full_bytes / self.full_s

    @property
    def least_s(self) -> float | None:
        """The seconds that all data needs at that rate.

        `None` where the rate is not that of the link: acknowledgements of more data in the other
        direction took a part of it, it was full for a short time only, or the data took less time.
        """
        if not self.rate_bps or self.bytes < self.opposite_bytes or self.full_s < _LEAST_SHARE * self.span_s:
            return None
        least = 8 * self.bytes / self.rate_bps
        return least if least <= self.span_s else None


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
    of_link = own.filter(pl.col("cause").is_in(FULL))
    by_end = {
        end: _covered(spans, of_link.filter(pl.col("full_by").eq_missing(end)))
        for end in of_link["full_by"].unique(maintain_order=True)
    }
    # Where both directions were full, the one that was for longest counts.
    by_end = dict(sorted(by_end.items(), key=lambda item: -seconds(item[1])))
    causes = dict.fromkeys(_ORDER, 0.0)
    filled: dict[str, dict[str | None, float]] = {}
    for name in _ORDER:
        here = free & _covered(spans, own.filter(pl.col("cause") == name))
        free &= ~here
        if name in FULL:
            full |= here
        # Together, the connections have the link for themselves.
        together = "path-rate" if name == "sharing" else name
        causes[together] += seconds(here)
        if name in FULL and here.any():
            ends = filled.setdefault(together, {})
            for end, covered in by_end.items():
                ends[end] = ends.get(end, 0.0) + seconds(here & covered)
                here &= ~covered
    causes["application"] += seconds(free)
    span = (finish - begin) / 1e9
    both = directions.filter(pl.col("connection").is_in(numbers.implode()))
    data = {end: int(both.filter(pl.col("from") == end)["unique_bytes"].sum()) for end in ("client", "server")}
    links = []
    for end, covered in by_end.items():
        there = full & covered
        carried = _delivered(spans.with_columns(time=lengths * there), own)
        sender = end or max(carried, key=lambda each: (carried[each], each))
        moved, other = ("sent", "server") if sender == "client" else ("received", "client")
        links.append(FullLink(end, seconds(there), carried[sender], moved, data[sender], data[other], span))
    return Elapsed(
        span,
        {name: length for name, length in causes.items() if length},
        seconds(full),
        filled,
        {link.end: link for link in sorted(links, key=lambda link: -link.full_s) if link.full_s},
    )


def _delivered(spans: "pl.DataFrame", pieces: "pl.DataFrame") -> dict[str, float]:
    """Return the bytes of each end that were delivered in a part of the time.

    The data of a piece is spread over its time.

    Args:
        spans: The edges of the time, with the length of the part after each (`time`).
        pieces: Rows of `Trace.causes`.
    """
    import polars as pl

    before = spans.select("edge", before=pl.col("time").cum_sum().shift(1, fill_value=0))
    parts = pieces.join(before.rename({"edge": "start"}), on="start").join(before.rename({"edge": "end"}), on="end")
    share = (pl.col("before_right") - pl.col("before")) / (pl.col("end") - pl.col("start"))
    ends = ("client", "server")
    return dict(
        zip(ends, parts.select((pl.col(f"from_{end}_bytes") * share).sum() for end in ends).row(0), strict=True)
    )


def _covered(spans: "pl.DataFrame", pieces: "pl.DataFrame") -> "pl.Series":
    """Return whether a piece covers the time after each edge."""
    import polars as pl

    begins, ends = (pieces.select(edge=pl.col(name), change=pl.lit(step)) for name, step in (("start", 1), ("end", -1)))
    changes = pl.concat([begins, ends]).group_by("edge").agg(pl.col("change").sum())
    return spans.join(changes, on="edge", how="left", maintain_order="left")["change"].fill_null(0).cum_sum() > 0
