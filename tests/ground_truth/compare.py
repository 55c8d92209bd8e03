"""Comparison of the found causes with the true ones, interval by interval."""

from dataclasses import dataclass, field

import numpy as np
from radio_log import ORIGIN
from truth import CAUSES, Truth

CONFIDENCES = ("high", "medium", "low")


@dataclass
class Confusion:
    """Seconds by true cause (rows) and by cause found (columns)."""

    seconds: np.ndarray = field(default_factory=lambda: np.zeros((len(CAUSES), len(CAUSES))))
    calibration: np.ndarray = field(default_factory=lambda: np.zeros((len(CONFIDENCES), 2)))
    """Seconds by confidence: all, and those with the true cause."""

    def add(self, other: "Confusion", weight: float = 1.0) -> None:
        """Adds another's seconds."""
        self.seconds += weight * other.seconds
        self.calibration += weight * other.calibration

    def agreement(self) -> float:
        """The share of time with the same cause."""
        return float(np.trace(self.seconds) / self.seconds.sum())

    def agreement_of_full(self) -> float:
        """The same, with queueing and path rate as one cause: the link is full."""
        rate, queue = CAUSES.index("path-rate"), CAUSES.index("queueing")
        return self.agreement() + float((self.seconds[rate, queue] + self.seconds[queue, rate]) / self.seconds.sum())

    def total(self) -> float:
        """All seconds."""
        return float(self.seconds.sum())

    def calibration_table(self) -> str:
        """How often each confidence is right, as Markdown."""
        lines = ["| confidence | seconds | found right |", "| --- | ---: | ---: |"]
        for name, (whole, right) in zip(CONFIDENCES, self.calibration, strict=True):
            lines.append(f"| {name} | {whole:.1f} | {100 * right / whole if whole else 0:.1f} % |")
        return "\n".join(lines)

    def table(self) -> str:
        """As Markdown, without the causes that neither occurred nor were found."""
        used = [i for i in range(len(CAUSES)) if self.seconds[i].sum() > 0 or self.seconds[:, i].sum() > 0]
        lines = ["| true \\ found | " + " | ".join(CAUSES[i] for i in used) + " | found right |"]
        lines.append("| --- |" + " ---: |" * (len(used) + 1))
        for i in used:
            row = self.seconds[i]
            cells = " | ".join(f"{row[j]:.1f}" if row[j] >= 0.05 else "" for j in used)
            right = f"{100 * row[i] / row.sum():.0f} %" if row.sum() > 0 else ""
            lines.append(f"| {CAUSES[i]} | {cells} | {right} |")
        return "\n".join(lines)


def compare(true: Truth, pieces: list[dict[str, int | str]]) -> Confusion:
    """The confusion of one flow; without time that only one of the two covers."""
    confusion = Confusion()
    begins = np.array([int(piece["begin"]) - ORIGIN for piece in pieces], dtype=float)
    ends = np.array([int(piece["end"]) - ORIGIN for piece in pieces], dtype=float)
    names = [CAUSES.index(str(piece["cause"])) for piece in pieces]
    edges = np.unique(np.concatenate([true.edges, begins, ends]))
    middle = (edges[:-1] + edges[1:]) / 2
    mine = np.searchsorted(begins, middle, side="right") - 1
    place = np.searchsorted(true.edges, middle, side="right") - 1
    codes = np.array([CAUSES.index(cause) for cause in true.causes])
    for moment, length, piece, stretch in zip(middle, np.diff(edges), mine, place, strict=True):
        if piece < 0 or moment > ends[piece] or not 0 <= stretch < len(codes):
            continue
        right = codes[stretch] == names[piece]
        confusion.seconds[codes[stretch], names[piece]] += length / 1e9
        confidence = CONFIDENCES.index(str(pieces[piece]["confidence"]))
        confusion.calibration[confidence] += [length / 1e9, right * length / 1e9]
    return confusion
