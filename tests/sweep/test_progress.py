"""The progress of a sweep: its text, and the line of a notebook."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import airpath
from airpath.quantities import span, time_left
from airpath.sweep.progress import Progress, is_notebook, state, sweep_progress
from support import DOWNLOAD


def test_rate_time_left_and_failures():
    now = Progress(runs=300, total=1000, failed=2, seconds=10.0, runs_before=100)
    assert state(now) == "20 runs/s, 35 s left, 2 failed"
    assert state(Progress(0, 10, 0, 0.0, 0)) == "0 runs/s"
    assert [span(seconds) for seconds in (0.25, 35, 600, 36_000)] == ["0.25 s", "35 s", "10 min", "10.0 h"]
    assert [time_left(done, 4, 30.0) for done in (0, 1, 3, 4)] == ["", "90 s left", "10 s left", ""]


def test_without_a_terminal_and_a_notebook_nothing_is_shown():
    assert not is_notebook()
    with sweep_progress("x") as progress:
        assert progress is None


def test_a_notebook_has_one_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []

    class ZMQInteractiveShell:
        pass

    def display(text: str, display_id: bool) -> Any:
        shown.append(text)
        return SimpleNamespace(update=shown.append)

    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = ZMQInteractiveShell
    ipython.display = SimpleNamespace(display=display, HTML=str)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    airpath.sweep(airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.0, 0.1]}), workers=1)
    assert shown[0].startswith("&lt;text&gt; <progress value=0 max=1>")
    assert "2 of 2" in shown[-1]
    assert "runs/s" in shown[-1]
