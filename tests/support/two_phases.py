"""Distribution of the tests by `pytest -n 2`.

The workers first run tests side by side; then one worker runs those that depend on real time.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling

REAL_TIME = (
    "tests/command/test_doctor.py",
    "tests/command/test_startup.py",
    "tests/link/",
    "tests/measure/",
    "tests/study/test_two_clocks.py",
    "tests/trace/test_causes.py",
    "tests/trace/test_link.py",
)
"""Folders of the tests that measure real time or send real packets."""


class TwoPhases(LoadFileScheduling):
    """Files are shared between the workers; those of [`REAL_TIME`] are one unit, run last."""

    def _split_scope(self, nodeid: str) -> str:
        return "real time" if nodeid.startswith(REAL_TIME) else super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if "real time" in self.workqueue:
            self.workqueue.move_to_end("real time")
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        busy = any(self._pending_of(work) > 2 for other, work in self.assigned_work.items() if other is not node)
        if list(self.workqueue) == ["real time"] and busy:
            # This worker has little work left.
            node.shutdown()
        else:
            super()._reschedule(node)
