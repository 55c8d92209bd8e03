"""Shared by the tests of `airpath proxy`: mobiles, a router and a server in namespaces."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import Finished, plain_environment
from support.link import until

MOBILE, MOBILE6 = "10.1.0.2", "fd00:1::2"
OTHER = "10.1.0.3"
SERVER, SERVER6 = "192.0.2.2", "2001:db8::2"
ROUTER = "192.0.2.1"

_ROUTER = [
    "ip link set lo up",
    "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0",
    "ip link add mob0 type veth peer name eth0 netns {mobile}",
    "ip link add wan0 type veth peer name eth0 netns {server}",
    "ip address add 10.1.0.1/24 dev mob0",
    f"ip address add {ROUTER}/24 dev wan0",
    "ip link set mob0 up",
    "ip link set wan0 up",
    "ip -6 address add fd00:1::1/64 dev mob0 nodad",
    "ip -6 address add 2001:db8::1/64 dev wan0 nodad",
]
_END = [
    "ip link set lo up",
    # Otherwise the kernel checks the link-local address for about a second, then changes its state.
    # Chromium fails all requests that wait for a connection then (ERR_NETWORK_CHANGED).
    "sysctl -qw net.ipv6.conf.eth0.accept_dad=0",
    "ip address add {v4}/24 dev eth0",
    "ip link set eth0 up",
    "ip -6 address add {v6}/64 dev eth0 nodad",
    "ip route add default via {router}",
    "ip -6 route add default via {router6}",
]


@dataclass
class Network:
    """Three namespaces: `mobile`, `router` and `server`, each with a process that keeps it."""

    folder: Path
    keepers: dict[str, int] = field(default_factory=dict)
    in_user_namespace: bool = False
    """Whether the namespaces belong to a user namespace, in which this user is root."""

    def words(self, host: str, *words: object) -> list[str]:
        """Return the command line that runs a command on a host."""
        user = _ENTER_USER if self.in_user_namespace else []
        return ["nsenter", *user, "--net", "--target", str(self.keepers[host]), *map(str, words)]

    def run(self, host: str, *words: object, code: int | None = 0, timeout: float = 60, text: bool = True) -> Finished:
        """Run a command on a host to its end."""
        done = subprocess.run(
            self.words(host, *words),
            cwd=self.folder,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=text,
            timeout=timeout,
            check=False,
        )
        assert code in (None, done.returncode), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Finished(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, host: str, *words: object, **how: Any) -> Iterator["subprocess.Popen[str]"]:
        """Start a command on a host; it is killed at the end of the block if it still runs."""
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            self.words(host, *words), cwd=self.folder, env=plain_environment(), text=True, **streams | how
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=30)

    def configure(self, lines: str = "", *, mobiles: Sequence[str] = ("10.1.0.0/24", "fd00:1::/64")) -> Path:
        """Write a configuration of a proxy."""
        path = self.folder / "proxy.toml"
        path.write_text(f"format = 1\nmobiles = {json.dumps(list(mobiles))}\n{lines}\n")
        return path

    @contextmanager
    def proxy(self, *options: object, lines: str = "") -> Iterator["subprocess.Popen[str]"]:
        """Run a proxy on the router; at the end of the block it is ended if it still runs."""
        command = [airpath(), "proxy", "run", self.configure(lines), *options]
        with self.started("router", *command) as process:
            until(lambda: process.poll() is not None or "165" in self.rules(), "the proxy runs")
            assert process.poll() is None, process.communicate()[1]
            yield process
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=20)

    def rules(self) -> str:
        """Return the routing rules of the router's proxy, with their protocol number."""
        rules = [self.run("router", "ip", version, "-details", "rule").out for version in ("-4", "-6")]
        return "".join(line for line in "".join(rules).splitlines(keepends=True) if "proto 165" in line)

    def state(self) -> str:
        """Return what a proxy may change of the router."""
        commands = [f"{version} {what}" for version in ("-4", "-6") for what in ("rule", "route show table all")]
        states = [self.run("router", "ip", "-j", *command.split()).out for command in [*commands, "address"]]
        return "\n".join(states)

    def ctl(self, *words: object, code: int = 0) -> Finished:
        """Run `airpath ctl` on the router."""
        return self.run("router", airpath(), "ctl", *words, code=code)

    def proxy_state(self) -> dict[str, Any]:
        """Return the state of the running proxy."""
        return json.loads(self.ctl("--format", "json").out)["proxy"]


def airpath() -> Path:
    """Return the installed command."""
    return Path(sys.executable).with_name("airpath")


_ENTER_USER = ["--user", "--preserve-credentials"]


@contextmanager
def network(folder: Path, *, in_user_namespace: bool = False) -> Iterator[Network]:
    """Make the three namespaces; they end with the block.

    In a user namespace, an ordinary user is root of all three.
    """
    processes: dict[str, subprocess.Popen[bytes]] = {}
    home = namespace_of(os.getpid())
    try:
        for host in ("router", "mobile", "server"):
            command = ["unshare", "--net", "sleep", "600"]
            if in_user_namespace and processes:
                command = ["nsenter", *_ENTER_USER, "--target", str(processes["router"].pid), *command]
            elif in_user_namespace:
                command = ["unshare", "--user", "--map-root-user", "--net", "sleep", "600"]
            processes[host] = process = subprocess.Popen(command)
            until(lambda process=process: namespace_of(process.pid) not in (None, home), "there is a namespace")
        made = Network(folder, {host: process.pid for host, process in processes.items()}, in_user_namespace)
        numbers = {host: str(process.pid) for host, process in processes.items()}
        for line in _ROUTER:
            made.run("router", *line.format(**numbers).split())
        for host, v4, v6 in (("mobile", MOBILE, MOBILE6), ("server", SERVER, SERVER6)):
            router, router6 = ("10.1.0.1", "fd00:1::1") if host == "mobile" else (ROUTER, "2001:db8::1")
            for line in _END:
                made.run(host, *line.format(v4=v4, v6=v6, router=router, router6=router6).split())
        made.run("mobile", "ip", "address", "add", f"{OTHER}/24", "dev", "eth0")
        # The kernel reports a link some time after its ends are up.
        until(lambda: "linkdown" not in made.state(), "the interfaces of the router are up")
        yield made
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def namespace_of(process: int) -> str | None:
    """Return the network namespace of a process, if it has one."""
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except OSError:
        return None
