"""The modules of the package import each other without a cycle, also inside functions."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from support import ROOT

PACKAGE = ROOT / "python" / "airpath"

Graph = Mapping[str, set[str]]


def modules() -> dict[str, Path]:
    """Return the files of all modules by their names; the Rust core is `airpath._native`."""
    files = [*PACKAGE.rglob("*.py"), PACKAGE / "_native.pyi"]
    return {".".join(["airpath", *path.relative_to(PACKAGE).with_suffix("").parts]): path for path in files}


def imported(module: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that a module imports, anywhere in its text.

    A package stands for its `__init__`.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            # A name that is no module belongs to the module or package before it.
            candidates = (name, f"{name}.__init__", parent := name.rpartition(".")[0], f"{parent}.__init__")
            found = next((each for each in candidates if each in known), None)
            if found is not None and found != module:
                yield found


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The modules that each module imports."""
    known = modules()
    return {module: set(imported(module, path, known)) for module, path in known.items()}


def assert_acyclic(graph: Graph) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports form a cycle: {' <- '.join(error.args[1])}")


def test_modules_import_in_one_direction(graph: Graph) -> None:
    assert len(graph) > 100
    assert "airpath.plot.selection" in graph["airpath.report.figures"]
    assert_acyclic(graph)


def test_subpackages_import_in_one_direction(graph: Graph) -> None:
    """The same for the packages below `airpath`, each as one node.

    Modules directly below `airpath` are nodes as well.
    """
    packages: dict[str, set[str]] = {}
    for module, targets in graph.items():
        own = ".".join(module.split(".")[:2])
        packages.setdefault(own, set()).update({".".join(each.split(".")[:2]) for each in targets} - {own})
    assert packages["airpath.plot"].isdisjoint({"airpath.report", "airpath.study", "airpath.trace"})
    assert packages["airpath.report"].isdisjoint({"airpath.study", "airpath.trace"})
    assert_acyclic(packages)


def test_a_cycle_is_found() -> None:
    with pytest.raises(pytest.fail.Exception, match="imports form a cycle"):
        assert_acyclic({"a": {"b"}, "b": {"c"}, "c": {"a"}})
