"""The commands and code of the documents work as written."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from airpath.run import resolve
from support import ROOT, Command, plain_environment
from support.needs import FEATURES, listed

README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def assert_runs(command: list[str], folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = plain_environment() | {"PATH": path}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_commands_and_the_python_of_the_readme(tmp_path: Path, need: Callable[..., str]) -> None:
    """Each block of language `sh` and `python` runs, in order, in one folder with the examples."""
    need("chromium")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = _blocks("sh")
    assert len(commands) >= 5
    for block in commands:
        assert_runs(["sh", "-eu", "-c", block], tmp_path)
    for block in _blocks("python"):
        assert_runs([sys.executable, "-c", block], tmp_path)


def test_the_scenarios_of_the_readme(airpath_command: Command) -> None:
    for block in _blocks("toml"):
        (airpath_command.folder / "readme.toml").write_text(block)
        assert airpath_command("run", "readme.toml").code == 0


def test_every_setting_of_tcp_is_documented() -> None:
    scenario = {"format": 1, "bearer": {"preset": "wired"}, "flow": [{"kind": "download", "bytes": "1 kB"}]}
    settings = tomllib.loads(resolve(scenario))["flow"][0]["tcp"]
    names = {name for value in settings.values() if isinstance(value, dict) for name in value} | settings.keys()
    assert len(names) > 40
    documented = set(re.findall(r"`(?:tcp\.)?(\w+)`", (ROOT / "docs" / "scenario.md").read_text()))
    assert names <= documented, f"not in docs/scenario.md: {sorted(names - documented)}"


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").glob("**/*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, tmp_path: Path) -> None:
    """Every notebook runs from its first cell to its last, beside a copy of the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "docs").mkdir()
    document = nbformat.read(notebook, as_version=4)
    NotebookClient(document, timeout=300, resources={"metadata": {"path": str(tmp_path / "docs")}}).execute()


def test_every_feature_that_a_test_may_need_is_documented() -> None:
    assert FEATURES.keys() <= listed().keys()
