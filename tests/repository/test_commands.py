"""The commands in the documents: all are accepted, and those that need no other host are run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from airpath.cli.application import app
from support import ROOT, Command

PAGES = sorted({*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "studies" / "README.md"})
BLOCK = re.compile(r"^ *```(?:sh|console|)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^\s*(?:\$ |sudo )?(airpath [a-z].*)$")
INLINE = re.compile(r"`(airpath [a-z][^`]*)`")
PLACEHOLDER = re.compile(r"…|[A-Z]{2,}")

VIRTUAL = {"compare", "export", "presets", "report", "run", "sweep", "trace"}
"""Commands that need no time but the processor's, no other host and no browser."""


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of the blocks, without comments and what a pipe follows."""
    for block in BLOCK.findall(text):
        for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines():
            if found := LINE.match(line):
                yield from words(found[1])


def words(line: str) -> Iterator[list[str]]:
    line = re.split(r"\s{2,}[a-z#]", line)[0]  # a second column explains the command
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&>")
    lexer.whitespace_split = True
    try:
        split = list(lexer)
    except ValueError as error:
        raise AssertionError(f"{line}: {error}") from None
    end = next((index for index, word in enumerate(split) if re.fullmatch(r"[|;&>]+", word)), len(split))
    yield split[1:end]


def named(arguments: list[str]) -> tuple[Any, Any, list[str]]:
    """Return the command that the first words name, its context, and the words after them."""
    command, context = typer.main.get_command(app), None
    while isinstance(command, TyperGroup) and arguments:
        context = command.context_class(command, info_name=command.name, parent=context)
        inner = command.get_command(context, arguments[0])
        assert inner is not None or PLACEHOLDER.fullmatch(arguments[0]), f"no command: {arguments[0]}"
        if inner is None:
            break
        command, arguments = inner, arguments[1:]
    return command, context, arguments


def accept(arguments: list[str]) -> None:
    """Parse a command line as the command does, without running it."""
    command, context, own = named(arguments)
    if not isinstance(command, TyperGroup):  # a group without a command prints its help
        command.make_context(command.name, own, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_can_be_copied(page: Path) -> None:
    """Without remarks to the tools that check the document."""
    blocks = BLOCK.findall(page.read_text())
    assert not [line for block in blocks for line in block.splitlines() if "words: allow" in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_are_accepted(page: Path) -> None:
    text = page.read_text()
    for arguments in commands(text):
        if any(PLACEHOLDER.fullmatch(each) for each in arguments):
            known(arguments)
        else:
            accept(arguments)
    # In a sentence, a command may stand without its arguments: its name and options exist.
    for line in INLINE.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        for arguments in words(line.replace("\n", " ")):
            known(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_downloads_name_files_that_exist(page: Path) -> None:
    """Those of a file server in the clone fail on an error, and replace no file that is served."""
    made = {"cell.toml"}  # by the tutorial
    lines = "\n".join(BLOCK.findall(page.read_text())).replace("\\\n", " ").splitlines()
    for line in (each for each in lines if "http.server 8000'" in each and "curl" in each):
        (path,) = re.findall(r"http://server:8000/(\S*)", line)
        assert path in made or (ROOT / path).exists(), line
        assert not path or re.search(r"curl -s?fo /dev/null ", line), line


@pytest.mark.parametrize("line", ["airpath nosuch", "airpath page nosuch", "airpath run x.toml --nosuch"])
def test_a_wrong_command_is_found(line: str) -> None:
    [arguments] = words(line)
    with pytest.raises(Exception, match=r"no command|No such option"):
        accept(arguments)


@pytest.mark.parametrize("line", ["airpath nosuch FILE", "airpath run FILE --nosuch", "airpath run 'FILE"])
def test_a_wrong_line_with_a_placeholder_is_found(line: str) -> None:
    with pytest.raises(AssertionError, match=r"no command|has no --nosuch|No closing quotation"):
        for arguments in words(line):
            known(arguments)


def known(arguments: list[str]) -> None:
    """Check the names of a command and of its options; arguments may be missing."""
    command, _, arguments = named(arguments)
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    unknown = {each.split("=")[0] for each in own if re.match(r"-{1,2}[a-z]", each)} - options - {"--help", "-h"}
    assert not unknown, f"airpath {command.name} has no {', '.join(sorted(unknown))}"


def runnable(arguments: list[str], folder: Path) -> bool:
    """Return whether a command runs on this host alone, from files that are there."""
    if arguments[0] not in VIRTUAL or any("$" in each or PLACEHOLDER.fullmatch(each) for each in arguments):
        return False
    outputs = {arguments[i + 1] for i, each in enumerate(arguments[:-1]) if each in {"-o", "--out", "--set"}}
    files = [each for each in arguments[1:] if "/" in each or each.endswith((".toml", ".pcap", ".pcapng"))]
    return "--dask" not in arguments and all((folder / each).exists() for each in files if each not in outputs)


PAGES_THAT_RUN = [page for page in PAGES if page != ROOT / "README.md"]  # test_documents.py runs it


def test_commands_run(airpath_command: Command) -> None:
    """Those of one page run in order, and each page has a folder of its own."""
    finished = 0
    for number, page in enumerate(PAGES_THAT_RUN):
        folder = airpath_command.folder / str(number)
        folder.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        for arguments in commands(page.read_text()):
            if runnable(arguments, folder):
                done = Command(folder)(*arguments)
                assert done.code == 0, f"{page.name}: airpath {shlex.join(arguments)}: {done.err}"
                finished += 1
    assert finished >= 10
