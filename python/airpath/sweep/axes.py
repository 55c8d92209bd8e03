"""The axes of a plan: which values each key of the scenario takes."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airpath.quantities import split_quantity
from airpath.toml_table import Table

Value = bool | int | float | str
"""A value of a key, as in TOML; a quantity is text with its unit."""

MOST_CASES = 1_000_000
"""Most cases of a plan, and most values of an axis."""

_SPACINGS = ("linear", "log")


@dataclass(frozen=True, slots=True)
class Levels:
    """A list of values."""

    values: tuple[Value, ...]

    def at(self, position: float) -> Value:
        """Return the value at a position from 0 to 1, for samples."""
        return self.values[min(int(position * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from one bound to another with one unit, in linear or logarithmic spacing."""

    low: float
    high: float
    unit: str
    number: int
    is_log: bool
    is_whole: bool

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of a grid, both bounds included."""
        return tuple(self.at(index / (self.number - 1)) for index in range(self.number))

    def at(self, position: float) -> Value:
        """Return the value at a position from 0 to 1."""
        if self.is_log:
            value = math.exp(math.log(self.low) + position * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + position * (self.high - self.low)
        if self.is_whole:
            return round(value)
        digits = f"{value:.9g}"
        # The number of a quantity has no exponent.
        return f"{Decimal(digits):f} {self.unit}" if self.unit else float(digits)


Axis = Levels | Interval


def read_axes(table: Table) -> dict[str, Axis]:
    """Return the axes of a table by dotted path, in the order of the file.

    Keys may be quoted (`"bearer.bler" = …`) or not (`bearer.bler = …`).

    Raises:
        TableError: A value is neither a list nor an interval.
    """
    return dict(_axes(table, ""))


def _axes(table: Table, prefix: str) -> Iterator[tuple[str, Axis]]:
    for key in list(table.data):
        value = table.take(key, object)
        path = prefix + key
        if isinstance(value, list):
            yield path, Levels(_values(table, key, value))
        elif not isinstance(value, Mapping):
            raise table.error(
                f"'{path}' must be a list of values, or an interval such as "
                '{ from = "10 ms", to = "100 ms", number = 5 }',
                key,
            )
        elif "from" in value or "to" in value:
            yield path, _interval(table.child(value, key), path)
        else:
            yield from _axes(table.child(value, key), f"{path}.")


def _values(table: Table, key: str, values: Sequence[Any]) -> tuple[Value, ...]:
    if not values:
        raise table.error(f"'{key}' has no values", key)
    for value in values:
        if not isinstance(value, bool | int | float | str):
            raise table.error(f"'{key}' has a value that is no number, text or truth value: {value!r}", key)
    if len(set(map(repr, values))) < len(values):
        raise table.error(f"'{key}' has a value twice", key)
    return tuple(values)


def _interval(table: Table, path: str) -> Interval:
    bounds = [table.take(name, (int, float, str)) for name in ("from", "to")]
    if "step" in table.data:
        raise table.error(f"'{path}' has a step", "step", next_step=f"{_number_for(bounds, table.data['step'])}")
    if "steps" in table.data and "number" not in table.data:
        raise table.error(
            f"'{path}' has steps", "steps", next_step="write the number of values, both bounds included: number = 5"
        )
    number = table.take("number", int)
    spacing = table.take("spacing", str, "linear")
    table.finish()
    if not 2 <= number <= MOST_CASES:
        raise table.error(
            f"'{path}' has number = {number}", next_step=f"write at least two values, at most {MOST_CASES:,}"
        )
    if spacing not in _SPACINGS:
        raise table.error(f"'{path}' has spacing '{spacing}'", next_step=f"there are {' and '.join(_SPACINGS)}")
    (low, unit), (high, other) = (_quantity(table, path, bound) for bound in bounds)
    if unit != other:
        raise table.error(f"'{path}' has bounds in '{unit}' and '{other}'", next_step="write both with the same unit")
    if low >= high:
        raise table.error(f"'{path}' goes from {bounds[0]} to {bounds[1]}", next_step="the first must be smaller")
    if spacing == "log" and low <= 0:
        raise table.error(f"'{path}' begins at {bounds[0]}", next_step="logarithmic spacing needs a positive bound")
    is_whole = all(isinstance(bound, int) for bound in bounds)
    interval = Interval(low, high, unit, number, spacing == "log", is_whole)
    if len(set(interval.values)) < number:
        raise table.error(f"'{path}' has fewer than {number} whole numbers in its interval")
    return interval


def _number_for(bounds: Sequence[float | str], step: Any) -> str:
    """Return what to write in place of the step of an interval."""
    parts = [split_quantity(str(each)) for each in (*bounds, step)]
    numbers = [each[0] for each in parts if each is not None]
    units = {each[1].strip() for each in parts if each is not None}
    if len(numbers) == len(parts) and len(units) == 1 and numbers[2] > 0:
        values = (numbers[1] - numbers[0]) / numbers[2]
        if values > 0 and values == values.to_integral_value():
            return f"write the number of values: number = {int(values) + 1}"
    return "write the number of values, as in number = 5, or a list of values"


def _quantity(table: Table, path: str, bound: float | str) -> tuple[float, str]:
    """Return the number of a bound, and its unit."""
    if not isinstance(bound, str):
        return float(bound), ""
    parts = split_quantity(bound)
    if parts is None:
        raise table.error(f"'{path}' has the bound '{bound}', which is no quantity")
    number, unit = parts
    return float(number), unit


def latin_hypercube(axes: Mapping[str, Axis], number: int, seed: int) -> list[dict[str, Value]]:
    """Return a Latin hypercube sample of some axes.

    Each axis is divided into as many equal parts as there are cases, and each part has one case
    (McKay, Beckman and Conover, Technometrics 21, 1979).
    """
    drawn = random.Random(seed)
    columns = {}
    for path, axis in axes.items():
        parts = list(range(number))
        drawn.shuffle(parts)
        columns[path] = [axis.at((part + drawn.random()) / number) for part in parts]
    return [{path: column[index] for path, column in columns.items()} for index in range(number)]
