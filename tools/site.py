"""Hooks of MkDocs for the site of the documentation (`mkdocs.yml`).

The navigation is the index `docs/README.md`. Pages outside `docs/` that the index names, or a page
of the site links to, become pages of the site. Links to other files of the repository become their
paths, because the site does not contain them. The page `commands.md` is generated from the command
line.
"""

import posixpath
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
INDEX = "docs/README.md"
COMMANDS = "commands.md"

FENCE = re.compile(r"(```.*?```)", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
SCHEME = re.compile(r"[a-z]+:")
# The examples and exit codes of a command's help: a title and indented lines.
LISTING = re.compile(r"^((?:Examples|Exit codes):.*)\n((?:  .*\n)+)", re.MULTILINE)
# Before such a paragraph it keeps Typer from filling the lines.
UNFILLED = "\b\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from the index: a section for each of its headings."""
    nav: list[str | dict[str, list[str]]] = ["README.md"]
    for title, text in re.findall(r"^## (.*)\n([^#]*)", (ROOT / INDEX).read_text(), re.MULTILINE):
        targets = re.findall(r"^\| \[[^\]]*\]\(([^)#]+)\)", text, re.MULTILINE)
        pages = [_uri(posixpath.normpath(f"docs/{target}")) for target in targets]
        nav.append({title: [*pages, COMMANDS] if title == "Reference" else pages})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside `docs/`, and the reference of the commands."""
    for path in _outside():
        files.append(File.generated(config, _uri(path), content=(ROOT / path).read_text()))
    files.append(File.generated(config, COMMANDS, content=_commands()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Resolve links relative to the page's place in the repository."""
    del config
    source = _path(page.file.src_uri)

    def resolved(match: re.Match[str]) -> str:
        image, text, link = match.groups()
        target, _, anchor = link.partition("#")
        if SCHEME.match(link) or not target:
            return match.group()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        uri = _uri(path)
        if files.get_file_from_path(uri) is None:
            return f"`{path}`" if text.strip("`") in {path, target} else f"{text} (`{path}`)"
        relative = posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".")
        return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(resolved, part) for part in parts)


def _outside() -> list[str]:
    """Return the Markdown files outside `docs/` that pages of the site link to."""
    found: dict[str, None] = {}
    waiting = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    while waiting:
        page = waiting.pop(0)
        for path in _linked(page):
            if not path.startswith("docs/") and path not in found:
                found[path] = None
                waiting.append(path)
    return list(found)


def _linked(page: str) -> Iterator[str]:
    text = FENCE.sub("", (ROOT / page).read_text())
    for _, _, link in LINK.findall(text):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))
        if path.endswith(".md") and (ROOT / path).is_file():
            yield path


def _uri(path: str) -> str:
    """Return the place on the site of a file of the repository."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def _path(uri: str) -> str:
    """Return the file of the repository at a place on the site."""
    return uri.removeprefix("repository/") if uri.startswith("repository/") else f"docs/{uri}"


def _commands() -> str:
    command = [sys.executable, "-m", "typer", "airpath.cli.application", "utils", "docs", "--name", "airpath"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = LISTING.sub(_listing, text.replace(UNFILLED, ""))
    return listed.replace("# `airpath`", "# Commands", 1)


def _listing(match: re.Match[str]) -> str:
    return f"{match[1]}\n\n```text\n{textwrap.dedent(match[2])}```\n"
