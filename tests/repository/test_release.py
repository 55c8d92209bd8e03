"""Versions, workflows and licences of a release."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import ROOT


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    released = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert not released or released[0] == version


def test_workflows_run_targets_and_workflows_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert len(workflows) >= 4
    for workflow in workflows:
        text = workflow.read_text()
        jobs: dict[str, dict[str, Any]] = yaml.safe_load(text)["jobs"]
        assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets, workflow.name
        for job in jobs.values():
            if used := job.get("uses"):
                assert (ROOT / used).is_file(), used
            assert set(job.get("needs", ())) <= jobs.keys(), workflow.name


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `tools/project_urls.py` changes."""
    for name in ("pyproject.toml", "CITATION.cff", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def write_urls(checkout: Path, address: str, ref: str = "v1.2.0") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "project_urls.py", address, ref]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def test_a_package_has_the_address_of_its_repository(checkout: Path) -> None:
    address = "https://code.example/someone/airpath"
    assert write_urls(checkout, f"{address}/").returncode == 0
    urls = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Repository"] == address and urls["Changelog"] == f"{address}/blob/v1.2.0/CHANGELOG.md"
    assert yaml.safe_load((checkout / "CITATION.cff").read_text())["repository-code"] == address
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", (checkout / "README.md").read_text())
    assert len(links) > 15 and all(link.startswith("https://") for _, link in links)
    for image, link in links:
        view, path = link.removeprefix(f"{address}/").split("/v1.2.0/")
        assert view == ("raw" if image else "blob") and (ROOT / path).exists()


@pytest.mark.parametrize("address", ["example", "https://code.example"])
def test_an_address_of_no_repository_changes_nothing(address: str, checkout: Path) -> None:
    result = write_urls(checkout, address)
    assert result.returncode == 1 and result.stderr.startswith("project_urls: ") and address in result.stderr
    assert all((checkout / name).read_bytes() == (ROOT / name).read_bytes() for name in ("README.md", "pyproject.toml"))


def test_urls_are_written_once(checkout: Path) -> None:
    assert write_urls(checkout, "https://code.example/someone/airpath").returncode == 0
    again = write_urls(checkout, "https://code.example/else/airpath")
    assert again.returncode == 1 and "already" in again.stderr
