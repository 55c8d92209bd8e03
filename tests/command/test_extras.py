"""Commands that need an extra name it; without it, nothing else is missing."""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import airpath
from airpath.cli import main
from airpath.extras import ExtraMissingError, require
from support import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(ExtraMissingError, match=r"`no_such_package` is missing; `pip install 'airpath\[page\]'`"):
        require("page", "no_such_package")


@pytest.mark.parametrize(
    ("package", "extra", "line"),
    [
        ("scipy", "compare", "compare {kept} {kept}"),
        ("kaleido", "plot", "plot {kept} --what window -o {folder}/x.svg"),
        ("distributed", "dask", "study run hsdpa-sim --only rtt --dask local"),
        ("warcio", "page", "page import {folder}/x.warc -o {folder}/x.page"),
    ],
    ids=lambda value: value.partition(" ")[0],
)
def test_a_command_names_its_extra(
    package: str,
    extra: str,
    line: str,
    scenario: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = scenario()
    folder = path.parent
    airpath.run(path, out=folder / "kept")
    (folder / "x.warc").write_bytes(b"WARC/1.1\r\n")
    for name in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it was not installed
    code = main(line.format(kept=folder / "kept", folder=folder).split())
    written = capsys.readouterr().err
    assert f"error: the package `{package}` is missing" in written
    assert f"pip install 'airpath[{extra}]'" in written
    assert code == 2


def test_every_extra_is_in_the_readme() -> None:
    table = re.findall(r"^\| (`.*`) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in table for name in re.findall(r"`([a-z]+)`", row)} == set(EXTRAS)


def test_named_extras_exist() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "python").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'(?:extras\.|\b)require\("([a-z]+)"', text)}
    assert named
    assert named <= set(EXTRAS)
