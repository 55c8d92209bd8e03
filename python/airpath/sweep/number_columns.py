"""Columns of a sweep with the values of an axis as numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airpath.quantities import Quantity, parse_quantity

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column with the values of an axis of quantities as numbers."""

    name: str
    """The path of the key, and the unit: `fixed.delay_s`."""
    path: str
    numbers: Mapping[str, float]
    """The number in the base unit, by the text of the plan."""

    def expression(self) -> "pl.Expr":
        """Return the expression that computes the column from that of the texts."""
        import polars as pl

        texts = pl.col(self.path)
        return texts.replace_strict(self.numbers, default=None, return_dtype=pl.Float64).alias(self.name)


def number_columns(columns: Sequence[str], cases: Sequence[Sequence[Any]]) -> list[NumberColumn]:
    """Return the columns of numbers for those axes whose values are all quantities of one kind."""
    found = []
    for index, path in enumerate(columns):
        values = list(dict.fromkeys(case[index] for case in cases if case[index] is not None))
        quantities = as_quantities(values)
        if quantities:
            (suffix,) = {each.suffix for each in quantities.values()}
            numbers = {str(value): each.base for value, each in quantities.items()}
            found.append(NumberColumn(f"{path}_{suffix}", path, numbers))
    return found


def as_quantities(values: Sequence[Any]) -> dict[Any, Quantity]:
    """Return the values as quantities if all have units of one kind, otherwise none."""
    quantities = {value: parse_quantity(value) if isinstance(value, str) else None for value in values}
    found = {value: each for value, each in quantities.items() if each is not None}
    is_one_kind = len(found) == len(values) and len({each.suffix for each in found.values()}) == 1
    return found if is_one_kind else {}
