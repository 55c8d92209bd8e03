"""What a command prints while it runs: the progress bar, and lines of intervals."""

import io
import sys
import threading

import pytest

from airpath.cli.interval_lines import interval_lines
from airpath.cli.progress import progress_bar


class Terminal(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def test_the_progress_bar_leaves_standard_output_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with progress_bar("title") as progress:
        assert progress is not None
        progress(1, 2)
        assert (sys.stdout, sys.stderr) == (out, err)
        sys.stdout.write("record\n")
    assert out.getvalue() == "record\n"


def test_an_error_of_a_line_is_raised_in_the_main_thread() -> None:
    def fail(_: object) -> None:
        failed.set()
        raise BrokenPipeError

    failed = threading.Event()
    with pytest.raises(BrokenPipeError), interval_lines(0.001, "bulk", fail, None):
        assert failed.wait(60)
