"""Renders templates, style, script and Plotly's library into one HTML file."""

from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from airpath import theme
from airpath.plot.template import FONT, TEMPLATE
from airpath.report.figures import dumped


def render(template: str, **values: Any) -> str:
    """Return a page as one HTML text without external references."""
    return (
        _environment()
        .get_template(template)
        .render(
            plotly=Markup(get_plotlyjs()),
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
    environment.filters["raw"] = Markup
    return environment


def _strokes(index: int) -> str:
    """Return the dash of a series as SVG draws it, for the swatch of its legend."""
    patterns = {"solid": "none", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "10 4"}
    return patterns.get(theme.dash(index), "10 3 2 3")
