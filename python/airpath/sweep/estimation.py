"""Estimates from measured runs: the time of a sweep, and the size of its tasks."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from airpath.flow_groups import is_named
from airpath.sweep.plan import Plan, PlanError
from airpath.sweep.pool import cores
from airpath.sweep.stopping import ended_by_signals
from airpath.sweep.task import Outcome, run_task
from airpath.sweep.work import Batch, Task, Until

TASK_SECONDS = 1.0
"""Aim for the duration of a task: long against the driver's work for it, short against a loss."""

_MOST_RUNS_PER_TASK = 10_000
_MOST_MEASURED = 5
_MEASURED_SECONDS = 0.2
"""Cases that an estimate runs, and about how long each."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep would take."""

    cases: int
    runs: int
    """With `repeat.within` the most."""
    fewest: int
    """With `repeat.within` the fewest runs; otherwise the same number."""
    seconds_per_run: float
    """Measured: the mean of some cases."""
    measured: int
    """The number of these cases."""
    workers: int

    def seconds(self, runs: int) -> float:
        """Return the time of a number of runs on the workers."""
        return runs * self.seconds_per_run / min(self.workers, max(runs, 1))


def estimate(plan: Plan, workers: int | None = None) -> Estimate:
    """Run some cases and estimate the time of the sweep.

    In real time that is one run of one case, otherwise several runs of up to `_MOST_MEASURED`
    cases, evenly spread over the plan.

    Raises:
        PlanError: One of these runs fails, or the scenario has no flow of the name in `repeat`.
    """
    cases = len(plan.cases)
    most = 1 if plan.work.is_real_time else min(cases, _MOST_MEASURED)
    measured = sorted({round(index * (cases - 1) / max(most - 1, 1)) for index in range(most)})
    first = _probed(plan, measured[0], 1)
    check_flow(plan, first)
    if plan.work.is_real_time:
        seconds = [first.seconds]
    else:
        seconds = [_seconds_per_run(plan, measured[0], _probed, first)]
        seconds += [_seconds_per_run(plan, case, _probed, _probed(plan, case, 1)) for case in measured[1:]]
    fewest = cases * (plan.repeat.least if isinstance(plan.repeat, Until) else plan.repeat)
    mean = sum(seconds) / len(seconds)
    return Estimate(cases, plan.runs, fewest, mean, len(measured), workers or cores(plan))


def task_size(plan: Plan, workers: int, first: Outcome | None = None) -> int:
    """Return the runs of a task, from the time of one run.

    Args:
        plan: The plan.
        workers: The number of tasks that run at the same time.
        first: A run of the first case, if there was one.
    """
    if plan.work.is_real_time:
        return 1
    once = _seconds_per_run(plan, 0, probe, first or probe(plan, 0, 1))
    fitting = math.ceil(TASK_SECONDS / max(once, 1e-6))
    # A few tasks for each worker, so that all end at about the same time.
    return max(1, min(fitting, math.ceil(plan.runs / (4 * workers)), _MOST_RUNS_PER_TASK))


def _seconds_per_run(plan: Plan, case: int, run: Callable[[Plan, int, int], Outcome], first: Outcome) -> float:
    # The first run loads modules, and fills caches; the second gives the number for the third. A
    # long one is not repeated.
    if first.seconds >= TASK_SECONDS:
        return first.seconds
    once = run(plan, case, 1).seconds
    most = plan.repeat if isinstance(plan.repeat, int) else plan.repeat.least
    count = max(1, min(math.ceil(_MEASURED_SECONDS / max(once, 1e-6)), most))
    return once if count == 1 else run(plan, case, count).seconds / count


def probe(plan: Plan, case: int, count: int) -> Outcome:
    """Run some repetitions of a case in this process."""
    batch = Batch(case, tuple(plan.overrides(case)), plan.cases[case], 0, count)
    with ended_by_signals():
        return run_task(Task(plan.text, plan.file, plan.seed, tuple(plan.kinds().items()), (batch,), plan.work))


def _probed(plan: Plan, case: int, count: int) -> Outcome:
    """Run some repetitions of a case in this process.

    Raises:
        PlanError: One fails.
    """
    outcome = probe(plan, case, count)
    if outcome.failures:
        raise PlanError(f"case {case} fails: {outcome.failures[0].error}")
    return outcome


def check_flow(plan: Plan, outcome: Outcome) -> None:
    """Check that the rows have the flow of `repeat`.

    Raises:
        PlanError: They have other flows.
    """
    import io

    import polars as pl

    from airpath.suggest import suggestion

    if not isinstance(plan.repeat, Until) or plan.repeat.flow is None or outcome.failures:
        return
    flows = pl.read_parquet(io.BytesIO(outcome.tables["flows"]))
    names = flows["name"].unique(maintain_order=True).to_list()
    if flows.filter(is_named(plan.repeat.flow)).is_empty():
        next_step = suggestion(plan.repeat.flow, names) or f"there is {', '.join(names[:5])}"
        raise PlanError(f"repeat: no flow '{plan.repeat.flow}' in {plan.file}", next_step=next_step)
