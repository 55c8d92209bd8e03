"""Web pages as data: the pages of airpath, page files, and pages from HAR, WARC and folders.

    from airpath import page

    page.load("front-page")["object"]
    page.from_har(Path("site.har")).write(Path("site.page"))

| module | contents |
| --- | --- |
| `files` | pages of airpath and page files |
| `har` | a page from a HAR file of a browser |
| `warc` | a page from a WARC file |
| `folder` | a page from the folder of a saved site |
| `load` | a page in Chromium over a link |
| `record`, `recording` | a site saved through Chromium, and its contents |
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from airpath.page.files import PageFile, PageProblemError, load, names

if TYPE_CHECKING:
    from airpath.page.folder import from_folder
    from airpath.page.har import from_har
    from airpath.page.warc import from_warc

__all__ = ["PageFile", "PageProblemError", "from_folder", "from_har", "from_warc", "load", "names"]

_LATE = {"from_folder": "folder", "from_har": "har", "from_warc": "warc"}
"""Names with their modules: browser and server of a page load do not read these formats."""


def __getattr__(name: str) -> Any:
    """Load a reader of another format when it is first used."""
    if name not in _LATE:
        raise AttributeError(f"module 'airpath.page' has no attribute '{name}'")
    value = getattr(import_module(f"airpath.page.{_LATE[name]}"), name)
    globals()[name] = value
    return value
