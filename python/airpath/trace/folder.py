"""A result folder as something to trace: its captures."""

from dataclasses import dataclass
from pathlib import Path

from airpath.result import UnreadableResultError


@dataclass(frozen=True)
class Captured:
    """The captures of one repetition of a run."""

    server: Path
    mobile: Path


def captured(folder: Path, repetition: int = 0) -> Captured:
    """Return the captures of a result folder.

    Args:
        folder: The result folder.
        repetition: The repetition.

    Raises:
        UnreadableResultError: The folder is no result, or has no captures of that repetition.
    """
    server, mobile = (folder / "captures" / f"{repetition:04}-{end}.pcapng" for end in ("server", "mobile"))
    if not server.is_file() or not mobile.is_file():
        raise UnreadableResultError(
            f"{folder}: no captures of repetition {repetition} in it; `airpath run SCENARIO.toml --out {folder} "
            "--capture` makes a result with captures, or name a capture file"
        )
    return Captured(server, mobile)
