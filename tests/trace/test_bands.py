"""The bar of causes: narrow pieces are drawn with their true shares."""

from itertools import pairwise

import polars as pl
import pytest

from airpath.trace.figures.bands import COLUMNS, bands

SPAN = 100.0
COLUMN = SPAN / COLUMNS


def pieces(*lengths: tuple[str, float]) -> pl.DataFrame:
    rows, t = [], 0.0
    for frame, (cause, length) in enumerate(lengths):
        rows.append({"cause": cause, "t": t, "length": length, "first_frame": frame, "last_frame": frame + 1})
        t += length
    return pl.DataFrame(rows)


def areas(rectangles: pl.DataFrame) -> dict[str, float]:
    area = rectangles.group_by("cause").agg((pl.col("length") * pl.col("height")).sum())
    return dict(area.iter_rows())


def test_the_areas_are_the_times_of_the_causes() -> None:
    burst = [("radio", 0.02), ("congestion-window", 0.03), ("slow-start", 0.01)] * 40
    drawn = bands(pieces(("application", 40.0), *burst, ("application", 57.6)), SPAN)
    expected = {"application": 97.6, "radio": 0.8, "congestion-window": 1.2, "slow-start": 0.4}
    assert areas(drawn) == pytest.approx(expected)
    # No rectangle is narrower than about a pixel, so none is drawn wider than it is.
    assert drawn["length"].min() == pytest.approx(COLUMN, rel=0.1)


def test_a_column_is_a_stack_without_gaps() -> None:
    drawn = bands(pieces(*[("radio", 0.013), ("recovery", 0.029), ("set-up", 0.008)] * 200), 10.0)
    for _, column in drawn.group_by("t"):
        edges = [
            (row["level"] - row["height"] / 2, row["level"] + row["height"] / 2) for row in column.rows(named=True)
        ]
        assert edges[0][0] == pytest.approx(-0.5)
        assert edges[-1][1] == pytest.approx(0.5)
        assert all(one[1] == pytest.approx(next_one[0]) for one, next_one in pairwise(edges))


def test_wide_pieces_and_a_single_narrow_one_are_drawn_as_they_are() -> None:
    given = pieces(("radio", 60.0), ("timer", 0.001), ("recovery", 39.999))
    drawn = bands(given, SPAN)
    assert drawn.select("cause", "t", "length").equals(given.select("cause", "t", "length"))
    assert drawn["height"].to_list() == [1.0, 1.0, 1.0]
    assert drawn["text"][0] == "60 s from 0.000 s<br>frames 0 to 1"


def test_a_piece_of_no_length_takes_no_column() -> None:
    assert areas(bands(pieces(("radio", 0.0), ("timer", 0.0)), 1e-6)) == {}
