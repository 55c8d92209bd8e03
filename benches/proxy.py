"""Compares the live proxy with kernel forwarding, HAProxy, nginx and PEPsal between namespaces.

    python benches/proxy.py [--rounds 3] [--peers FOLDER] [--seconds 5] [--idle 5000] [--only WORD]
    python benches/proxy.py --open 100000

A mobile, a router and a server are network namespaces, connected by virtual Ethernet. Each
contender runs on the router, one after the other, in each round; the table has the medians of the
rounds. Measured are: throughput of downloads by iperf3 with one and four connections, with four the
processor time of the contender's processes for each GB, new connections in a second (connect, one
byte each way, close; 64 at a time), and memory for each idle connection: the growth of the process
and of the kernel's slab. HAProxy and PEPsal get the connections by TPROXY (nftables), transparently
for both ends as airpath does. nginx cannot: the mobile connects to the router there. PEPsal needs
six descriptors for a connection, and ends where it gets none, so it has at most `PEPSAL_IDLE` idle
connections.

With `--open`, airpath alone holds this number of connections, and each then carries a byte both
ways.

The contenders are put into `--peers` (default `target/peers`) by benches/proxy_peers.py.

Needs root. All processes compete for the same cores: compare the contenders of one run only.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from namespaces import Namespace, descendants, processor_time
from proxy_ends import ECHO_PORT, IDLE_PORT, PER_PROCESS, hold, raise_file_limit, rate, serve
from proxy_peers import find, provide

ROOT = Path(__file__).resolve().parent.parent
MOBILE, ROUTER, SERVER = "10.1.0.2", "10.1.0.1", "192.0.2.2"
PROXY_PORT = 5000
PEPSAL_IDLE = 3000
ATTEMPTS = 5

# The figures of a contender in a round; none where it failed.
Figures = list[float | None]

TPROXY = f"""
table inet bench {{
  chain pre {{
    type filter hook prerouting priority mangle;
    meta l4proto tcp socket transparent 1 meta mark set 1 accept
    iifname "mob0" meta l4proto tcp tproxy ip to 127.0.0.1:{PROXY_PORT} meta mark set 1 accept
  }}
}}
"""
HAPROXY = f"""
global
  nbthread 2
  maxconn 9000
defaults
  mode tcp
  timeout connect 5s
  timeout client 300s
  timeout server 300s
listen all
  bind 127.0.0.1:{PROXY_PORT} transparent
  source 0.0.0.0 usesrc client
  server s 0.0.0.0:0
"""
NGINX = f"""
load_module {{module}};
user root;
daemon off;
pid {{folder}}/nginx.pid;
error_log stderr error;
worker_processes 2;
worker_rlimit_nofile 200000;
events {{{{ worker_connections 60000; }}}}
stream {{{{
  proxy_buffer_size 16k;
  proxy_timeout 300s;
  server {{{{
    listen {ROUTER}:5201 reuseport;
    listen {ROUTER}:{ECHO_PORT} reuseport;
    listen {ROUTER}:{IDLE_PORT} reuseport;
    proxy_pass {SERVER}:$server_port;
  }}}}
}}}}
"""


def main() -> None:
    """Run all contenders and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=ROOT / "target" / "peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--open", type=int, metavar="NUMBER")
    parser.add_argument("--only", default="")
    parser.add_argument("--address", default=SERVER, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=IDLE_PORT, help=argparse.SUPPRESS)
    parser.add_argument("part", nargs="?", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    raise_file_limit()
    if arguments.part is not None:
        _part(arguments)
        return
    if os.geteuid() != 0:
        sys.exit("this benchmark needs root, for network namespaces and TPROXY")
    if arguments.open:
        _open(arguments)
        return
    provide(arguments.peers)
    contenders = {
        "kernel forwarding": forwarding,
        "airpath": airpath,
        "HAProxy": haproxy,
        "nginx": nginx,
        "PEPsal": pepsal,
    }
    rounds: dict[str, list[Figures]] = {}
    for _ in range(arguments.rounds):
        for name, start in contenders.items():
            if arguments.only.lower() not in name.lower():
                continue
            with tempfile.TemporaryDirectory() as folder, network() as (mobile, router, server):
                try:
                    with start(router, Path(folder), arguments.peers) as process:
                        address = ROUTER if start is nginx else SERVER
                        idle = min(arguments.idle, PEPSAL_IDLE) if start is pepsal else arguments.idle
                        figures = measure(mobile, server, process, address, arguments.seconds, idle)
                except FileNotFoundError as error:
                    print(f"{name}: skipped: {error}", file=sys.stderr)
                    continue
            rounds.setdefault(name, []).append(figures)
    print(
        "| contender | Mbit/s, 1 connection | 4 connections | processor s for each GB "
        "| connections/s | KiB for each idle connection |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, all_figures in rounds.items():
        columns = zip(*all_figures, strict=True)
        texts = [_median(column, digits) for column, digits in zip(columns, (0, 0, 2, 0, 1), strict=True)]
        print(f"| {name} | " + " | ".join(texts) + " |", flush=True)


def _median(figures: Sequence[float | None], digits: int) -> str:
    present = [figure for figure in figures if figure is not None]
    missing = len(figures) - len(present)
    if missing:
        return f"failed in {missing} of {len(figures)} rounds"
    return f"{statistics.median(present):.{digits}f}"


@contextmanager
def network() -> Iterator[tuple[Namespace, Namespace, Namespace]]:
    """A mobile, a router and a server."""
    mobile, router, server = Namespace(), Namespace(), Namespace()
    try:
        router.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        for name, end, address, near, far in (
            ("mob0", mobile, "10.1.0.1", MOBILE, "10.1.0.1"),
            ("wan0", server, "192.0.2.1", SERVER, "192.0.2.1"),
        ):
            router.run(*f"ip link add {name} type veth peer name eth0 netns {end.process}".split())
            router.run("ip", "address", "add", f"{address}/24", "dev", name)
            router.run("ip", "link", "set", name, "up")
            end.run("ip", "address", "add", f"{near}/24", "dev", "eth0")
            end.run("ip", "link", "set", "eth0", "up")
            end.run("ip", "route", "add", "default", "via", far)
            end.run("sysctl", "-qw", "net.ipv4.ip_local_port_range=10000 65000", "net.ipv4.tcp_tw_reuse=1")
        yield mobile, router, server
    finally:
        for each in (mobile, router, server):
            each.close()


@contextmanager
def forwarding(router: Namespace, folder: Path, peers: Path) -> Iterator[int | None]:
    """The kernel alone."""
    yield None


@contextmanager
def airpath(router: Namespace, folder: Path, peers: Path) -> Iterator[int]:
    """The live proxy."""
    config = folder / "proxy.toml"
    config.write_text('format = 1\nmobiles = ["10.1.0.0/24"]\n[proxy]\nbudget = "4 MB"\nbuffer = "8 MB"\n')
    command = [str(Path(sys.executable).with_name("airpath")), "proxy", "run", str(config)]
    with _running(router, command) as process:
        yield process


@contextmanager
def haproxy(router: Namespace, folder: Path, peers: Path) -> Iterator[int]:
    """HAProxy with two threads."""
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY)
    with (
        _tproxy(router, folder),
        _running(router, [_find("haproxy", peers), "-f", str(config), "-db"], peers) as process,
    ):
        yield process


@contextmanager
def nginx(router: Namespace, folder: Path, peers: Path) -> Iterator[int]:
    """The stream module of nginx, with two workers."""
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(module=_find("ngx_stream_module.so", peers), folder=folder))
    with _running(router, [_find("nginx", peers), "-c", str(config)], peers) as process:
        yield process


@contextmanager
def pepsal(router: Namespace, folder: Path, peers: Path) -> Iterator[int]:
    """PEPsal with its defaults."""
    command = [_find("pepsal", peers), "-p", str(PROXY_PORT), "-c", "9800"]
    with _tproxy(router, folder), _running(router, command) as process:
        yield process


def _find(program: str, peers: Path) -> str:
    found = find(program, peers)
    if found is None:
        raise FileNotFoundError(f"{program} is neither in {peers} nor installed")
    return str(found)


@contextmanager
def _tproxy(router: Namespace, folder: Path) -> Iterator[None]:
    rules = folder / "tproxy.nft"
    rules.write_text(TPROXY)
    router.run("nft", "-f", str(rules))
    router.run("ip", "rule", "add", "fwmark", "1", "lookup", "100")
    router.run("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100")
    yield


@contextmanager
def _running(router: Namespace, command: list[str], peers: Path | None = None) -> Iterator[int]:
    libraries = ":".join({str(each.parent) for each in peers.glob("**/lib*.so*")}) if peers else ""
    environment = os.environ | ({"LD_LIBRARY_PATH": libraries} if libraries else {})
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([*router.enter(), *command], env=environment, stderr=errors)
        try:
            time.sleep(2)
            if process.poll() is not None:
                errors.seek(0)
                raise FileNotFoundError(f"{command[0]} ended: {errors.read().decode()}")
            yield process.pid
        finally:
            process.terminate()
            process.wait()


def measure(
    mobile: Namespace, server: Namespace, process: int | None, address: str, seconds: float, idle: int
) -> Figures:
    """Return the figures of a contender in the order of the table."""
    this = [*_this(address), "--seconds", str(seconds), "--idle", str(idle)]
    figures: Figures = []
    with _background(server, ["iperf3", "-s"]), _background(server, [*this, "serve"]):
        time.sleep(1)
        for connections in (1, 4):
            command = ["iperf3", "-c", address, "-R", "-P", str(connections), "-t", str(seconds), "-J"]
            report = {}
            before = _processor_seconds(process)
            for _ in range(ATTEMPTS):
                done = subprocess.run([*mobile.enter(), *command], capture_output=True, text=True, check=False)
                report = json.loads(done.stdout)
                if "busy" not in report.get("error", ""):
                    break
                # Through a proxy, the server may learn late that the last test is over.
                time.sleep(1)
            received = report.get("end", {}).get("sum_received", {}).get("bits_per_second")
            figures.append(received / 1e6 if received else None)
        seconds_used = _processor_seconds(process) - before
        gigabytes = report.get("end", {}).get("sum_received", {}).get("bytes", 0) / 1e9
        figures.append(seconds_used / gigabytes if gigabytes else None)
        done = subprocess.run([*mobile.enter(), *this, "rate"], capture_output=True, text=True, check=True)
        figures.append(float(done.stdout))
        before = memory(process)
        with _background(mobile, [*this, "hold"]) as client:
            count = _number(client)
            time.sleep(1)
            figures.append((memory(process) - before) / count if count == idle else None)
    return figures


def _processor_seconds(process: int | None) -> float:
    return sum(processor_time(process, ()).values()) / 1e9 if process else 0.0


def _open(arguments: argparse.Namespace) -> None:
    """Print how many connections of `arguments.open` the live proxy holds, and their memory."""
    shares = [min(PER_PROCESS, arguments.open - done) for done in range(0, arguments.open, PER_PROCESS)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        mobile, router, server = stack.enter_context(network())
        process = stack.enter_context(airpath(router, folder, arguments.peers))
        parts = [[*_this(SERVER), "--port", str(IDLE_PORT + index)] for index in range(len(shares))]
        for part in parts:
            stack.enter_context(_background(server, [*part, "serve"]))
        time.sleep(1)
        before, start = memory(process, slab=False), time.monotonic()
        clients = [
            stack.enter_context(_background(mobile, [*part, "--idle", str(share), "hold"]))
            for part, share in zip(parts, shares, strict=True)
        ]
        opened, seconds = sum(_number(client) for client in clients), time.monotonic() - start
        kib = (memory(process, slab=False) - before) / max(opened, 1)
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("use\n")
            client.stdin.flush()
        answered = sum(_number(client) for client in clients)
    print(f"{opened} connections opened in {seconds:.0f} s, {kib:.1f} KiB of the process for each")
    print(f"{answered} of them carried a byte both ways while all were open")


def _this(address: str) -> list[str]:
    """Return the words that run this program as an end."""
    return [sys.executable, __file__, "--address", address]


def _number(end: "subprocess.Popen[str]") -> int:
    """Return the next number that an end reports."""
    assert end.stdout is not None
    return int(end.stdout.readline() or 0)


@contextmanager
def _background(namespace: Namespace, command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [*namespace.enter(), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def memory(process: int | None, slab: bool = True) -> int:
    """Return KiB: the resident memory of a process and its children, and the kernel's slab."""
    kib = 0
    for each in descendants(process) if process else ():
        status = Path(f"/proc/{each}/status").read_text()
        kib += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    kernel = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Slab:"))
    return kib + (int(kernel.split()[1]) if slab else 0)


def _part(arguments: argparse.Namespace) -> None:
    """Run an end point: `serve`, `rate` or `hold`."""
    match arguments.part:
        case "serve":
            serve(arguments.port)
        case "rate":
            print(round(rate(arguments.address, arguments.seconds)))
        case _:
            hold(arguments.address, arguments.port, arguments.idle)


if __name__ == "__main__":
    main()
