"""Versions, workflows and licences of a release."""

import re
import tomllib
from typing import Any

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
