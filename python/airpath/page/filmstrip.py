"""Frames of a view, and its Speed Index.

The Speed Index is the integral of 1 − visual progress over time. The visual progress of a frame
compares histograms of red, green and blue with those of the first and the last frame:
https://docs.webpagetest.org/metrics/speedindex/ ("Measuring Visual Progress", from video capture).
"""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_HISTOGRAMS = """Promise.all(%s.map(async (frame) => {
  const bytes = Uint8Array.from(atob(frame), (each) => each.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/jpeg' }));
  const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height).data;
  const counts = new Array(768).fill(0);
  for (let at = 0; at < pixels.length; at++) if (at %% 4 < 3) counts[at %% 4 * 256 + pixels[at]]++;
  return counts;
}))"""
"""JavaScript: the number of pixels by channel and value, of each frame."""


class Filmstrip:
    """The frames of a view, in the order of their times."""

    def __init__(self) -> None:
        self._frames: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, time: float, frame: str) -> None:
        """Add a frame, if it differs from the one before.

        Args:
            time: Seconds since 1970.
            frame: A JPEG image in base64.
        """
        if not self._frames or self._frames[-1][1] != frame:
            self._frames.append((time, frame))

    def write(self, folder: Path, start: float, evaluate: Callable[[str], Any]) -> list[dict[str, Any]]:
        """Write the frames; return their times, progress and file names.

        Args:
            folder: The folder, which is created.
            start: The start of the view in seconds since 1970.
            evaluate: Evaluates JavaScript in a browser, which decodes the frames.
        """
        before = [frame for time, frame in self._frames if time <= start]
        shown = [(0.0, before[-1])] if before else []
        shown += [(time - start, frame) for time, frame in self._frames if time > start]
        if not shown:
            return []
        progress = visual_progress(evaluate(_HISTOGRAMS % json.dumps([frame for _, frame in shown])))
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for number, ((time, frame), done) in enumerate(zip(shown, progress, strict=True)):
            path = folder / f"{number:04}.jpg"
            path.write_bytes(base64.b64decode(frame))
            rows.append({"time_s": time, "progress": done, "file": f"filmstrip/{folder.name}/{path.name}"})
        return rows


def visual_progress(histograms: Sequence[Sequence[int]]) -> list[float]:
    """Return the visual progress of each frame, from 0 to 1.

    Args:
        histograms: For each frame the number of pixels by channel and value.
    """

    def distance(one: Sequence[int], other: Sequence[int]) -> int:
        return sum(abs(a - b) for a, b in zip(one, other, strict=True))

    first, last = histograms[0], histograms[-1]
    whole = distance(first, last)
    return [1.0 if not whole else max(0.0, 1 - distance(each, last) / whole) for each in histograms]


def speed_index(frames: Sequence[dict[str, Any]]) -> float | None:
    """Return the Speed Index in seconds; `None` without frames."""
    if not frames:
        return None
    # Until the first frame nothing was visible.
    times = [0.0, *(each["time_s"] for each in frames)]
    hidden = [1.0, *(1 - each["progress"] for each in frames)]
    return sum((after - at) * share for at, after, share in zip(times, times[1:], hidden, strict=False))
