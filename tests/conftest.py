"""Fixtures: the command, a small scenario, and loud skips."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support import DOWNLOAD, Command


@pytest.fixture
def airpath_command(tmp_path: Path) -> Command:
    """The command, in a folder of the test's own."""
    return Command(tmp_path)


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Write the small download with parts of it replaced, and return its path."""

    def write(*replacements: tuple[str, str], text: str = DOWNLOAD, name: str = "small.toml") -> Path:
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def need() -> Callable[[str], str]:
    """Return the path of a program, or skip the test and say which Debian package would let it run."""

    def path(program: str) -> str:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"NOT TESTED: {program} is not installed (as root: apt-get install {program})")
        return found

    return path
