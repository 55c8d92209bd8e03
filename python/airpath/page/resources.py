"""A page from the contents of its objects.

References are found in HTML and CSS, at their bytes. An object to which nothing refers has the
initiator that a browser named. Without one it is found at the end of the document: most likely a
script requests it.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

from airpath.page.files import PageFile, type_of

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
_INERT = ("noscript", "template")
_CSS = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)["']""", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(\*/|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Resource:
    """An object with its content."""

    url: str
    name: str
    media_type: str
    body: bytes
    origin: str | None = None
    cache: str | None = None
    wait: float = 0.0
    """Seconds of the server, from the request to the response."""
    initiator: str | None = None
    """URL of the object that requested it, if a browser named it."""

    @property
    def type(self) -> str:
        """Its type in page files."""
        return type_of(self.media_type)


def join(base: str, target: str) -> str:
    """Return the URL of a reference, without its fragment."""
    try:
        return urldefrag(urljoin(base, target)).url
    except ValueError:
        return target


def add_objects(
    page: PageFile,
    resources: Sequence[Resource],
    resolve: Callable[[str, str], str] = join,
    *,
    referenced_only: bool = False,
) -> None:
    """Add objects to a page.

    Args:
        page: The page.
        resources: The objects, the document first.
        resolve: Returns the URL of a reference in an object.
        referenced_only: Whether to leave out objects to which nothing refers.
    """
    by_url = {each.url: each for each in reversed(resources)}
    document = resources[0]
    found: dict[str, tuple[Resource, int]] = {}
    queue = [document]
    while queue:
        referrer = queue.pop(0)
        for at, base, target in _references(referrer.type, referrer.body):
            url = resolve(resolve(referrer.url, base) if base else referrer.url, target)
            if url in by_url and url != document.url and url not in found:
                found[url] = (referrer, at)
                queue.append(by_url[url])
    first = [by_url[url] for url in found]
    rest = [] if referenced_only else [each for each in resources[1:] if each.url not in found]
    described: set[str] = {document.url}
    for each in [document, *first, *rest]:
        row = _describe(each)
        if each is not document:
            initiator = by_url.get(each.initiator or "")
            # Only an earlier object can have requested it.
            known = initiator if initiator is not None and initiator.url in described else document
            referrer, at = found.get(each.url, (known, None))
            row["referrer"] = referrer.name
            # What CSS names is fetched when the CSS is complete and applied.
            if at is not None and referrer.type == "document":
                row["at"] = f"{at} B"
        described.add(each.url)
        page.objects.append(row)


def _describe(resource: Resource) -> dict[str, Any]:
    row: dict[str, Any] = {"name": resource.name, "type": resource.type}
    if resource.origin is not None:
        row["origin"] = resource.origin
    row["size"] = f"{len(resource.body)} B"
    if resource.type in _COMPRESSED and resource.body:
        packer = zlib.compressobj(wbits=31)
        compressed = len(packer.compress(resource.body) + packer.flush())
        if compressed < len(resource.body):
            row["compressed"] = f"{compressed} B"
    if resource.wait:
        row["wait"] = f"{round(resource.wait * 1e3, 3)} ms"
    if resource.cache is not None:
        row["cache"] = resource.cache
    return row


def _references(kind: str, content: bytes) -> Iterator[tuple[int, str, str]]:
    """Return the references of an object, with their bytes and the URL of `<base>`."""
    if kind == "document":
        yield from _Finder(content).found
    if kind == "style":
        # One character a byte, so that positions are bytes.
        for at, target in _in_css(content.decode("latin-1")):
            yield at, "", target


def _in_css(text: str) -> Iterator[tuple[int, str]]:
    """Return the references of CSS and their positions. Each character of the text is a byte."""
    for match in _CSS.finditer(_COMMENT.sub(lambda comment: " " * len(comment[0]), text)):
        yield match.start(), _utf8(match[1] or match[2]).strip()


def _utf8(text: str) -> str:
    return text.encode("latin-1", "replace").decode("utf-8", "replace")


class _Finder(HTMLParser):
    """Finds references of HTML and the bytes at which their tags begin.

    A browser with scripts fetches nothing of `noscript`, and nothing of a `template`.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.found: list[tuple[int, str, str]] = []
        self._base = ""
        self._inert: list[str] = []
        self._in_style = False
        # One character a byte, so that positions are bytes.
        text = content.decode("latin-1")
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the references of a tag."""
        if tag in _INERT:
            self._inert.append(tag)
        if self._inert:
            return
        self._in_style = tag == "style"
        attributes = {name: value for name, value in attrs if value}
        if tag == "base" and not self._base:
            self._base = _utf8(attributes.get("href", ""))
        names = _SOURCES.get(tag, ())
        if tag == "link" and _LINKS & set(attributes.get("rel", "").lower().split()):
            names = ("href",)
        at = self._at()
        for name in names:
            if value := attributes.get(name):
                # Of a set, the browser takes one: the first stands for it.
                target = value.split(",")[0].split()[0] if name == "srcset" and value.split() else value
                self.found.append((at, self._base, _utf8(target)))
        self.found.extend((at, self._base, target) for _, target in _in_css(attributes.get("style", "")))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if self._inert and tag == self._inert[-1]:
            self._inert.pop()
        self._in_style = False

    def handle_data(self, data: str) -> None:
        """Note the references of a style element."""
        if self._in_style:
            self.found.extend((self._at() + at, self._base, target) for at, target in _in_css(data))

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column
