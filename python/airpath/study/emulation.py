"""A study's cases under the real clock.

The kernel's TCP over emulated links, several at the same time.
"""

import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict

from airpath import realtime
from airpath.quantities import parse_size
from airpath.run import resolve
from airpath.study.definition import Case, Emulation
from airpath.study.errors import StudyError
from airpath.study.rows import Emulated, RowKey, require_two_values, row_key

_BUDGET = "5 ms"
"""Limit of the lateness of 99 % of the packets: a fiftieth of the round trips of the studies."""
_ATTEMPTS = 3
"""An invalid run is repeated up to this number of attempts. The best attempt counts; if invalid, it
is marked."""


def run_cases(
    cases: Sequence[Case],
    emulation: Emulation,
    *,
    seed: int,
    repeat: int,
    parallel: int,
    on_case_done: Callable[[], None],
) -> dict[RowKey, Emulated]:
    """Run each case over its own link, `repeat` downloads in sequence, and return its figures.

    After Ctrl-C it ends the links, and returns the figures of the cases that were complete.

    Raises:
        StudyError: This host cannot make a link, a download did not finish, or fewer than two
            downloads have a value of a metric.
    """
    obstacle = realtime.obstacle()
    if obstacle is not None:
        raise StudyError(f"the real clock needs emulated links, and this host cannot make one: {obstacle}")

    links = realtime.Links()

    complete: list[dict[RowKey, Emulated]] = []

    def run(case: Case) -> None:
        measured = _measure(case, emulation, seed, repeat, links)
        flows = [asdict(transfer) for transfer in measured.transfers]
        figures: dict[RowKey, Emulated] = {}
        for metric in case.metrics:
            samples = tuple(metric.compute([flow], case.inputs) for flow in flows)
            require_two_values(samples, case.label, metric.name)
            figures[row_key(case.experiment, case.axis_values, metric.name)] = Emulated(
                samples=samples,
                late_s=measured.late_s,
                overruns=measured.overruns,
                valid=measured.valid,
            )
        complete.append(figures)
        on_case_done()

    with ThreadPoolExecutor(parallel) as pool:
        try:
            for future in [pool.submit(run, case) for case in cases]:
                # A signal that another thread receives does not interrupt a wait without a limit.
                while not wait([future], timeout=0.5).done:
                    pass
                future.result()
        except realtime.RealtimeError as error:
            pool.shutdown(wait=False, cancel_futures=True)
            links.end()
            raise StudyError(f"under the real clock: {error}") from error
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            links.end()
    return {key: figure for figures in complete for key, figure in figures.items()}


def _measure(case: Case, emulation: Emulation, seed: int, repeat: int, links: realtime.Links) -> realtime.Measured:
    """Return the downloads of a case: of the first valid attempt, or else of the best one."""
    (flow,) = tomllib.loads(resolve(case.scenario, set=case.set))["flow"]
    attempts: list[realtime.Measured] = []
    while len(attempts) < _ATTEMPTS and not any(each.valid for each in attempts):
        attempts.append(
            realtime.measure(
                case.scenario,
                bytes=parse_size(flow["bytes"]),
                request=parse_size(flow["request"]),
                count=repeat,
                set=case.set,
                seed=seed,
                sysctl=emulation.sysctl,
                budget=_BUDGET,
                timeout=3600,
                links=links,
            )
        )
    return min(attempts, key=lambda each: (not each.valid, each.overruns, each.late_s))
