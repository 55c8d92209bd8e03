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
    run: Callable[[Case, int], Run],
    *,
    links: int,
    seeds: Callable[[Case], int],
    report: Callable[[str], None],
    show: Callable[[Run], str] = str,
    is_fast: Callable[[Case], bool] = lambda _: False,
    duration: Callable[[Case], float] = lambda _: 0.0,
) -> list[tuple[Run, ...]]:
    """Run each case with each of its seeds, and return the runs of each case by seed.

    Args:
        cases: The cases. Their text names them in reports.
        run: Runs a case with a seed.
        links: The number of runs at the same time.
        seeds: The number of seeds of a case; they begin with 1.
        report: Called with a line of text after each run.
        show: The text of a run.
        is_fast: Whether a case runs alone, after the others.
        duration: About how long a run takes, in any unit. The longest start first, so that all
            workers finish at about the same time.
    """
    jobs = [(case, index, seed) for index, case in enumerate(cases) for seed in range(1, seeds(case) + 1)]
    done: dict[tuple[int, int], Run] = {}

    def work(job: tuple[Case, int, int]) -> None:
        case, index, seed = job
        done[index, seed] = found = run(case, seed)
        report(f"{case}, seed {seed}: {show(found)}")

    with ThreadPoolExecutor(links) as pool:
        list(pool.map(work, sorted((job for job in jobs if not is_fast(job[0])), key=lambda job: -duration(job[0]))))
    for job in jobs:
        if is_fast(job[0]):
            work(job)
    return [tuple(done[index, seed] for seed in range(1, seeds(case) + 1)) for index, case in enumerate(cases)]


def best_attempt(attempt: Callable[[], Run], badness: Callable[[Run], tuple[bool, float, float]], *, most: int) -> Run:
    """Repeat a run until it is valid, at most `most` times, and return the best.

    `badness` of a run begins with whether it is invalid.
    """
    runs = [attempt()]
    while badness(runs[-1])[0] and len(runs) < most:
        runs.append(attempt())
    return min(runs, key=badness)
