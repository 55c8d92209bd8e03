"""The errors of studies."""

from collections.abc import Iterable

from airpath.suggest import did_you_mean
from airpath.toml_table import TableError


class StudyError(TableError):
    """A study's file is invalid, or a run does not yield its figures.

    The message has the place and the cause.
    """


class UnknownNameError(LookupError):
    """A study or experiment does not exist. The message has the most similar name, or all names."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        hint = did_you_mean(name, known) or f"; there is {', '.join(known) or 'none'}"
        super().__init__(f"no {what} '{name}'{hint}")

    def __str__(self) -> str:
        return str(self.args[0])
