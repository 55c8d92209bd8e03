"""What is said of a finished run or measurement beside its figures, and the exit code that it gives."""

from pathlib import Path
from typing import Any

from airpath.cli.words import ExitCode, Problem, note


def remark_on(summary: dict[str, Any], out: Path | None) -> ExitCode:
    """Say on standard error what the figures alone might not, and return the exit code."""
    for outcome in ("aborted", "unfinished"):
        flows = [flow for flow in summary["flows"] if flow["outcome"] == outcome]
        if flows:
            causes = sorted({str(flow["cause"]) for flow in flows if flow["cause"]})
            because = f": {', '.join(causes)}" if causes else ""
            note(f"{len(flows)} of {len(summary['flows'])} flows {outcome}{because}")
    kept = f"; what there is lies in {out}" if out is not None else ""
    if summary["complete"]:
        if out is not None:
            note(f"the result is in {out}; `airpath report {out} -o report.html` draws it")
        return ExitCode.OK
    if summary["stopped"] == "interrupted":
        note(f"interrupted: the figures are those of a partial run{kept}")
        return ExitCode.INTERRUPTED
    raise Problem(f"the run stopped: {summary['stopped']}{kept}", exit_code=ExitCode.FAILED)
