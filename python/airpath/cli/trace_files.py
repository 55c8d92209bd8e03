"""Checks of the files that `airpath trace` names, before it reads them."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from airpath.cli.command_for import command_for
from airpath.cli.messages import Problem, check_outputs, check_report_file, check_report_name, writing

_STANDARD_INPUT = Path("-")


def check_files(
    captures: Sequence[Path],
    *,
    others: Mapping[str, Path | None],
    outputs: Mapping[str, Path | None],
    report: Path | None = None,
    folder: Path | None = None,
) -> None:
    """Check the inputs and outputs of a trace.

    Args:
        captures: The captures or result folders.
        others: Other inputs, by the name of their option.
        outputs: Output files, by the name of their option.
        report: Which of the output files is the report.
        folder: An output folder.

    Raises:
        Problem: An input is missing or a terminal, or an output replaces a capture or cannot be
            written.
        TraceError: An output is an input, or a capture.
    """
    from airpath.trace.outputs import check_output

    inputs = {**dict.fromkeys(captures, "FILE"), **{path: name for name, path in others.items() if path is not None}}
    for path, name in inputs.items():
        _check_input(path, name)
    named = {name: path for name, path in outputs.items() if path is not None}
    seen: dict[Path, str] = {}
    for name, path in named.items():
        if (other := seen.setdefault(path.resolve(), name)) != name:
            raise Problem(f"{other} and {name} name one file: {path}", next_step="name two files")
        with writing(path):
            check_output(path, inputs)
        check_report_name(path)
        if path == report:
            check_report_file(path, "`--format csv > FILE` writes the connections as a table")
    check_outputs(*named.values(), folders=[folder])


def _check_input(path: Path, name: str) -> None:
    if path == _STANDARD_INPUT:
        if sys.stdin is not None and sys.stdin.isatty():
            raise Problem(
                "standard input is a terminal, not a capture",
                next_step="pipe a capture, as in `tcpdump -w - tcp | airpath trace -`, or name a file",
            )
        return
    if path.suffix == ".toml" and path.is_file():
        next_step = f"`airpath run {path} --out DIR --capture`, then `airpath trace DIR`"
        raise Problem(f"{path} is a TOML file, not a capture", next_step=next_step)
    if path.exists() or path.is_symlink():
        return
    what = f"{path}: No such file or directory" if name == "FILE" else f"{name} {path}: no such file or directory"
    if name == "FILE" and path.suffix.lower() in (".html", ".htm"):
        raise Problem(what, next_step=f"to write a report, add -o {path}")
    meant = command_for(str(path)) if name == "FILE" else None
    raise Problem(what, next_step=f"`{meant}`, or check the path" if meant else "check the path")
