"""A new process takes over from a running proxy without losing a connection."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.link import until
from support.needs import require
from support.proxy import SERVER, Network, airpath

# Both ends send this number of bytes every 20 ms without end. When the client's input ends, it
# half-closes its connections; the server then adds how much it has received and sent.
SERVE = """
import socket, struct, sys, threading, time
PATTERN, CHUNK = bytes(range(251)) * 300, int(sys.argv[1])

def serve(connection):
    received, ended = [0], threading.Event()
    def read():
        while data := connection.recv(65536):
            start = received[0] % 251
            assert data == PATTERN[start:][:len(data)]
            received[0] += len(data)
        ended.set()
    threading.Thread(target=read).start()
    sent = 0
    while not ended.wait(0.02):
        connection.sendall(PATTERN[sent % 251:][:CHUNK])
        sent += CHUNK
    connection.sendall(struct.pack(">QQ", received[0], sent))
    connection.close()

listener = socket.create_server(("::", 8002), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"""
FETCH = """
import socket, struct, sys, threading
PATTERN, CHUNK = bytes(range(251)) * 300, int(sys.argv[3])
stop, results = threading.Event(), []

def talk():
    connection = socket.create_connection((sys.argv[1], 8002))
    sent, got, end = [0], 0, b""
    def write():
        while not stop.wait(0.02):
            connection.sendall(PATTERN[sent[0] % 251:][:CHUNK])
            sent[0] += CHUNK
        connection.shutdown(socket.SHUT_WR)
    writer = threading.Thread(target=write)
    writer.start()
    while data := connection.recv(65536):
        data = end + data
        data, end = data[:-16], data[-16:]
        assert data == PATTERN[got % 251:][:len(data)]
        got += len(data)
    writer.join()
    received, length = struct.unpack(">QQ", end)
    assert received == sent[0], f"{received} of {sent[0]} bytes arrived at the server"
    assert length == got, f"{got} of {length} bytes arrived at the mobile"
    results.append((received, length))

threads = [threading.Thread(target=talk) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print(len(results), min(min(each) for each in results))
"""


SMALL_BUDGET = 'budget = "60 kB"\nupload_budget = "60 kB"'


@contextmanager
def _successor(network: Network, *options: object) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that takes over, and wait until it forwards packets."""
    command = [airpath(), "proxy", "run", network.folder / "proxy.toml", "--take-over", *options]
    with network.started("router", *command) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "the proxy runs" in line, line + process.stderr.read()
        yield process


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    assert process.wait(timeout=20) == 0, process.communicate()


def _check_taken_over(process: "subprocess.Popen[str]") -> None:
    assert process.wait(timeout=20) == 0
    assert "has taken over" in process.communicate()[1]


@contextmanager
def _transfer(network: Network, connections: int, chunk: int = 4000) -> Iterator[None]:
    """Transfer both ways over connections; at the end of the block every byte must have arrived."""
    opened = network.proxy_state()["opened"]
    with network.started("server", sys.executable, "-c", SERVE, chunk):
        until(lambda: ":8002 " in network.run("server", "ss", "-ltn").out, "the server listens")
        words = [sys.executable, "-c", FETCH, SERVER, connections, chunk]
        with network.started("mobile", *words, stdin=subprocess.PIPE) as client:
            until(lambda: network.proxy_state()["opened"] == opened + connections, "the connections are open")
            yield
            out, error = client.communicate(timeout=60)
            assert not error, error
            count, least = map(int, out.split())
            assert count == connections
            assert least > 0


@pytest.mark.parametrize(
    ("times", "lines", "chunk"),
    [
        (3, SMALL_BUDGET, 4000),
        # Packets wait in the queue at almost any time.
        (3, SMALL_BUDGET + '\n[proxy.queue]\nrate = "50 Mbit/s"', 4000),
        # Packets wait for the thread that writes large ones.
        (3, 'budget = "4 MB"\nbuffer = "8 MB"', 60_000),
        pytest.param(50, SMALL_BUDGET, 4000, marks=pytest.mark.soak),
    ],
)
def test_every_byte_arrives(network: Network, times: int, lines: str, chunk: int) -> None:
    before = network.state()
    lines = f'metrics = "127.0.0.1:9137"\n[proxy]\n{lines}'
    with ExitStack() as stack:
        process = stack.enter_context(network.proxy(lines=lines))
        rules = network.rules()
        with _transfer(network, 16, chunk):
            for number in range(times):
                # With an event log, connections get other numbers.
                options = ["--out", network.folder / f"result-{number}"] if number % 2 else []
                successor = stack.enter_context(_successor(network, *options))
                _check_taken_over(process)
                process = successor
                state = network.proxy_state()
                assert (state["connections"], state["opened"]) == (16, 16)
            assert network.rules() == rules
        metrics = network.run("router", "curl", "-sS", "http://127.0.0.1:9137/metrics").out
        assert "airpath_connections_opened_total 16\n" in metrics
        _end(process)
        assert network.state() == before
    summary = json.loads((network.folder / "result-1" / "summary.json").read_text())
    assert summary["complete"]
    assert [flow["kind"] for flow in summary["flows"]].count("tcp") == 16


def test_the_keeper_belongs_to_the_new_process(network: Network) -> None:
    require("root")
    before = network.state()
    with network.proxy(lines='user = "daemon"') as process, _successor(network) as successor:
        _check_taken_over(process)
        assert network.rules()
        successor.kill()
        successor.wait()
        until(lambda: network.state() == before, "the keeper has removed the rules")


# Takes over as far as the first words given: it has the state and the descriptors, and ends.
INTRUDER = """
import json, pathlib, socket, sys
offer = {"build": sys.argv[2], "configuration": pathlib.Path("proxy.toml").read_text()}
request = json.dumps({"take_over": offer}).encode() + b"\\n"
line = b""
while not line:
    control = socket.socket(socket.AF_UNIX)
    control.connect(f"\\0airpath-link-{sys.argv[1]}")
    try:
        control.sendall(request)
        line, descriptors, *_ = socket.recv_fds(control, 4096, 8)
    except OSError:  # the request came too late
        pass
print(line.decode().strip(), len(descriptors))
"""


@pytest.mark.parametrize("keys", ["", "server_pool = 2", 'cache = "1 MB"'])
def test_http_connections_are_reset(network: Network, need, tmp_path: Path, keys: str) -> None:
    curl = need("curl")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "content").write_bytes(b"x" * 40_000_000)
    web = [sys.executable, "-m", "http.server", "-d", tmp_path / "files", "--bind", "::", "8000"]
    words = [curl, "-sS", "-m", "20", f"http://{SERVER}:8000/content", "-o"]
    with ExitStack() as stack:
        stack.enter_context(network.started("server", *web))
        until(lambda: ":8000 " in network.run("server", "ss", "-ltn").out, "the server listens")
        process = stack.enter_context(network.proxy(lines=f"[proxy.http]\nports = [8000]\n{keys}"))
        # One that is complete leaves a connection in the pool.
        network.run("mobile", *words, tmp_path / "first")
        client = stack.enter_context(network.started("mobile", *words, tmp_path / "second", "--limit-rate", "1M"))
        until((tmp_path / "second").exists, "bytes have arrived")
        successor = stack.enter_context(_successor(network))
        _check_taken_over(process)
        assert client.wait(timeout=20) != 0
        network.run("mobile", *words, tmp_path / "third")
        assert (tmp_path / "third").read_bytes() == (tmp_path / "first").read_bytes() == b"x" * 40_000_000
        _end(successor)


def test_the_old_process_continues_if_the_new_one_dies(network: Network) -> None:
    with network.proxy() as process:
        with _transfer(network, 4):
            words = [sys.executable, "-c", INTRUDER, process.pid]
            refused = network.run("router", *words, "0.0.0 another").out
            build = refused.split("it is build ")[1].split(",")[0]
            assert "cannot hand its state over to build 0.0.0 another" in refused
            for _ in range(3):
                got = network.run("router", *words, build).out
                assert "state_bytes" in got
                assert got.endswith(" 3\n")
            assert network.proxy_state()["connections"] == 4
        assert process.poll() is None
        assert network.rules()


def test_a_changed_configuration_comes_with_the_new_process(network: Network) -> None:
    with ExitStack() as stack:
        process = stack.enter_context(network.proxy(lines='[proxy]\nbudget = "40 kB"'))
        command = [airpath(), "proxy", "run", network.folder / "proxy.toml", "--take-over"]
        network.configure("mtu = 1400")
        refused = network.run("router", *command, code=1)
        assert "only `mobiles`, `interfaces` and `[proxy]` can change" in refused.err
        assert "it continues as before" in refused.err
        network.configure("[proxy]\nbudjet = 1")
        assert "proxy.toml:4, proxy.budjet" in network.run("router", *command, code=2).err
        assert process.poll() is None
        with _transfer(network, 4):
            network.configure('[proxy]\nbudget = "30 kB"', mobiles=["10.1.0.2"])
            successor = stack.enter_context(_successor(network))
            _check_taken_over(process)
            assert "from 10.1.0.2 lookup" in network.rules()
            assert "10.1.0.0/24" not in network.rules()
            assert network.proxy_state()["mobiles"][0]["budget_bytes"] == 30_000
        _end(successor)
        assert not network.rules()


def test_without_a_running_proxy_nothing_is_taken_over(network: Network) -> None:
    before = network.state()
    failed = network.run("router", airpath(), "proxy", "run", network.configure(), "--take-over", code=1)
    assert "no proxy of this user runs on the interface `airpath0`; start without --take-over" in failed.err
    assert network.state() == before
