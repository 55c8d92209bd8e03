"""What the means of a sweep lack: flows that did not finish, and intervals that stayed wide."""

from collections.abc import Sequence

from airpath.quantities import share
from airpath.sweep.kinds import Simulation
from airpath.sweep.result import SweepResult

_MOST_CASES = 5
"""Cases that a text names."""


def shortcomings(result: SweepResult) -> list[str]:
    """Return what the means of a sweep lack, in words."""
    return [*_unfinished(result), *_wide(result)]


def _unfinished(result: SweepResult) -> list[str]:
    """Return the numbers of the simulated flows that were aborted or unfinished."""
    import polars as pl

    if not isinstance(result.work, Simulation):
        return []
    columns = pl.len(), pl.col("cause").drop_nulls().unique(), pl.col("case").unique()
    flows = result.scan().group_by("outcome").agg(*columns).collect()
    found = {outcome: (number, causes, cases) for outcome, number, causes, cases in flows.iter_rows()}
    total = sum(number for number, *_ in found.values())
    texts = []
    for outcome in ("aborted", "unfinished"):
        if outcome in found:
            number, causes, cases = found[outcome]
            because = f": {', '.join(sorted(causes))}" if causes else ""
            where = "all cases" if len(cases) == len(result.plan["cases"]) else _named(sorted(cases))
            texts.append(
                f"{number:,} of {total:,} flows {outcome} in {where}{because}; means are without the values they lack"
            )
    return texts


def _wide(result: SweepResult) -> list[str]:
    """Return the cases of `repeat.within` that ended with their most repetitions."""
    until = result.plan["repeat"]
    if isinstance(until, int) or not result.complete:
        return []
    means = result.means(until["figure"], flow=until["flow"]).select("case", "mean", "low", "high")
    widest = 1.000_001 * until["within"]  # the sweep has summed in another order
    wide = [case for case, mean, low, high in means.iter_rows() if low is None or high - low > 2 * widest * abs(mean)]
    within = f"`within` ({share(until['within'])} of the mean) after {until['most']} repetitions"
    return [f"{_named(wide)}: the interval of {until['figure']} is wider than {within}"] if wide else []


def _named(cases: Sequence[int]) -> str:
    """Return the numbers of some cases as text."""
    *first, last = map(str, cases[:_MOST_CASES])
    if len(cases) > _MOST_CASES:
        return f"cases {', '.join([*first, last])} and {len(cases) - _MOST_CASES:,} more"
    return f"cases {', '.join(first)} and {last}" if first else f"case {last}"
