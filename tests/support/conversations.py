"""The reports of `ends/converse.py`: what both ends saw of random conversations."""

from collections import Counter
from pathlib import Path

SEED = 1


def check(server: Path, mobile: Path, count: int) -> Counter[str]:
    """Assert that all conversations went as planned at both ends.

    Returns how many ended which way, and at how many ends a reset was `unreported`.
    """
    rows = {path: [line.split(maxsplit=2) for line in path.read_text().splitlines()] for path in (mobile, server)}
    for path, lines in rows.items():
        wrong = [line for line in lines if line[2] not in ("ok", "unreported")]
        assert not wrong, f"{path.name}: {len(wrong)} of {count}: {wrong[:10]}"
    # A reset of the mobile may overtake the number of the conversation.
    planned, reported = ({row[0] for row in rows[path] if row[1] != "mobile-resets"} for path in (mobile, server))
    assert len(rows[mobile]) == count
    assert reported == planned, f"without a report: {sorted(planned - reported)[:10]}"
    ends = Counter(row[1] for row in rows[mobile])
    ends["unreported"] = sum(row[2] == "unreported" for lines in rows.values() for row in lines)
    return ends
