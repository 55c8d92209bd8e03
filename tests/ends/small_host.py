"""A host for one test: runs commands on it and reports what they leave behind.

`small_host.py PLAN` runs as the first process of a PID, a network and a mount namespace, as started
by `unshare --net --pid --fork --mount-proc`. No other program uses this host: every process,
interface, route, rule and parameter can be compared.

PLAN is JSON: `prepare`, lines for the shell, then `runs`. Each run has its `words` and, if SIGKILL
is to end it, the time of the signal (`kill_at`, in units of the duration of the first run). Prints
JSON, for each run:

- `code`: its exit code
- `out`: its output
- `had`: whether there were more namespaces than before when it was killed
- `left`: what differs from the state before, some seconds after its end
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

PATIENCE_S = 8
# Parameters that change without any command.
RESTLESS = ("nf_conntrack_count", "/stat", "tcp_fastopen_key", "/route/flush")


def main() -> None:
    """Run the plan, once the preparation no longer changes the host."""
    plan = json.loads(sys.argv[1])
    for line in plan.get("prepare", []):
        subprocess.run(line, shell=True, check=True, stdout=subprocess.DEVNULL)
    before: dict[str, Any] = {}
    while (now := state()) != before:
        before = now
        time.sleep(0.3)
    report, unit_s = [], 0.0
    for run in plan["runs"]:
        started, had = time.monotonic(), False
        process = subprocess.Popen(
            run["words"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if (moment := run.get("kill_at")) is not None:
            time.sleep(moment * unit_s)
            had = not namespaces() <= set(before["namespaces"])
            process.send_signal(signal.SIGKILL)
            process.wait()
            out = ""
        else:
            try:
                out, _ = process.communicate(timeout=run.get("patience_s", 60))
            except subprocess.TimeoutExpired:
                process.kill()
                out = "it did not end"
        unit_s = unit_s or time.monotonic() - started
        report.append({"code": process.returncode, "out": out, "had": had, "left": difference(before)})
    sys.stdout.write(json.dumps(report))


def difference(before: dict[str, Any]) -> dict[str, Any]:
    """Return what differs from `before`; processes that are ending get some time first."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = state()
        # A newly loaded module may add parameters. A mount disappears here when another process
        # removes its folder.
        left = {key: now.get(key) for key in before if key != "mounts" and now.get(key) != before[key]}
        if more := Counter(now["mounts"]) - Counter(before["mounts"]):
            left["mounts"] = list(more)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def state() -> dict[str, Any]:
    """Return the state of this host."""
    reap()
    found: dict[str, Any] = {
        "processes": sorted(processes()),
        "interfaces": output_of("ip", "-br", "address"),
        "routes": output_of("ip", "route", "show", "table", "all")
        + output_of("ip", "-6", "route", "show", "table", "all"),
        "rules": output_of("ip", "rule") + output_of("ip", "-6", "rule"),
        "firewall": output_of("nft", "list", "ruleset"),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "control sockets": "airpath-link" in Path("/proc/net/unix").read_text(),
        "namespaces": sorted(namespaces()),
    }
    # Unlike rglob, os.walk continues when the folder of an interface has just been removed.
    for folder, _, names in os.walk("/proc/sys/net"):
        for path in (f"{folder}/{name}" for name in names):
            if not any(part in path for part in RESTLESS):
                with contextlib.suppress(OSError):
                    found[path] = Path(path).read_text()
    return found


def output_of(*words: str) -> str:
    """Return the output of a command; an empty string if there is no such command."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""


def processes() -> list[str]:
    """Return the command lines of all other processes; threads of the kernel have none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def namespaces() -> set[str]:
    """Return the namespaces in which there are processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            for kind in ("net", "pid", "mnt", "user"):
                with contextlib.suppress(OSError):
                    found.add(str((entry / "ns" / kind).readlink()))
    return found


def reap() -> None:
    """Reap orphans that have ended, as the first process of a host does."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


main()
