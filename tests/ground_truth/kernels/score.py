"""Compares the causes of connections with the true ones, moment by moment."""

from pathlib import Path
from typing import Any

import numpy as np
from analyser import all_pieces
from compare import CONFIDENCES, Confusion
from truth import CAUSES

from kernels.flow_truth import STEP, UNDECIDED, Moments, Run, truth
from kernels.situations import Situation

VIEWS = ("sender", "receiver", "both")

BLOCK = 100
"""Moments within which a link that several connections fill is divided between them."""

FULL = [CAUSES.index(cause) for cause in ("path-rate", "queueing", "sharing")]


def judge(situation: Situation, folder: Path, program: Path, view: str) -> Confusion:
    """Analyses the captures of a run as `view` has them, and compares all connections."""
    run = Run(folder)
    whole = Confusion()
    if view == "both" and run.proxied:
        return whole
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for ports in run.connections():
        sender, receiver = ("server", "mobile") if run.sent_by("server", ports) else ("mobile", "server")
        near = receiver if view == "receiver" else sender
        ends = (sender, receiver) if view == "both" else (near,)
        if situation.middle and near == "server" and view == "sender":
            ends = ("middle",)
        if ends not in found:
            found[ends] = all_pieces(program, *(folder / f"{end}.pcap" for end in ends))
        mine = [each for each in found[ends] if (each["client_port"], each["server_port"]) == ports]
        true = truth(run, ports, near, situation.congestion == "bbr")
        if true is not None and mine:
            whole.add(compare(true, mine, situation.congestion == "bbr"))
    return whole


def compare(true: Moments, pieces: list[dict[str, Any]], merge: bool) -> Confusion:
    """The confusion of one connection; `merge` counts slow start as congestion window."""
    begins = np.array([piece["begin"] for piece in pieces])
    ends = np.array([piece["end"] for piece in pieces])
    names = np.array([CAUSES.index(piece["cause"]) for piece in pieces])
    if merge:
        names[names == CAUSES.index("slow-start")] = CAUSES.index("congestion-window")
    sure = np.array([CONFIDENCES.index(piece["confidence"]) for piece in pieces])
    at = np.searchsorted(begins, true.times, side="right") - 1
    covered = (at >= 0) & (true.times <= ends[at]) & (true.causes != UNDECIDED)
    codes = np.array([CAUSES.index(cause) if cause else -1 for cause in true.causes])
    mine, confidence = names[at], sure[at]
    _divide(codes, mine, true.shared & covered)
    confusion = Confusion()
    np.add.at(confusion.seconds, (codes[covered], mine[covered]), STEP / 1e9)
    right = (codes == mine)[covered] * STEP / 1e9
    np.add.at(confusion.calibration, confidence[covered], np.stack([np.full(len(right), STEP / 1e9), right], axis=1))
    return confusion


def _divide(true: np.ndarray, found: np.ndarray, shared: np.ndarray) -> None:
    """Within each block of a shared full link only the amounts count: pairs equal causes there."""
    at = np.nonzero(shared & np.isin(true, FULL) & np.isin(found, FULL))[0]
    for block in np.split(at, np.nonzero(np.diff(at // BLOCK))[0] + 1) if len(at) else []:
        left = list(found[block])
        paired = np.full(len(block), -1)
        for index, code in enumerate(true[block]):
            if code in left:
                left.remove(code)
                paired[index] = code
        paired[paired < 0] = left
        found[block] = paired
