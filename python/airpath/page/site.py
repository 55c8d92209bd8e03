"""Contents for the objects of a page: HTML, CSS, scripts and images with its sizes and references.

Sizes and the bytes of references are those of the page, unless the references need more bytes than
an object has. Filler is random to such a degree that gzip comes close to the compressed size.
"""

import gzip
import json
import math
import random
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from airpath.page.files import MEDIA_TYPES
from airpath.quantities import parse_size, parse_time

_CACHING = {
    "fresh": {"cache-control": "max-age=86400"},
    "revalidate": {"cache-control": "no-cache", "etag": '"1"'},
    "never": {"cache-control": "no-store"},
}
_HEAD = b'<!doctype html><meta charset=utf-8><link rel=icon href="data:,"><title>page</title><p>page</p>'
"""The start of each document. Its icon is empty: browsers request /favicon.ico otherwise."""
_LETTERS = (b"abcdefghijklmnopqrstuvwxyz0123456789" * 8)[:256]
"""A letter or digit for each byte."""


@dataclass(frozen=True, slots=True)
class Content:
    """An object as a server sends it."""

    headers: tuple[tuple[str, str], ...]
    """Fields of the response in lower case, without `content-length`."""
    body: bytes
    wait: float = 0.0
    """Seconds from the request to the response."""
    status: int = 200

    def answer(self, conditions: Mapping[str, str]) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return status, fields and body for a request.

        Args:
            conditions: The fields of the request by name in lower case.
        """
        fields = dict(self.headers)
        for condition, validator in (("if-none-match", "etag"), ("if-modified-since", "last-modified")):
            if self.status == 200 and validator in fields and conditions.get(condition) == fields[validator]:
                kept = [(name, value) for name, value in self.headers if name in (validator, "cache-control")]
                return 304, kept, b""
        length = [] if self.status in (204, 304) else [("content-length", str(len(self.body)))]
        return self.status, [*self.headers, *length], self.body


class Site:
    """The contents of a page by URL, made while the servers and the browser start."""

    def __init__(self, make: Callable[[], Mapping[str, Content]]) -> None:
        self._ready = threading.Event()
        self._by_url: Mapping[str, Content] = {}
        self._by_path: dict[str, Content] = {}
        threading.Thread(target=self._fill, args=(make,), daemon=True).start()

    def _fill(self, make: Callable[[], Mapping[str, Content]]) -> None:
        try:
            self._by_url = make()
            # Scripts add random numbers to URLs: then the same path is answered.
            self._by_path = {url.partition("?")[0]: each for url, each in reversed(list(self._by_url.items()))}
        finally:
            self._ready.set()

    def find(self, url: str) -> Content:
        """Return what is served for a URL."""
        self._ready.wait()
        return self._by_url.get(url) or self._by_path.get(url.partition("?")[0]) or NOT_FOUND


NOT_FOUND = Content((("cache-control", "max-age=86400"),), b"", status=404)


def url_of(described: Mapping[str, Any], scheme: str = "http") -> str:
    """Return the URL of an object."""
    return f"{scheme}://{described['origin']}/{quote(described['name'].lstrip('/'))}"


def contents(page: Mapping[str, Any], *, compression: bool, scheme: str = "http") -> dict[str, Content]:
    """Return the contents of a page's objects by URL."""
    objects = [{**each, "url": url_of(each, scheme)} for each in page["object"]]
    referred: dict[str, list[Mapping[str, Any]]] = {}
    for each in objects[1:]:
        referred.setdefault(each.get("referrer", objects[0]["name"]), []).append(each)
    return {each["url"]: _content(each, referred.get(each["name"], []), compression=compression) for each in objects}


def _content(described: Mapping[str, Any], children: list[Mapping[str, Any]], *, compression: bool) -> Content:
    kind, size = described["type"], parse_size(described["size"])
    compressed = described.get("compressed") if compression else None

    def build(entropy: float) -> bytes:
        filler = _Filler(described["name"], entropy)
        match kind:
            case "document":
                return _document(children, size, filler)
            case "script":
                return _script(children, size, parse_time(described["process"]), filler)
            case "style":
                return _style(children, size, filler)
            case _:
                start = _pixel(described["name"]) if kind == "image" else b""
                start = start if size >= len(start) else b""
                return start + filler(size - len(start))

    body, encoding = build(1.0), None
    if compressed is not None:
        body, encoding = _fitting(build, parse_size(compressed)), "gzip"
    headers = {
        "content-type": MEDIA_TYPES[kind],
        "access-control-allow-origin": "*",
        "timing-allow-origin": "*",
        **({"content-encoding": encoding} if encoding else {}),
        **_CACHING[described["cache"]],
    }
    return Content(tuple(headers.items()), body, parse_time(described["wait"]))


def _pixel(name: str) -> bytes:
    """Return a GIF of one pixel in a colour of its own. Browsers ignore bytes after its end."""
    colour = zlib.crc32(name.encode()).to_bytes(4, "big")[:3]
    return b"GIF89a\1\0\1\0\x80\0\0" + colour + bytes.fromhex("ffffff2c00000000010001000002024401003b")


def _side(described: Mapping[str, Any]) -> int:
    """Return the pixels of a side of an image, so that larger files are larger to the eye."""
    return min(400, max(9, round(2 * math.sqrt(parse_size(described["size"])))))


def _fitting(build: Callable[[float], bytes], compressed: int) -> bytes:
    """Return the gzipped body whose size is closest to the wanted one."""
    low, high = (0.0, 0), (1.0, 0)
    best, share = b"", 1.0
    for _ in range(8):
        packed = gzip.compress(build(share), 6, mtime=0)
        if not best or abs(len(packed) - compressed) < abs(len(best) - compressed):
            best = packed
        if abs(len(packed) - compressed) <= compressed // 200:
            break
        # The size is almost linear in the share of random bytes.
        if len(packed) < compressed:
            low = (share, len(packed))
        else:
            high = (share, len(packed))
        if high[1] <= low[1]:
            break
        share = low[0] + (high[0] - low[0]) * (compressed - low[1]) / (high[1] - low[1])
    return best


class _Filler:
    """Yields text with a random share, the same for each name."""

    def __init__(self, name: str, entropy: float) -> None:
        self._random = random.Random(name)
        self._entropy = entropy

    def __call__(self, length: int) -> bytes:
        count = max(0, round(length * self._entropy))
        return self._random.randbytes(count).translate(_LETTERS) + b"x" * (max(0, length) - count)


def _document(children: list[Mapping[str, Any]], size: int, filler: _Filler) -> bytes:
    ordered = sorted(children, key=lambda each: parse_size(each["at"]) if "at" in each else size)
    body = bytearray(_HEAD)
    tail = b"".join(_tag(each) for each in ordered if "at" not in each)
    for each in ordered:
        if "at" in each:
            _pad(body, parse_size(each["at"]), filler, b"<!--", b"-->")
            body += _tag(each)
    _pad(body, size - len(tail), filler, b"<!--", b"-->")
    return bytes(body + tail)


def _pad(body: bytearray, until: int, filler: _Filler, begin: bytes, end: bytes) -> None:
    """Add a comment so that the body has a length, if there is room for one."""
    room = until - len(body) - len(begin) - len(end)
    if room >= 0:
        body += begin + filler(room) + end


def _tag(described: Mapping[str, Any]) -> bytes:
    """Return the HTML by which a document refers to an object without blocking its parser."""
    url = described["url"]
    match described["type"]:
        case "image":
            side = _side(described)
            tag = f'<img src="{url}" width={side} height={side}>'
        case "style":
            tag = f'<link rel=stylesheet href="{url}">'
        case "script":
            tag = f'<script async src="{url}"></script>'
        case "document":
            tag = f'<iframe src="{url}"></iframe>'
        case _:
            tag = f"<script>{_fetch(url)}</script>"
    return tag.encode()


def _fetch(url: str) -> str:
    """Return JavaScript that reads all of an object: a body that nothing reads stays incomplete."""
    return f"fetch({json.dumps(url)}).then(response=>response.arrayBuffer());"


def _script(children: list[Mapping[str, Any]], size: int, process: float, filler: _Filler) -> bytes:
    lines = []
    if process:
        lines.append(f"for(let t=performance.now();performance.now()-t<{process * 1e3:g};);")
    for each in children:
        url = json.dumps(each["url"])
        match each["type"]:
            case "image":
                # In the document, so that the image is not collected as garbage.
                side = _side(each)
                lines.append(f"document.body.appendChild(new Image({side},{side})).src={url};")
            case "script":
                lines.append(f"document.head.appendChild(document.createElement('script')).src={url};")
            case "document":
                lines.append(f"document.body.appendChild(document.createElement('iframe')).src={url};")
            case "style":
                lines.append(
                    f"Object.assign(document.head.appendChild(document.createElement('link')),"
                    f"{{rel:'stylesheet',href:{url}}});"
                )
            case _:
                lines.append(_fetch(each["url"]))
    body = bytearray("".join(lines).encode())
    _pad(body, size, filler, b"/*", b"*/")
    return bytes(body)


def _style(children: list[Mapping[str, Any]], size: int, filler: _Filler) -> bytes:
    fonts = [each for each in children if each["type"] == "font"]
    images = [each for each in children if each["type"] != "font"]
    rules = [f'@font-face{{font-family:f{at};src:url("{each["url"]}")}}' for at, each in enumerate(fonts)]
    if fonts:
        rules.append(f"p{{font-family:{','.join(f'f{at}' for at in range(len(fonts)))}}}")
    if images:
        urls = " ".join(f'url("{each["url"]}")' for each in images)
        rules.append(f"body::after{{content:{urls}}}")
    body = bytearray("".join(rules).encode())
    _pad(body, size, filler, b"/*", b"*/")
    return bytes(body)
