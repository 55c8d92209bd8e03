"""Errors about a value of a request name the option of the command that set it."""

import re
from collections.abc import Set

_OPTION_OF = {
    "adaptation": "parameter",
    "depth": "pipeline",
    "description": "sdp",
    "frames_per_packet": "frames",
    "limit": "duration",
    "open": "file",
    "pipeline.connections": "pipelines",
    "transactions": "count",
}
"""Options of values that have another name in the request."""


def with_option(message: str, options: Set[str]) -> str:
    """Return a message about an invalid request with the option in place of the value's path.

    The path is before the first colon, as in `transfer.bytes: ...`. A message about none of the
    options stays the same.
    """
    path, colon, reason = message.partition(": ")
    keys = re.sub(r"\[\d+\]", "", path).split(".")
    for end in range(len(keys), 0, -1) if colon else ():
        names = (_OPTION_OF.get(".".join(keys[max(end - 2, 0) : end])), keys[end - 1], _OPTION_OF.get(keys[end - 1]))
        # A parameter of an algorithm may have the name of an option.
        is_parameter = "adaptation" in keys[: end - 1]
        option = None if is_parameter else next((name for name in names if name in options), None)
        if option is not None:
            return f"{' '.join(['--' + option.replace('_', '-'), *keys[end:]])}: {reason}"
    return message
