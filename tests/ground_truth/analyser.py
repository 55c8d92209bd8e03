"""The analyser of causes: the example `causes` of airpath-trace."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def analyser() -> Path:
    """Builds the analyser; returns its path."""
    # With the profile of the Rust tests, nothing is compiled again.
    profile = os.environ.get("AIRPATH_TEST_PROFILE", "dev")
    command = ["cargo", "build", "--quiet", "--locked", "--workspace", "--example", "causes", "--profile", profile]
    command += ["--message-format", "json"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    messages = [json.loads(line) for line in output.splitlines()]
    return Path(next(message["executable"] for message in reversed(messages) if message.get("executable")))


def all_pieces(program: Path, *inputs: Path) -> list[dict[str, Any]]:
    """The analyser's causes of a capture's connections.

    Further `inputs` are a radio log or the other end's capture.
    """
    output = subprocess.run([program, *inputs], check=True, capture_output=True, text=True).stdout
    found = [json.loads(line) for line in output.splitlines()]
    for piece in found:
        # The truth does not separate the way of the last data from the time without data.
        if piece["cause"] == "latency":
            piece["cause"] = "application"
    return found


def pieces(program: Path, *inputs: Path) -> list[dict[str, Any]]:
    """The causes of a capture's first connection, by the inputs of [`all_pieces`]."""
    return [piece for piece in all_pieces(program, *inputs) if piece["flow"] == 1]
