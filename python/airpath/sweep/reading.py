"""Reads a plan: its file, or the folder of a sweep that ran it."""

from pathlib import Path

from airpath.sweep.folder import SweepFolder
from airpath.sweep.kinds import from_dict
from airpath.sweep.plan import Plan, PlanError, read_file
from airpath.sweep.work import Until


def read_plan(path: str | Path) -> Plan:
    """Read the file of a plan, which `docs/sweep.md` describes, or the plan of a sweep's folder.

    Raises:
        PlanError: It cannot be read, or is invalid. The message has file, line and key.
        ScenarioError: Its scenario is invalid.
        SweepFolderError: The sweep in the folder is damaged or of another version.
    """
    folder = Path(path)
    if not folder.is_dir():
        return read_file(path)
    if not SweepFolder(folder).holds_plan():
        raise PlanError(
            f"{path} is a folder without a sweep", next_step="name the file of the plan, or the folder of a sweep"
        )
    state = SweepFolder(folder).state()
    plan = state["plan"]
    return Plan(
        text=plan["scenario"],
        file=state["file"],
        seed=plan["seed"],
        columns=tuple(plan["columns"]),
        cases=tuple(tuple(case) for case in plan["cases"]),
        repeat=plan["repeat"] if isinstance(plan["repeat"], int) else Until(**plan["repeat"]),
        fixed=plan["set"],
        work=from_dict(plan["work"]),
        labels=tuple(plan["labels"]),
        given=tuple(plan["given"]),
    )
