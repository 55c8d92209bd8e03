"""A figure under both clocks."""

import statistics
from collections.abc import Sequence
from typing import Any, Protocol


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
