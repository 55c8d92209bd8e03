"""The page of one run, or of several compared."""

from collections.abc import Sequence
from pathlib import Path

from airpath.plot.selection import drawn
from airpath.report import conditions, figures, tables, views
from airpath.report.commands import commands, not_again
from airpath.report.figures import Figure, Missing
from airpath.report.page import render
from airpath.report.tiles import tiles
from airpath.report.verdict import verdict
from airpath.result import Result


def page(results: Sequence[Result], out: Path, command: str | None) -> str:
    """Return the report as HTML.

    Raises:
        UnreadableResultError: A file of a result is missing or damaged.
    """
    runs = drawn(results)
    cases = views.cases(runs)
    waterfalls, notes = views.waterfalls(cases)
    objects = [views.objects(case) for case in cases[: views.MOST]]
    over_time = figures.over_time(runs)
    distributions = figures.distributions(runs)
    page_times = views.page_times(cases) if cases else []
    missing = [each for each in (*waterfalls, *over_time, *distributions) if isinstance(each, Missing)]
    return render(
        "runs.html.j2",
        title=" · ".join(run.label for run in runs),
        runs=runs,
        partial=[run for run in runs if not run.result.complete],
        verdict=views.verdict(cases) if cases else verdict(runs),
        tiles=[*views.tiles(cases), *tiles(runs, transfers=not cases)],
        # Each with the table of its objects.
        waterfalls=[pair for pair in zip(waterfalls, objects, strict=False) if isinstance(pair[0], Figure)],
        waterfall_notes=notes,
        page_figures=[each for each in page_times if isinstance(each, Figure)],
        page_table=views.table(cases) if cases else None,
        differences=tables.differences(runs) if len(runs) > 1 else None,
        headline=conditions.headline(runs),
        conditions=conditions.conditions(runs),
        scenario_differences=conditions.scenario_differences(runs),
        tcp=conditions.tcp_details(runs),
        over_time=[each for each in over_time if isinstance(each, Figure)],
        distributions=[each for each in distributions if isinstance(each, Figure)],
        faults=_by_reason([each for each in missing if each.fault]),
        absent=[each for each in missing if not each.fault],
        tables=tables.tables(runs),
        commands=commands(runs, out, command),
        not_again=not_again(runs, command),
    )


def _by_reason(missing: Sequence[Missing]) -> dict[str, str]:
    """Return the titles of the figures that are missing for the same reason, by that reason."""
    titles: dict[str, list[str]] = {}
    for each in missing:
        titles.setdefault(each.reason, []).append(each.title)
    return {reason: ", ".join(names) for reason, names in titles.items()}
