"""A report as the tests read it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from airpath.report.page import library


class Page(HTMLParser):
    """The contents of a page, visible or for a screen reader."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.html = path.read_text(encoding="utf-8").replace(library(), "")
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store an element."""
        self.handle_data(" ")  # texts of two elements are separate words
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and all open elements in it."""
        self.handle_data(" ")
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Add text to all elements that contain it."""
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """Return the attributes of the elements that have these."""
        return [found for name, found in self.elements if name == tag and attributes.items() <= found.items()]

    @property
    def words(self) -> str:
        """All text, with normalised white space."""
        return " ".join(" ".join(self.texts["main"]).split())

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """The figures by their headings."""
        return {
            heading: json.loads(data)
            for heading, data in re.findall(
                r"<h3>([^<]*)</h3>(?:(?!<h3>).)*?json\">(.*?)</script>", self.html, re.DOTALL
            )
        }
