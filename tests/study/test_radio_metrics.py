"""Metrics of LTE and NR: quantiles and steps of delays, gaps between deliveries, errors."""

import math

import pytest

from airpath.study.arrivals import ARRIVAL_METRICS, Observation
from airpath.study.blocks import BLOCK_METRICS
from airpath.study.blocks import Observation as Blocks
from airpath.study.cell_groups import CELL_GROUP_METRICS
from airpath.study.cell_groups import Observation as CellGroups
from airpath.study.delays import DELAY_METRICS


def _delays(*millis: float) -> list[dict[str, list[tuple[int, float]]]]:
    return [{"delays": [(number, delay / 1e3) for number, delay in enumerate(millis)]}]


def test_quantiles_are_interpolated_between_two_delays() -> None:
    flows = _delays(40, 10, 30, 20, 50)
    quantile = {percent: DELAY_METRICS[f"delay-quantile-{percent}"].compute(flows, {}) for percent in (5, 50, 75)}
    assert quantile == pytest.approx({5: 12, 50: 30, 75: 40})


def test_steps_of_a_sawtooth() -> None:
    flows = _delays(20, 19, 18, 33, 32)
    assert DELAY_METRICS["largest-rise"].compute(flows, {}) == pytest.approx(15)
    assert DELAY_METRICS["share-of-falls"].compute(flows, {"fall": 1.0}) == pytest.approx(75)


def test_gaps_are_counted_between_milliseconds_with_a_delivery() -> None:
    # Two packets of one millisecond are one delivery: gaps of 1, 9 and 10 ms.
    flows = [{"arrivals": Observation(arrivals=[0.0001, 0.0005, 0.0012, 0.0101, 0.0209])}]
    assert ARRIVAL_METRICS["gaps-of-8-to-10-ms"].compute(flows, {}) == pytest.approx(100 / 3)
    assert ARRIVAL_METRICS["gaps-of-10-ms"].compute(flows, {}) == pytest.approx(100 / 3)
    assert ARRIVAL_METRICS["gaps-of-5-to-7-ms"].compute(flows, {}) == 0


def test_first_blocks_in_error() -> None:
    metric = BLOCK_METRICS["first-block-errors"]
    assert metric.compute([{"blocks": Blocks(sent=200, errored=30)}], {}) == pytest.approx(15)
    assert math.isnan(metric.compute([{"blocks": Blocks(sent=0, errored=0)}], {}))


def test_addition_of_nr_and_the_rise_of_the_rate() -> None:
    groups = [(1.0, "master"), (2.2, "secondary"), (5.0, "master"), (6.0, "secondary"), (9.0, "master")]
    # 10 packets in 100 ms for 1.2 s, then 20.
    arrivals = [0.21 + 0.01 * number for number in range(120)] + [1.41 + 0.005 * number for number in range(200)]
    flows = [{"cell-groups": CellGroups(arrivals, groups)}]
    assert CELL_GROUP_METRICS["addition-of-nr"].compute(flows, {}) == pytest.approx(1100)
    assert CELL_GROUP_METRICS["rate-rise"].compute(flows, {}) == pytest.approx(1200)
    never = [{"cell-groups": CellGroups(arrivals[:120], [])}]
    assert all(math.isnan(metric.compute(never, {})) for metric in CELL_GROUP_METRICS.values())
