"""A study's cases under the real clock: the kernel's TCP over emulated links, several side by side."""

import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from airpath import realtime
from airpath.quantities import parse_size
from airpath.run import resolve
from airpath.study.definition import Case, RealClock
from airpath.study.errors import StudyError
from airpath.study.rows import Real

Key = tuple[str, tuple[str, ...], str]
"""Of a row: its experiment, its case, its metric."""

_BUDGET = "5 ms"
"""The lateness that 99 % of the packets must keep to: a fiftieth of the round trips of the studies."""

_TRIES = 3
"""A link that was too late for that is made again; of so many the least late one counts, and is marked."""


def run_cases(
    cases: Sequence[Case], clock: RealClock, *, seed: int, repeat: int, links: int, done: Callable[[], None]
) -> dict[Key, Real]:
    """Run each case over a link of its own, `repeat` downloads one after the other, and return its figures.

    Raises:
        StudyError: This host cannot make a link, or a download did not come to its end.
    """
    obstacle = realtime.obstacle()
    if obstacle is not None:
        raise StudyError(f"the real clock needs emulated links, and this host cannot make one: {obstacle}")

    def run(case: Case) -> dict[Key, Real]:
        measured = _measure(case, clock, seed, repeat)
        done()
        flows = [asdict(transfer) for transfer in measured.transfers]
        return {
            (case.experiment, tuple(case.values.values()), kind.name): Real(
                samples=tuple(kind.compute([flow], case.given) for flow in flows),
                late_s=measured.late_s,
                valid=measured.valid,
            )
            for kind in case.metrics
        }

    figures: dict[Key, Real] = {}
    with ThreadPoolExecutor(links) as pool:
        try:
            for each in pool.map(run, cases):
                figures |= each
        except realtime.RealtimeError as error:
            pool.shutdown(cancel_futures=True)
            raise StudyError(f"under the real clock: {error}") from error
    return figures


def _measure(case: Case, clock: RealClock, seed: int, repeat: int) -> realtime.Measured:
    (flow,) = tomllib.loads(resolve(case.scenario, set=case.set))["flow"]
    best = None
    for _ in range(_TRIES):
        measured = realtime.measure(
            case.scenario,
            bytes=parse_size(flow["bytes"]),
            request=parse_size(flow["request"]),
            count=repeat,
            set=case.set,
            seed=seed,
            sysctl=clock.sysctl,
            budget=_BUDGET,
            timeout=3600,
        )
        best = measured if best is None else min(best, measured, key=lambda each: (not each.valid, each.late_s))
        if best.valid:
            break
    assert best is not None
    return best
