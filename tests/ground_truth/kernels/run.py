"""Runs a situation: real programs at both ends, tcpdump and samples of the sockets beside them."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from kernels import samples
from kernels.situations import HERE, PYTHON, Situation, describe

AIRPATH = Path(sys.executable).with_name("airpath")
SERVER_ADDRESS, CLIENT_ADDRESS = "192.0.2.1", "192.0.2.2"

PLAIN = f"""
ip link add air0 type veth peer name air1
unshare --net sleep 1000 & other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link set air1 netns $other
ip address add {CLIENT_ADDRESS}/24 dev air0
ip link set air0 up
there="nsenter --net --target $other"
$there ip link set air1 name air0
$there ip address add {SERVER_ADDRESS}/24 dev air0
$there ip link set air0 up
$there $SERVE & server=$!
sleep 1.5
$CLIENT
kill $server
wait $server || true
kill $other
"""
"""Two namespaces, with the programs of both ends."""


def path_of(name: str) -> str | None:
    """Where a program is; as a user, sbin may not be on the path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def missing(situation: Situation) -> list[str]:
    """What it needs and that is not there: programs, and the congestion control of the kernel."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    kernel = [] if situation.congestion in available else [f"a kernel with {situation.congestion}"]
    return [name for name in ("tcpdump", "ip", *situation.programs) if path_of(name) is None] + kernel


def run(situation: Situation, work: Path) -> Path:
    """Runs it; returns its folder, with the result folder `run` and the captures of both ends.

    A folder that holds a run of the same situation is used again.
    """
    folder = work / situation.name
    kept = folder / "situation.json"
    if kept.exists() and kept.read_text() == describe(situation):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "run").mkdir(parents=True)
    if situation.prepare is not None:
        situation.prepare(folder)
    commands = [_around(situation, folder, end) for end in ("server", "mobile")]
    done = subprocess.run(
        _command(situation, folder, *commands),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    (folder / "log").write_text(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    if not (folder / "mobile.pcap").exists():
        sys.exit(f"{situation.name}: {done.stderr}")
    for end in ("server", "mobile"):
        raw = folder / f"{end}.samples"
        samples.table(raw).write_parquet(folder / "run" / f"tcp_info.{end}.parquet")
        raw.unlink()
    kept.write_text(describe(situation))
    time.sleep(0.1)
    return folder


def _around(situation: Situation, folder: Path, end: str) -> list[str]:
    """The command of an end, with what watches it."""
    words = situation.serve if end == "server" else situation.client
    for name in ("nginx", "sshd"):
        words = words.replace("{" + name + "}", path_of(name) or name)
    words = words.replace("{folder}", str(folder))
    address = SERVER_ADDRESS if not situation.link else "${AIRPATH_SERVER:-}"
    if situation.middle and end == "mobile":
        address = "$OUTER"
    # The shell of the server must not stay between: signals are for the program.
    script = f"exec {words}" if end == "server" and " && " not in words else f'SERVER="{address}"; {words}'
    return [*PYTHON, str(HERE / "around.py"), str(folder), end, situation.congestion, "--", "sh", "-c", script]


def _command(situation: Situation, folder: Path, server: list[str], client: list[str]) -> list[str]:
    if not situation.link:
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return [
            "unshare",
            *user,
            "--net",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "sh",
            "-ec",
            _plain(server, client),
        ]
    scenario = folder / "link.toml"
    scenario.write_text(f'format = 1\nname = "{situation.name}"\nseed = 7\n{situation.link}\n[[flow]]\nkind = "ping"\n')
    sysctl = [word for parameter in situation.sysctl for word in ("--sysctl", parameter)]
    serve = ["--serve", "exec " + shlex.join(server)]
    link = [str(AIRPATH), "link", str(scenario), *sysctl, "--out", str(folder / "run"), *situation.options]
    if not situation.middle:
        return [*link, *serve, "--", *client]
    outer = folder / "outer.toml"
    outer.write_text(
        'format = 1\nname = "outer"\n[bearer]\nmodel = "wired"\n'
        + "".join(f'[bearer.{way}]\nrate = "100 Mbit/s"\ndelay = "30 ms"\n' for way in ("downlink", "uplink"))
        + '[[flow]]\nkind = "ping"\n'
    )
    dump = f"tcpdump -i air0 -Z root -s 128 -U -w {folder}/middle.pcap tcp"
    script = f"export OUTER=$AIRPATH_SERVER; {dump} & sleep 1; {shlex.join([*link, '--', *client])}; kill $!; wait"
    forward = ["--sysctl", "net.ipv4.ip_forward=1", *sysctl]
    return [str(AIRPATH), "link", str(outer), *forward, *serve, "--", "sh", "-c", script]


def _plain(server: list[str], client: list[str]) -> str:
    return PLAIN.replace("$SERVE", shlex.join(server)).replace("$CLIENT", shlex.join(client))
