"""A page from the folder of a saved site."""

import mimetypes
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from airpath.page.files import PageFile, PageProblemError
from airpath.page.resources import Resource, add_objects


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
        raise PageProblemError(f"{folder / document}: there is no such file", next_step="name the document of the page")
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    page = PageFile(
        folder.name, document, f"folder {folder.name}; compressed sizes are those of gzip at its default level"
    )
    ordered = [document, *(path for path in paths if path != document)]
    add_objects(page, [_resource(folder, path) for path in ordered], _resolve)
    return page


def _resource(folder: Path, path: str) -> Resource:
    media_type = mimetypes.guess_type(path)[0] or ""
    return Resource(path, path, media_type, (folder / path).read_bytes())


def _resolve(referrer: str, target: str) -> str:
    """Return the path in the folder of a reference."""
    return unquote(urlsplit(urljoin(referrer, target)).path).lstrip("/")
