"""What can be wrong with a study, or with the words that name one."""

from collections.abc import Iterable

from airpath.suggest import did_you_mean


class StudyError(Exception):
    """A study whose files cannot be used, or whose runs do not give its figures. The message says where and what."""


class UnknownNameError(LookupError):
    """A study or experiment that does not exist. The message names the nearest one that does, or all."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        hint = did_you_mean(name, known) or f"; there is {', '.join(known) or 'none'}"
        super().__init__(f"no {what} '{name}'{hint}")

    def __str__(self) -> str:
        return str(self.args[0])
