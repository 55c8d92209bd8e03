"""The crates depend in one direction (ARCHITECTURE.md): general crates on no special crate."""

import json
import subprocess
import tomllib
from typing import Any

import pytest

from support import ROOT
from support.needs import program

# The permitted dependencies of each crate. A new crate needs an entry here.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "testing": set(),
    "wire": {"core"},
    "rohc": {"wire"},
    "link": {"core"},
    "eventlog": {"core"},
    "radio": {"core", "link", "rohc"},
    "path": {"core", "wire", "link", "tcp"},
    "proxy": {"core", "wire", "link", "path", "tcp"},
    "linklevel": {"core"},
    "tcp": {"core", "wire"},
    "packetdrill": {"core", "wire", "tcp"},
    "quic": {"core"},
    "capture": {"core", "wire"},
    "observe": {"core", "wire", "capture"},
    "web": {"core", "wire", "capture", "observe"},
    "trace": {"core", "wire", "capture", "observe", "web"},
    "app": {"core", "quic", "tcp", "web", "wire"},
    "result": {"core", "quic", "app", "eventlog"},
    "scenario": {"core", "link", "path", "proxy", "quic", "radio", "tcp", "app"},
    "sim": {
        "core",
        "wire",
        "capture",
        "link",
        "path",
        "quic",
        "radio",
        "tcp",
        "app",
        "scenario",
        "eventlog",
        "result",
    },
    "quinn": {"core", "wire", "path", "quic", "scenario", "sim"},
    "moq": {"core", "quic", "quinn", "app", "scenario"},
    "emu": {
        "core",
        "wire",
        "capture",
        "observe",
        "link",
        "path",
        "proxy",
        "radio",
        "tcp",
        "app",
        "scenario",
        "eventlog",
        "result",
    },
    "measure": {"core", "wire", "quic", "app", "result"},
    "benches": {"core", "wire", "tcp", "eventlog", "scenario", "sim"},
    "python": {
        "core",
        "wire",
        "link",
        "radio",
        # For the feature `shared-with-tests` alone: it has no code of them.
        "path",
        "tcp",
        "app",
        "scenario",
        "eventlog",
        "result",
        "sim",
        "emu",
        "measure",
        "observe",
        "trace",
        "web",
    },
}


@pytest.fixture(scope="module")
def packages() -> list[dict[str, Any]]:
    """The crates of the workspace, as Cargo describes them."""
    command = [program("cargo"), "metadata", "--no-deps", "--format-version", "1", "--offline"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return json.loads(output)["packages"]


@pytest.fixture(scope="module")
def dependencies(packages: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Each crate of the workspace with its dependencies in it, those for tests included."""
    return {_short(package["name"]): {_short(name) for name in _ours(package)} for package in packages}


def _ours(package: dict[str, Any]) -> set[str]:
    """Return the workspace crates that a package needs, except itself (for a test feature)."""
    names = {each["name"] for each in package["dependencies"]} - {package["name"]}
    return {name for name in names if name.startswith("airpath-")}


def _short(name: str) -> str:
    return name.removeprefix("airpath-")


def test_dependencies_point_one_way(dependencies: dict[str, set[str]]) -> None:
    for crate, needs in dependencies.items():
        assert crate in ALLOWED, f"the crate {crate} is new: add its permitted dependencies to {__file__}"
        # The tests of every crate may use `testing`.
        more = needs - ALLOWED[crate] - {"testing"}
        assert not more, f"{crate} must not depend on {', '.join(sorted(more))}"


def test_the_two_clocks_never_see_each_other() -> None:
    assert "emu" not in ALLOWED["sim"]
    assert "sim" not in ALLOWED["emu"]
    assert not {"sim", "emu"} & ALLOWED["measure"], "a measurement is made of neither"


def test_what_is_allowed_has_an_order() -> None:
    """The table permits no cycle."""
    placed: set[str] = set()
    while placed != set(ALLOWED):
        free = {crate for crate, needs in ALLOWED.items() if crate not in placed and needs <= placed}
        assert free, f"a circle among {', '.join(sorted(set(ALLOWED) - placed))}"
        placed |= free


def test_the_lock_file_of_the_fuzz_targets_is_current(packages: list[dict[str, Any]]) -> None:
    """Their workspace is a separate one: building the crates does not update its lock file."""
    locked = {
        package["name"]: {each.split()[0] for each in package.get("dependencies", [])}
        for package in tomllib.loads((ROOT / "fuzz/Cargo.lock").read_text())["package"]
    }
    for package in packages:
        if package["name"] in locked:
            needs = {each["name"] for each in package["dependencies"] if each["kind"] != "dev"}
            assert needs == locked[package["name"]], f"{package['name']}: run `cargo check` in fuzz"
