"""Write the pictures of the documents: screenshots of reports.

    .venv/bin/python docs/render.py

`report.png`, for the README, is the top of the report of `make demo`. `trace.png` is the top of the
comparison of two traced runs. Needs Chromium (Debian: chromium).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import airpath
from airpath import report
from airpath.trace import trace
from airpath.trace.compare import report as comparison

ROOT = Path(__file__).resolve().parent.parent
SIZE = (1240, 1085)

# Chromium requests only the page, and stores nothing.
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


def _traced(runs: Sequence[airpath.Result], page: Path) -> Path:
    return comparison.write([trace(run.path) for run in runs], page)


PICTURES: dict[str, Callable[[Sequence[airpath.Result], Path], Path]] = {"report": report.write, "trace": _traced}
"""The pictures, and the functions that write their pages."""


def main() -> int:
    """Run the two scenarios of the demo, report them, and take the pictures."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("error: there is no chromium on the path (as root: apt-get install chromium)\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # reports contain the paths of their runs as given
        runs = [airpath.run(ROOT / "examples" / f"{name}.toml", out=Path(name)) for name in ("hs-dsch", "dch")]
        for name, write in PICTURES.items():
            page = write(runs, Path(folder) / f"{name}.html")
            picture = ROOT / "docs" / "images" / f"{name}.png"
            picture.parent.mkdir(exist_ok=True)
            width, height = SIZE
            options = (
                f"--user-data-dir={folder}/browser",
                f"--window-size={width},{height}",
                "--virtual-time-budget=20000",
                f"--screenshot={picture}",
            )
            address = f"{page.as_uri()}?theme=light"
            subprocess.run([browser, *_QUIET, *options, address], check=True, capture_output=True)
            sys.stdout.write(f"{picture}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
