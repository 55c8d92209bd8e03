"""The frame of a HAR file (HTTP Archive 1.2)."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airpath.files import replacing


def date(seconds: float) -> str:
    """Return a time in seconds after 1970 as a date of a HAR file."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def request(url: str, version: str) -> dict[str, Any]:
    """Return the request of an entry: GET, with unknown header fields."""
    return {
        "method": "GET",
        "url": url,
        "httpVersion": version,
        "cookies": [],
        "headers": [],
        "queryString": [],
        "headersSize": -1,
        "bodySize": 0,
    }


def write(path: Path, pages: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]]) -> None:
    """Write a HAR file.

    Raises:
        OSError: The file cannot be written.
    """
    from airpath._native import __version__

    creator = {"name": "airpath", "version": __version__}
    log = {"version": "1.2", "creator": creator, "pages": pages, "entries": entries}
    with replacing(path) as draft:
        draft.write_text(json.dumps({"log": log}, indent=1), encoding="utf-8")
