"""Errors of the user's input or host that have a next step."""

from typing import Any


class WithNextStep(Exception):  # noqa: N818 - the classes of errors below it have the suffix
    """An error with what to do about it apart from what is wrong; `str()` has both.

    The command prints the two on lines of their own. A text cannot be split again, because it may
    have a name of the user with any characters.
    """

    def __init__(self, message: str, *, next_step: str | None = None, **more: Any) -> None:
        super().__init__(f"{message}; {next_step}" if next_step else message, **more)
        self.message = message
        self.next_step = next_step
