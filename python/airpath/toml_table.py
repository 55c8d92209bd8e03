"""Reads a TOML file with closed tables: an unknown key is an error.

Errors name the file, the line and the key.
"""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from airpath.next_step import WithNextStep
from airpath.suggest import suggestion
from airpath.toml_lines import KeyPath, lines_of

_SIMILAR = 0.7
"""Least similarity of a key that may be meant by a missing one (`difflib`)."""


class TableError(WithNextStep):
    """A TOML file is invalid. The message has file, line, key and fault."""


class Table:
    """A TOML table that is read key by key. `finish` reports the keys that nothing has read."""

    def __init__(
        self,
        data: Mapping[str, Any],
        file: str,
        *,
        path: KeyPath = (),
        lines: Mapping[KeyPath, int] | None = None,
        label: str = "",
        error: type[TableError] = TableError,
    ) -> None:
        """Wrap a table.

        Args:
            data: The table.
            file: The file's name, for messages.
            path: The table's own path in the file.
            lines: The lines of keys, by their paths.
            label: What messages call the table, such as `experiment 'rtt'`; by default its dotted
                path.
            error: The class of its errors.
        """
        self.data = dict(data)
        self.file = file
        self.path = path
        self.lines = lines or {}
        self.label = label
        self.error_class = error
        self.known: list[str] = []

    @classmethod
    def read(cls, path: Path, *, error: type[TableError] = TableError) -> "Table":
        """Return the top-level table of a file.

        Raises:
            TableError: The file cannot be read, or is not TOML.
        """
        try:
            text = path.read_text(encoding="utf-8")
            return cls(tomllib.loads(text), str(path), lines=lines_of(text), error=error)
        except OSError as fault:
            raise error(f"{path}: {fault.strerror}", next_step="check the path") from fault
        except UnicodeDecodeError as fault:
            raise error(f"{path}: not UTF-8 text", next_step="save the file as UTF-8, or check its name") from fault
        except tomllib.TOMLDecodeError as fault:
            raise error(f"{path}: {fault}") from fault

    def error(self, message: str, key: str | None = None, *, next_step: str | None = None) -> TableError:
        """Return an error with file, line and table, at one of its keys or at itself."""
        path = self.path if key is None else (*self.path, key)
        line = next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)
        place = self.file if line is None else f"{self.file}:{line}"
        label = self.label or ".".join(map(str, self.path))
        where = f"{place}: {label}" if label else place
        return self.error_class(f"{where}: {message}", next_step=next_step)

    def _misspelt(self, key: str) -> str | None:
        """Return the next step if a key of the table is almost this one."""
        near = get_close_matches(key, list(self.data), n=1, cutoff=_SIMILAR)
        return f"there is '{near[0]}'" if near else None

    def take(self, key: str, kind: Any, *default: Any) -> Any:
        """Remove a key and return its value; without a default the key is mandatory.

        Raises:
            TableError: It is missing, or its value has another type.
        """
        self.known.append(key)
        if key not in self.data:
            if default:
                return default[0]
            raise self.error(f"the key '{key}' is missing", next_step=self._misspelt(key))
        value = self.data.pop(key)
        # TOML's booleans are no numbers.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool and kind is not object):
            raise self.error(f"'{key}' has a value of the wrong type: {value!r}", key)
        return value

    def table(self, key: str) -> "Table":
        """Remove a table, which may be missing, and return it."""
        return self.child(self.take(key, dict, {}), key)

    def tables(self, key: str) -> list["Table"]:
        """Remove a list of tables, which may be missing, and return it.

        Raises:
            TableError: One of its values is no table.
        """
        values = self.take(key, list, [])
        if not all(isinstance(each, dict) for each in values):
            raise self.error(f"'{key}' must be a list of tables", key)
        return [self.child(each, key, index) for index, each in enumerate(values)]

    def named_tables(self) -> list[tuple[str, "Table"]]:
        """Return every table in this one with its name.

        Raises:
            TableError: One of its values is no table.
        """
        for key, value in self.data.items():
            if not isinstance(value, dict):
                raise self.error(f"'{key}' must be a table", key)
        return [(key, self.child(value, key)) for key, value in self.data.items()]

    def sub(self, key: str) -> "Table":
        """Return a table that is mandatory, without removing it.

        Raises:
            TableError: It is missing.
        """
        if not isinstance(self.data.get(key), dict):
            raise self.error(f"there is no '{key}'", next_step=suggestion(key, self.data))
        return self.child(self.data[key], key)

    def finish(self) -> None:
        """Check that every key was read.

        Raises:
            TableError: A key is unknown.
        """
        for key in self.data:
            raise self.error(f"unknown key '{key}'", key, next_step=suggestion(key, self.known))

    def child(self, data: Mapping[str, Any], *step: str | int) -> "Table":
        """Return a table in this one, at these keys."""
        return Table(data, self.file, path=(*self.path, *step), lines=self.lines, error=self.error_class)
