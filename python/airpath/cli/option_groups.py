"""Groups of options that several commands share, each declared once as a dataclass."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a typer command take dataclasses.

    Each of their fields becomes an option, after the command's own.
    """
    signature = inspect.signature(command)
    keyword = inspect.Parameter.KEYWORD_ONLY
    groups: dict[str, Any] = {
        each.name: each.annotation for each in signature.parameters.values() if is_dataclass(each.annotation)
    }
    own = [each.replace(kind=keyword) for each in signature.parameters.values() if each.name not in groups]
    shared = [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=field.type)
        for group in groups.values()
        for field in fields(group)
    ]

    @wraps(command)
    def ungrouped(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    ungrouped.__signature__ = signature.replace(parameters=[*own, *shared])  # pyright: ignore[reportAttributeAccessIssue]
    return ungrouped
