"""The workflow of docs/compare.md: its commands pass an equal page and fail a slower one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

EXAMPLE = ROOT / "examples" / "ci"
PAGE = '<html><link rel="stylesheet" href="a.css"><img src="a.png"><p>Text</p></html>'


@pytest.fixture
def steps() -> list[dict[str, Any]]:
    """The steps of the workflow."""
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((EXAMPLE / "workflow.yml").read_text())
    # YAML 1.1 reads the key `on` as true.
    assert document[True] == "pull_request"
    return document["jobs"]["compare"]["steps"]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a site on its main branch, and a branch."""
    folder = tmp_path / "repository"
    (folder / "site").mkdir(parents=True)
    (folder / "site" / "index.html").write_text(PAGE)
    (folder / "site" / "a.css").write_bytes(os.urandom(2_000))
    (folder / "site" / "a.png").write_bytes(os.urandom(30_000))
    shutil.copytree(EXAMPLE, folder / "ci")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "Begin")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(folder, "checkout", "-b", "change")
    return folder


@pytest.mark.parametrize(("bytes_of_image", "code"), [(30_000, 0), (60_000, 1)])
def test_the_commands_of_the_workflow(
    steps: list[dict[str, Any]], repository: Path, bytes_of_image: int, code: int, tmp_path: Path
):
    (repository / "site" / "a.png").write_bytes(os.urandom(bytes_of_image))
    git(repository, "add", ".")
    git(repository, "commit", "--allow-empty", "-m", "Change the image")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    summary = tmp_path / "summary.md"
    environment = os.environ | {"PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}
    codes = []
    for step in steps:
        command = step.get("run", "").replace("${{ github.base_ref }}", "main")
        if not command or command.startswith("pip "):
            continue
        # As GitHub does: bash that stops at the first error.
        done = subprocess.run(["bash", "-e", "-c", command], cwd=repository, env=environment, check=False)
        codes.append(done.returncode)
    assert codes == [0, code, 0]
    assert "page_time_s" in summary.read_text()
    assert ("**failed**" in summary.read_text()) == bool(code)


def test_the_documentation_shows_the_workflow():
    text = (ROOT / "docs" / "compare.md").read_text()
    for name in ("workflow.yml", "budget.toml"):
        shown = [line for line in (EXAMPLE / name).read_text().splitlines() if not line.startswith("#")]
        assert "\n".join(shown) in text, name
