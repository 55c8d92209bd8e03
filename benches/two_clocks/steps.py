"""The tables of a study on the page, and the effect of each setting from its TCP to Linux's."""

import statistics
import textwrap
from typing import Any

from airpath.run import execute
from airpath.study import StudyResult
from airpath.study.definition import load_study

_DELAYED_ACK = {"timeout": "200 ms", "minimum": "40 ms", "every": 2, "full_sized": True, "quick": 16}
_RUNS = 50

WIDTH = 120
"""Columns of the page's text."""

STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("the study's TCP", {}),
    ("initial window of 10 segments, not 2", {"tcp.initial_window": 10}),
    (
        "acknowledgements delayed as by the kernel: the first 16 segments not at all, then by 40 to 200 ms, not 100",
        {f"tcp.delayed_ack.{key}": value for key, value in _DELAYED_ACK.items()},
    ),
    ("a handshake before the request", {"tcp.handshake": True}),
)
"""Each step keeps the settings of the steps before it."""

CASE = {"channel": "HS-DSCH 384", "bler": "10 %"}


def table(study: str, experiments: tuple[str, ...]) -> list[str]:
    """Return a Markdown table: the utilisation of a case of each experiment after each step."""
    loaded = load_study(study)
    cases = [
        next(case for case in each.cases if CASE.items() <= case.axis_values.items())
        for each in loaded.experiments
        if each.name in experiments
    ]
    lines = [
        f"| simulated utilisation, {', '.join(CASE.values())} | {' | '.join(case.experiment for case in cases)} |",
        f"| {' | '.join(['---'] * (1 + len(cases)))} |",
    ]
    overrides: dict[str, Any] = {}
    # The profile is applied without the steps before it, whose settings would override it.
    for words, step in (*STEPS, ("all else as `linux-6` has it", None)):
        overrides = loaded.emulation.control_overrides if step is None else overrides | step
        cells = []
        for case in cases:
            summary = execute(
                case.scenario,
                set=case.set | overrides,
                seed=loaded.seed,
                repeat=_RUNS,
            )
            metric = next(each for each in case.metrics if each.name == "utilisation")
            cells.append(f"{statistics.fmean(metric.compute([flow], case.inputs) for flow in summary['flows']):.1f} %")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return lines


def study_tables(result: StudyResult) -> list[str]:
    """Return the Markdown tables of the experiments that were run."""
    run = {row.experiment for row in result.rows}
    lines: list[str] = []
    for each in result.study.experiments:
        if each.name in run:
            text = textwrap.wrap(f"**{each.name}.** {each.text}", WIDTH)
            lines += [*text, "", *result.markdown_table(each.name), ""]
    return lines
