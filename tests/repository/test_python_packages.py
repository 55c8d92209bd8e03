"""The package imports what `pip install airpath` brings, and modules of extras what these bring."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support import ROOT

PACKAGE = ROOT / "python" / "airpath"

WITH_AN_EXTRA = {
    "compare/statistics.py": {"scipy", "numpy"},
    "page/authority.py": {"trustme", "cryptography"},
    "page/streams.py": {"hypercorn"},
    "page/warc.py": {"warcio", "brotli"},
    "plot/image.py": {"kaleido"},
    "sweep/clusters.py": {"dask"},
    "sweep/dask_executor.py": {"dask"},
}
"""The packages of an extra, and those that they bring, by the module that may import them."""

BROUGHT = {"markupsafe"}
"""Packages that dependencies of airpath bring."""


def imported(file: Path) -> Iterator[str]:
    """Yield the packages outside the standard library that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [node.module]
        tops = {name.partition(".")[0] for name in names}
        yield from tops - sys.stdlib_module_names - {"airpath"}


def test_modules_import_what_the_package_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in project["dependencies"]} | BROUGHT
    wrong = {
        (path, name)
        for file in PACKAGE.rglob("*.py")
        for path in [file.relative_to(PACKAGE).as_posix()]
        for name in imported(file)
        if name not in required | WITH_AN_EXTRA.get(path, set())
    }
    assert wrong == set()
