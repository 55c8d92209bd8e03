"""Links and paths in Markdown lead to files of the repository."""

import re
import subprocess
from pathlib import Path

from support import ROOT

CODE = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:benches|crates|docs|examples|presets|python|studies|tests)/[\w./+-]*)`")
SCHEME = re.compile(r"[a-z]+:")


def _documents() -> list[str]:
    files = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return files.stdout.split()


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page: its headings as GitHub names them, and explicit ones."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return named | set(re.findall(r'id="([^"]+)"', text))


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in _anchors(target.read_text(encoding="utf-8"))


def test_links_in_documents_lead_somewhere() -> None:
    dangling: list[str] = []
    for name in _documents():
        page = ROOT / name
        links = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
        dangling += [f"{name}: {link}" for link in links if not SCHEME.match(link) and not _leads_somewhere(page, link)]
    assert not dangling


def test_paths_of_the_glossary_and_of_the_architecture_exist() -> None:
    for name in ("ARCHITECTURE.md", "docs/glossary.md"):
        paths = PATH.findall((ROOT / name).read_text(encoding="utf-8"))
        assert len(paths) > 20
        missing = [path for path in paths if not (ROOT / path).exists()]
        assert not missing, name
