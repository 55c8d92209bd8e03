"""Optional dependencies: the extras of `pyproject.toml`."""

from importlib.util import find_spec

from airpath.next_step import WithNextStep


class ExtraMissingError(WithNextStep, ImportError):
    """A package of an extra is not installed. The message has the command that installs it."""


def require(extra: str, *packages: str) -> None:
    """Check that packages of an extra are installed.

    Raises:
        ExtraMissingError: One is not.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ExtraMissingError(
                f"the package `{package}` is missing",
                next_step=f"`pip install 'airpath[{extra}]'` installs it",
                name=package,
            )
