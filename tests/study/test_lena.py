"""The comparison with ns-3 LENA: tables of the standard, airpath's side, factors, without LENA."""

import math
from collections import Counter
from dataclasses import replace

import lena
import lena_tables
import pytest
from lena import Mobile, Selection

MEASURED = 3.0


def cell(sinr: float) -> Mobile:
    """A single mobile without an outer loop."""
    (mobile,) = lena.airpath_cell(lena.scenario(lena.constant([sinr]), lena.WARM_UP + MEASURED, step=0))
    return mobile


# --- The standard ---------------------------------------------------------------------------------


def test_tables_have_the_values_of_the_standard() -> None:
    # TS 36.213 Tables 7.1.7.1-1, 7.1.7.2.1-1 and 7.2.3-1.
    assert [lena.schemes()[scheme] for scheme in (0, 9, 10, 16, 17, 28)] == [
        (2, 0),
        (2, 9),
        (4, 9),
        (4, 15),
        (6, 15),
        (6, 26),
    ]
    assert [lena.block_bits(scheme) for scheme in (0, 9, 10, 27, 28)] == [2792, 15840, 15840, 63776, 75376]
    assert lena.block_bits(6, 1) == 328
    assert [round(lena.efficiencies()[cqi - 1], 4) for cqi in (1, 7, 15)] == [0.1523, 1.4766, 5.5547]


def test_the_scheme_of_a_cqi_carries_at_most_its_bits() -> None:
    symbols = lena.BLOCKS * lena.ELEMENTS[1]
    chosen = [lena.scheme_of(cqi) for cqi in range(1, 16)]
    assert chosen == sorted(chosen)
    assert chosen[-1] == 28
    for cqi, scheme in enumerate(chosen, 1):
        efficiency = lena.efficiencies()[cqi - 1]
        assert lena.block_bits(scheme) / symbols <= efficiency or scheme == 0
        assert scheme == 28 or lena.block_bits(scheme + 1) / symbols > efficiency


@pytest.mark.parametrize("sinr", range(-6, 26, 2))
def test_cqi_scheme_block_and_rate_of_airpath_agree_with_the_standard(sinr: int) -> None:
    mobile = cell(sinr)
    (scheme,) = mobile.schemes
    assert scheme in {lena.scheme_of(cqi) for cqi in range(1, 16)}
    assert mobile.block == lena.block_bits(scheme)
    # Without a loop the CQI rounds, and there are hardly any errors: a block in each subframe.
    assert mobile.first == pytest.approx(1, abs=0.01)
    # Of 1,428 bytes with UDP and IP, 1,400 are payload. PDCP has 2 bytes, the RLC 2 of a block and
    # 1.5 of a packet, the MAC 2 or 3 of a block of at least 349 bytes.
    share = mobile.rate / (1000 * lena.block_bits(scheme))
    assert lena.PAYLOAD / (lena.PAYLOAD + 28 + 2 + 6 * 5) < share < lena.PAYLOAD / (lena.PAYLOAD + 28 + 2)


@pytest.mark.parametrize("sinr", [0, 10])
def test_the_outer_loop_of_the_preset_uses_neighbouring_schemes(sinr: int) -> None:
    document = lena.scenario(lena.constant([sinr]), lena_tables.SETTLED + MEASURED)
    (mobile,) = lena.airpath_cell(document, warm_up=lena_tables.SETTLED)
    assert max(mobile.schemes) - min(mobile.schemes) == 1
    assert mobile.error_rate(0) == pytest.approx(0.1, abs=0.02)
    assert mobile.rate > cell(sinr).rate


def test_a_mobile_above_the_highest_scheme_has_no_advantage() -> None:
    document = lena.scenario(lena.constant(lena_tables.UNEQUAL), lena_tables.SHARED_SETTLED + MEASURED)
    mobiles = lena.airpath_cell(document, warm_up=lena_tables.SHARED_SETTLED)
    assert lena_tables.shares(mobiles) == pytest.approx([0.5, 0.5], abs=0.01)


def test_schemes_rise_with_the_sinr() -> None:
    chosen = [cell(sinr).scheme for sinr in range(-8, 26, 3)]
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (0, 28)


# --- Factors --------------------------------------------------------------------------------------


def mobile(scheme: int, *, first: int = 1000, wrong: int = 0) -> Mobile:
    block = lena.block_bits(scheme)
    return Mobile(0.97 * block * first, 1000, (first, wrong, 0, 0), (wrong, 0, 0, 0), block, Counter({scheme: first}))


ROW = lena_tables.Row(
    sinr=6,
    preset=mobile(12, first=900, wrong=100),
    plain=mobile(12),
    peers={"miesm": mobile(10), "piro": mobile(6)},
    selection=Selection(miesm=6, piro=4, whole=13, group=12, errors=(0.0,) * 29),
    whole=13,
)


def test_the_product_of_the_factors_is_the_ratio() -> None:
    for model in lena_tables.MODELS:
        assert math.prod(ROW.factors(model).values()) == pytest.approx(ROW.ratio(model))
    assert ROW.factors("miesm")["repetitions"] == pytest.approx(0.9)
    assert ROW.factors("miesm")["outer loop"] == lena.block_bits(12) / lena.block_bits(13)
    assert lena_tables.unexplained([ROW]) == []
    assert lena_tables.largest(ROW, "miesm").startswith("rounding to a CQI, CQI for a group")


def test_a_block_that_lena_should_not_send_is_unexplained() -> None:
    other = replace(ROW, peers=ROW.peers | {"miesm": mobile(11)})
    (line,) = lena_tables.unexplained([other])
    assert line.startswith("6 dB, LENA MiErrorModel")


def test_a_mobile_that_gets_nothing_has_no_ratio() -> None:
    silent = replace(ROW, sinr=-6, peers=ROW.peers | {"miesm": mobile(0, first=0)})
    assert silent.ratio("miesm") is None
    assert lena_tables.unexplained([silent]) == []
    assert "| −6 dB | – |" in lena_tables.factors([silent, ROW], "miesm")[2]


def test_expected_shares_make_the_metric_equal() -> None:
    mobiles = [mobile(4), mobile(10)]
    known = lena_tables.expected("LENA", mobiles)
    assert known is not None
    metric = [
        lena.block_bits(s, lena.GROUP) / (lena.block_bits(s) * part) for s, part in zip((4, 10), known, strict=True)
    ]
    assert metric[0] == pytest.approx(metric[1])
    assert sum(known) == pytest.approx(1)
    assert lena_tables.expected("LENA", [replace(mobiles[0], schemes=Counter({4: 1, 5: 1}))]) is None
    assert lena_tables.jain([1, 1, 1]) == pytest.approx(1)


def test_the_rule_of_lena_gives_the_expected_shares() -> None:
    cqis = [[3] * 3000, [6] * 3000]
    known = lena_tables.expected("LENA", [mobile(4), mobile(10)])
    assert lena_tables.proportional_fair(cqis) == pytest.approx(known, abs=0.01)
    half = [[3, 0] * 1500, [6] * 3000]
    assert lena_tables.proportional_fair(half)[0] < 0.5
    assert lena_tables.proportional_fair([[0] * 10, [6] * 10]) == [0, 1]


def test_fading_has_the_mean_power_of_its_sinr() -> None:
    series = [10 ** (level / 10) for level in lena.rayleigh(10, 5, 60, "a")]
    # About 300 independent samples of a mean with a deviation of itself.
    assert sum(series) / len(series) == pytest.approx(10, rel=0.25)
    assert min(series) < 1
    assert lena.rayleigh(10, 5, 1, "a") == lena.rayleigh(10, 5, 1, "a")
