"""The `airpath` command. Each command parses, makes one call and prints; heavy imports are local.

Data goes to standard output, messages to standard error. `main` handles all errors.
"""

import errno
import os
import sys
from collections.abc import Sequence

import typer

from airpath.cli.messages import ExitCode, Problem, show
from airpath.suggest import did_you_mean


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with arguments, by default those of the process; return its exit code."""
    _open_standard_streams()
    from airpath.cli.application import app

    try:
        code = app(arguments, prog_name="airpath", standalone_mode=False)
        sys.stdout.flush()
    except Problem as problem:
        show(problem)
        return problem.exit_code
    except typer.TyperException as error:
        show(_usage_problem(error))
        return ExitCode.BAD_INPUT
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        show(Problem("standard output cannot be written: the disk is full", exit_code=ExitCode.NOT_WRITTEN))
        return ExitCode.NOT_WRITTEN
    return int(code or 0)


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


def _usage_problem(error: typer.TyperException) -> Problem:
    """Convert an error of the argument parser to a `Problem`."""
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    if possibilities := getattr(error, "possibilities", None):
        option = str(getattr(error, "option_name", ""))
        message = f"no such option {option}{did_you_mean(option, possibilities)}"
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "airpath"
    return Problem(message[:1].lower() + message[1:], next_step=f"`{command} --help` shows the usage and examples")
