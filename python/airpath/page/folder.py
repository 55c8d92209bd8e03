"""A page from the folder of a saved site.

References are found in HTML and CSS, at their bytes. A file to which nothing refers is found at the
end of the document: most likely a script requests it.
"""

import mimetypes
import re
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from airpath.page.files import PageFile, PageProblemError, type_of

_COMPRESSED = ("document", "style", "script", "data")
_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "shortcut"}
_SOURCES = {
    "img": ("src", "srcset"),
    "script": ("src",),
    "iframe": ("src",),
    "frame": ("src",),
    "embed": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "input": ("src",),
    "object": ("data",),
    "body": ("background",),
    "image": ("href",),
}
_CSS = re.compile(rb"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)["']""", re.IGNORECASE)


def from_folder(folder: Path, document: str = "index.html") -> PageFile:
    """Return the page of a folder.

    Args:
        folder: The folder.
        document: Path in the folder of the document that the user opens.

    Raises:
        PageProblemError: There is no such document.
        OSError: A file cannot be read.
    """
    if not (folder / document).is_file():
        raise PageProblemError(f"{folder / document}: there is no such file; name the document of the page")
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    contents = {path: (folder / path).read_bytes() for path in paths}
    found: dict[str, tuple[str, int]] = {}
    queue = [document]
    while queue:
        referrer = queue.pop(0)
        for at, target in _references(referrer, contents[referrer]):
            name = _resolve(referrer, target)
            if name in contents and name != document and name not in found:
                found[name] = (referrer, at)
                queue.append(name)
    page = PageFile(
        folder.name, document, f"folder {folder.name}; compressed sizes are those of gzip at its default level"
    )
    rest = [path for path in paths if path not in found and path != document]
    for path in [document, *found, *rest]:
        page.objects.append(_describe(path, contents[path], document, found.get(path)))
    return page


def _describe(path: str, content: bytes, document: str, reference: tuple[str, int] | None) -> dict[str, Any]:
    kind = _type(path)
    described: dict[str, Any] = {"name": path, "type": kind, "size": f"{len(content)} B"}
    if kind in _COMPRESSED and content:
        packer = zlib.compressobj(wbits=31)
        compressed = len(packer.compress(content) + packer.flush())
        if compressed < len(content):
            described["compressed"] = f"{compressed} B"
    if path != document:
        described["referrer"] = document
    if reference is not None:
        referrer, at = reference
        described["referrer"] = referrer
        # What CSS names is fetched when the CSS is complete and applied.
        if _type(referrer) == "document":
            described["at"] = f"{at} B"
    return described


def _type(path: str) -> str:
    return type_of(mimetypes.guess_type(path)[0] or "")


def _resolve(referrer: str, target: str) -> str:
    """Return the path in the folder of a reference."""
    return unquote(urlsplit(urljoin(referrer, target)).path).lstrip("/")


def _references(path: str, content: bytes) -> Iterator[tuple[int, str]]:
    kind = _type(path)
    if kind == "document":
        yield from _Finder(content).found
    if kind in ("document", "style"):
        for match in _CSS.finditer(content):
            yield match.start(), (match[1] or match[2]).decode("utf-8", "replace").strip()


class _Finder(HTMLParser):
    """Finds references of HTML and the bytes at which their tags begin."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        # One character a byte, so that positions are bytes.
        text = content.decode("latin-1")
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the references of a tag."""
        attributes = {name: value for name, value in attrs if value}
        names = _SOURCES.get(tag, ())
        if tag == "link" and _LINKS & set(attributes.get("rel", "").lower().split()):
            names = ("href",)
        line, column = self.getpos()
        at = self._lines[line - 1] + column
        for name in names:
            if value := attributes.get(name):
                # Of a set, the browser takes one: the first stands for it.
                target = value.split(",")[0].split()[0] if name == "srcset" and value.split() else value
                self.found.append((at, target.encode("latin-1", "replace").decode("utf-8", "replace")))
