"""Network namespaces that end with the benchmark, and the processor time of their processes."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

PRIVILEGED = os.geteuid() == 0


class Namespace:
    """A network namespace that ends with this process; without privileges in a user namespace."""

    def __init__(self, beside: Self | None = None) -> None:
        unshare = ["unshare", "--net"] if PRIVILEGED or beside else ["unshare", "--net", "--user", "--map-root-user"]
        # The process that holds it ends with its standard input, at the latest with this process.
        command = [
            *(beside.enter() if beside else []),
            *unshare,
            "sh",
            "-c",
            "ip link set lo up && echo ready && exec cat",
        ]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline().strip() != "ready":
            raise OSError("this host does not allow network namespaces")

    @property
    def process(self) -> int:
        """A process in it."""
        return self._holder.pid

    def enter(self) -> list[str]:
        """The words before a command that is to run in it."""
        user = [] if PRIVILEGED else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self.process), *user, "--net"]

    def run(self, *command: str) -> None:
        """Runs a command in it."""
        subprocess.run([*self.enter(), *command], check=True, capture_output=True)

    def close(self) -> None:
        """Releases it after the end of its last process."""
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()


def forward(process: int) -> None:
    """Lets the network namespace of a process forward packets."""
    enter = ["nsenter", "--target", str(process), "--net"]
    subprocess.run([*enter, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True, capture_output=True)


def descendants(process: int) -> set[int]:
    """A process and all that come from it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in parentheses, may have any characters; the parent is two words after it.
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found, todo = set[int](), [process]
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += children.get(each, [])
    return found


def processor_time(process: int, without: Sequence[str]) -> dict[int, int]:
    """Processor time in ns of a process and its descendants, except those named `without`."""
    times: dict[int, int] = {}
    for each in descendants(process):
        folder = Path("/proc", str(each))
        try:
            if (folder / "comm").read_text().strip() not in without:
                tasks = [(task / "schedstat").read_text() for task in (folder / "task").iterdir()]
                times[each] = sum(int(task.split()[0]) for task in tasks)
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
    return times
