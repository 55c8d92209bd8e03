"""Renders templates, style, script and Plotly's library into one HTML file."""

import base64
import gzip
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from airpath import theme
from airpath.files import write_text
from airpath.plot.selection import left_out
from airpath.plot.template import FONT, TEMPLATE
from airpath.report.figures import dumped

_INLINE = "script-src 'unsafe-inline' 'unsafe-eval'"
"""The sources of scripts of a page that loads nothing."""


@cache
def library() -> str:
    """Return the element with Plotly's library, compressed; `report.js` unpacks it."""
    packed = base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
    return f'<script type="application/gzip" id="library">{packed}</script>'


def move_library(page: Path) -> Path:
    """Move the library of a report into a file beside it, which the reports of a folder share.

    Returns:
        The file of the library, whose name has its version.

    Raises:
        OSError: The report cannot be read, or a file cannot be written.
    """
    shared = page.with_name(f"plotly-{get_plotlyjs_version()}.min.js")
    if not shared.is_file():
        write_text(shared, get_plotlyjs())
    text = page.read_text(encoding="utf-8")
    element = f'<script src="{shared.name}"></script>'
    text = text.replace(library(), element, 1).replace(_INLINE, f"{_INLINE} 'self' file:", 1)
    write_text(page, text)
    return shared


def render(template: str, **values: Any) -> str:
    """Return a page as one HTML text without external references."""
    return (
        _environment()
        .get_template(template)
        .render(
            library=Markup(library()),
            sources=Markup(_INLINE),
            shared=Markup(dumped({"dark": theme.dark_of(), "template": TEMPLATE.to_plotly_json()})),
            colours=theme.NAMED,
            series=theme.SERIES,
            causes=theme.CAUSES,
            font=FONT,
            **values,
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("airpath.report"),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["strokes"] = _strokes
    environment.filters["left_out"] = left_out
    environment.filters["raw"] = Markup
    return environment


def _strokes(index: int) -> str:
    """Return the dash of a series as SVG draws it, for the swatch of its legend."""
    patterns = {"solid": "none", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "10 4"}
    return patterns.get(theme.dash(index), "10 3 2 3")
