"""Reading a TOML file with closed tables: an unknown key is an error."""

from collections.abc import Mapping
from typing import Any

from airpath.study.errors import StudyError
from airpath.suggest import did_you_mean


class Table:
    """A TOML table that is read key by key; what is left over in the end is an error."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = dict(data)
        self.where = where
        self.known: list[str] = []

    def error(self, message: str) -> StudyError:
        """Return an error that says where in the file it is."""
        return StudyError(f"{self.where}: {message}")

    def take(self, key: str, kind: Any, *default: Any) -> Any:
        """Return the value of a key and strike the key off; without a default it must be there."""
        self.known.append(key)
        if key not in self.data:
            if default:
                return default[0]
            raise self.error(f"the key '{key}' is missing")
        value = self.data.pop(key)
        if not isinstance(value, kind):
            raise self.error(f"'{key}' has a value of the wrong type: {value!r}")
        return value

    def table(self, key: str) -> "Table":
        """Return a table that may be missing, and strike it off."""
        return Table(self.take(key, dict, {}), f"{self.where}: [{key}]")

    def tables(self, key: str) -> list["Table"]:
        """Return a list of tables that may be missing, and strike it off."""
        return [Table(each, self.where) for each in self.take(key, list, [])]

    def named_tables(self) -> list[tuple[str, "Table"]]:
        """Return every table in here with its name."""
        return [(key, Table(value, f"{self.where}: {key}")) for key, value in self.data.items()]

    def sub(self, key: str) -> "Table":
        """Return a table that must be there; it stays."""
        if not isinstance(self.data.get(key), dict):
            raise self.error(f"there is no '{key}'{did_you_mean(key, self.data)}")
        return Table(self.data[key], f"{self.where}: '{key}'")

    def finish(self) -> None:
        """Refuse what nobody asked for."""
        for key in self.data:
            raise self.error(f"unknown key '{key}'{did_you_mean(key, self.known)}")
