"""Messages of the command on standard error: problems and notes."""

import errno
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from airpath.scenario import COMMAND_LINE, DICTIONARY

if TYPE_CHECKING:
    from airpath._native import ScenarioError


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    """Done. Aborted or unfinished flows are a result, not a failure."""
    FAILED = 1
    """A run stopped on an error, a finding does not hold, or a rule of a comparison failed."""
    BAD_INPUT = 2
    """The arguments, the scenario, a preset or a result folder cannot be used."""
    NOT_WRITTEN = 3
    """The result could not be written in full; the written part is kept."""
    LINK_FAILED = 125
    """All errors of `airpath link` itself, as in env(1), nice(1) and timeout(1)."""
    NOT_EXECUTABLE = 126
    """The command of `airpath link` cannot be executed."""
    NOT_FOUND = 127
    """The command of `airpath link` does not exist."""
    INTERRUPTED = 130
    """Ctrl-C; the result until then is kept, marked as partial."""
    PIPE_CLOSED = 141
    """The reader of standard output closed the pipe, as after the signal SIGPIPE."""


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


def write_message(text: str) -> None:
    """Print a text on standard error.

    One that cannot be written is dropped: the exit code is that of the work, and of a link that of
    its command.
    """
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def show(problem: Problem) -> None:
    """Print a problem as one block on standard error."""
    lines = [f"{_painted('error:', '1;31')} {problem.message}"]
    if problem.where is not None:
        lines.append(f"  at {problem.where}")
    if problem.next_step is not None:
        lines.append(f"  next: {problem.next_step}")
    write_message("\n".join(lines))


_quiet = False


def set_quiet(quiet: bool) -> None:
    """Print no notes and no progress from now on, or print them again."""
    global _quiet  # noqa: PLW0603 - the state of the command line, as its streams are
    _quiet = quiet


def is_quiet() -> bool:
    """Return whether notes and progress are not printed."""
    return _quiet


def note(text: str, *, always: bool = False) -> None:
    """Print a note on standard error; with --quiet only if it is always printed."""
    if always or not _quiet:
        write_message(f"{_painted('note:', '1')} {text}")


def help_without_command(context: typer.Context) -> None:
    """Show the help of a group of commands if no command of it was given."""
    if context.invoked_subcommand is None:
        write_message(context.get_help())
        raise typer.Exit(ExitCode.BAD_INPUT)


def problem_of(error: Exception, exit_code: int = ExitCode.BAD_INPUT) -> Problem:
    """Return an error as a problem, with its next step."""
    from airpath.next_step import WithNextStep

    if isinstance(error, WithNextStep):
        return Problem(error.message, next_step=error.next_step, exit_code=exit_code)
    # Errors of the native module have the same fields.
    message, next_step = (getattr(error, name, None) for name in ("message", "next_step"))
    return Problem(message or str(error), next_step=next_step, exit_code=exit_code)


@contextmanager
def explained(overrides: Collection[str] = ()) -> Iterator[None]:
    """Convert exceptions about bad input or an unwritable result to a `Problem`.

    Args:
        overrides: The keys given by `--set`: an error at one of them names the option.
    """
    from airpath import (
        LinkError,
        MeasureError,
        NotLoggedError,
        ResultError,
        ScenarioError,
        TraceError,
        UnreadableResultError,
    )
    from airpath.extras import ExtraMissingError
    from airpath.files import NotTextError
    from airpath.result_folder import FolderInUseError

    try:
        yield
    except ScenarioError as error:
        raise Problem(error.message, where=_place(error, overrides), next_step=error.help) from None
    except LinkError as error:
        raise Problem(str(error), exit_code=ExitCode.FAILED) from None
    except MeasureError as error:
        problem = problem_of(error, ExitCode.FAILED)
        if "://" in problem.message:
            problem.next_step = "give the host alone, without `http://` and a path"
        raise problem from None
    except (ExtraMissingError, FolderInUseError, NotTextError, TraceError, UnreadableResultError) as error:
        raise problem_of(error) from None
    except NotLoggedError as error:
        raise Problem(str(error.args[0]), next_step="run it again without --no-log") from None
    except ResultError as error:
        raise Problem(str(error), exit_code=ExitCode.NOT_WRITTEN) from None
    except BrokenPipeError:
        # The reader of standard output closed the pipe.
        raise
    except OSError as error:
        raise os_problem(error) from None


@contextmanager
def cleanly_ended() -> Iterator[None]:
    """End by SIGTERM or SIGHUP as by an exception: programs, links and temporary files end, too."""

    def end(number: int, _: object) -> None:
        # Not an `Exception`: tasks keep those as failures of their runs.
        raise SystemExit(128 + number)

    with _handled(end):
        yield


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C: what is complete is kept."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def _handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handle SIGTERM and SIGHUP, unless they are ignored as with nohup."""
    earlier = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, before in earlier.items():
        if before is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)


def os_problem(error: OSError) -> Problem:
    """Convert an error of the operating system; without a file name it concerns standard output."""
    if error.filename is None:
        return not_written("standard output", error)
    code = ExitCode.NOT_WRITTEN if error.errno in _DISK_FULL else ExitCode.BAD_INPUT
    advice = "check the path" if error.errno == errno.ENOENT else _advice(error)
    return Problem(f"{os.fsdecode(error.filename)}: {error.strerror}", next_step=advice, exit_code=code)


def not_written(output: Path | str, error: OSError) -> Problem:
    """Convert an error of writing an output."""
    return Problem(
        f"{output} cannot be written: {error.strerror or error}",
        next_step=_advice(error),
        exit_code=ExitCode.NOT_WRITTEN,
    )


_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_ADVICE = {
    errno.ENOENT: "create the folder, or check the path",
    errno.ENOTDIR: "a part of the path is a file; check the path",
    errno.EISDIR: "name a file, not a folder",
    errno.EACCES: "check the permissions of the path, or select another one",
    errno.EPERM: "check the permissions of the path, or select another one",
    errno.EROFS: "the file system is read-only; select another path",
    errno.ENOSPC: "free disk space, or select another path",
    errno.EDQUOT: "free disk space, or select another path",
}


def _advice(error: OSError) -> str | None:
    return _ADVICE.get(error.errno or 0)


@contextmanager
def writing(output: Path | str) -> Iterator[None]:
    """Convert errors of writing an output to a `Problem`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_written(output, error) from None


def check_outputs(*files: Path | None, folders: Iterable[Path | None] = ()) -> None:
    """Check that outputs can be written, before long work starts; `None` is an output not wanted.

    Raises:
        Problem: One cannot be written.
    """
    from airpath.files import check_folder_writable, check_writable

    for check, paths in ((check_writable, files), (check_folder_writable, folders)):
        for path in paths:
            if str(path) == "-":
                next_step = "name a folder" if check is check_folder_writable else "name a file, or /dev/stdout"
                raise Problem("`-` is no output: it would be a file of this name", next_step=next_step)
            if path is not None:
                with writing(path):
                    check(path)


_IMAGES = frozenset({".pdf", ".png", ".svg", ".jpg", ".jpeg"})


def check_report_file(report: Path | None, tables: str) -> None:
    """Check that a report has the name of an HTML file, and replaces no other file than a report.

    A device may have any name.

    Args:
        report: The file of the report; `None` is no report.
        tables: The options or the command that write the figures as a table.

    Raises:
        Problem: It has another ending, or there is a file that is no report.
    """
    # `os.path` returns False also without permission.
    if report is None or (os.path.exists(report) and not os.path.isfile(report)):  # noqa: PTH110, PTH113
        return
    ending = report.suffix.lower()
    if ending in (".html", ".htm"):
        if not _is_report_or_empty(report):
            raise Problem(
                f"{report} exists and is no report of airpath: nothing was done",
                next_step="name another file, or remove this one first",
            )
        return
    if str(report) == "-":
        raise Problem("a report is not written to standard output", next_step=f"name it report.html; {tables}")
    other = "`airpath plot` draws a figure as an image" if ending in _IMAGES else tables
    raise Problem(f"{report}: a report is HTML", next_step=f"name it {report.with_suffix('.html')}; {other}")


_GENERATOR = b'<meta name="generator" content="airpath">'
"""What every report has in its head."""


def _is_report_or_empty(file: Path) -> bool:
    """Return whether a file may be replaced by a report; writing reports what cannot be read."""
    try:
        with file.open("rb") as opened:
            head = opened.read(4096)
    except OSError:
        return True
    return not head or _GENERATOR in head


def check_report_name(report: Path, out: Path | None = None) -> None:
    """Check that a report does not replace a file of a result.

    Args:
        report: The file of the report.
        out: A result folder that may not exist yet.

    Raises:
        Problem: A run writes a file of this name there.
    """
    from airpath.result import is_result
    from airpath.result_folder import is_written_by_a_run

    path = report.resolve()
    for folder in path.parents:
        name = path.relative_to(folder).parts[0]
        try:
            holds_result = is_result(folder) or (out is not None and folder == out.resolve())
        except OSError:
            continue  # writing the report reports it
        if holds_result and is_written_by_a_run(name) and name != "report.html":
            raise Problem(f"{report} is a file of a result", next_step="select another name, as report.html")


@contextmanager
def replacing_result(out: Path | None) -> Iterator[None]:
    """Print a note after the block if `out` had an earlier result: that it was replaced, or stays.

    Raises:
        Problem: Nothing can be written there; an earlier result stays.
    """
    from airpath.result_folder import summaries_in, written_to

    if out is None:
        yield
        return
    if not os.path.isfile(out):  # noqa: PTH113 - False also without permission
        check_outputs(folders=[out])
    before = summaries_in(out)
    yield
    if (new := written_to(out)) != out:
        note(f"the new result is incomplete: it is in {new} until the next one, and the earlier one in {out} stays")
    elif before and not summaries_in(out) <= before:
        note(f"the earlier result in {out} was replaced")


def _place(error: "ScenarioError", overrides: Collection[str]) -> str | None:
    """Return file, line and field, and the text of the line if it is readable.

    For an override the argument.
    """
    if error.file is None:
        place, found, _ = str(error).partition(f": {error.message}")
        return place.replace("override ", "--set ", 1) if found else None
    if error.field is not None and error.line is None:
        table = error.field.partition(".")[0]
        options = ", ".join(f"--set {key}" for key in overrides if key.partition(".")[0] == table)
        if options or error.file == DICTIONARY:
            return f"{options}: {error.field}" if options else error.field
    if error.file == COMMAND_LINE:
        return f"{COMMAND_LINE}, {error.field}"
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
