"""Compares results, and applies rules to the comparison."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from airpath import extras
from airpath.compare import statistics
from airpath.compare.rules import Rule, parse_rule
from airpath.compare.samples import Group, IncomparableError, Samples, load_samples
from airpath.compare.statistics import Pair
from airpath.flow_groups import known_names, names_group
from airpath.quantities import number_of
from airpath.suggest import suggestion
from airpath.tables import FIGURES

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.05
"""Probability of a false alarm: over all rules of a comparison, and over all its rows."""

_ASSUMED_CHANGE = 0.05
"""The change for which the needed repetitions are computed where no rule has a limit."""


HEAD = ("flow", "figure", "base", "new", "change", "95 % interval", "p", "verdict")
"""Titles of the columns of `cells`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one flow, on both sides."""

    new: str
    """The name of the new result."""
    group: Group
    figure: str
    pair: Pair
    base_mean: float
    new_mean: float
    base_median: float
    new_median: float
    change: float | None
    """Relative difference of the means."""
    interval: tuple[float, float] | None
    """Its 95 % bootstrap interval."""
    delta: float
    """Cliff's delta."""
    p: float
    """Of Mann–Whitney's test, of Wilcoxon's for pairs; corrected for the number of rows."""
    verdict: str
    """`higher` or `lower`; `other distribution` if the samples differ but not clearly their mean;
    `equal`, `no difference found`, or `too few repetitions`."""
    needed: int | None
    """About how many repetitions would show a change of 5 %, after the correction of p."""


def cells(row: Row) -> list[str]:
    """Return a row as text."""
    interval = "" if row.interval is None else f"{row.interval[0]:+.1%} to {row.interval[1]:+.1%}"
    verdict = row.verdict
    if verdict in ("too few repetitions", "no difference found") and row.needed:
        verdict += f"; about {row.needed} would show 5 %"
    return [
        row.group,
        row.figure,
        f"{row.base_mean:.4g}",
        f"{row.new_mean:.4g}",
        "" if row.change is None else f"{row.change:+.1%}",
        interval,
        f"{row.p:.2g}",
        verdict,
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule, applied to one flow."""

    rule: Rule
    new: str
    group: Group
    value: float | None
    """The change as a share of the base, or the new value."""
    p: float | None
    """Of the permutation test, corrected for the number of outcomes."""
    state: str
    """`passed`, `failed`, or `undecided`: beyond the limit, with too few repetitions for a test."""
    message: str


class Comparison:
    """Results compared with a base, flow by flow and figure by figure."""

    def __init__(
        self, base: Samples, others: Sequence[Samples], *, figures: Sequence[str] | None, rules: Sequence[Rule]
    ) -> None:
        self.base, self.others, self.rules = base, tuple(others), tuple(rules)
        self._figures = figures
        for new in others:
            if not set(base.values) & set(new.values):
                raise IncomparableError(
                    f"{base.name} and {new.name} have no flow in common",
                    next_step=f"the first has {_few(base.values)}, the other {_few(new.values)}",
                )

    def __repr__(self) -> str:
        others = ", ".join(each.name for each in self.others)
        return f"<airpath.Comparison of {others} with {self.base.name}>"

    def _repr_html_(self) -> str:
        from airpath.notebook import table

        rows = [cells(row) for row in self.rows]
        return table(
            ", ".join(each.name for each in self.others), f" against {self.base.name}", HEAD, rows, rest="in .rows"
        )

    @cached_property
    def rows(self) -> list[Row]:
        """All comparisons, with p-values corrected for their number."""
        from airpath.compare.statistics import holm, shift_p

        found = [
            (new, group, figure, self._pair(new, group, figure))
            for new in self.others
            for group in self.base.values
            for figure in self._compared(new, group)
        ]
        corrected = holm([shift_p(pair) for *_, pair in found])
        return [
            _row(new.name, group, figure, pair, p, len(found))
            for (new, group, figure, pair), p in zip(found, corrected, strict=True)
        ]

    @property
    def incomplete(self) -> list[str]:
        """Messages about results that are not complete, such as those of interrupted runs."""
        return [message for each in (self.base, *self.others) for message in each.incomplete]

    @cached_property
    def partial(self) -> list[str]:
        """Messages about compared figures that some flows of a group lack."""
        found: dict[Group, list[str]] = {}
        for group, figure in dict.fromkeys((row.group, row.figure) for row in self.rows):
            for side in (self.base, *self.others):
                if counts := side.missing.get((group, figure)):
                    found.setdefault(group, []).append(f"{figure} {counts[0]:,} of {counts[1]:,} in {side.name}")
        return [
            f"{group}: means are without the flows that have no value: {', '.join(of)}" for group, of in found.items()
        ]

    @cached_property
    def unmatched(self) -> list[str]:
        """Flows, and repetitions of pairs, that only one side has, as messages."""
        messages = []
        for new in self.others:
            sides = ((self.base, new), (new, self.base))
            messages += [
                f"{group}: only in {one.name}"
                for one, other in sides
                for group in one.values
                if group not in other.values
            ]
            if self.base.seed is None or self.base.seed != new.seed:
                continue
            for one, other in sides:
                counts = {group: _alone(one, other, group) for group in one.values if group in other.values}
                messages += [
                    f"{group}: {number_of(count, 'repetition')} only in {one.name}"
                    for group, count in counts.items()
                    if count
                ]
        return messages

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The rules, applied to every flow on both sides that has the figure in the base.

        Raises:
            IncomparableError: No flow has the figure of a rule.
        """
        applied = []
        for rule in self.rules:
            found = [
                (rule, new, group, self._pair(new, group, rule.figure))
                for new in self.others
                for group in self._groups_of(rule)
                if self.base.get(group, rule.figure) and new.of(group)
            ]
            if not found:
                raise self._without(rule)
            applied += found
        tested = [statistics.permutation_p(pair, rule.statistic, tests=len(applied)) for rule, _, _, pair in applied]
        corrected = statistics.holm(tested)
        return [
            _outcome(rule, new.name, group, pair, p, len(applied))
            for (rule, new, group, pair), p in zip(applied, corrected, strict=True)
        ]

    @property
    def failed(self) -> list[Outcome]:
        """The rules that failed."""
        return [each for each in self.outcomes if each.state == "failed"]

    @property
    def undecided(self) -> list[Outcome]:
        """The rules that too few repetitions left undecided."""
        return [each for each in self.outcomes if each.state == "undecided"]

    @property
    def frame(self) -> "pl.DataFrame":
        """The rows as a frame."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "new": row.new,
                    "flow": row.group,
                    "figure": row.figure,
                    "base_n": len(row.pair.base),
                    "new_n": len(row.pair.new),
                    "paired": row.pair.is_paired,
                    "base_mean": row.base_mean,
                    "new_mean": row.new_mean,
                    "base_median": row.base_median,
                    "new_median": row.new_median,
                    "change": row.change,
                    "change_low": row.interval and row.interval[0],
                    "change_high": row.interval and row.interval[1],
                    "cliffs_delta": row.delta,
                    "p": row.p,
                    "verdict": row.verdict,
                    "needed": row.needed,
                }
                for row in self.rows
            ],
            infer_schema_length=None,
        )

    def _groups_of(self, rule: Rule) -> list[Group]:
        """Return the groups that a rule applies to, or the single flow that it names."""
        if rule.group in self.base.alone:
            return [rule.group]
        return [group for group in self.base.values if rule.group is None or names_group(rule.group, group)]

    def _without(self, rule: Rule) -> IncomparableError:
        """Return the error of a rule that applies to no flow, with the reason."""
        figures = dict.fromkeys(figure for found in self.base.values.values() for figure in found)
        if rule.figure not in figures:
            # A figure of other flows is no misspelt one.
            near = None if rule.figure in FIGURES else suggestion(rule.figure, figures)
            message = f"rule '{rule.text}': {self.base.name} has no figure '{rule.figure}'"
            return IncomparableError(message, next_step=near or f"there are {', '.join(figures)}")
        if rule.group is not None and not self._groups_of(rule):
            near = suggestion(rule.group, known_names(self.base.values))
            message = f"rule '{rule.text}': {self.base.name} has no flow '{rule.group}'"
            return IncomparableError(message, next_step=near or f"there are {_few(self.base.values)}")
        return IncomparableError(f"rule '{rule.text}': no flow has {rule.figure} on both sides")

    def _pair(self, new: Samples, group: Group, figure: str) -> Pair:
        paired = self.base.seed is not None and self.base.seed == new.seed
        return statistics.pair_of(self.base.get(group, figure), new.get(group, figure), paired=paired)

    def _compared(self, new: Samples, group: Group) -> Iterable[str]:
        both = [figure for figure in self.base.values[group] if new.get(group, figure)]
        if self._figures is not None:
            return [figure for figure in self._figures if figure in both]
        return [figure for figure in self.base.main if figure in both]


def compare(
    base: str | Path,
    *new: str | Path,
    flows: Sequence[str | int] | None = None,
    figures: Sequence[str] | None = None,
    fail_if: Sequence[str | Rule] = (),
) -> Comparison:
    """Compare results with a base.

    Results are those of runs, links, page loads and measurements, folders of several of them (each
    is a further repetition), sweeps, and captures. Flows and pages are matched by name, in sweeps
    also by case. The flows of a group of mobiles are compared together: a repetition counts once,
    with their mean.
    Simulations with the same seed are compared repetition by repetition.

    Args:
        base: The result that the others are compared with.
        new: The other results.
        flows: The flows to compare, by name, by the name of their group or mobile, or by number; of
            captures, selectors of connections. By default all.
        figures: Columns of the tables; by default the main ones of flows and pages, or a study's.
        fail_if: Rules, such as `"duration_s p95 > 5 %"`.

    Raises:
        ExtraMissingError: The extra `compare` is not installed.
        IncomparableError: There is no result, or the results have no flow or figure in common.
        RuleError: A rule is invalid.
        UnreadableResultError: A result is damaged or of another version.
    """
    extras.require("compare", "scipy")
    if not new:
        raise IncomparableError(f"{base} is the only result", next_step="give another one to compare with it")
    rules = [parse_rule(each) if isinstance(each, str) else each for each in fail_if]
    named = [rule.group for rule in rules if rule.group is not None]
    samples = [load_samples(each, flows, named) for each in (base, *new)]
    comparison = Comparison(samples[0], samples[1:], figures=figures, rules=rules)
    for figure in figures or ():
        if all(row.figure != figure for row in comparison.rows):
            known = sorted({each for values in comparison.base.values.values() for each in values})
            near = suggestion(figure, known)
            next_step = f"{f'{near} ' if near else ''}{base} has {', '.join(known)}"
            raise IncomparableError(f"no flow has {figure} on both sides", next_step=next_step)
    return comparison


def _row(new: str, group: Group, figure: str, pair: Pair, p: float, rows: int) -> Row:
    mean, median = statistics.statistic("mean"), statistics.statistic("median")
    base_mean, new_mean = float(mean(pair.base)), float(mean(pair.new))
    delta = statistics.cliffs_delta(pair)
    bounds = statistics.interval(pair, "mean")
    if p < LEVEL and (bounds is None or bounds[0] > 0 or bounds[1] < 0):
        verdict = "higher" if new_mean > base_mean else "lower"
    elif p < LEVEL:
        verdict = "other distribution"
    elif pair.is_paired and not (pair.new - pair.base).any():
        verdict = "equal"
    elif statistics.least_shift_p(len(pair.base), len(pair.new), paired=pair.is_paired) * rows >= LEVEL:
        verdict = "too few repetitions"
    else:
        verdict = "no difference found"
    return Row(
        new=new,
        group=group,
        figure=figure,
        pair=pair,
        base_mean=base_mean,
        new_mean=new_mean,
        base_median=float(median(pair.base)),
        new_median=float(median(pair.new)),
        change=statistics.relative(base_mean, new_mean),
        interval=bounds,
        delta=delta,
        p=p,
        verdict=verdict,
        needed=statistics.needed_samples(pair, _ASSUMED_CHANGE, LEVEL / rows),
    )


def _outcome(rule: Rule, new: str, group: Group, pair: Pair, p: float, outcomes: int) -> Outcome:
    if not len(pair.new):
        # Such as the duration of a download that is aborted now.
        missing = f"no value of {rule.figure}; {len(pair.base)} repetitions of the base have one"
        return Outcome(rule, new, group, None, None, "failed", missing)
    compute = statistics.statistic(rule.statistic)
    base_value, new_value = float(compute(pair.base)), float(compute(pair.new))
    value = statistics.relative(base_value, new_value) if rule.is_relative else new_value
    shown = f"{rule.figure} {rule.statistic} {new_value:.4g}"
    if rule.is_relative:
        shown += f" against {base_value:.4g}" + ("" if value is None else f", {value:+.1%}")
    # From zero, each change is beyond any share.
    change = math.copysign(math.inf, new_value) if value is None and new_value else value
    if change is None or not rule.is_beyond(change):
        return Outcome(rule, new, group, value, p, "passed", shown)
    if not rule.is_relative:
        return Outcome(rule, new, group, value, None, "failed", f"{shown}, the limit is {rule.limit:g}")
    if p < LEVEL:
        return Outcome(rule, new, group, value, p, "failed", f"{shown} (p = {p:.2g})")
    shift = abs(rule.limit) or _ASSUMED_CHANGE
    needed = statistics.needed_samples(pair, shift, LEVEL / outcomes)
    fewer = min(len(pair.base), len(pair.new))
    # These repetitions would probably have shown a change of the limit.
    if pair.least_p * outcomes < LEVEL and (needed is None or needed <= fewer):
        return Outcome(rule, new, group, value, p, "passed", f"{shown}, which chance explains (p = {p:.2g})")
    fewest = statistics.fewest_samples(LEVEL / outcomes, paired=pair.is_paired)
    enough = f"about {needed} repetitions of each would show {shift:.0%}" if needed else f"{fewest} of each may suffice"
    n = f"{len(pair.base)} and {len(pair.new)}"
    return Outcome(
        rule, new, group, value, p, "undecided", f"{shown} (p = {p:.2g}): {n} repetitions are too few; {enough}"
    )


def _alone(one: Samples, other: Samples, group: Group) -> int:
    """Return the number of repetitions of a group that the other side does not have."""
    mine, theirs = ({each for values in side.values[group].values() for each in values} for side in (one, other))
    return len(mine - theirs)


def _few(groups: Iterable[Group]) -> str:
    names = list(groups)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
