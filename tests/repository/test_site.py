"""The documentation as a site: `make docs`."""

import os
import subprocess
import sys
from pathlib import Path

from support import ROOT


def test_the_site_has_every_page_without_a_broken_link(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        built = site / (name.parent if name.name == "README" else name) / "index.html"
        assert built.is_file(), page
    assert (site / "repository" / "ARCHITECTURE" / "index.html").is_file()
    commands = (site / "commands" / "index.html").read_text()
    assert "airpath measure bulk" in commands
    assert "\b" not in commands
