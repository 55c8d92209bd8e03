"""Output files of a trace: none replaces an input or another capture."""

from collections.abc import Iterable
from pathlib import Path

from airpath.input_kind import CAPTURE_MAGIC
from airpath.trace.errors import TraceInputError


def check_output(out: Path, inputs: Iterable[Path]) -> None:
    """Check that an output file replaces no capture.

    Args:
        out: The file to write. It may not exist yet.
        inputs: The files that the trace reads.

    Raises:
        TraceError: It is an input, or a capture.
        OSError: It cannot be read.
    """
    if not out.is_file():
        return
    advice = "name another file for the output"
    if any(each.exists() and each.samefile(out) for each in inputs):
        raise TraceInputError(f"{out} is an input, and the output would replace it", next_step=advice)
    with out.open("rb") as file:
        if file.read(8).startswith(CAPTURE_MAGIC):
            raise TraceInputError(
                f"{out} is a capture or a compressed file, and the output would replace it", next_step=advice
            )
