"""The tables of docs/validation.md, as lines of Markdown."""

import math
import platform
import statistics
import textwrap
from collections.abc import Iterable, Sequence

import rules
from comparison import FRESH, MORE, is_unexplained
from differences import Compared
from formulas import Check

Lines = list[str]


def unexplained(compared: Iterable[Compared]) -> list[Compared]:
    """Return the differences beyond chance that have no known reason."""
    return [each for each in compared if is_unexplained(each)]


def summary(
    seeds: Sequence[int], compared: Sequence[Compared], scenarios: int, repetitions: int, failures: int = 0
) -> Lines:
    """Return what was run, and the verdict."""
    beyond = sum(each.is_beyond for each in compared)
    missing = len(unexplained(compared))
    run = f"{scenarios} scenarios" if scenarios != 1 else "1 scenario"
    words = f"{run} of each seed ({', '.join(map(str, seeds))}) with {repetitions} repetitions, or "
    words += f"{MORE * repetitions} where the first ones differ, or {FRESH * repetitions} new ones where these differ "
    words += f"without a known reason: {len(compared)} compared figures, {beyond} with a difference beyond chance and "
    words += f"10 %, {missing} of them without a known reason."
    if failures:
        words += f" {failures} times a program gave no figures."
    return textwrap.wrap(words, 120)


def groups(compared: Iterable[Compared]) -> Lines:
    """Return a table of the agreement by program and kind of scenario."""
    by_group: dict[tuple[str, str], list[Compared]] = {}
    for each in compared:
        by_group.setdefault((group(each), each.figure), []).append(each)
    lines = _head(
        "airpath against", "figure", "scenarios", "median", "largest", "beyond chance and 10 %", "unexplained"
    )
    for (name, figure), members in sorted(by_group.items()):
        sizes = [abs(each.difference) for each in members]
        beyond = [each for each in members if each.is_beyond]
        lines.append(
            _row(
                name,
                figure,
                len(members),
                percent(statistics.median(sizes)),
                percent(max(sizes)),
                len(beyond),
                len(unexplained(members)),
            )
        )
    return lines


def kernel(compared: Sequence[Compared], failures: int = 0) -> Lines:
    """Return a table of all comparisons with the kernel, and its version."""
    heads = ("seed/number", "scenario", "figure", "repetitions", "airpath", "kernel", "difference", "z")
    lines = _head(*heads, "retransmissions", "reason")
    for each in compared:
        rule = rules.reason(each)
        lines.append(
            _row(
                f"{each.scenario.seed}/{each.scenario.number}",
                each.scenario.title,
                each.figure,
                len(each.ours),
                *(value(each, mean) for mean in each.means),
                signed(each.difference),
                deviates(each.z),
                f"{percent(each.repeated[0])}, {percent(each.repeated[1])}",
                "" if not each.is_beyond else rule.name if rule else "**unexplained**",
            )
        )
    sizes = [abs(each.difference) for each in compared]
    beyond = sum(each.is_beyond for each in compared)
    words = f"Kernel {platform.release()}. {len(compared)} figures: the median difference is "
    words += (
        f"{percent(statistics.median(sizes))}, the largest {percent(max(sizes))}; {beyond} are beyond chance and 10 %."
    )
    if failures:
        words += f" {failures} scenario{'s' * (failures > 1)} gave no figures."
    return [*lines, "", *textwrap.wrap(words, 120)]


def group(compared: Compared) -> str:
    """Return the name of the group that a comparison belongs to."""
    scenario = compared.scenario
    words = [compared.rival, *(["CoDel"] if scenario.codel else []), *(["ECN"] if scenario.ecn else [])]
    if "ns-3" in compared.rival and not scenario.sack:
        words.append("without SACK")
    return ", ".join(words)


def differences(compared: Iterable[Compared], most: int | None = None) -> Lines:
    """Return a table of the differences beyond chance, with their reasons.

    Args:
        compared: All comparisons.
        most: The largest number of rows with the same reason, of the largest differences; without
            it, and without a reason, all.
    """
    heads = ("seed/number", "scenario", "airpath against", "figure", "airpath", "other", "difference", "z")
    lines = _head(*heads, "retransmissions", "time-outs", "reason")
    shown: dict[str, int] = {}
    for each in sorted((each for each in compared if each.is_beyond), key=_order):
        rule = rules.reason(each)
        ours, theirs = each.means
        if rule:
            shown[rule.name] = shown.get(rule.name, 0) + 1
            if most is not None and shown[rule.name] > most:
                continue
        lines.append(
            _row(
                f"{each.scenario.seed}/{each.scenario.number}",
                each.scenario.title,
                each.rival,
                each.figure,
                value(each, ours),
                value(each, theirs),
                signed(each.difference),
                deviates(each.z),
                f"{percent(each.repeated[0])}, {percent(each.repeated[1])}",
                "" if each.timeouts is None else f"{each.timeouts[0]:.1f}, {each.timeouts[1]:.1f}",
                rule.name if rule else "**unexplained**",
            )
        )
    return lines


def _order(compared: Compared) -> tuple[int, float]:
    """Return a key that sorts by reason, first those without one, then by size."""
    rule = rules.reason(compared)
    return -1 if rule is None else rules.RULES.index(rule), -abs(compared.difference)


def reasons(compared: Iterable[Compared]) -> Lines:
    """Return a table of the known reasons, with the number of differences that each explains."""
    found = [rules.reason(each) for each in compared if each.is_beyond]
    rows = (_row(rule.name, found.count(rule), rule.condition, rule.reason) for rule in rules.RULES)
    return [*_head("reason", "differences", "condition", "explanation"), *rows]


def formulas(checks: Sequence[Check]) -> Lines:
    """Return a table of the agreement by formula."""
    lines = _head("formula", "checks", "median", "largest", "limit", "beyond it and chance", "largest at")
    for name in dict.fromkeys(check.formula for check in checks):
        members = [check for check in checks if check.formula == name]
        sizes = [abs(check.difference) for check in members]
        largest = max(members, key=lambda check: abs(check.difference))
        lines.append(
            _row(
                name,
                len(members),
                exact(statistics.median(sizes)),
                exact(max(sizes)),
                exact(largest.limit),
                sum(check.is_beyond for check in members),
                _values(largest),
            )
        )
    return lines


def formula_line(check: Check) -> str:
    """Return a check as a line of text."""
    return f"{check.formula}, {_values(check)}, {100 * check.difference:+.2f} %, z {deviates(check.z)}"


def _values(check: Check) -> str:
    limits = check.theory if isinstance(check.theory, tuple) else (check.theory,)
    theory = " to ".join(check.show(each) for each in limits)
    return f"{check.parameters}: {check.show(check.mean)}, formula {theory}"


def exact(share: float) -> str:
    """Return a share in percent, with two digits."""
    return "0" if share < 1e-8 else f"{100 * share:.2g} %"


def line(compared: Compared) -> str:
    """Return a difference as a line of text."""
    ours, theirs = (value(compared, mean) for mean in compared.means)
    scenario = compared.scenario
    return (
        f"scenario {scenario.seed}/{scenario.number} ({scenario.title}), {compared.rival}: {compared.figure} "
        f"{ours} against {theirs}, {signed(compared.difference)}, z {deviates(compared.z)}"
    )


def value(compared: Compared, number: float) -> str:
    """Return a figure with its unit."""
    match compared.figure:
        case "goodput":
            return f"{number / 1e6:.3g} Mbit/s"
        case "completion":
            return f"{number:.3g} s"
        case _:
            return f"{number:.3f}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f} %"


def signed(share: float) -> str:
    """Return a relative difference in percent, with its sign."""
    return f"{100 * share:+.0f} %".replace("-", "−")


def deviates(z: float) -> str:
    """Return a number of standard errors."""
    return "∞" if math.isinf(z) else f"{z:.1f}"


def _head(*names: str) -> Lines:
    return [_row(*names), _row(*["---"] * len(names))]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
