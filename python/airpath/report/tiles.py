"""The tiles at the top of a report: the most important figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import polars as pl
from polars.exceptions import PolarsError

from airpath.plot.latency import KINDS
from airpath.plot.selection import Drawn
from airpath.quantities import number_of, rate, seconds, share
from airpath.report import metrics
from airpath.report.metrics import Metric
from airpath.result import NotLoggedError, Result, UnreadableResultError
from airpath.tables import DROP_CAUSES


@dataclass(frozen=True)
class Reading:
    """The value of a tile for one run, and its details."""

    value: str
    more: str = ""


@dataclass(frozen=True)
class Tile:
    """A figure with its values for each run."""

    title: str
    readings: list[tuple[Drawn, Reading]] = field(default_factory=list)


def tiles(runs: Sequence[Drawn], *, transfers: bool = True) -> list[Tile]:
    """Return the tiles that have a value for at least one run, `transfers` with those of flows."""
    made: list[Tile] = []
    makers: list[tuple[str, Callable[[Result], Reading | None]]] = [
        *([("Completion time", _completion), ("Goodput", _goodput)] if transfers else []),
        ("Interaction time", _interaction),
        (_round_trip_title(runs), _round_trip),
        ("Loss and repair", _loss),
        ("Repair on the air", _air),
        ("Handovers", _handovers),
    ]
    for title, reading in makers:
        readings = [(run, each) for run in runs if (each := reading(run.result)) is not None]
        if readings:
            made.append(Tile(title, readings))
    return made


def _completion(result: Result) -> Reading | None:
    flows = metrics.transfers(result)
    if flows.height == 0:
        return None
    done = flows["duration_s"].drop_nulls()
    left = flows.height - done.len()
    missing = f"{left:,} of {flows.height:,} did not finish" if left else ""
    if done.len() == 0:
        return Reading("not finished", missing)
    groups = metrics.alike(result)
    if len(groups) > 1:
        return _of_groups(groups, "duration_s", seconds, missing)
    values = metrics.COMPLETION.values(result)
    spread = f"{done.len():,} from {seconds(_least(done))} to {seconds(_most(done))}" if done.len() > 1 else ""
    return Reading(seconds(fmean(values)), _joined(missing, _interval(metrics.COMPLETION, values) or spread))


def _of_groups(
    groups: Sequence[metrics.Alike], column: str, words: Callable[[float], str], more: str
) -> Reading | None:
    """Return a figure of unlike transfers: of the largest, with the others; of many its range."""
    known = [(group, fmean(values)) for group in groups if (values := group.values(column))]
    if len(known) > metrics.MOST_ALIKE:
        means = [mean for _, mean in known]
        sizes = f"transfers of {known[-1][0].label} to {known[0][0].label}"
        return Reading(f"{words(min(means))} to {words(max(means))}", _joined(sizes, more))
    if not known:
        return None
    first, *others = known
    texts = [f"of {first[0].label}", *(f"{words(mean)} of {group.label}" for group, mean in others)]
    return Reading(words(first[1]), _joined(*texts, more))


def _interaction(result: Result) -> Reading | None:
    if "delay_p50_s" not in result.flows.columns:
        return None
    flows = result.flows.filter(pl.col("kind").is_in(KINDS)).drop_nulls("delay_p50_s")
    if flows.height == 0:
        return None
    if flows["kind"].n_unique() > 1:
        medians = flows.group_by("kind", maintain_order=True).agg(pl.col("delay_p50_s").mean()).rows()
        others = [f"{seconds(median)} of {kind}" for kind, median in medians[1:]]
        return Reading(seconds(medians[0][1]), _joined(f"median of {medians[0][0]}", *others))
    median, high = (fmean(flows[column].to_list()) for column in ("delay_p50_s", "delay_p95_s"))
    of = "median" if flows.height == 1 else f"mean of the medians of {flows.height:,}"
    return Reading(
        seconds(median), f"{of}; 95 % within {seconds(high)}, longest {seconds(_most(flows['delay_max_s']))}"
    )


def _goodput(result: Result) -> Reading | None:
    values = metrics.GOODPUT.values(result)
    if not values:
        return None
    several = metrics.transfers(result)["flow"].n_unique() > 1
    in_all = f"{rate(fmean(metrics.GOODPUT_IN_ALL.values(result) or [0.0]))} in all" if several else ""
    groups = metrics.alike(result)
    if len(groups) > 1:
        return _of_groups(groups, "throughput_bps", rate, in_all)
    each = "a flow" if several else ""
    return Reading(rate(fmean(values)), _joined(each, in_all, _interval(metrics.GOODPUT, values)))


def _round_trip_title(runs: Sequence[Drawn]) -> str:
    loaded = any(metrics.transfers(run.result).height for run in runs)
    return "Round trip under load" if loaded else "Round trip"


def _round_trip(result: Result) -> Reading | None:
    try:
        samples = metrics.round_trips(result)
    except (NotLoggedError, UnreadableResultError) as error:
        means = result.flows["rtt_mean_s"].drop_nulls()
        if means.len() == 0:
            return None
        lack = "this run did not write" if isinstance(error, NotLoggedError) else "is damaged"
        return Reading(f"mean {seconds(fmean(means.to_list()))}", f"quantiles need the event log, which {lack}")
    if samples.height == 0:
        return None
    values = [fmean(each.values(result)) for each in (metrics.ROUND_TRIP_MEDIAN, metrics.ROUND_TRIP_95)]
    source = "pings" if metrics.pings(result) else "acknowledgements"
    least = seconds(_least(samples["round_trip"]))
    median, high = map(seconds, values)
    return Reading(median, f"median; 95 % within {high}, least {least}; {samples.height:,} measured by {source}")


def _loss(result: Result) -> Reading | None:
    packets = int(result.repetitions["packets"].sum())
    if packets == 0:
        return None
    columns = [f"dropped_{cause.replace('-', '_')}_packets" for cause in DROP_CAUSES]
    lost = int(result.links.select(pl.sum_horizontal(columns).sum()).item())
    text = f"{lost:,} of {number_of(packets, 'packet')} lost{_causes(result)}"
    flows = metrics.transfers(result)
    if flows.height:
        again = int(flows["retransmitted_packets"].sum())
        of_data = share(again / max(int(flows["data_packets"].sum()), 1))
        text = _joined(text, f"{number_of(again, 'segment')} retransmitted ({of_data})", _timeouts(flows))
    return Reading(share(lost / packets), text)


def _causes(result: Result) -> str:
    """Return the numbers of lost packets by cause, as text after a colon."""
    sums = {cause: int(result.links[f"dropped_{cause.replace('-', '_')}_packets"].sum()) for cause in DROP_CAUSES}
    words = ", ".join(f"{number:,} {cause}" for cause, number in sums.items() if number)
    return f": {words}" if words else ""


def _timeouts(flows: pl.DataFrame) -> str:
    """Return the number of retransmission time-outs as text; empty if it is unknown."""
    known = flows["timeouts"].drop_nulls()
    if known.len() == 0:
        return ""
    return number_of(int(known.sum()), "time-out")


def _air(result: Result) -> Reading | None:
    totals = result.radio_totals
    pdus, again = int(totals["pdus"].sum()), int(totals["repeated_pdus"].sum())
    if pdus == 0:
        return None
    return Reading(
        share(again / pdus), f"{again:,} of {pdus:,} PDUs were repeats, in {int(totals['ttis'].sum()):,} TTIs"
    )


def _handovers(result: Result) -> Reading | None:
    """Return the number of handovers, with the other changes of the serving cell."""
    try:
        changes = metrics.modes(result, ("handover", *_OTHER_CHANGES))
    except NotLoggedError:
        return _counted_handovers(result)
    except (PolarsError, UnreadableResultError):
        return None
    if changes.height == 0:
        return None
    counts = {name: changes.filter(name=name).height for name in ("handover", *_OTHER_CHANGES)}
    if counts["handover"]:
        # Handovers that overlap are one row of the log. `mobiles` counts reselections as handovers.
        counts["handover"] = int(result.mobiles["handovers"].sum()) - counts["reselection"]
    time = sum(changes.filter(name="handover")["length"].drop_nulls().to_list())
    repetitions = result.repetitions.height
    others = [f"{counts[name]:,} {words[counts[name] > 1]}" for name, words in _OTHER_CHANGES.items() if counts[name]]
    parts = [f"{seconds(time)} in all" if time else "", *others]
    return Reading(f"{counts['handover']:,}", _joined(*parts, f"in {repetitions} repetitions" * (repetitions > 1)))


def _counted_handovers(result: Result) -> Reading | None:
    """Return the number of handovers and radio link failures of a run without a log of states."""
    handovers, failures = (int(result.mobiles[name].sum()) for name in ("handovers", "link_failures"))
    if not handovers + failures:
        return None
    repetitions = result.repetitions.height
    one, several = _OTHER_CHANGES["re-establishment"]
    failed = f"{failures:,} {one if failures == 1 else several}" if failures else ""
    return Reading(f"{handovers:,}", _joined(failed, f"in {repetitions} repetitions" * (repetitions > 1)))


_OTHER_CHANGES = {
    "reselection": ("reselection", "reselections"),
    "re-establishment": ("radio link failure", "radio link failures"),
}
"""The other modes in which a mobile changes its cell: one in words, and several."""


def _interval(metric: Metric, values: Sequence[float]) -> str:
    interval = metrics.interval_of(values)
    if interval is None:
        return ""
    return f"95 % interval {metric.words(interval.low)} to {metric.words(interval.high)}, n = {interval.n}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _least(values: pl.Series) -> float:
    return min(values.to_list())


def _most(values: pl.Series) -> float:
    return max(values.to_list())
