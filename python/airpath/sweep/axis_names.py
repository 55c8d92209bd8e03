"""The names of axes in words, for figures and reports."""

from collections.abc import Sequence

_TABLES = {
    "fixed": "fixed network",
    "access": "server link",
    "tcp": "TCP",
    "quic": "QUIC",
}
_WORDS = {
    "bler": "block error rate",
    "congestion.algorithm": "congestion control",
    "congestion": "congestion control",
    "ecn": "ECN",
    "accurate_ecn": "accurate ECN",
    "rlc": "RLC",
    "harq": "H-ARQ",
    "pdcp": "PDCP",
    "tti": "TTI",
    "queue.packets": "queue (packets)",
    "queue.bytes": "queue size",
    "count": "number",
}


_AND = " + "
"""Between the keys of a joined axis."""
_MOST_KEYS = 2
"""Keys of a joined axis that its name in words has."""


def joined_name(paths: Sequence[str]) -> str:
    """Return the name of an axis that is several keys."""
    return _AND.join(paths)


def words_of(path: str) -> str:
    """Return the name of an axis in words: `fixed.delay` is `fixed network: delay`."""
    if _AND in path:
        paths = path.split(_AND)
        more = [f"{len(paths) - _MOST_KEYS} more"] if len(paths) > _MOST_KEYS else []
        return _AND.join([*map(words_of, paths[:_MOST_KEYS]), *more])
    table, _, rest = path.partition(".")
    if not rest:
        return _WORDS.get(table, table.replace("_", " "))
    table = _TABLES.get(table, table.replace("_", " "))
    number, _, others = rest.partition(".")
    if number.isdecimal() and others:  # of a list of tables: `flow.0.bytes`
        table, rest = f"{table} {number}", others
    return f"{table}: {_words(rest)}"


def _words(rest: str) -> str:
    if rest in _WORDS:
        return _WORDS[rest]
    first, _, others = rest.partition(".")
    word = _WORDS.get(first, first.replace("_", " "))
    return f"{word} {_words(others)}" if others else word
