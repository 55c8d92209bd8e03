"""The tables of docs/lena.md: airpath beside ns-3 LENA, each difference with its factors."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import lena
from lena import GROUP, Mobile, Model, Selection, block_bits

Lines = list[str]
Report = Callable[[str], None]

SINRS = tuple(range(-6, 27))
"""Of a single mobile, in dB."""
SHOWN = 2
"""The tables of rates show each second SINR, the exit code covers all."""
MEASURED = 6.0
"""Seconds of a measurement."""
SETTLED = 5.0
"""Seconds until the outer loop of the preset has settled, if it gets each subframe."""
SHARED_SETTLED = 20.0
"""The same with a fifth of the subframes."""
STEPS = (0.1, 0.03, 0.01, 0.002)
"""Steps of the outer loop, in dB; the last is that of the preset."""
OSCILLATING = (0, 10)
"""SINRs at which they are compared, in dB."""
SHARED = (0, 5, 10, 15, 20)
"""SINRs of the mobiles that share a cell, in dB."""
DOPPLER = 5.0
"""Hz: 3 km/h at 1.8 GHz."""
FADED = 20.0
"""Seconds of a measurement with fading."""
LARGE = 0.10
"""A difference above it is shown with its largest factors."""
RESIDUE = 0.01
"""The product of the factors may differ from the measured ratio by this share."""
SMALL = 0.03
"""Factors above it are named."""
LENA_SCHEMES = (0, *range(0, 29, 2))
"""I_MCS of each CQI in LENA, LteAmc::GetMcsFromCqi; `standard` compares it with the program."""
MODELS: dict[Model, str] = {"miesm": "MiErrorModel", "piro": "PiroEW2010"}


@dataclass(frozen=True)
class Row:
    """A single mobile at a SINR."""

    sinr: float
    preset: Mobile
    """airpath with the outer loop of the preset."""
    plain: Mobile
    """Without an outer loop."""
    peers: dict[Model, Mobile]
    selection: Selection
    """What LENA selects at this SINR."""
    whole: int
    """The last scheme with at most a tenth of errors in the whole band, in airpath."""

    def ratio(self, model: Model) -> float | None:
        """The rate of airpath by that of LENA, if LENA sends anything."""
        return self.preset.rate / self.peers[model].rate if self.peers[model].attempts[0] else None

    def factors(self, model: Model) -> dict[str, float]:
        """Return factors whose product is that ratio.

        Block sizes of LENA are those of its tables for the scheme that it should select, so the
        product equals the measured ratio only if it does.
        """
        peer = self.peers[model]
        cqi = self.selection.miesm if model == "miesm" else self.selection.piro
        levels = (self.whole, self.selection.whole, self.selection.group)
        ours, theirs, of_group = (block_bits(scheme) for scheme in levels)
        used = block_bits(LENA_SCHEMES[cqi])
        found = {
            "outer loop": self.preset.block / ours,
            "error model": ours / theirs,
        }
        if model == "miesm":
            found |= {"group": theirs / of_group, "rounding": of_group / used}
        else:
            found |= {"formula": theirs / used}
        found |= {
            "repetitions": self.preset.first / peer.first,
            "headers": self.preset.useful / peer.useful,
        }
        return found

    def residue(self, model: Model) -> float:
        """The measured ratio by the product of the factors, less one."""
        ratio = self.ratio(model)
        return 0.0 if ratio is None else ratio / math.prod(self.factors(model).values()) - 1


REASONS = {
    "outer loop": "outer loop between two schemes",
    "error model": "error models",
    "group": "CQI for a group",
    "rounding": "rounding to a CQI",
    "formula": "PiroEW2010",
    "repetitions": "repetitions",
    "headers": "headers and lost blocks",
}


def single(report: Report) -> tuple[list[Row], dict[int, float], dict[int, float], dict[int, float]]:
    """Run a single mobile at all SINRs, and compute the points of all schemes.

    Returns:
        The rows, and the points of airpath with one and three control symbols, and of LENA.
    """
    report("10 % points of airpath and LENA")
    ours, narrow, theirs = lena.airpath_points(1), lena.airpath_points(3), lena.lena_points()
    rows = []
    for sinr, selection in zip(SINRS, lena.lena_selections(SINRS), strict=True):
        report(f"a mobile at {sinr} dB")
        conditions = lena.constant([sinr])

        def cell(step: float | None, warm_up: float, conditions: list[dict[str, str]] = conditions) -> Mobile:
            document = lena.scenario(conditions, warm_up + MEASURED, step=step)
            return lena.airpath_cell(document, warm_up=warm_up)[0]

        rows.append(
            Row(
                sinr=sinr,
                preset=cell(None, SETTLED),
                plain=cell(0, lena.WARM_UP),
                peers={model: lena.lena_cell([sinr], model, lena.WARM_UP + MEASURED)[0] for model in MODELS},
                selection=selection,
                whole=max((scheme for scheme, point in ours.items() if point <= sinr), default=0),
            )
        )
    return rows, ours, narrow, theirs


# --- Exact tables ---------------------------------------------------------------------------------


def standard() -> Lines:
    """Return a table of the parts that both take from the standard, with the exact differences."""
    found = lena.lena(mode="tables")
    sizes = [(scheme, blocks) for scheme in range(29) for blocks in range(1, 111)]
    wrong = [
        (scheme, blocks) for scheme, blocks in sizes if found["sizes"][scheme][blocks - 1] != block_bits(scheme, blocks)
    ]
    rounded = max(abs(a - b) for a, b in zip(found["efficiencies"][1:], lena.efficiencies(), strict=True))
    if tuple(found["schemes"]) != LENA_SCHEMES:
        raise AssertionError(f"LENA has the schemes {found['schemes']}")
    ours = [lena.scheme_of(cqi) for cqi in range(1, 16)]
    lines = _head("part", "values", "equal", "difference")
    words = "; ".join(
        f"I_MCS {scheme}, {blocks} block: {found['sizes'][scheme][blocks - 1]} bits in LENA, "
        f"{block_bits(scheme, blocks)} in the standard"
        for scheme, blocks in wrong
    )
    name = "transport block sizes, I_MCS 0 to 28, 1 to 110 blocks"
    lines.append(_row(name, len(sizes), len(sizes) - len(wrong), words))
    lines.append(
        _row(
            "bits per symbol of CQI 1 to 15",
            15,
            "to two decimals",
            f"LENA rounds; at most {rounded:.4f}",
        )
    )
    equal = sum(a == b for a, b in zip(ours, found["schemes"][1:], strict=True))
    pairs = ", ".join(
        f"{cqi}: {a} and {b}" for cqi, (a, b) in enumerate(zip(ours, found["schemes"][1:], strict=True), 1) if a != b
    )
    lines.append(
        _row("I_MCS of a CQI in 100 blocks, without outer loop", 15, equal, f"airpath and LENA at CQI {pairs}")
    )
    return lines


# --- A single mobile ------------------------------------------------------------------------------


def rates(rows: Sequence[Row]) -> Lines:
    """Return a table of CQI, scheme, block and rate by SINR."""
    lines = _head(
        "SINR",
        "airpath: mean I_MCS, block, rate",
        "without outer loop",
        *(f"LENA {name}: CQI, I_MCS, block, rate" for name in MODELS.values()),
        "difference",
    )
    for row in rows[::SHOWN]:
        cells = [_mobile(each) for each in (row.preset, row.plain)]
        for model, peer in row.peers.items():
            cqi = row.selection.miesm if model == "miesm" else row.selection.piro
            cells.append(f"{cqi}: {_mobile(peer)}" if peer.attempts[0] else f"{cqi}: nothing is sent")
        ratios = [row.ratio(model) for model in MODELS]
        lines.append(
            _row(_decibels(row.sinr), *cells, ", ".join("–" if it is None else _signed(it - 1) for it in ratios))
        )
    return lines


def _mobile(mobile: Mobile) -> str:
    return f"{_scheme(mobile)}, {mobile.block:,.0f} bits, {mobile.rate / 1e6:.2f} Mbit/s"


def _scheme(mobile: Mobile) -> str:
    return f"{mobile.scheme:.1f}" if len(mobile.schemes) > 1 else f"{mobile.scheme:.0f}"


def factors(rows: Sequence[Row], model: Model) -> Lines:
    """Return a table of the factors of each difference, in percent."""
    names = list(rows[-1].factors(model))
    lines = _head("SINR", "difference", *(REASONS[name] for name in names), "residue", "largest")
    for row in rows[::SHOWN]:
        ratio = row.ratio(model)
        if ratio is None:
            lines.append(_row(_decibels(row.sinr), "–", *("" for _ in names), "", "LENA sends nothing with CQI 0"))
            continue
        found = row.factors(model)
        lines.append(
            _row(
                _decibels(row.sinr),
                _signed(ratio - 1),
                *(_signed(found[name] - 1) for name in names),
                _signed(row.residue(model), 1),
                largest(row, model),
            )
        )
    return lines


def largest(row: Row, model: Model) -> str:
    """Return the reasons of a large difference, the largest factor first."""
    ratio = row.ratio(model)
    if ratio is None or abs(ratio - 1) <= LARGE:
        return ""
    same = {name: math.log(each) for name, each in row.factors(model).items() if (each > 1) == (ratio > 1)}
    named = [name for name, size in sorted(same.items(), key=lambda pair: -abs(pair[1])) if abs(size) > SMALL]
    return ", ".join(REASONS[name] for name in named)


def unexplained(rows: Sequence[Row]) -> Lines:
    """Return differences that their factors do not give, and large ones without a large factor."""
    return [
        f"{_decibels(row.sinr)}, LENA {name}: rest {_signed(row.residue(model), 1)}, reasons: {largest(row, model)}"
        for row, (model, name) in itertools.product(rows, MODELS.items())
        if (ratio := row.ratio(model)) is not None
        and (abs(row.residue(model)) > RESIDUE or (abs(ratio - 1) > LARGE and not largest(row, model)))
    ]


def points(ours: dict[int, float], narrow: dict[int, float], theirs: dict[int, float]) -> Lines:
    """Return a table of the SINR at which a tenth of the blocks are in error."""
    lines = _head(
        "I_MCS",
        "code rate: airpath, LENA",
        "10 % point: airpath, LENA",
        "difference",
        "of it, code rate",
        "rest",
        "with 3 control symbols: code rate, difference",
    )
    for scheme in sorted(ours.keys() & theirs.keys()):
        rate, assumed = lena.code_rate(scheme), lena.CODE_RATES[scheme]
        difference, by_rate = ours[scheme] - theirs[scheme], _capacity_gap(scheme, rate, assumed)
        third = (
            f"{lena.code_rate(scheme, 3):.3f}, {narrow[scheme] - theirs[scheme]:+.1f} dB" if scheme in narrow else ""
        )
        lines.append(
            _row(
                scheme,
                f"{rate:.3f}, {assumed:.2f}",
                f"{ours[scheme]:.1f}, {theirs[scheme]:.1f} dB",
                f"{difference:+.1f} dB",
                f"{by_rate:+.1f} dB",
                f"{difference - by_rate:+.1f} dB",
                third,
            ).replace("-", "−")
        )
    return lines


def _capacity_gap(scheme: int, rate: float, assumed: float) -> float:
    """Return the difference of the SINRs at which log2(1 + SINR) carries both code rates, in dB."""
    bits, _ = lena.schemes()[scheme]
    return 10 * math.log10((2 ** (bits * rate) - 1) / (2 ** (bits * assumed) - 1))


def errors(rows: Sequence[Row]) -> Lines:
    """Return a table of block error rates by transmission."""
    lines = _head(
        "SINR",
        "airpath: first, second, third",
        "without outer loop: first",
        "LENA MiErrorModel: first, second",
        "LENA PiroEW2010: first",
        "LENA, highest scheme with at most 10 %",
    )
    for row in rows:
        whole = row.selection.errors[row.selection.whole]
        lines.append(
            _row(
                _decibels(row.sinr),
                _rates(row.preset, 3),
                _rates(row.plain, 1),
                _rates(row.peers["miesm"], 2),
                _rates(row.peers["piro"], 1),
                f"{row.selection.whole}: {_percent(whole)}",
            )
        )
    return lines


def _rates(mobile: Mobile, count: int) -> str:
    return ", ".join("–" if (rate := mobile.error_rate(number)) is None else _percent(rate) for number in range(count))


def oscillations() -> Lines:
    """Return a table of the outer loop of airpath with several steps."""
    lines = _head("SINR", "step", "I_MCS", "errors in a burst", "time between bursts", "rate")
    for sinr, step in itertools.product(OSCILLATING, STEPS):
        found = lena.oscillation(sinr, step, SETTLED, FADED)
        low, high = found.schemes
        times = f"{1000 * found.interval:.0f} ms"
        swing = f"{low} to {high}"
        cells = (f"{step:g} dB", swing, f"{found.burst:.1f}", times, f"{found.rate / 1e6:.2f} Mbit/s")
        lines.append(_row(_decibels(sinr), *cells))
    return lines


# --- A cell with several mobiles ------------------------------------------------------------------


def shared(report: Report) -> tuple[Lines, Lines, Lines]:
    """Return tables of shares: at constant SINRs, with fading, and by the rule of LENA."""
    report("five mobiles")
    duration = lena.WARM_UP + MEASURED
    constant = lena.constant(SHARED)
    ours = {
        "airpath": lena.airpath_cell(lena.scenario(constant, SHARED_SETTLED + MEASURED), warm_up=SHARED_SETTLED),
        "airpath, without outer loop": lena.airpath_cell(lena.scenario(constant, duration, step=0)),
    }
    peers = {f"LENA {name}": lena.lena_cell(SHARED, model, duration) for model, name in MODELS.items()}
    still = _shares(ours | peers, with_expected=True)
    report("five mobiles with fading")
    duration = lena.WARM_UP + FADED
    series = [lena.rayleigh(mean, DOPPLER, duration, f"mobile {number}") for number, mean in enumerate(SHARED)]
    moving = {
        "airpath": lena.faded_cell(series, duration),
        "airpath, without outer loop": lena.faded_cell(series, duration, 0),
    } | {f"LENA {name}": lena.lena_cell(SHARED, model, duration, series) for model, name in MODELS.items()}
    return still, _shares(moving, with_expected=False), scheduled(series, moving)


UNEQUAL = (10, 26)
"""SINRs of two mobiles, the second with the highest scheme and no errors, in dB."""


def above_the_highest() -> Lines:
    """Return a table of the shares of a mobile whose SINR is above that of the highest scheme."""
    lines = _head("program", *(f"{sinr} dB" for sinr in UNEQUAL))
    for name, step in (("airpath", None), ("airpath, without outer loop", 0)):
        document = lena.scenario(lena.constant(UNEQUAL), SHARED_SETTLED + MEASURED, step=step)
        cell = lena.airpath_cell(document, warm_up=SHARED_SETTLED)
        lines.append(_row(name, *map(_percent, shares(cell))))
    peer = lena.lena_cell(UNEQUAL, "miesm", lena.WARM_UP + MEASURED)
    lines.append(_row(f"LENA {MODELS['miesm']}", *map(_percent, shares(peer))))
    return lines


def scheduled(series: Sequence[Sequence[float]], cells: dict[str, list[Mobile]]) -> Lines:
    """Return a table of the shares that the rule of LENA gives, with and without its details."""
    selected: dict[Model, list[list[int]]] = {model: [] for model in MODELS}
    for each in series:
        selections = lena.lena_selections(each)
        selected["miesm"].append([selection.miesm for selection in selections])
        selected["piro"].append([selection.piro for selection in selections])
    means = (f"{sinr} dB" for sinr in SHARED)
    lines = _head("shares of subframes", *means, f"time with CQI 0 at {SHARED[0]} dB")
    for model, name in MODELS.items():
        cqis = selected[model]
        silent = cqis[0].count(0) / len(cqis[0])
        sent = [[max(cqi, 1) for cqi in each] for each in cqis]
        for title, share, time in (
            ("measured", shares(cells[f"LENA {name}"]), _percent(silent)),
            ("rule", proportional_fair(cqis), ""),
            ("rule, CQI 0 sent as CQI 1", proportional_fair(sent), ""),
            ("the same with the block in the whole band", proportional_fair(sent, lena.BLOCKS), ""),
        ):
            lines.append(_row(f"LENA {name}, {title}", *map(_percent, share), time))
    return lines


AVERAGING = 99.0
"""Subframes over which PfFfMacScheduler averages."""


def proportional_fair(cqis: Sequence[Sequence[int]], group: int = GROUP) -> list[float]:
    """Return the shares that the rule of PfFfMacScheduler gives, by CQI of each subframe.

    It serves the mobile with the highest ratio of the block in a group to the average of what it
    got, and no mobile with CQI 0. `group` is the number of resource blocks of that block. Hybrid
    ARQ and the delay of reports are left out.
    """
    averages, counts = [1.0] * len(cqis), [0] * len(cqis)
    for now in zip(*cqis, strict=True):
        ratios = [
            block_bits(LENA_SCHEMES[cqi], group) / average if cqi else 0.0
            for cqi, average in zip(now, averages, strict=True)
        ]
        served = max(range(len(ratios)), key=ratios.__getitem__) if any(ratios) else None
        for user, cqi in enumerate(now):
            got = block_bits(LENA_SCHEMES[cqi]) if user == served else 0
            averages[user] += (got - averages[user]) / AVERAGING
            counts[user] += user == served
    return [count / sum(counts) for count in counts]


def _shares(cells: dict[str, list[Mobile]], *, with_expected: bool) -> Lines:
    heads = ["program", *(f"{sinr} dB" for sinr in SHARED), "sum", "Jain's index", "first errors"]
    lines = _head(*heads, *(["shares expected"] if with_expected else []))
    for name, mobiles in cells.items():
        share = shares(mobiles)
        wrong = sum(mobile.errors[0] for mobile in mobiles) / sum(mobile.attempts[0] for mobile in mobiles)
        cell = [
            f"{_percent(part)}, {mobile.rate / 1e6:.2f} Mbit/s" for part, mobile in zip(share, mobiles, strict=True)
        ]
        known = expected(name, mobiles)
        lines.append(
            _row(
                name,
                *cell,
                f"{sum(mobile.rate for mobile in mobiles) / 1e6:.2f} Mbit/s",
                f"{jain(share):.3f}",
                _percent(wrong),
                *([", ".join(map(_percent, known)) if known else "–"] if with_expected else []),
            )
        )
    return lines


def shares(mobiles: Sequence[Mobile]) -> list[float]:
    """Return the share of each mobile in the first transmissions. All have the whole band."""
    whole = sum(mobile.attempts[0] for mobile in mobiles)
    return [mobile.attempts[0] / whole for mobile in mobiles]


def expected(name: str, mobiles: Sequence[Mobile]) -> list[float] | None:
    """Return the shares that make the metric of all mobiles equal, if each has one scheme.

    The metric is the rate of the estimate by the mean rate that was sent. LENA estimates by the
    block of a group of resource blocks, airpath by the bits per symbol of the CQI.
    """
    if any(len(mobile.schemes) != 1 for mobile in mobiles):
        return None
    used = [next(iter(mobile.schemes)) for mobile in mobiles]
    if name.startswith("LENA"):
        parts = [block_bits(scheme, GROUP) / block_bits(scheme) for scheme in used]
    else:
        cqis = [max(cqi for cqi in range(1, 16) if lena.scheme_of(cqi) == scheme) for scheme in used]
        parts = [lena.efficiencies()[cqi - 1] / block_bits(scheme) for cqi, scheme in zip(cqis, used, strict=True)]
    return [part / sum(parts) for part in parts]


def jain(values: Sequence[float]) -> float:
    """Return Jain's index."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


# --- Cells of tables ------------------------------------------------------------------------------


def _head(*names: str) -> Lines:
    return [_row(*names), _row(*("---" for _ in names))]


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _decibels(level: float) -> str:
    return f"{level:g} dB".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(share: float, decimals: int = 0) -> str:
    return f"{100 * share:+.{decimals}f} %".replace("-", "−")
