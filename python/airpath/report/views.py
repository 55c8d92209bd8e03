"""The web pages of a report: waterfalls, and the figures of each case."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import polars as pl

from airpath.page.timings import PHASES, View, lengths_of
from airpath.page.views import views
from airpath.plot.distribution import ENOUGH, distribution
from airpath.plot.selection import Drawn
from airpath.plot.waterfall import median_view, name_of, waterfall_of
from airpath.quantities import PAGE_CLOCK, count, number_of, seconds, size
from airpath.report import figures
from airpath.report.figures import Figure, Missing
from airpath.report.metrics import Quantity, few, interval_of
from airpath.report.tables import Cell, Table, compared
from airpath.report.tiles import Reading, Tile

MOST = 6
"""Waterfalls of a report."""
_ALIKE = 4
"""Waterfalls share a time axis if the longest is at most this number of times the shortest."""
_MOST_NAMED = 4
"""Cases that the verdict names."""
_QUANTITIES = {
    "page_time_s": Quantity("page time", seconds),
    "first_byte_s": Quantity("first byte", seconds),
    "first_contentful_paint_s": Quantity("FCP", seconds),
    "largest_contentful_paint_s": Quantity("LCP", seconds),
    "speed_index_s": Quantity("Speed Index", seconds),
    "load_event_s": Quantity("load", seconds),
    "cumulative_layout_shift": Quantity("CLS", few),
    "requests": Quantity("requests", count),
    "connections": Quantity("connections", count),
    "bytes": Quantity("bytes", size),
    "idle_downlink_s": Quantity("idle downlink", seconds),
}
"""The figures of views, by their columns."""
_TILES = ("page_time_s", "first_byte_s", "first_contentful_paint_s", "largest_contentful_paint_s")
_PAINTS = "FCP and LCP: first and largest contentful paint."


@dataclass(frozen=True)
class Case:
    """The loads or repetitions of the same view of a page in a run."""

    run: Drawn
    label: str
    protocol: str
    views: Sequence[View]

    @property
    def view(self) -> View:
        """The view of median page time."""
        return median_view(self.views)

    @property
    def is_shared(self) -> bool:
        """Whether a repetition has several views, such as those of several mobiles."""
        return len(self.views) > len({view.run for view in self.views})

    def values(self, column: str) -> list[float]:
        """Return a figure of each view that has it."""
        return [value for view in self.views if (value := view.figures.get(column)) is not None]

    def samples(self, column: str) -> list[float]:
        """Return a figure of each load or repetition: the mean over its views."""
        by_run: dict[int, list[float]] = {}
        for view in self.views:
            if (value := view.figures.get(column)) is not None:
                by_run.setdefault(view.run, []).append(value)
        return [fmean(values) for _, values in sorted(by_run.items())]


def noun(found: Sequence[Case]) -> str:
    """Return what the cases are: views, pages or runs."""
    if len({case.view.number for case in found}) > 1:
        return "view"
    return "run" if len({case.run.index for case in found}) == len(found) > 1 else "page"


def cases(runs: Sequence[Drawn]) -> list[Case]:
    """Return the cases of all runs, the first views of each first.

    Raises:
        UnreadableResultError: A file of a browser is damaged.
    """
    found = [case for run in runs for case in _of_run(run, several=len(runs) > 1)]
    return sorted(found, key=lambda case: case.view.number)


def _of_run(run: Drawn, *, several: bool) -> Iterator[Case]:
    groups: dict[tuple[int, str, str], list[View]] = {}
    for view in views(run.result):
        protocols = [request.protocol for request in view.requests if request.protocol]
        protocol = max(dict.fromkeys(protocols), key=protocols.count, default="")
        groups.setdefault((view.number, view.page, protocol), []).append(view)
    pages = len({page for _, page, _ in groups})
    protocols = len({protocol for *_, protocol in groups})
    numbers = len({number for number, *_ in groups})
    for (number, page, protocol), own in sorted(groups.items()):
        parts = [run.label] if several else []
        parts += [page] if pages > 1 or not several else []
        parts += [protocol] if protocols > 1 else []
        parts += [f"view {number + 1}"] if numbers > 1 else []
        yield Case(run, ", ".join(parts), protocol, own)


def waterfalls(found: Sequence[Case]) -> tuple[list[Figure | Missing], list[str]]:
    """Return the waterfalls, and notes about their axes and about cases without one."""
    drawn = found[:MOST]
    spans = [case.view.span for case in drawn]
    alike = max(spans, default=0.0) <= _ALIKE * min(spans, default=0.0)
    notes = ["Their lengths are so different that each has a time axis of its own."] if not alike and drawn else []
    several = len({case.run.index for case in found}) > 1
    made = [
        figures.figure(
            lambda case=case: waterfall_of(case.run, case.view, span=max(spans) if alike else None, several=several),
            f"Waterfall of {name_of(case.view, case.run, several=several)}",
            time=True,
            group="page" if alike else f"page-{number}",
        )
        for number, case in enumerate(drawn)
    ]
    for number, each in enumerate(made):
        # How to read them stands above the first.
        if number and isinstance(each, Figure):
            made[number] = replace(each, caption=replace(each.caption, read=""))
    left = [case.label for case in found[MOST:]]
    return made, [*notes, *([f"Without a waterfall: {', '.join(left)}."] if left else [])]


def page_times(found: Sequence[Case]) -> list[Figure | Missing]:
    """Return the page times of the loads or repetitions of each case."""
    if len(found) < 2 and len(found[0].values("page_time_s")) < 2:
        return []
    several = any(case.run.result.repetitions.height > 1 for case in found)
    shared = any(case.is_shared for case in found)
    dot = "load" if any(case.view.flow is None for case in found) else "repetition" if several else noun(found)
    each = f"the {noun(found)} in a repetition" if dot == "repetition" else f"a {dot}"
    each = f"a view of a mobile{' in a repetition' * several}" if shared else each
    made = []
    for column in ("page_time_s", "first_contentful_paint_s"):
        rows = [
            (case.label, number, pl.Series(case.samples(column), dtype=pl.Float64)) for number, case in enumerate(found)
        ]
        if any(sample.len() for *_, sample in rows):
            dots = [pl.Series(case.values(column), dtype=pl.Float64) for case in found] if shared else None
            make = lambda rows=rows, column=column, dots=dots: distribution(rows, column, dot, each, dots)  # noqa: E731
            made.append(figures.figure(make, _QUANTITIES[column].title))
    return made


def table(found: Sequence[Case]) -> Table:
    """Return the figures of each case, with their differences to the first case."""
    columns = [column for column in _QUANTITIES if any(case.samples(column) for case in found)]
    base = {column: found[0].samples(column) for column in columns}
    rows = []
    for case in found:
        names = (case.label, case.protocol, f"{len(case.views):,}")
        cells = [
            compared(_QUANTITIES[each], base[each] if case is found[0] else case.samples(each), base[each])
            for each in columns
        ]
        rows.append([*(Cell(name, number=name is names[2]) for name in names), *cells])
    head = [noun(found), "protocol", "loads", *(_QUANTITIES[column].title for column in columns)]
    parts = ["Means over the loads or repetitions, with their 95 % intervals."] if _loads(found) > 1 else []
    parts = parts or (["Means over the views of all mobiles."] if any(case.is_shared for case in found) else [])
    parts += [f"In small type: the difference to the first {noun(found)}."] if len(found) > 1 else []
    return Table("Page times", " ".join([*parts, _PAINTS, PAGE_CLOCK]), head, rows)


def _loads(found: Sequence[Case]) -> int:
    """Return the most loads or repetitions of a case."""
    return max(len({view.run for view in case.views}) for case in found)


def objects(case: Case) -> Table:
    """Return the objects of the view that a waterfall shows, with their phases."""
    rows = []
    for request in case.view.requests:
        texts = [request.host, request.type, request.status]
        spans = [request.start, *lengths_of(request).values(), request.end]
        rows.append(
            [
                Cell(request.name, number=False),
                *(Cell(text, number=False) for text in texts),
                Cell(size(request.bytes)),
                *(Cell(seconds(each) if each else "–") for each in spans),
            ]
        )
    head = ["object", "host", "type", "status", "bytes", "start", *PHASES, "end"]
    title = f"Objects of {case.label}"
    return Table(title, "Start and end from the start of the view; between them the time of each phase.", head, rows)


def tiles(found: Sequence[Case]) -> list[Tile]:
    """Return the tiles of the main figures, of the first case of each run.

    Of several views of its page, also the median and the range.
    """
    first: dict[int, Case] = {}
    for case in found:
        first.setdefault(case.run.index, case)
    made = []
    for column in _TILES:
        readings = []
        for _, case in sorted(first.items()):
            samples = case.samples(column)
            if samples:
                interval = interval_of(samples)
                parts = [f"95 % interval {seconds(interval.low)} to {seconds(interval.high)}"] if interval else []
                parts = [*_which(case, found), *_of_mobiles(case, column), *parts, *_over_views(case, found, column)]
                readings.append((case.run, Reading(seconds(fmean(samples)), "; ".join(parts))))
        if readings:
            title = _QUANTITIES[column].title
            made.append(Tile(title[0].upper() + title[1:], readings))
    return made


def _which(case: Case, found: Sequence[Case]) -> list[str]:
    """Return the name of a case if its run has others."""
    own = [each for each in found if each.run.index == case.run.index]
    if len(own) < 2:
        return []
    pages = len({(each.view.page, each.protocol) for each in own})
    return ["first view" if pages == 1 else case.label]


def _of_mobiles(case: Case, column: str) -> list[str]:
    """Return the number and the range of the views that share a repetition; nothing of one view."""
    values = case.values(column)
    if not case.is_shared or len(values) < 2:
        return []
    return [f"mean of {len(values):,} views, {seconds(min(values))} to {seconds(max(values))}"]


def _over_views(case: Case, found: Sequence[Case], column: str) -> list[str]:
    """Return median and range of a figure over several views of a page; nothing of one view."""
    key = (case.run.index, case.view.page, case.protocol)
    own = [each.samples(column) for each in found if (each.run.index, each.view.page, each.protocol) == key]
    means = [fmean(samples) for samples in own if samples]
    if len(means) < 2:
        return []
    return [f"median of {len(means)} views {seconds(median(means))}, {seconds(min(means))} to {seconds(max(means))}"]


def verdict(found: Sequence[Case]) -> list[str]:
    """Return the main result, and whether there are enough loads for a conclusion."""
    known = [case for case in found if case.samples("page_time_s")]
    if not known:
        return ["No page was loaded to its end."]
    words = [
        f"{case.label} in {seconds(fmean(case.samples('page_time_s')))}"
        + (f" on the mean of {len(case.values('page_time_s')):,} views" if case.is_shared else "")
        for case in known
    ]
    if len(known) == 1:
        view = known[0].view
        total = size(sum(request.bytes for request in view.requests))
        connections = number_of(len(view.connections), "connection")
        return [f"{words[0]}: {number_of(len(view.requests), 'object')}, {total} on {connections}."]
    fewest = min(len(case.samples("page_time_s")) for case in known)
    if len(known) > _MOST_NAMED:
        ordered = sorted(zip((fmean(case.samples("page_time_s")) for case in known), words, strict=True))
        words = [f"{len(known)} {noun(known)}s", f"the shortest {ordered[0][1]}", f"the longest {ordered[-1][1]}"]
    sentences = [f"Page times: {', '.join(words)}."]
    if fewest < ENOUGH:
        few_samples = f"n = {fewest} is too small for firm intervals: "
        if any(case.is_shared for case in known):
            repetitions = f"{fewest} {'repetition' if fewest == 1 else 'repetitions'}"
            few_samples += f"the views of a repetition share the network, so run more than {repetitions} with --repeat."
        else:
            few_samples += "load the page more often with --runs (a browser) or --repeat (a simulation)."
        sentences.append(few_samples)
    return sentences
