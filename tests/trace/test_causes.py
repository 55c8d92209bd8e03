"""Ground truth of causes: the agreement of the analyser with the events must not fall."""

import re
import subprocess
import sys

import pytest

from support import ROOT
from support.needs import needs

GROUND_TRUTH = ROOT / "tests" / "ground_truth"


# The goals of docs/trace-causes.md.
@pytest.mark.parametrize(("beside", "least"), [((), 90), (("--peer",), 95), (("--peer", "--radio"), 98)])
def test_causes_agree_with_the_events(beside: tuple[str, ...], least: float) -> None:
    command = [sys.executable, str(GROUND_TRUTH), *beside]
    shares = agreements(command)
    assert len(shares) == 2
    assert min(shares) > least


# A few points below the shares in docs/trace-causes.md: on a busy machine, programs also wait for
# the processor.
@needs("network-namespace")
def test_causes_of_real_transfers_agree_with_the_links_events() -> None:
    sender, both_ends = agreements([sys.executable, str(GROUND_TRUTH / "emulated.py")])
    assert sender > 85
    assert both_ends > 90


def agreements(command: list[str]) -> list[float]:
    """The shares of time with the same cause that a comparison prints, in percent."""
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(share) for share in re.findall(r"same cause ([\d.]+) % of the time", output)]
