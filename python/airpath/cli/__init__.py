"""The `airpath` command. Each command parses, makes one call and prints; heavy imports are local.

Data goes to standard output, messages to standard error. `main` handles all errors.
"""

import codecs
import gc
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from airpath.cli.messages import ExitCode, Problem, os_problem, set_quiet, show
from airpath.files import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with arguments, by default those of the process; return its exit code."""
    _open_standard_streams()
    app = _import_application(alone=arguments is None)
    words = list(sys.argv[1:] if arguments is None else arguments)
    set_quiet(False)
    try:
        with _explained(words):
            # Commands find their words in the context.
            code = app(list(words), prog_name="airpath", standalone_mode=False, obj=words)
            sys.stdout.flush()
    except Problem as problem:
        show(problem)
        _discard_unwritten()
        if words[:1] == ["link"] and problem.exit_code not in _NO_COMMAND_RAN:
            return ExitCode.LINK_FAILED
        return problem.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _discard_unwritten()
        return ExitCode.PIPE_CLOSED
    return int(code or 0)


_NO_COMMAND_RAN = (ExitCode.NOT_EXECUTABLE, ExitCode.NOT_FOUND)


def _import_application(*, alone: bool) -> typer.Typer:
    """Import the commands; in a process that runs nothing else, keep them from garbage collection.

    What the imports make stays until the end. To search it for garbage, during the imports and at
    the end, takes a sixth of the time of a short command.
    """
    if alone:
        gc.disable()
    from airpath.cli.application import app

    if alone:
        gc.freeze()
        gc.enable()
    return app


@contextmanager
def _explained(words: Sequence[str]) -> Iterator[None]:
    """Convert the errors of every command to a `Problem`; `words` are its command line."""
    try:
        yield
    except typer.TyperException as error:
        raise _usage_problem(error, words) from None
    except SystemExit as stop:
        # Typer ends the process after a closed pipe.
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        raise
    except UnicodeEncodeError as error:
        raise Problem(f"'{printable(error.object)}' is not UTF-8 text", next_step="rename the file") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise os_problem(error) from None


def _discard_unwritten() -> None:
    """Discard the buffer of a standard output that cannot be written.

    Otherwise the interpreter writes it again when it ends, and replaces the exit code by 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def _open_standard_streams() -> None:
    """Open the null device for closed standard streams, so that no file gets their numbers."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    codecs.register_error("airpath", _replacement)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="airpath")


_ASCII = str.maketrans(
    {"→": "->", "✓": "yes", "✗": "no", "±": "+-", "−": "-", "×": "x", "·": ".", "–": "-", "…": "..."}
)


def _replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that the encoding of a stream lacks.

    Linux names are bytes: those that are not UTF-8 are written as they are.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    if all("\udc80" <= each <= "\udcff" for each in text):
        return os.fsencode(text), error.end
    return text.translate(_ASCII).encode("ascii", "backslashreplace"), error.end


_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \(([^\s)]+)")


def _pair_in_two(value: str, words: Sequence[str]) -> str | None:
    """Return how `--set K V` is written, if the value of an option was written so."""
    for option, key, given in zip(words, words[1:], words[2:], strict=False):
        if option in ("--set", "--vary", "--sysctl") and given == value and "=" not in key:
            return f"{option} {key}={value}"
    return None


def _command_of_line(words: Sequence[str]) -> str:
    """Return the command of the command line, for errors of the parser that have no context."""
    from airpath.cli.application import COMMANDS

    return f"airpath {words[0]}" if words and words[0] in COMMANDS else "airpath"


def _link_without_command(words: Sequence[str]) -> tuple[str, str]:
    """Return what `airpath link` lacks, and how it is written."""
    if words[1:2] == ["--"]:
        return "the link is missing before `--`", "name a preset or a scenario, as in `airpath link gprs -- CMD`"
    return "the command is missing", "write it after `--`, as in `airpath link gprs -- curl http://example.org/`"


_NUMBERS = {"int_parsing": "whole number", "int_from_float": "whole number", "float_parsing": "number"}
"""What an option takes, by the error of pydantic about its value."""


def _not_a_number(error: typer.TyperException) -> Problem | None:
    """Return the problem of an option whose value is no number; `None` for another error."""
    option = max(getattr(getattr(error, "param", None), "opts", []), key=len, default="")
    if not option.startswith("--") or not hasattr(error.__cause__, "errors"):
        return None
    cause: Any = error.__cause__
    fault = cause.errors()[0]
    kind, value = fault.get("type"), fault.get("input")
    if kind not in _NUMBERS:
        return None
    parameter: Any = getattr(error, "param", None)
    if parameter.metavar == "SECONDS":
        number = re.match(r"[\d.]*\d", str(value))
        example = f"{option} {number[0] if number else 30}"
        return Problem(f"{option} {value}: not a number", next_step=f"give the seconds without a unit, as in {example}")
    return Problem(f"{option} {value}: not a {_NUMBERS[kind]}", next_step=f"give one, as in {option} 3")


_NO_COMMAND = re.compile(r"No such command '(.+?)'")


def _usage_problem(error: typer.TyperException, words: Sequence[str]) -> Problem:
    """Convert an error of the argument parser to a `Problem`."""
    from airpath.cli.command_for import command_for
    from airpath.cli.similar_option import similar_option

    if (number := _not_a_number(error)) is not None:
        return number
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else _command_of_line(words)
    next_step = f"`{command} --help` shows the usage and examples"
    if hasattr(error, "possibilities") and context is not None:
        option = str(getattr(error, "option_name", ""))
        known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("-")]
        message = f"no such option {option}{similar_option(option, known)}"
        if command == "airpath link":
            next_step = f"options of the program come after its name, and that after `--`; {next_step}"
    if (extra := _EXTRA.match(message)) and (pair := _pair_in_two(extra[1], words)):
        next_step = f"write {pair}; {next_step}"
    if command == "airpath link" and message.lower().startswith("missing argument '-- cmd"):
        message, next_step = _link_without_command(words)
    if (unknown := _NO_COMMAND.match(message)) and (meant := command_for(unknown[1], command)):
        message = unknown[0]
        next_step = f"`{meant}`" if meant.startswith("airpath --") else f"`{meant}`; {next_step}"
    return Problem(message[:1].lower() + message[1:], next_step=next_step)
