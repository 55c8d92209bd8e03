"""Shared by all tests: the command as a process, and a small scenario."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

DOWNLOAD = """\
format = 1
name = "small"
seed = 3

[fixed]
rate = "10 Mbit/s"
delay = "20 ms"
loss = 0.01

[bearer]
preset = "hs-dsch-384"

[[flow]]
kind = "download"
bytes = "200 kB"
"""

PAGE = """\
format = 1
seed = 3

[bearer]
preset = "umts-dch-384"

[[flow]]
kind = "page"
page = "static-site"
"""

TWO_BEARERS = """\
format = 1
name = "two bearers"

[bearer]
preset = "lte-20mhz"

[second_bearer]
preset = "wifi-n"

[[flow]]
name = "over lte"
kind = "download"
bytes = "1 MB"

[[flow]]
name = "over wifi"
kind = "download"
bytes = "1 MB"
bearer = "second"
"""


@dataclass(frozen=True)
class Finished:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Command:
    """The `airpath` command, run as a user runs it, in a working folder."""

    folder: Path

    def __call__(self, *arguments: str | Path, timeout: float = 120, **environment: str) -> Finished:
        """Run it to its end; bytes that its encoding lacks become surrogates."""
        done = subprocess.run(
            self.line(*arguments),
            cwd=self.folder,
            env=plain_environment() | environment,
            capture_output=True,
            encoding=environment.get("PYTHONIOENCODING", "utf-8"),
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Finished(done.returncode, done.stdout, done.stderr)

    def line(self, *arguments: str | Path) -> list[str]:
        """Return the command line, for a test that starts the process itself."""
        return [sys.executable, "-m", "airpath", *map(str, arguments)]


def plain_environment() -> dict[str, str]:
    """Return the environment without the variables that change the command's output."""
    return {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS", "TERM")}
