"""Arguments of the form K=V."""

from collections.abc import Iterable

from airpath.cli.messages import Problem


def parse_pairs(option: str, pairs: Iterable[str], *, example: str) -> dict[str, str]:
    """Parse the values of an option; of pairs with the same key the last one counts.

    Raises:
        Problem: A value does not have this form.
    """
    parsed = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Problem(f"{option} {pair}: not of the form K=V", next_step=f"write it as in {option} {example}")
        parsed[key.strip()] = value.strip()
    return parsed
