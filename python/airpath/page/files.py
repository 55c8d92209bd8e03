"""Pages of airpath, and page files."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

from airpath.files import replacing
from airpath.next_step import WithNextStep

STYLE_TYPES = ("text/css",)
SCRIPT_TYPES = ("javascript", "ecmascript")
DOCUMENT_TYPES = ("text/html", "application/xhtml+xml")
MEDIA_TYPES = {
    "document": "text/html",
    "style": "text/css",
    "script": "text/javascript",
    "font": "font/woff2",
    "image": "image/gif",
    "media": "video/mp4",
    "data": "application/octet-stream",
}
"""The media types of contents that airpath makes, by the types of page files."""


class PageProblemError(WithNextStep):
    """A page cannot be made of a file or folder: the text has the reason and the next step."""


@dataclass(slots=True)
class PageFile:
    """A page, ready to be written as a page file."""

    name: str
    title: str
    source: str
    objects: list[dict[str, Any]] = field(default_factory=list)
    """The objects in the form of page files, the document first."""

    def write(self, path: Path) -> None:
        """Write the page file.

        Raises:
            OSError: The file cannot be written.
        """
        import tomli_w

        page = {"format": 1, "name": self.name, "title": self.title, "source": self.source, "object": self.objects}
        with replacing(path) as draft:
            draft.write_text(tomli_w.dumps(page), encoding="utf-8")


def names() -> list[str]:
    """Return the names of the pages of airpath."""
    from airpath import _native

    return _native.pages()


def load(name: str | Path) -> dict[str, Any]:
    """Return a page, by name or from a file, with `bytes` and `compressed_bytes` of all objects.

    Raises:
        ScenarioError: There is no such page, or the file cannot be used.
    """
    from airpath import _native

    return json.loads(_native.page(str(name)))


def type_of(media_type: str) -> str:
    """Return the type of an object in page files for a media type."""
    essence = media_type.partition(";")[0].strip().lower()
    if essence in DOCUMENT_TYPES:
        return "document"
    if essence in STYLE_TYPES:
        return "style"
    if any(part in essence for part in SCRIPT_TYPES):
        return "script"
    if "font" in essence:
        return "font"
    family = essence.split("/")[0]
    return {"image": "image", "audio": "media", "video": "media"}.get(family, "data")


def name_of(url: SplitResult, taken: set[str]) -> str:
    """Return the name of an object by its URL, and take it."""
    return unique((url.path or "/") + (f"?{url.query}" if url.query else ""), taken)


def unique(name: str, taken: set[str]) -> str:
    """Return a name that no other object has, and take it."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}#{number}", number + 1
    taken.add(candidate)
    return candidate
