"""The tables of a report: flows, links, radio, and the differences between runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import polars as pl

from airpath.plot.selection import Drawn, left_out
from airpath.quantities import (
    CALL_CLOCK,
    DELAY_CLOCK,
    PLAYBACK_CLOCK,
    SEGMENT_CLOCK,
    TRANSFER_CLOCK,
    count,
    rate,
    relative_change,
    score,
    seconds,
    share,
    size,
)
from airpath.report import metrics
from airpath.report.cell_use import cell_uses
from airpath.report.metrics import METRICS, Quantity, few
from airpath.tables import DROP_CAUSES, TRANSFERS, VIDEOS

MOST_ROWS = 100
_LONG = 24
"""Letters of a word that is not broken: an address with its port has 21."""


@dataclass(frozen=True)
class Part:
    """A part of a whole, as a bar shows it."""

    kind: str
    """The classes that give it its colour and hatching."""
    share: float
    """Its share of the whole, in per cent."""
    words: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, a smaller text below it, and its style."""

    text: str
    more: str = ""
    number: bool = True
    tone: str = ""
    """`good` or `bad` where it is a judgement."""
    parts: Sequence[Part] = ()
    """The parts of a whole, drawn as a bar."""

    @property
    def is_long(self) -> bool:
        """Whether it has a word, such as a path, that a line may end within."""
        return any(len(word) > _LONG for word in f"{self.text} {self.more}".split())

    @property
    def bar_text(self) -> str:
        """The bar as text."""
        return ", ".join(part.words for part in self.parts)


@dataclass(frozen=True)
class Table:
    """A table with a caption that explains it."""

    title: str
    caption: str
    head: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)
    keys: Sequence[Part] = ()
    """What the colours of its bars mean."""


def differences(runs: Sequence[Drawn]) -> Table:
    """Return the figures with one column per run.

    All but the first have their difference from the first.
    """
    rows = []
    for metric in METRICS:
        values = [metric.values(run.result) for run in runs]
        if any(values):
            rows.append([Cell(metric.title, number=False), *(compared(metric, each, values[0]) for each in values)])
    caption = (
        f"Means over the repetitions; below each figure its difference to {runs[0].label}, with the 95 % interval "
        "where there are repetitions. A difference whose interval includes zero is marked as not distinguishable."
    )
    return Table("Differences", caption, ["figure", *(run.label for run in runs)], rows)


def tables(runs: Sequence[Drawn]) -> list[Table]:
    """Return the tables of flows, links and radio, of all runs together."""
    made = [
        _transfers(runs),
        _probes(runs),
        _videos(runs),
        _segmented(runs),
        _calls(runs),
        _interactions(runs),
        _links(runs),
        _radio(runs),
        _cells(runs),
        _repetitions(runs),
    ]
    return [table for table in made if table.rows]


def compared(metric: Quantity, values: Sequence[float], base: Sequence[float]) -> Cell:
    """Return a mean with its interval, or with its difference from another case."""
    if not values:
        return Cell("–")
    text = metric.words(fmean(values))
    if values is base or not base:
        interval = metrics.interval_of(values)
        return Cell(text, f"{metric.words(interval.low)} to {metric.words(interval.high)}" if interval else "")
    change = fmean(values) - fmean(base)
    relative = ""
    if fmean(base) and metric.words is not share:
        relative = f" ({relative_change(change / fmean(base))})"
    change_text = f"{metric.apart(change)}{relative}"
    interval = metrics.difference(values, base)
    if interval is not None:
        change_text += f"; {metric.apart(interval.low)} to {metric.apart(interval.high)}"
        if interval.low <= 0 <= interval.high:
            change_text += f"; not distinguishable at n = {interval.n}"
    return Cell(text, "the same" if change == 0 else change_text)


# Title, column of the flows table, and format.
_TRANSFER_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("delivered", "delivered_bytes", size),
    ("time", "duration_s", seconds),
    ("throughput", "throughput_bps", rate),
    ("segments", "data_packets", count),
    ("retransmitted", "retransmitted_packets", count),
    ("fast retransmits", "fast_retransmits", count),
    ("time-outs", "timeouts", count),
    ("round trip, mean", "rtt_mean_s", seconds),
    ("minimum", "rtt_min_s", seconds),
)
# Only with transfers that had marks.
_MARK_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("marked", "marked_packets", count),
    ("ECN reductions", "ecn_reductions", count),
)
_PROBE_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("sent", "sent", count),
    ("lost", "lost", count),
    ("delay, mean", "delay_mean_s", seconds),
    ("minimum", "delay_min_s", seconds),
    ("95 %", "delay_p95_s", seconds),
    ("maximum", "delay_max_s", seconds),
)
_VIDEO_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("start-up", "startup_s", seconds),
    ("stalls", "stalls", count),
    ("stalled", "stall_s", seconds),
    ("frames", "frames", count),
    ("decoded", "frames_decodable", count),
    ("buffer, mean", "buffer_mean_s", seconds),
    ("sent", "sent", count),
    ("lost", "lost", count),
    ("late", "late", count),
    ("repaired", "repaired", count),
)


_SEGMENT_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("start-up", "startup_s", seconds),
    ("stalls", "stalls", count),
    ("stalled", "stall_s", seconds),
    ("share stalled", "stall_share", share),
    ("quality, mean", "quality_bps", rate),
    ("switches", "switches", count),
    ("buffer, mean", "buffer_mean_s", seconds),
)


_CALL_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("MOS", "mos", score),
    ("R", "r", count),
    ("mouth to ear", "mouth_to_ear_s", seconds),
    ("not played", "frame_loss", share),
)


_LATENCY_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("count", "count", count),
    ("mean", "mean_s", seconds),
    ("median", "p50_s", seconds),
    ("90 %", "p90_s", seconds),
    ("95 %", "p95_s", seconds),
    ("99 %", "p99_s", seconds),
    ("maximum", "max_s", seconds),
)


def _transfers(runs: Sequence[Drawn]) -> Table:
    marks = any(flow.get("marked_packets") for run in runs for flow in run.result.summary["flows"])
    columns = _TRANSFER_COLUMNS + (_MARK_COLUMNS if marks else ())
    return _flows(runs, "Transfers", TRANSFER_CLOCK, columns, lambda kind: kind in TRANSFERS)


def _probes(runs: Sequence[Drawn]) -> Table:
    others = (*TRANSFERS, *VIDEOS, "voice")
    return _flows(runs, "Pings and datagrams", DELAY_CLOCK, _PROBE_COLUMNS, lambda kind: kind not in others)


def _videos(runs: Sequence[Drawn]) -> Table:
    return _flows(runs, "Videos", PLAYBACK_CLOCK, _VIDEO_COLUMNS, lambda kind: kind == "stream")


def _segmented(runs: Sequence[Drawn]) -> Table:
    return _flows(runs, "Videos over HTTP", SEGMENT_CLOCK, _SEGMENT_COLUMNS, lambda kind: kind == "adaptive")


def _calls(runs: Sequence[Drawn]) -> Table:
    return _flows(runs, "Calls", CALL_CLOCK, _CALL_COLUMNS, lambda kind: kind == "voice")


def _interactions(runs: Sequence[Drawn]) -> Table:
    """Return a table with one row per run, terminal or mail, and kind of exchanges."""
    rows = []
    for run in runs:
        groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
        for flow in run.result.summary["flows"]:
            for kind, latencies in flow.get("exchange", {}).items():
                groups.setdefault((flow["flow"], kind), []).append(flow | {"latency": latencies})
        for (_, kind), group in groups.items():
            latencies = [flow["latency"] for flow in group]
            figures = [_mean([each[column] for each in latencies], words) for _, column, words in _LATENCY_COLUMNS]
            rows.append(_row(runs, run, [group[0]["name"], group[0]["mobile"], kind], figures))
    caption = "The latency of an exchange is the time from the action of the user to the last byte of its response."
    if any(run.result.repetitions.height > 1 for run in runs):
        caption += " Figures are means over the repetitions."
    head = [*_run_head(runs), "flow", "mobile", "kind", *(name for name, _, _ in _LATENCY_COLUMNS)]
    return _capped(Table("Interactions", caption, head, rows), ".flows")


def _flows(
    runs: Sequence[Drawn],
    title: str,
    caption: str,
    columns: Sequence[tuple[str, str, Callable[[float], str]]],
    wanted: Callable[[str], bool],
) -> Table:
    """Return a table with one row per run and flow; of several repetitions the means."""
    rows = []
    for run in runs:
        groups: dict[int, list[dict[str, Any]]] = {}
        for flow in run.result.summary["flows"]:
            if wanted(flow["kind"]):
                groups.setdefault(flow["flow"], []).append(flow)
        for group in groups.values():
            names = [group[0]["name"], group[0]["mobile"], _outcomes(group)]
            figures = [_mean([flow.get(column) for flow in group], words) for _, column, words in columns]
            rows.append(_row(runs, run, names, figures))
    head = [*_run_head(runs), "flow", "mobile", "outcome", *(name for name, _, _ in columns)]
    if any(run.result.repetitions.height > 1 for run in runs):
        caption += " Figures are means over the repetitions."
    return _capped(Table(title, caption, head, rows), ".flows")


def _links(runs: Sequence[Drawn]) -> Table:
    rows = []
    for run in runs:
        columns = [column for column in run.result.links.columns if column.endswith("_packets")]
        sums = run.result.links.group_by("component", "direction", maintain_order=True).agg(
            *(pl.col(column).sum() for column in columns), pl.col("delivered_bytes").sum()
        )
        for link in sums.filter(pl.col("offered_packets") > 0).iter_rows(named=True):
            lost = {cause: link[f"dropped_{cause.replace('-', '_')}_packets"] for cause in DROP_CAUSES}
            whole = link["delivered_packets"] + sum(lost.values()) + link["queued_packets"]
            causes = ", ".join(f"{number:,} {cause.replace('-', ' ')}" for cause, number in lost.items() if number)
            rows.append(
                _row(
                    runs,
                    run,
                    [link["component"], link["direction"]],
                    [
                        Cell(f"{link['offered_packets']:,}"),
                        Cell(f"{link['delivered_packets']:,}"),
                        Cell(f"{sum(lost.values()):,}", causes),
                        Cell(f"{link['queued_packets']:,}"),
                        Cell("yes" if whole == link["offered_packets"] else "NO"),
                        Cell(size(link["delivered_bytes"])),
                    ],
                )
            )
    caption = "Packets, over all repetitions: offered = delivered + lost + still queued."
    head = [*_run_head(runs), "link", "direction", "offered", "delivered", "lost", "queued", "balanced", "bytes"]
    return _capped(Table("Links", caption, head, rows), ".links")


def _radio(runs: Sequence[Drawn]) -> Table:
    rows = []
    for run in runs:
        sums = run.result.radio_totals.group_by("component", "direction", "user", maintain_order=True).agg(
            pl.col("ttis", "pdus", "repeated_pdus", "errored_pdus", "bytes").sum()
        )
        for user in sums.filter(pl.col("ttis") > 0).iter_rows(named=True):
            figures = [
                Cell(f"{user['ttis']:,}"),
                Cell(f"{user['pdus']:,}"),
                Cell(f"{user['repeated_pdus']:,}", share(user["repeated_pdus"] / max(user["pdus"], 1))),
                Cell(f"{user['errored_pdus']:,}", share(user["errored_pdus"] / max(user["pdus"], 1))),
                Cell(size(user["bytes"])),
            ]
            rows.append(_row(runs, run, [run.user(user["user"]), user["direction"]], figures))
    caption = "TTIs, PDUs and bytes on the air by user, over all repetitions; bytes include padding."
    head = [*_run_head(runs), "mobile", "direction", "TTIs", "PDUs", "repeated", "errored", "bytes"]
    return _capped(Table("Radio", caption, head, rows), ".radio_totals")


def _cells(runs: Sequence[Drawn]) -> Table:
    rows = []
    for run in runs:
        for use in cell_uses(run):
            blocks = Cell("–")
            if use.blocks is not None:
                of_all = "" if use.all_blocks is None else f"of {use.all_blocks}: {share(use.blocks / use.all_blocks)}"
                blocks = Cell(few(use.blocks), of_all)
            figures = [Cell(rate(use.bits_per_second)), Cell(share(use.busy)), blocks]
            rows.append(_row(runs, run, [use.component, use.direction], figures))
    caption = (
        "Of all mobiles of a cell of LTE or NR together. Rate on the air: over the whole run, retransmissions and "
        "padding included. Busy TTIs: those in which some mobile has a block. Resource blocks: the mean in busy TTIs."
    )
    if any(run.result.repetitions.height > 1 for run in runs):
        caption += " Of the repetition that is drawn over time."
    head = [*_run_head(runs), "cell", "direction", "rate on the air", "busy TTIs", "resource blocks"]
    return Table("Cells", caption, head, rows)


def _repetitions(runs: Sequence[Drawn]) -> Table:
    rows = []
    for run in runs:
        ended = run.result.repetitions["ended"].to_list()
        spans = run.result.repetitions["simulated_s"].to_list()
        how = ", ".join(f"{ended.count(each):,} {each}" for each in sorted(set(ended)))
        how += f"; {words}" if (words := left_out(run.result)) else ""
        figures = [
            Cell(f"{len(ended):,}"),
            Cell(how, number=False),
            Cell(seconds(fmean(spans)) if spans else "–"),
            Cell(f"{int(run.result.repetitions['packets'].sum()):,}"),
        ]
        rows.append(_row(runs, run, [], figures))
    caption = "How the runs ended: all flows over (finished), the scenario's duration over, or interrupted."
    return Table(
        "Repetitions", caption, [*_run_head(runs), "repetitions", "ended", "simulated, mean", "packets sent"], rows
    )


def _run_head(runs: Sequence[Drawn]) -> list[str]:
    return ["run"] if len(runs) > 1 else []


def _row(runs: Sequence[Drawn], run: Drawn, names: Sequence[str], figures: Sequence[Cell]) -> list[Cell]:
    first = [run.label] if len(runs) > 1 else []
    return [*(Cell(name, number=False) for name in (*first, *names)), *figures]


def _capped(table: Table, frame: str) -> Table:
    """Return the table with at most `MOST_ROWS` rows, and a note if it has more."""
    if len(table.rows) <= MOST_ROWS:
        return table
    notes = [f"{MOST_ROWS} of {len(table.rows):,} rows; all of them are in `Result{frame}`."]
    return Table(table.title, table.caption, table.head, table.rows[:MOST_ROWS], notes)


def _outcomes(group: Sequence[dict[str, Any]]) -> str:
    outcomes = [flow["outcome"] for flow in group]
    if len(set(outcomes)) == 1:
        return outcomes[0]
    return ", ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes)))


def _mean(values: Sequence[float | None], words: Callable[[float], str]) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(words(fmean(known))) if known else Cell("–")
