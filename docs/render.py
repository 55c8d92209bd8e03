"""Write the pictures of the documents: screenshots of reports.

    .venv/bin/python docs/render.py [NAME …]

`report.png`, for the README, is the top of the report of `make demo`. `trace.png` is the top of the
comparison of two traced runs, `page.png` that of the report of examples/page.toml. Needs Chromium
(Debian: chromium).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import airpath
from airpath import report
from airpath.trace import trace
from airpath.trace.compare import report as comparison

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 1240

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


@dataclass(frozen=True)
class _Picture:
    scenarios: Sequence[str]
    write: Callable[[Sequence[airpath.Result], Path], Path]
    height: int


DEMO = ("hs-dsch", "dch")
PICTURES = {
    "report": _Picture(DEMO, report.write, 1085),
    "trace": _Picture(DEMO, _traced, 1085),
    "page": _Picture(("page",), report.write, 1390),
}
"""The pictures: the scenarios of examples/, the functions that write their pages, pixels."""


def main() -> int:
    """Run the scenarios, report them, and take the pictures, all or those of the arguments."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("error: there is no chromium on the path (as root: apt-get install chromium)\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # reports contain the paths of their runs as given
        for name in sys.argv[1:] or PICTURES:
            wanted = PICTURES[name]
            runs = [airpath.run(ROOT / "examples" / f"{each}.toml", out=Path(each)) for each in wanted.scenarios]
            page = wanted.write(runs, Path(folder) / f"{name}.html")
            picture = ROOT / "docs" / "images" / f"{name}.png"
            picture.parent.mkdir(exist_ok=True)
            options = (
                f"--user-data-dir={folder}/browser",
                f"--window-size={WIDTH},{wanted.height}",
                "--virtual-time-budget=20000",
                f"--screenshot={picture}",
            )
            address = f"{page.as_uri()}?theme=light"
            subprocess.run([browser, *_QUIET, *options, address], check=True, capture_output=True)
            sys.stdout.write(f"{picture}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
