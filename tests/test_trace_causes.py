"""The ground truth of causes: the analyser must go on to agree with the events as it does."""

import subprocess
import sys
from pathlib import Path

import pytest

GROUND_TRUTH = Path(__file__).parent / "ground_truth"


# The goals of docs/trace-causes.md.
@pytest.mark.parametrize(("beside", "least"), [((), 90), (("--peer",), 95), (("--peer", "--radio"), 98)])
def test_causes_agree_with_the_events(beside: tuple[str, ...], least: float) -> None:
    command = [sys.executable, str(GROUND_TRUTH), *beside]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    summaries = [line for line in output.splitlines() if "scenarios: same cause" in line]
    shares = [float(line.split("same cause ")[1].split(" %")[0]) for line in summaries]
    assert len(shares) == 2
    assert min(shares) > least
