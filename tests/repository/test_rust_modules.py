"""The modules of each crate use each other without a cycle.

A module and the modules below it count as one in this respect: a parent declares its children, and
they may use what it defines.
"""

import re
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from support import ROOT

CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))

Module = tuple[str, ...]


def modules(source: Path) -> dict[Module, Path]:
    """Return the files of the modules below `source`, by their paths without `crate`."""
    files = (path for path in source.rglob("*.rs") if path.name not in {"lib.rs", "main.rs"})
    return {path.relative_to(source).with_suffix("").parts: path for path in files}


def names(tree: str) -> Iterator[str]:
    """Yield the paths of a use tree: `a::{b, c::d}` has `a::b` and `a::c::d`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree.split(" as ", maxsplit=1)[0].strip()
        return
    depth, part = 0, ""
    for character in [*rest.rstrip().removesuffix("}"), ","]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part.strip():
                yield from (head.strip() + name for name in names(part.strip()))
            part = ""
        else:
            part += character


def used(module: Module, text: str, known: dict[Module, Path]) -> Iterator[Module]:
    """Yield the modules of the same crate that `module` uses, without ancestors and descendants."""
    text = re.split(r"^#\[cfg\(test\)\]\nmod ", text, maxsplit=1, flags=re.MULTILINE)[0]
    for tree in re.findall(r"^(?:pub(?:\([^)]*\))? )?use ([^;]+);", text, re.MULTILINE):
        for name in names(" ".join(tree.split())):
            parts = name.split("::")
            if parts[0] == "crate":
                path = tuple(parts[1:])
            elif parts[0] == "super":
                ups = sum(part == "super" for part in parts)
                path = (*module[: len(module) - ups], *parts[ups:])
            else:
                continue
            found = next((path[:length] for length in range(len(path), 0, -1) if path[:length] in known), ())
            related = found == module[: len(found)] or module == found[: len(module)]
            if found and not related:
                yield found


@pytest.mark.parametrize("crate", CRATES)
def test_modules_of_a_crate_use_each_other_in_one_direction(crate: str) -> None:
    known = modules(ROOT / "crates" / crate / "src")
    graph = {module: set(used(module, path.read_text(), known)) for module, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " <- ".join("::".join(module) for module in error.args[1])
        pytest.fail(f"modules of {crate} form a cycle: {cycle}")


def test_use_trees_are_read() -> None:
    known = {("a",): Path(), ("a", "b"): Path(), ("c",): Path(), ("d", "e"): Path()}
    text = "use crate::{c::X, d::{e::Y, Z}};\nuse super::b::f;\nuse super::Q;\n#[cfg(test)]\nmod tests {}"
    assert list(used(("a", "g"), text, known)) == [("c",), ("d", "e"), ("a", "b")]


@pytest.mark.parametrize("tests", sorted((ROOT / "crates").glob("*/tests/all.rs")), ids=lambda path: path.parts[-3])
def test_the_program_of_a_crates_tests_has_all_its_files(tests: Path) -> None:
    """Cargo finds no test file by itself in a crate with `autotests = false`."""
    modules = set(re.findall(r"^mod (\w+);$", tests.read_text(), re.MULTILINE))
    files = {path.stem for path in tests.parent.glob("*.rs")} - {"all"}
    folders = {path.parent.name for path in tests.parent.glob("*/mod.rs")}
    assert modules == files | folders
    manifest = tomllib.loads((tests.parents[1] / "Cargo.toml").read_text())
    programs = {path.parent.name for path in tests.parent.glob("*/main.rs")}
    assert {test["name"] for test in manifest["test"]} == {"all"} | programs
