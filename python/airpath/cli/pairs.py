"""Arguments of the form K=V."""

from collections.abc import Iterable

from airpath.cli.words import Problem


def parse_pairs(option: str, pairs: Iterable[str], *, example: str) -> dict[str, str]:
    """Return the pairs that were given with `option`, the last of those with the same key.

    Raises:
        Problem: One is not of that form.
    """
    parsed = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Problem(f"{option} {pair}: not of the form K=V", next_step=f"write it as in {option} {example}")
        parsed[key.strip()] = value.strip()
    return parsed
