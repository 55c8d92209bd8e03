"""Visual progress and Speed Index of frames whose values are known."""

import pytest

from airpath.page.filmstrip import speed_index, visual_progress


def frame(white: int, red: int) -> list[int]:
    """Return the histograms of an image with white and red pixels."""
    counts = [0] * 768
    counts[255] = white + red
    counts[256 + 255] = counts[512 + 255] = white
    counts[256] = counts[512] = red
    return counts


def test_progress_is_the_share_of_the_change_that_is_visible() -> None:
    frames = [frame(100, 0), frame(75, 25), frame(0, 100), frame(20, 80)]
    assert visual_progress(frames) == pytest.approx([0, 25 / 80, 0.75, 1])
    assert visual_progress([frame(9, 1)] * 2) == [1, 1]


def test_speed_index_is_the_area_above_the_progress() -> None:
    """Half of the page after 1 s and the rest after 3 s: 1 s of nothing and 2 s of a half."""
    rows = [{"time_s": 0.0, "progress": 0.0}, {"time_s": 1.0, "progress": 0.5}, {"time_s": 3.0, "progress": 1.0}]
    assert speed_index(rows) == pytest.approx(1 + 0.5 * 2)
    assert speed_index(rows[1:]) == pytest.approx(1 + 0.5 * 2)
    assert speed_index([]) is None
