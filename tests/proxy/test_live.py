"""A live proxy on a router, between a mobile and a server with kernel ends."""

import json
import os
import pwd
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from airpath import load
from airpath.files import temporary_folder
from support.link import ENDS, descendants_of, until
from support.needs import needs, require
from support.proxy import MOBILE, SERVER, SERVER6, Network, airpath, namespace_of
from support.proxy import network as make_network

_FAR = (
    "server: sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
    "server: ip link add far0 mtu 1300 type veth peer name eth0 netns {far}",
    "server: ip address add 198.51.100.1/24 dev far0",
    "server: ip -6 address add 2001:db8:1::1/64 dev far0 nodad",
    "server: ip link set far0 up",
    "far: ip link set lo up",
    "far: ip link set eth0 mtu 1500 up",
    "far: ip address add 198.51.100.2/24 dev eth0",
    "far: ip -6 address add 2001:db8:1::2/64 dev eth0 nodad",
    "far: ip route add default via 198.51.100.1",
    "far: ip -6 route add default via 2001:db8:1::1",
    "router: ip route add 198.51.100.0/24 via 192.0.2.2",
    "router: ip -6 route add 2001:db8:1::/64 via 2001:db8::2",
)
CONTENT = bytes(range(256)) * 4000


def _web(network: Network, folder: Path) -> list[object]:
    """Return the words of a web server with the file `content`."""
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "content").write_bytes(CONTENT)
    return [sys.executable, "-m", "http.server", "-d", folder / "files", "--bind", "::", "8000"]


def _fetch(network: Network, url: str, *options: object, code: int | None = 0) -> bytes:
    """Return what curl gets at the mobile."""
    path = network.folder / "got"
    path.unlink(missing_ok=True)
    done = network.run("mobile", "curl", "-sS", "-m", "20", "-o", path, *options, url, code=code)
    return path.read_bytes() if done.code == 0 else b""


def _wait_for(network: Network, port: int) -> None:
    until(lambda: f":{port} " in network.run("server", "ss", "-ltn").out, "the server listens")


def test_both_versions_pass_and_nothing_is_left(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    before = network.state()
    with network.started("server", *_web(network, tmp_path)):
        _wait_for(network, 8000)
        with network.proxy() as proxy:
            for address in (SERVER, f"[{SERVER6}]"):
                assert _fetch(network, f"http://{address}:8000/content") == CONTENT
            state = network.proxy_state()
            assert state["opened"] == 2
            assert [each["mobile"] for each in state["mobiles"]] == [f"{MOBILE}/32", "fd00:1::/64"]
            network.run("mobile", "ping", "-c", "1", SERVER)
            assert network.proxy_state()["passed"]["not-tcp"] >= 2
            # The router itself reaches a mobile past the proxy.
            network.run("router", "ping", "-c", "1", MOBILE)
            capabilities = Path(f"/proc/{proxy.pid}/status").read_text().split("CapEff:")[1].split()[0]
            assert int(capabilities, 16) == 0
            proxy.terminate()
            assert proxy.wait(timeout=20) == 0
    assert network.state() == before


def test_the_proxy_learns_a_path_mtu(network: Network, tmp_path: Path) -> None:
    # Behind the server is a link of 1,300 bytes, and the host at its end has the usual MTU.
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as far:
        try:
            until(lambda: namespace_of(far.pid) not in (None, namespace_of(os.getpid())), "there is a namespace")
            network.keepers["far"] = far.pid
            for line in _FAR:
                host, _, words = line.partition(": ")
                network.run(host, *words.format(far=far.pid).split())
            with network.started("far", sys.executable, ENDS / "sink.py"):
                until(lambda: ":9 " in network.run("far", "ss", "-ltn").out, "the sink listens")
                with network.proxy():
                    for count, address in enumerate(("198.51.100.2", "2001:db8:1::2"), 1):
                        sent = network.run("mobile", sys.executable, ENDS / "send.py", address, 500_000, timeout=20)
                        assert sent.out == "500000\n"
                        assert network.proxy_state()["path_mtus"] >= count
        finally:
            far.kill()


def test_an_ordinary_user_runs_it_in_namespaces(need, tmp_path: Path) -> None:
    require("user-namespace")
    require("tun")
    need("curl")
    with make_network(tmp_path, in_user_namespace=True) as network:
        before = network.state()
        with network.started("server", *_web(network, tmp_path)):
            _wait_for(network, 8000)
            with network.proxy() as proxy:
                assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
                assert network.proxy_state()["opened"] == 1
                proxy.terminate()
                assert proxy.wait(timeout=20) == 0
        assert network.state() == before


def test_after_sigkill_new_connections_pass(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    before = network.state()
    with network.started("server", *_web(network, tmp_path)):
        _wait_for(network, 8000)
        with network.proxy() as proxy:
            proxy.kill()
            proxy.wait()
            started = time.monotonic()
            assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
            assert time.monotonic() - started < 1
        until(lambda: network.state() == before, "the keeper has removed the rules")


SLOW_SERVER = """
import socket, time
listener = socket.create_server(("::", 8001), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    connection, _ = listener.accept()
    connection.recv(1000)
    # No length: only the end of the connection ends the file.
    connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
    try:
        for _ in range(40):
            connection.sendall(bytes(25_000))
            time.sleep(0.005)
    except OSError:
        pass
    connection.close()
"""


@pytest.mark.parametrize("moments", [5, pytest.param(50, marks=pytest.mark.soak)])
def test_no_truncated_transfer_ends_cleanly_after_sigkill(network: Network, need, moments: int) -> None:
    curl = need("curl")
    complete = 0
    with network.started("server", sys.executable, "-c", SLOW_SERVER):
        _wait_for(network, 8001)
        for moment in range(moments):
            got = network.folder / f"got-{moment}"
            # The mobile is slow: the proxy has more than the mobile when it is killed.
            words = [curl, "-sS", "-m", "3", "--limit-rate", "2M", "-o", got, f"http://{SERVER}:8001/"]
            with network.proxy() as proxy, network.started("mobile", *words) as client:
                time.sleep(0.05 + 0.5 * moment / moments)
                proxy.kill()
                proxy.wait()
                code = client.wait(timeout=20)
                size = got.stat().st_size if got.exists() else 0
                assert code != 0 or size == 1_000_000, f"{size} bytes ended cleanly"
                complete += code == 0
    assert complete < moments, "every transfer was over before the signal"


def test_metrics_are_those_of_the_control_socket(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    lines = 'metrics = "127.0.0.1:9135"\n[proxy]\nbudget = "20 kB"'
    with network.started("server", *_web(network, tmp_path)), network.proxy(lines=lines):
        _wait_for(network, 8000)
        assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
        text = network.run("router", "curl", "-sS", "http://127.0.0.1:9135/metrics").out
        state = network.proxy_state()
    assert f'airpath_mobile_budget_bytes{{mobile="{MOBILE}/32"}} 20000' in text
    assert f"airpath_connections_opened_total {state['opened']}" in text
    assert f'airpath_payload_bytes_total{{direction="down"}} {state["payload_bytes"]["down"]}' in text


def test_a_configuration_is_read_again(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    with network.started("server", *_web(network, tmp_path)), network.proxy() as proxy:
        _wait_for(network, 8000)
        assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
        network.configure('[proxy]\nbudget = "30 kB"', mobiles=["10.1.0.2"])
        network.ctl("reload")
        assert "10.1.0.0/24" not in network.rules()
        assert "from 10.1.0.2 lookup" in network.rules()
        assert network.proxy_state()["mobiles"][0]["budget_bytes"] == 30_000
        # A broken file changes nothing.
        network.configure("[proxy]\nbudjet = 1")
        refused = network.ctl("reload", code=2)
        assert "proxy.toml:4: proxy.budjet: unknown key; did you mean `budget`?" in refused.err
        assert "the old configuration stays in use" in refused.err
        assert "next: `airpath proxy check FILE`" in refused.err
        assert "from 10.1.0.2 lookup" in network.rules()
        network.configure("mtu = 1400")
        refused = network.ctl("reload", code=2)
        assert "start it again" in refused.err
        assert "next: start the proxy again" in refused.err
        assert "from 10.1.0.2 lookup" in network.rules()
        network.configure(mobiles=["10.1.0.3", "10.1.0.2"])
        proxy.send_signal(signal.SIGHUP)
        until(lambda: "from 10.1.0.3 lookup" in network.rules(), "the signal has its effect")
        assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT


def test_a_proxy_that_does_not_start_leaves_no_folder(network: Network, tmp_path: Path) -> None:
    command = [airpath(), "proxy", "run", network.configure(), "--take-over", "--out", tmp_path / "result"]
    assert "no proxy of this user runs" in network.run("router", *command, code=1).err
    assert not (tmp_path / "result").exists()


@needs("root")
def test_a_new_result_folder_belongs_to_the_user_of_the_proxy(network: Network) -> None:
    with temporary_folder("airpath-test-") as folder:
        folder.chmod(0o711)
        with network.proxy("--out", folder / "result", lines='user = "daemon"') as proxy:
            proxy.terminate()
            assert proxy.wait(timeout=20) == 0
        assert (folder / "result").owner() == "daemon"
        assert json.loads((folder / "result" / "summary.json").read_text())["complete"]
        # One that this user cannot reach.
        folder.chmod(0o700)
        command = [airpath(), "proxy", "run", network.configure('user = "daemon"'), "--out", folder / "other"]
        refused = network.run("router", *command, code=3).err
        assert "other cannot be written by daemon, the `user` of the configuration" in refused
        assert not (folder / "other").exists()


def test_the_result_is_read_as_every_other(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    out = tmp_path / "result"
    with network.started("server", *_web(network, tmp_path)), network.proxy("--out", out, "--capture") as proxy:
        _wait_for(network, 8000)
        assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
        assert _fetch(network, f"http://[{SERVER6}]:8000/content") == CONTENT
        assert "opened" in json.dumps(network.proxy_state())
        proxy.terminate()
        assert proxy.wait(timeout=30) == 0, proxy.communicate()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["complete"]
    assert [flow["kind"] for flow in summary["flows"]].count("tcp") == 2
    states = load(out).states
    assert set(states["aspect"]) == {"budget", "outstanding", "queue"}
    assert set(states["user"]) == {0, 1}
    report = tmp_path / "report.html"
    network.run("router", airpath(), "report", out, "-o", report, timeout=120)
    assert "airpath proxy run" in report.read_text()
    assert "What the proxy keeps for each mobile" in report.read_text()
    for side in ("server", "mobile"):
        traced = network.run("router", airpath(), "trace", out / "captures" / f"0000-{side}.pcapng", timeout=120).out
        assert SERVER in traced
    # The same proxy replaces it, another one does not.
    for lines, fault in (
        ("mtu = 1400", "has the result of another configuration"),
        ("", "has captures, and this run has none"),
    ):
        refused = network.run("router", airpath(), "proxy", "run", network.configure(lines), "--out", out, code=2)
        assert f"result {fault}: nothing was run" in refused.err
    with network.proxy("--out", out, "--capture") as proxy:
        proxy.terminate()
        _, errors = proxy.communicate(timeout=30)
        assert "was replaced" in errors


def test_the_proxy_becomes_an_ordinary_user(network: Network, need, tmp_path: Path) -> None:
    require("root")
    need("curl")
    with network.started("server", *_web(network, tmp_path)), network.proxy(lines='user = "daemon"') as proxy:
        _wait_for(network, 8000)
        status, user = Path(f"/proc/{proxy.pid}/status").read_text(), pwd.getpwnam("daemon").pw_uid
        assert f"Uid:\t{user}\t{user}" in status
        assert "NoNewPrivs:\t1" in status
        assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT


@pytest.mark.parametrize(
    ("lines", "code", "expected"),
    [
        ("mtus = 5", 2, "did you mean `mtu`?"),
        ("mtus = 5", 2, "proxy.toml:3, mtus"),
        ('interfaces = ["a b"]', 2, "proxy.toml:3, interfaces"),
        ('device = "mob0"', 1, "there is an interface `mob0` already"),
        ('metrics = "127.0.0.1:9136"', 1, "127.0.0.1:9136 cannot be used: Address already in use"),
        ("priority = 2000", 1, "another rule has priority 2000"),
        ("table = 2000", 1, "the rule with priority 2000 looks up table 2000"),
        ('user = "missing-user"', 1, "there is no such user"),
    ],
)
def test_what_cannot_run_changes_nothing(network: Network, lines: str, code: int, expected: str) -> None:
    network.run("router", "ip", "rule", "add", "from", "203.0.113.0/24", "table", "2000", "priority", "2000")
    occupy = "import socket; s = socket.create_server(('127.0.0.1', 9136)); input()"
    with network.started("router", sys.executable, "-c", occupy, stdin=-1):
        until(lambda: ":9136 " in network.run("router", "ss", "-ltn").out, "the address is in use")
        before = network.state()
        failed = network.run("router", airpath(), "proxy", "run", network.configure(lines), code=code)
        assert expected in failed.err
        assert network.state() == before
        if code == 1:
            checked = network.run("router", airpath(), "proxy", "check", network.configure(lines), code=1)
            assert "missing" in checked.out
            assert network.state() == before


def test_overlapping_lists_of_mobiles_change_nothing(network: Network) -> None:
    before = network.state()
    config = network.configure(mobiles=["10.1.0.0/16", "10.1.2.0/24"])
    failed = network.run("router", airpath(), "proxy", "run", config, code=2)
    assert "10.1.0.0/16 and 10.1.2.0/24 overlap" in failed.err
    assert "proxy.toml:2, mobiles" in failed.err
    assert "list each address once" in failed.err
    assert network.state() == before


def test_a_host_that_is_no_router_is_found(network: Network) -> None:
    config = network.configure()
    before = network.state()
    assert "missing" not in network.run("router", airpath(), "proxy", "check", config).out
    network.run("router", "sysctl", "-qw", "net.ipv4.ip_forward=0")
    checked = network.run("router", airpath(), "proxy", "check", config, code=1).out
    assert "missing  forwarding: this host does not forward IPv4" in checked
    failed = network.run("router", airpath(), "proxy", "run", config, code=1)
    assert "net.ipv4.ip_forward=1" in failed.err
    dropped = shlex.join(
        ["setpriv", "--inh-caps=-all", "--bounding-set=-all", str(airpath()), "proxy", "run", str(config)]
    )
    assert "CAP_NET_ADMIN" in network.run("router", "sh", "-c", dropped, code=1).err
    assert network.state() == before


ENDLESS_SERVER = """
import socket, time
connection, _ = socket.create_server(("::", 8003), family=socket.AF_INET6, dualstack_ipv6=True).accept()
connection.recv(1000)
connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
try:
    while True:
        connection.sendall(bytes(1000))
        time.sleep(0.01)
except ConnectionResetError:
    print("reset")
"""


def test_connections_are_reset_when_the_proxy_ends(network: Network, need) -> None:
    curl = need("curl")
    with network.started("server", sys.executable, "-c", ENDLESS_SERVER) as server:
        _wait_for(network, 8003)
        words = [curl, "-sS", "-m", "60", "-o", network.folder / "got", f"http://{SERVER}:8003/"]
        with network.proxy() as proxy, network.started("mobile", *words) as client:
            until(lambda: network.proxy_state()["payload_bytes"]["down"] > 10_000, "the transfer runs")
            proxy.terminate()
            assert proxy.wait(timeout=20) == 0
            assert client.wait(timeout=10) == 56, "the connection was reset"
            assert server.wait(timeout=10) == 0
            assert server.communicate()[0] == "reset\n"


def test_a_full_disk_ends_the_log_and_not_the_proxy(network: Network, need, tmp_path: Path, small_disk: Path) -> None:
    need("curl")
    out = small_disk / "result"
    with network.started("server", *_web(network, tmp_path)):
        _wait_for(network, 8000)
        with network.proxy("--out", out, "--capture") as proxy:
            for _ in range(3):
                assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
            unwritten = network.proxy_state()["unwritten_packets"]
            assert unwritten["captures"] > 100
            assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
            assert network.proxy_state()["unwritten_packets"]["captures"] > unwritten["captures"]
            proxy.terminate()
            assert proxy.wait(timeout=30) == 3
            error = proxy.communicate()[1]
        assert "the captures cannot be written any more; the proxy continues" in error
        assert "No space left on device" in error
    # What was written is readable.
    for side in ("server", "mobile"):
        traced = network.run("router", airpath(), "trace", out / "captures" / f"0000-{side}.pcapng", timeout=120)
        assert SERVER in traced.out
    assert not json.loads((out / "summary.json").read_text())["complete"]


def test_a_result_folder_that_cannot_be_written_changes_nothing(network: Network, small_disk: Path) -> None:
    before = network.state()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    command = [airpath(), "proxy", "run", network.configure(), "--out", small_disk / "result"]
    failed = network.run("router", *command, code=None)
    assert failed.code in (1, 2, 3)
    assert "Read-only file system" in failed.err
    assert str(small_disk) in failed.err
    assert network.state() == before


def test_messages_without_a_reader_do_not_end_the_proxy(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    with network.started("server", *_web(network, tmp_path)):
        _wait_for(network, 8000)
        with network.proxy() as proxy:
            assert proxy.stderr is not None
            proxy.stderr.close()
            proxy.stderr = None
            proxy.send_signal(signal.SIGHUP)
            assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
            proxy.terminate()
            assert proxy.wait(timeout=20) == 0


def test_an_interface_that_was_down_is_used_again(network: Network, need, tmp_path: Path) -> None:
    need("curl")
    with network.started("server", *_web(network, tmp_path)):
        _wait_for(network, 8000)
        with network.proxy() as proxy:

            def opened() -> int:
                assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
                return network.proxy_state()["opened"]

            assert opened() == 1
            network.run("router", "ip", "link", "set", "airpath0", "down")
            assert opened() == 1
            assert proxy.stderr is not None
            _read_until(proxy.stderr, "the interface `airpath0` is down")
            network.run("router", "ip", "link", "set", "airpath0", "up")
            _read_until(proxy.stderr, "the interface `airpath0` is up")
            assert opened() == 2
            proxy.terminate()
            assert proxy.wait(timeout=20) == 0


@pytest.mark.parametrize("removed", [["rule", "flush", "protocol", "165"], ["route", "flush", "table", "3135"]])
def test_rules_and_routes_that_were_removed_are_installed_again(
    network: Network, removed: list[str], need, tmp_path: Path
) -> None:
    need("curl")
    before = network.state()
    with network.started("server", *_web(network, tmp_path)):
        _wait_for(network, 8000)
        with network.proxy() as proxy:
            running = network.state()
            for family in ("-4", "-6"):
                network.run("router", "ip", family, *removed)
            until(lambda: network.state() == running, "the keeper has installed them again")
            assert proxy.stderr is not None
            _read_until(proxy.stderr, "they are installed again")
            assert _fetch(network, f"http://{SERVER}:8000/content") == CONTENT
            assert network.proxy_state()["opened"] == 1
            proxy.terminate()
            assert proxy.wait(timeout=20) == 0
        until(lambda: network.state() == before, "the keeper has removed the rules")


def _read_until(stream: IO[str], text: str) -> None:
    """Read lines up to the one that contains `text`."""
    assert any(text in line for line in stream), text


def test_a_keeper_that_was_killed_is_reported(network: Network) -> None:
    with network.proxy() as proxy:
        [keeper] = descendants_of(proxy.pid)
        os.kill(keeper, signal.SIGKILL)
        until(lambda: network.proxy_state() is not None, "the proxy runs on")
        time.sleep(1.2)
        network.proxy_state()
        proxy.terminate()
        assert proxy.wait(timeout=20) == 1
        error = proxy.communicate()[1]
    assert error.count("the keeper of the routing rules has ended") == 2
    assert "ip rule flush protocol 165" in error
    assert "165" in network.rules()
    network.run("router", "ip", "rule", "flush", "protocol", "165")
    assert "165" not in network.run("router", "ip", "rule").out
