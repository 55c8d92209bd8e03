"""Notes about a finished run or measurement, and its exit code."""

from pathlib import Path
from typing import Any

from airpath.cli.messages import ExitCode, Problem, note


def warn_about(summary: dict[str, Any], out: Path | None) -> ExitCode:
    """Print notes on standard error: failed flows, the result folder, an early end.

    Return the exit code.
    """
    for outcome in ("aborted", "unfinished"):
        flows = [flow for flow in summary["flows"] if flow["outcome"] == outcome]
        if flows:
            causes = sorted({str(flow["cause"]) for flow in flows if flow["cause"]})
            because = f": {', '.join(causes)}" if causes else ""
            note(f"{len(flows)} of {len(summary['flows'])} flows {outcome}{because}")
    partial = f"; the partial result is in {out}" if out is not None else ""
    if summary["complete"]:
        if out is not None:
            note(f"the result is in {out}; `airpath report {out} -o report.html` draws it")
        return ExitCode.OK
    if summary["stopped"] == "interrupted":
        note(f"interrupted: the figures are those of a partial run{partial}")
        return ExitCode.INTERRUPTED
    raise Problem(f"the run stopped: {summary['stopped']}{partial}", exit_code=ExitCode.FAILED)
