"""The list of skipped tests; with `CI=true`, skips that are failures."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from support.needs import is_optional, require

FILE = "AIRPATH_SKIPPED"
"""Environment variable: the file to which each test run, also of Rust, appends a line for each
skip."""


class Skips:
    """A plug-in of pytest; see the module."""

    def __init__(self) -> None:
        self.strict = os.environ.get("CI", "").lower() in ("true", "1")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test that needs a missing feature, before its fixtures are set up."""
        for mark in item.iter_markers("needs"):
            for feature in mark.args:
                require(feature)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn a skip into a failure where it is not optional."""
        report = yield
        if self.strict and report.skipped and not hasattr(report, "wasxfail") and not is_optional(_reason(report)):
            report.outcome = "failed"
            report.longrepr = f"skipped, which docs/testing.md does not allow with CI=true: {_reason(report)}"
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn the skip of a whole module into an error where it is not optional."""
        report = yield
        if self.strict and report.skipped and not is_optional(_reason(report)):
            report.outcome = "failed"
            report.longrepr = f"skipped, which docs/testing.md does not allow with CI=true: {_reason(report)}"
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the skipped tests with their reasons, those of earlier runs included."""
        skipped = [(report.nodeid, _reason(report)) for report in terminalreporter.stats.get("skipped", [])]
        reasons: dict[str, list[str]] = {}
        for test, reason in _earlier() + skipped:
            reasons.setdefault(reason, []).append(test)
        _append(skipped)
        terminalreporter.section("not tested on this machine")
        if not reasons:
            terminalreporter.line("nothing was skipped")
        for reason, tests in sorted(reasons.items()):
            terminalreporter.line(reason)
            for test in dict.fromkeys(tests):
                terminalreporter.line(f"    {test}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason of a skip."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _earlier() -> list[tuple[str, str]]:
    """Return the tests that earlier runs skipped, and their reasons."""
    path = os.environ.get(FILE)
    if not path or not Path(path).is_file():
        return []
    parts = (line.partition(": ") for line in Path(path).read_text().splitlines())
    return [(test, reason) for test, _, reason in parts]


def _append(skipped: list[tuple[str, str]]) -> None:
    """Append this run's skips to the file."""
    if path := os.environ.get(FILE):
        with Path(path).open("a") as file:
            file.writelines(f"{test}: {' '.join(reason.split())}\n" for test, reason in skipped)
