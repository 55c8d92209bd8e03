"""Known differences from other programs, each with its condition and its reason.

A rule describes a property of the other program, never a single scenario. A difference beyond
chance without a rule is an error of `python benches/validation`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from differences import Compared


@dataclass(frozen=True)
class Rule:
    """A known difference."""

    name: str
    reason: str
    applies: Callable[[Compared], bool]


RULES: tuple[Rule, ...] = ()


def reason(compared: Compared) -> Rule | None:
    """Return the first rule that explains a difference."""
    return next((rule for rule in RULES if rule.applies(compared)), None)
