"""The figures of a report: each has one value per repetition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor, sqrt
from statistics import fmean, variance

import polars as pl

from airpath.plot.acknowledgements import tcp_round_trips
from airpath.quantities import rate, seconds, share, size
from airpath.result import NotLoggedError, Result, UnreadableResultError
from airpath.statistics import Interval, mean_interval, repetition_means, student_t
from airpath.tables import DROP_CAUSES, TRANSFERS, VIDEOS, is_steering_probe


def few(value: float) -> str:
    """Return a mean of small counts as text."""
    return f"{value:.3g}"


@dataclass(frozen=True)
class Quantity:
    """What a figure is called, and how its values are written."""

    title: str
    words: Callable[[float], str]

    def apart(self, value: float) -> str:
        """Return a difference as text, with its sign.

        A difference of shares in percentage points.
        """
        sign = "+" if value > 0 else "−" if value < 0 else "±"
        words = f"{abs(value) * 100:.3g} points" if self.words is share else self.words(abs(value))
        return f"{sign}{words}"


@dataclass(frozen=True)
class Metric(Quantity):
    """A figure of a run."""

    values: Callable[[Result], list[float]]
    """Returns its value in each repetition that has one; empty if the run has none, or did not log
    it."""


def interval_of(values: Sequence[float]) -> Interval | None:
    """Return the mean with its 95 % interval; of few values it ends at 0, as no figure is negative.

    `None` for fewer than two values, or if all values are equal.
    """
    if len(values) < 2 or min(values) == max(values):
        return None
    interval = mean_interval(values)
    return replace(interval, low=max(interval.low, 0.0))


def difference(values: Sequence[float], base: Sequence[float]) -> Interval | None:
    """Return the mean of `values` minus that of `base`, with its 95 % interval (Welch's t).

    Degrees of freedom by Welch and Satterthwaite, rounded down. `None` if either has fewer than two
    values, or both have no variance.
    """
    if min(len(values), len(base)) < 2:
        return None
    parts = [variance(each) / len(each) for each in (values, base)]
    if sum(parts) == 0:
        return None
    freedom = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (values, base), strict=True))
    middle = fmean(values) - fmean(base)
    half = student_t(max(floor(freedom), 1)) * sqrt(sum(parts))
    return Interval(middle, middle - half, middle + half, min(len(values), len(base)))


def transfers(result: Result) -> pl.DataFrame:
    """Return the rows of the flows that move bytes over TCP."""
    return result.flows.filter(pl.col("kind").is_in(TRANSFERS))


MOST_ALIKE = 4
"""A report has the figures of at most this number of sizes; of more it has the range."""


@dataclass(frozen=True)
class Alike:
    """Transfers of the same size and direction, whose figures have a common mean."""

    label: str
    rows: pl.DataFrame

    def values(self, column: str) -> list[float]:
        """Return the mean of a column in each repetition that has it."""
        return repetition_means(self.rows, column).sort("repetition")[column].drop_nulls().to_list()


def alike(result: Result) -> list[Alike]:
    """Return the groups of transfers of the same size and direction, the largest size first."""
    rows = transfers(result).with_columns(_size=pl.coalesce("bytes", "delivered_bytes"))
    directions = rows["direction"].n_unique() > 1
    found = []
    for (bytes_, direction), group in sorted(
        rows.group_by("_size", "direction"), key=lambda each: (-each[0][0], each[0][1] or "")
    ):
        label = size(bytes_) + (f" {direction}" if directions and direction else "")
        found.append(Alike(label, group.drop("_size")))
    return found


def probes(result: Result) -> pl.DataFrame:
    """Return the rows of the flows that measure a delay: pings and datagrams.

    Without the probes of `[steering]`.
    """
    measured = ~pl.col("kind").is_in((*TRANSFERS, *VIDEOS, "voice"))
    return result.flows.filter(measured & ~pl.col("flow").is_in(_steering(result)))


def pings(result: Result) -> list[int]:
    """Return the numbers of the flows that are pings of the scenario."""
    return probes(result).filter(kind="ping")["flow"].unique().to_list()


def _steering(result: Result) -> list[int]:
    return sorted({flow["flow"] for flow in result.summary["flows"] if is_steering_probe(flow)})


def videos(result: Result) -> pl.DataFrame:
    """Return the rows of the flows that play a video."""
    return result.flows.filter(pl.col("kind").is_in(VIDEOS))


def calls(result: Result) -> pl.DataFrame:
    """Return the rows of the calls."""
    return result.flows.filter(kind="voice")


def round_trips(result: Result) -> pl.DataFrame:
    """Return `repetition` and `round_trip` in seconds.

    Of the pings under load if there are any, else of TCP.

    Under load is from the start of a repetition's first transfer to the end of its last.

    Raises:
        NotLoggedError: The run did not log the table that has them.
    """
    moving = transfers(result)
    pinging = pings(result)
    if not pinging:
        return tcp_round_trips(result).select("repetition", "round_trip").collect()
    arrived = result.scan("app").filter((pl.col("step") == "arrived") & pl.col("flow").is_in(pinging))
    samples = arrived.select("repetition", t=pl.col("time") / 1e9, round_trip=pl.col("delay") / 1e9).collect()
    if moving.height == 0:
        return samples.drop("t")
    load = moving.group_by(pl.col("repetition").cast(pl.Int32)).agg(
        start=pl.col("start_s").min(),
        end=pl.when(pl.col("duration_s").is_null().any())
        .then(float("inf"))
        .otherwise((pl.col("start_s") + pl.col("duration_s")).max()),
    )
    loaded = samples.join(load, on="repetition").filter(pl.col("t").is_between("start", "end"))
    return loaded.select("repetition", "round_trip")


def modes(result: Result, names: Sequence[str]) -> pl.DataFrame:
    """Return when the mode of a mobile was one of these, over all repetitions.

    Columns: `repetition`, `user`, `name`, and `start` and `length` in seconds; the length of the
    last state of a mobile is null.

    Raises:
        NotLoggedError: The run did not log its radio.
        UnreadableResultError: A file of the log is damaged.
    """
    states = result.scan("states").filter(pl.col("aspect") == "mode").select("time", "repetition", "user", "name")
    mobile = ["repetition", "user"]
    # A bearer reports a state again when a mobile is active again.
    changes = states.sort(*mobile, "time", maintain_order=True).filter(
        pl.col("name").ne_missing(pl.col("name").shift().over(mobile))
    )
    length = (pl.col("time").shift(-1).over(mobile) - pl.col("time")) / 1e9
    found = changes.with_columns(start=pl.col("time") / 1e9, length=length).filter(pl.col("name").is_in(list(names)))
    return found.select(*mobile, "name", "start", "length").collect()


def _of_flows(column: str) -> Callable[[Result], list[float]]:
    """Return a function that returns the mean of a column of the transfers in each repetition."""

    def values(result: Result) -> list[float]:
        return repetition_means(transfers(result), column).sort("repetition")[column].drop_nulls().to_list()

    return values


def _timeouts(result: Result) -> list[float]:
    """Return the time-outs of all transfers in each repetition."""
    known = transfers(result).drop_nulls("timeouts").group_by("repetition")
    return known.agg(pl.col("timeouts").sum().cast(pl.Float64)).sort("repetition")["timeouts"].to_list()


def _in_all(result: Result) -> list[float]:
    """Return the rate of all transfers of a repetition, from the first start to the last end."""
    end = pl.col("start_s") + pl.col("delivered_bytes") * 8 / pl.col("throughput_bps")
    spans = transfers(result).filter(pl.col("throughput_bps") > 0).group_by("repetition")
    totals = spans.agg(bits=pl.col("delivered_bytes").sum() * 8, span=end.max() - pl.col("start_s").min())
    return totals.sort("repetition").select(pl.col("bits") / pl.col("span")).to_series().to_list()


def _round_trip(quantile: float) -> Callable[[Result], list[float]]:
    def values(result: Result) -> list[float]:
        try:
            samples = round_trips(result)
        except (NotLoggedError, UnreadableResultError):
            return []
        quantiles = samples.group_by("repetition").agg(pl.col("round_trip").quantile(quantile, "linear"))
        return quantiles.sort("repetition")["round_trip"].to_list()

    return values


def _lost(result: Result) -> list[float]:
    """Return the share of the packets that end points sent and links or bearers lost."""
    dropped = pl.sum_horizontal(f"dropped_{cause.replace('-', '_')}_packets" for cause in DROP_CAUSES)
    lost = result.links.group_by("repetition").agg(dropped.sum().alias("lost"))
    joined = result.repetitions.join(lost, on="repetition").filter(pl.col("packets") > 0).sort("repetition")
    return joined.select(pl.col("lost") / pl.col("packets")).to_series().to_list()


def _ratio(frame: Callable[[Result], pl.DataFrame], part: str, whole: str) -> Callable[[Result], list[float]]:
    def values(result: Result) -> list[float]:
        sums = frame(result).group_by("repetition").agg(pl.col(part).sum(), pl.col(whole).sum())
        known = sums.filter(pl.col(whole) > 0).sort("repetition")
        return known.select(pl.col(part) / pl.col(whole)).to_series().to_list()

    return values


COMPLETION = Metric("completion time", seconds, _of_flows("duration_s"))
GOODPUT = Metric("goodput of a flow", rate, _of_flows("throughput_bps"))
GOODPUT_IN_ALL = Metric("goodput in all", rate, _in_all)
FIRST_BYTE = Metric("time to the first byte", seconds, _of_flows("first_byte_s"))
ROUND_TRIP_MEDIAN = Metric("round trip, median", seconds, _round_trip(0.5))
ROUND_TRIP_95 = Metric("round trip, 95 %", seconds, _round_trip(0.95))
LOST = Metric("packets lost", share, _lost)
REPEATED_SEGMENTS = Metric("segments retransmitted", share, _ratio(transfers, "retransmitted_packets", "data_packets"))
TIMEOUTS = Metric("time-outs", few, _timeouts)
REPEATED_PDUS = Metric(
    "PDUs retransmitted on the air", share, _ratio(lambda result: result.radio_totals, "repeated_pdus", "pdus")
)
PROBES_LOST = Metric("pings and datagrams lost", share, _ratio(probes, "lost", "sent"))

METRICS = (
    COMPLETION,
    GOODPUT,
    GOODPUT_IN_ALL,
    FIRST_BYTE,
    ROUND_TRIP_MEDIAN,
    ROUND_TRIP_95,
    LOST,
    REPEATED_SEGMENTS,
    TIMEOUTS,
    REPEATED_PDUS,
    PROBES_LOST,
)
"""In the order of the report's tables."""
