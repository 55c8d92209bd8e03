"""Output files of a trace: none replaces an input or another capture."""

from collections.abc import Iterable
from pathlib import Path

_CAPTURES = (
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
"""The first bytes of captures, and of compressed ones."""


def check_output(out: Path, inputs: Iterable[Path]) -> None:
    """Check that an output file replaces no capture.

    Args:
        out: The file to write. It may not exist yet.
        inputs: The files that the trace reads.

    Raises:
        TraceError: It is an input, or a capture.
        OSError: It cannot be read.
    """
    from airpath._native import TraceError

    if not out.is_file():
        return
    advice = "name another file for the output"
    if any(each.exists() and each.samefile(out) for each in inputs):
        raise TraceError(f"{out} is an input, and the output would replace it; {advice}")
    with out.open("rb") as file:
        if file.read(8).startswith(_CAPTURES):
            raise TraceError(f"{out} is a capture or a compressed file, and the output would replace it; {advice}")
