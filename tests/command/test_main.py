"""`main` with a list of arguments: those of the process have no effect."""

from pathlib import Path

import pytest

from airpath.cli import main


def test_main_uses_its_own_arguments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["other", "link", "--"])
    report = tmp_path / "report.html"
    assert main(["run", "wired", "--report", str(report)]) == 0
    assert f"airpath run wired --report {report}" in report.read_text()
    assert main(["run", "wired", "--set", "fixed.loss", "0.1"]) == 2
    assert "write --set fixed.loss=0.1" in capsys.readouterr().err
    assert main(["link", "wired"]) == 125
    assert "the command is missing" in capsys.readouterr().err
