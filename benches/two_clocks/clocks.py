"""A figure under both clocks, and runs of all cases and seeds."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

Case = TypeVar("Case")
Run = TypeVar("Run")


def chosen(cases: Iterable[Case], only: Iterable[str], name: Callable[[Case], str]) -> list[Case]:
    """Return the cases, or those with these names.

    Raises:
        SystemExit: No case has one of these names.
    """
    cases, names = list(cases), set(only)
    known = dict.fromkeys(name(case) for case in cases)
    if unknown := sorted(names - known.keys()):
        raise SystemExit(f"error: no case {unknown[0]}; there is {', '.join(known)}")
    return [case for case in cases if not names or name(case) in names]


class BothClocks(Protocol):
    """The runs of a case, seed by seed."""

    @property
    def simulated(self) -> Sequence[Any]:
        """The simulated runs."""
        ...

    @property
    def real(self) -> Sequence[Any]:
        """The emulated runs."""
        ...


def medians(row: BothClocks, figure: str = "duration_s") -> tuple[float, float]:
    """Return the simulated and the real median of a figure, an attribute of the runs."""
    simulated, real = (statistics.median(getattr(run, figure) for run in runs) for runs in (row.simulated, row.real))
    return simulated, real


def difference(row: BothClocks, figure: str = "duration_s") -> float:
    """Return the relative difference of the simulated median from the real one."""
    simulated, real = medians(row, figure)
    return simulated / real - 1


def percent(row: BothClocks, figure: str = "duration_s", *, digits: int = 2) -> str:
    """Return the difference as a cell of a table, in per cent."""
    return f"{100 * difference(row, figure):+.{digits}f} %".replace("-", "−")


def summary(rows: Sequence[BothClocks], figure: str = "duration_s", *, digits: int = 2) -> str:
    """Return the median and the largest of the differences, as the end of a sentence."""
    differences = [100 * abs(difference(row, figure)) for row in rows]
    median, largest = statistics.median(differences), max(differences)
    return f"the median difference is {median:.{digits}f} %, the largest {largest:.{digits}f} %."


def run_seeds(
    cases: Sequence[Case],
    run: Callable[[Case, int], tuple[Run, Run, float]],
    *,
    links: int,
    seeds: int,
    report: Callable[[str], None],
) -> list[tuple[Case, tuple[Run, ...], tuple[Run, ...], float]]:
    """Run each case with each seed, over at most `links` links at a time.

    `run` returns the simulated run, the real one, and the lateness of its link. Each row of the
    result has those of a case, and the largest lateness.
    """
    jobs = [(case, seed) for case in cases for seed in range(1, seeds + 1)]

    def work(job: tuple[Case, int]) -> tuple[Run, Run, float]:
        runs = run(*job)
        report(f"{job[0]}, seed {job[1]}: {runs}")
        return runs

    with ThreadPoolExecutor(links) as pool:
        done = list(pool.map(work, jobs))
    rows: list[tuple[Case, tuple[Run, ...], tuple[Run, ...], float]] = []
    for index, case in enumerate(cases):
        simulated, real, late = zip(*done[index * seeds : (index + 1) * seeds], strict=True)
        rows.append((case, simulated, real, max(late)))
    return rows
