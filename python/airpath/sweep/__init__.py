"""Sweeps: one scenario with many settings, on the cores of a machine or of a cluster.

    import airpath

    result = airpath.sweep(airpath.read_plan("plan.toml"), out="runs/sweep")
    result.means("duration_s")

| module | what |
| --- | --- |
| `plan`, `axes` | the plan: which cases, how often |
| `reading` | a plan from its file, or from the folder of a sweep |
| `work`, `kinds` | tasks, and what a run is: a simulation, a command on a link, a page in a browser |
| `task` | what a worker runs |
| `driver` | submits tasks to an executor, and continues a sweep that ended early |
| `estimation` | the time of a sweep, and the size of its tasks, from measured runs |
| `stopping` | what ends simulations in this process |
| `pool` | an executor for tasks, and the worker processes of the built-in one |
| `progress` | shows what is done |
| `clusters`, `dask_executor` | executors on a Dask cluster |
| `shortcomings` | what the means lack |
| `folder`, `result` | the folder of a sweep, and its rows as frames |
"""

from airpath.sweep.driver import sweep
from airpath.sweep.estimation import Estimate, estimate
from airpath.sweep.folder import SweepFolderError
from airpath.sweep.plan import Plan, PlanError, make_plan
from airpath.sweep.pool import ExecutorLostError
from airpath.sweep.progress import Progress
from airpath.sweep.reading import read_plan
from airpath.sweep.result import SweepResult

__all__ = [
    "Estimate",
    "ExecutorLostError",
    "Plan",
    "PlanError",
    "Progress",
    "SweepFolderError",
    "SweepResult",
    "estimate",
    "make_plan",
    "read_plan",
    "sweep",
]
