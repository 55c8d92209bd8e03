"""Messages of the command on standard error: problems and notes."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from airpath._native import ScenarioError


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    """Done. Aborted or unfinished flows are a result, not a failure."""
    FAILED = 1
    """The run stopped on an error, or a finding of a study does not hold."""
    BAD_INPUT = 2
    """The arguments, the scenario, a preset or a result folder cannot be used."""
    NOT_WRITTEN = 3
    """The result could not be written in full; the written part is kept."""
    INTERRUPTED = 130
    """Ctrl-C; the result until then is kept, marked as partial."""


class Problem(Exception):  # noqa: N818 - its text is a message to the user
    """An error of the user's input or host: what is wrong, where, and the next step.

    It has no traceback.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        next_step: str | None = None,
        exit_code: int = ExitCode.BAD_INPUT,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.next_step = next_step
        self.exit_code = exit_code


def show(problem: Problem) -> None:
    """Print a problem as one block on standard error."""
    lines = [f"{_painted('error:', '1;31')} {problem.message}"]
    if problem.where is not None:
        lines.append(f"  at {problem.where}")
    if problem.next_step is not None:
        lines.append(f"  next: {problem.next_step}")
    sys.stderr.write("\n".join(lines) + "\n")


def note(text: str) -> None:
    """Print a note on standard error."""
    sys.stderr.write(f"{_painted('note:', '1')} {text}\n")


def help_without_command(context: typer.Context) -> None:
    """Show the help of a group of commands if no command of it was given."""
    if context.invoked_subcommand is None:
        sys.stderr.write(context.get_help() + "\n")
        raise typer.Exit(ExitCode.BAD_INPUT)


@contextmanager
def explained() -> Iterator[None]:
    """Convert exceptions about bad input or an unwritable result to a `Problem`."""
    from airpath import LinkError, MeasureError, ResultError, ScenarioError, TraceError, UnreadableResultError

    try:
        yield
    except ScenarioError as error:
        raise Problem(error.message, where=_place(error), next_step=error.help) from None
    except (LinkError, MeasureError) as error:
        raise Problem(str(error), exit_code=ExitCode.FAILED) from None
    except TraceError as error:
        message, _, next_step = str(error).partition("; ")
        raise Problem(message, next_step=next_step or None) from None
    except UnreadableResultError as error:
        raise Problem(str(error)) from None
    except ResultError as error:
        raise Problem(str(error), exit_code=ExitCode.NOT_WRITTEN) from None
    except FileExistsError as error:
        raise Problem(str(error)) from None
    except UnicodeDecodeError as error:
        raise Problem(f"a file is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except BrokenPipeError:
        # The reader of standard output closed the pipe.
        raise
    except OSError as error:
        code = ExitCode.NOT_WRITTEN if error.errno == errno.ENOSPC else ExitCode.BAD_INPUT
        raise Problem(f"{error.filename}: {error.strerror}", exit_code=code) from None


def _place(error: "ScenarioError") -> str:
    """Return file, line and field, and the text of the line if it is readable.

    For an override the argument.
    """
    if error.file is None:
        return str(error).partition(f": {error.message}")[0]
    place = error.file if error.line is None else f"{error.file}:{error.line}"
    if error.field is not None:
        place += f", {error.field}"
    if error.line is None:
        return place
    try:
        line = Path(error.file).read_text(encoding="utf-8").splitlines()[error.line - 1]
    except (OSError, UnicodeDecodeError, IndexError):
        return place
    return f"{place}\n  {error.line:>4} | {line.rstrip()}"


def _painted(text: str, style: str) -> str:
    """Colour a text, on a terminal only and not with NO_COLOR (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty():
        return text
    return f"\x1b[{style}m{text}\x1b[0m"
