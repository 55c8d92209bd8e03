"""The lines of a TOML file's keys, which `tomllib` does not return."""

import re
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]
"""Keys from the top of the file, with the index in a list of tables after its key."""

_KEY = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_TOKEN = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[\]{}]|\n|[^"'\#\[\]{}\n]+''',
    re.DOTALL,
)
"""Strings, comments, brackets, ends of lines, and everything between them."""


def lines_of(text: str) -> dict[KeyPath, int]:
    """Return the line of each table and key of a valid TOML file, counted from 1.

    Keys in inline tables are left out: they are on the line of the key that holds the table, or
    below it.
    """
    lines: dict[KeyPath, int] = {}
    lists: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in _statements(text):
        if statement.startswith("[["):
            table = _resolved(_keys(statement[2:]), lists, is_list=True)
        elif statement.startswith("["):
            table = _resolved(_keys(statement[1:]), lists, is_list=False)
        else:
            keys = _keys(statement)
            for end in range(1, len(keys) + 1):
                lines.setdefault((*table, *keys[:end]), line)
            continue
        for end in range(1, len(table) + 1):
            lines.setdefault(table[:end], line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each table header and each `key = value` with the line on which it begins.

    Comments are left out.
    """
    line, begin, depth, statement = 1, 1, 0, ""
    for token in _TOKEN.findall(text):
        if token == "\n" and (depth == 0 or _is_header(statement)):
            if statement.strip():
                yield begin, statement.strip()
            statement, depth = "", 0
        elif not token.startswith("#"):
            if not statement.strip():
                begin = line
            statement += token
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
        line += token.count("\n")
    if statement.strip():
        yield begin, statement.strip()


def _is_header(statement: str) -> bool:
    return statement.lstrip().startswith("[")


def _keys(text: str) -> KeyPath:
    """Return the dotted key at the start of a text."""
    keys: list[str | int] = []
    position = 0
    while (found := _KEY.match(text, position)) is not None:
        keys.append(next(group for group in found.groups() if group is not None))
        position = found.end()
        if text[position : position + 1] != ".":
            break
        position += 1
    return tuple(keys)


def _resolved(keys: KeyPath, lists: dict[KeyPath, int], *, is_list: bool) -> KeyPath:
    """Return the path of a table header.

    Each key that is a list of tables is followed by its current index.
    """
    path: KeyPath = ()
    for key in keys[:-1]:
        path = (*path, key)
        if path in lists:
            path = (*path, lists[path])
    path = (*path, keys[-1])
    if is_list:
        lists[path] = lists.get(path, -1) + 1
        return (*path, lists[path])
    return path
