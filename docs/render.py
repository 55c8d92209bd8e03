"""Makes the picture of the README: the top of the report of `make demo`, as a browser shows it.

    .venv/bin/python docs/render.py

Needs Chromium (Debian: chromium).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import airpath
from airpath import report

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE = (1240, 1085)

# Chromium asks for nothing but the page, and leaves nothing behind.
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


def main() -> int:
    """Run the two scenarios of the demo, report them, and take the picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("error: there is no chromium on the path (as root: apt-get install chromium)\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        results = [
            airpath.run(ROOT / "examples" / f"{name}.toml", out=Path(folder) / name) for name in ("hs-dsch", "dch")
        ]
        report.write(results, page)
        PICTURE.parent.mkdir(exist_ok=True)
        width, height = SIZE
        options = (
            f"--user-data-dir={folder}/browser",
            f"--window-size={width},{height}",
            "--virtual-time-budget=20000",
            f"--screenshot={PICTURE}",
        )
        subprocess.run([browser, *_QUIET, *options, f"{page.as_uri()}?theme=light"], check=True, capture_output=True)
    sys.stdout.write(f"{PICTURE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
