"""Write the address of the repository into a checkout before it is packaged.

The metadata of the package get their URLs, the citation its repository, and the links of README.md,
which a package index shows, become absolute. The repository itself contains no address: each copy
of it has another.

    python tools/project_urls.py https://HOST/OWNER/NAME v1.2.0
"""

import re
import sys
from pathlib import Path

PAGES = {
    "Repository": "",
    "Issues": "/issues",
    "Documentation": "/blob/{ref}/docs/README.md",
    "Changelog": "/blob/{ref}/CHANGELOG.md",
}
ADDRESS = re.compile(r"https://[\w.-]+/\S+")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!#|[a-z]+:)(?P<path>[^)\s]+)\)")


def write(folder: Path, address: str, ref: str) -> None:
    """Change the files of a checkout.

    Args:
        folder: The checkout.
        address: Address of the repository.
        ref: Branch, tag or commit that links lead to.

    Raises:
        ValueError: This is no such address, or the checkout has URLs already.
    """
    address = address.rstrip("/")
    if not ADDRESS.fullmatch(address):
        raise ValueError(f"{address!r} is not the address of a repository: https://HOST/OWNER/NAME")
    project = (folder / "pyproject.toml").read_text(encoding="utf-8")
    if "[project.urls]" in project:
        raise ValueError("pyproject.toml has [project.urls] already")
    urls = "".join(f'{name} = "{address}{page.format(ref=ref)}"\n' for name, page in PAGES.items())
    _write(folder / "pyproject.toml", f"{project}\n[project.urls]\n{urls}")
    citation = (folder / "CITATION.cff").read_text(encoding="utf-8")
    _write(folder / "CITATION.cff", f"{citation}repository-code: {address}\n")

    def absolute(link: re.Match[str]) -> str:
        view = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({address}/{view}/{ref}/{link['path']})"

    readme = (folder / "README.md").read_text(encoding="utf-8")
    _write(folder / "README.md", LINK.sub(absolute, readme))


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        write(Path(), *sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"project_urls: {error}")
