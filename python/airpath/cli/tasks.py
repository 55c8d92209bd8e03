"""Errors of commands that run tasks in a folder: `airpath sweep` and `airpath study run`."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airpath.cli.messages import ExitCode, Problem, problem_of


@contextmanager
def explained_tasks(out: Path | None) -> Iterator[None]:
    """Convert the errors of tasks to a `Problem` with what is kept, and how to continue.

    Args:
        out: The folder of the tasks; `None` if it is temporary.
    """
    from airpath.extras import ExtraMissingError
    from airpath.sweep import ExecutorLostError, PlanError, SweepFolderError
    from airpath.sweep.clusters import ClusterError

    kept = f"; finished tasks are kept in {out}" if out else ""
    continues = "the same command continues" if out else "add --out DIR, so that the same command continues"
    try:
        yield
    except (ClusterError, ExtraMissingError, PlanError, SweepFolderError) as error:
        raise problem_of(error) from None
    except ExecutorLostError as error:
        raise Problem(f"{error}{kept}", next_step=continues, exit_code=ExitCode.FAILED) from None
    except OSError as error:
        if out is None or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise Problem(
            f"{out} cannot be written: {error.strerror}{kept}",
            next_step=f"free disk space; {continues}",
            exit_code=ExitCode.NOT_WRITTEN,
        ) from None
