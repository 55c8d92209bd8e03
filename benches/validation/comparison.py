"""Runs the repetitions of a scenario in airpath and in the programs of others."""

from collections.abc import Callable, Iterable, Sequence

import rules
from differences import Compared, Figure, figures
from dumbbell import Scenario
from programs import Airpath, Outcome, Program, ProgramError

MORE = 4
"""The number of repetitions is multiplied by this where the first ones differ."""
FRESH = 16
"""A difference without a known reason is judged by this multiple of the first number, all new."""


def compare(
    scenario: Scenario,
    rivals: Iterable[Program],
    *,
    repetitions: int,
    report: Callable[[str], None] = lambda _: None,
    failed: Callable[[str], None] = lambda _: None,
) -> list[Compared]:
    """Run a scenario in airpath and in all rivals that can run it.

    Args:
        scenario: The scenario.
        rivals: Programs that are installed.
        repetitions: Their number; there are four times as many where the means differ by more
            than 10 %, unless that is beyond chance and has a known reason. Where it is beyond
            chance without one, 16 times as many new repetitions replace them: of hundreds of
            figures, some are beyond three standard errors by chance.
        report: Called with a line of text after each rival.
        failed: Called with a line of text for a rival that gave no figures.
    """
    outcomes: dict[tuple[str, str, int], Outcome] = {}

    def run(program: Program, number: int) -> Outcome:
        key = program.name, program.settings, number
        if key not in outcomes:
            outcomes[key] = program.run(scenario.repetition(number))
        return outcomes[key]

    more, fresh = MORE * repetitions, (MORE + FRESH) * repetitions
    stages = ((range(repetitions), _may_differ), (range(more), is_unexplained), (range(more, fresh), is_unexplained))
    found: list[Compared] = []
    for rival in rivals:
        if not rival.can(scenario):
            continue
        ours = Airpath(rival.settings)
        try:
            compared: list[Compared] = []
            for numbers, is_open in stages:
                pairs = [(run(ours, number), run(rival, number)) for number in numbers]
                compared = _compared(scenario, rival, pairs)
                if not any(map(is_open, compared)):
                    break
        except ProgramError as error:
            failed(f"{scenario.seed}/{scenario.number}, {rival.name}: no figures: {error}")
            continue
        found += compared
        words = ", ".join(f"{each.figure} {100 * each.difference:+.1f} % (z {each.z:.1f})" for each in compared)
        report(f"{scenario.seed}/{scenario.number}, {rival.name}: {words}")
    return found


def is_unexplained(compared: Compared) -> bool:
    """Return whether a difference is beyond chance without a known reason."""
    return compared.is_beyond and rules.reason(compared) is None


def _may_differ(compared: Compared) -> bool:
    return compared.is_large and (not compared.is_beyond or is_unexplained(compared))


def _compared(scenario: Scenario, rival: Program, pairs: Sequence[tuple[Outcome, Outcome]]) -> list[Compared]:
    ours, theirs = (
        [figures(scenario, each, at_sender=rival.ends_at_sender) for each in side] for side in zip(*pairs, strict=True)
    )
    repeated = tuple(sum(each.repeated for each in side) / len(pairs) for side in zip(*pairs, strict=True))
    names: list[Figure] = list(ours[0])
    return [
        Compared(
            scenario,
            rival.name,
            name,
            tuple(each[name] for each in ours),
            tuple(each[name] for each in theirs),
            (repeated[0], repeated[1]),
            timeouts(pairs),
        )
        for name in names
    ]


def timeouts(pairs: Sequence[tuple[Outcome, Outcome]]) -> tuple[float, float] | None:
    """Return the mean numbers of time-outs in both programs, if both report them."""
    counts = [(ours.timeouts, theirs.timeouts) for ours, theirs in pairs]
    ours, theirs = ([each for each in side if each is not None] for side in zip(*counts, strict=True))
    if len(ours) < len(pairs) or len(theirs) < len(pairs):
        return None
    return sum(ours) / len(pairs), sum(theirs) / len(pairs)
