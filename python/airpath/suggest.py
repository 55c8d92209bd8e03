"""The most similar known name, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches

_CUTOFF = 0.5
"""The least similarity of a name, from 0 to 1."""


def most_similar(word: str, choices: Iterable[str], cutoff: float = _CUTOFF) -> str | None:
    """Return the most similar choice; those that begin with the word, hyphens apart, come first."""
    known = list(choices)
    matches = get_close_matches(word, known, n=max(len(known), 1), cutoff=cutoff)
    start = _letters(word)
    return next((each for each in matches if _letters(each).startswith(start)), matches[0] if matches else None)


def suggestion(word: str, choices: Iterable[str]) -> str | None:
    """Return `did you mean '…'?` with the most similar choice."""
    match = most_similar(word, choices)
    return f"did you mean '{match}'?" if match else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return the suggestion after a semicolon, or an empty text."""
    text = suggestion(word, choices)
    return f"; {text}" if text else ""


def _letters(word: str) -> str:
    return "".join(each for each in word.lower() if each.isalnum())
