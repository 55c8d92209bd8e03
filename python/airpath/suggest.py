"""The most similar known name, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `; did you mean '…'?` with the most similar choice, or an empty text."""
    matches = get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"; did you mean '{matches[0]}'?" if matches else ""
