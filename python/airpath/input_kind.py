"""What a file or folder is, for messages about a wrong input."""

import shlex
from pathlib import Path

CAPTURE_MAGIC = (
    b"\x0a\x0d\x0d\x0a",  # pcapng
    b"\xa1\xb2\xc3\xd4",  # pcap, with microseconds, nanoseconds and the modified header
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"snoop\0\0\0",
    b"\x1f\x8b",  # gzip
    b"\x28\xb5\x2f\xfd",  # zstd
)
"""The first bytes of the files that `airpath trace` reads: captures, and compressed ones."""


def is_capture(path: Path) -> bool:
    """Return whether a file begins like a capture, plain or compressed."""
    try:
        with path.open("rb") as file:
            return file.read(8).startswith(CAPTURE_MAGIC)
    except OSError:
        return False


def kind_of_folder(folder: Path) -> tuple[str, str] | None:
    """Return what a folder is that is no result, and what to do with it; `None` for another one."""
    quoted = shlex.quote(str(folder))
    try:
        if (folder / "sweep.json").is_file():
            next_step = f"`airpath report {quoted}` draws it, `airpath sweep {quoted} --out DIR` repeats it"
            return "the folder of a sweep", next_step
        if (folder / "site.har").is_file():
            return "a recorded site", f"`airpath page load {quoted} --link PRESET --out DIR` loads it"
        entries = sorted(folder.iterdir())
        result = next((each for each in entries if (each / "summary.json").is_file()), None)
        capture = next((each for each in entries if each.is_file() and is_capture(each)), None)
    except OSError:
        return None
    if result is not None:
        return "a folder of results", f"name one of them, as {result}"
    if capture is not None:
        return "a folder of captures", f"name a file: `airpath trace {shlex.quote(str(capture))}`"
    return None
