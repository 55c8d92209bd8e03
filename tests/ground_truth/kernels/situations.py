"""The situations: a link, and the programs at its ends."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[2]
HERE = Path(__file__).parent
PYTHON = [sys.executable, "-I", "-S"]


@dataclass(frozen=True)
class Situation:
    """A link, and what runs over it."""

    name: str
    link: str
    """The scenario without its heading; empty for two plain namespaces."""
    serve: str
    """Shell command of the server. `{folder}` is the folder of the run."""
    client: str
    """Shell command of the client."""
    congestion: str = "cubic"
    sysctl: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """Programs that it needs besides tcpdump."""
    prepare: Callable[[Path], None] | None = None
    """Writes the files that the programs need into the run's folder."""
    middle: bool = False
    """The server is behind another link, and the sender's capture is taken between the two."""
    short: bool = False
    """Part of `make test`."""


def wired(rate: str, delay: str, packets: int, more: str = "", uplink: str = "") -> str:
    """A plain link: delay each way, packets of the downlink's queue, more keys of the downlink."""
    down = [f'rate = "{rate}"', f'delay = "{delay}"', f"queue = {{ packets = {packets} }}", more]
    up = [f'rate = "{uplink or rate}"', f'delay = "{delay}"', "queue = { packets = 1000 }"]
    return "\n".join(["[bearer]", 'model = "wired"', "[bearer.downlink]", *down, "[bearer.uplink]", *up])


def radio(preset: str) -> str:
    """A radio bearer."""
    return f'[bearer]\npreset = "{preset}"'


def change(at: str, *keys: str) -> str:
    """A change of the link."""
    return "\n".join(["", "[[change]]", f'at = "{at}"', *keys])


def serve(*options: object) -> str:
    """The server of `ends.py`."""
    return shlex.join([*PYTHON, str(HERE / "ends.py"), "serve", *map(str, options)])


def client(verb: str, *options: object) -> str:
    """The client of `ends.py`."""
    return shlex.join([*PYTHON, str(HERE / "ends.py"), verb]) + ' "$SERVER" ' + shlex.join(map(str, options))


def get(*options: object) -> str:
    """The client that requests and reads."""
    return client("get", *options)


def page(folder: Path) -> None:
    """Writes a web page of 70 objects."""
    (folder / "files").mkdir()
    subprocess.run([*PYTHON, str(TESTS / "ends" / "page.py"), str(folder / "files")], check=True, capture_output=True)


def file(folder: Path) -> None:
    """Writes a file of 300 kB."""
    (folder / "files").mkdir()
    (folder / "files" / "file").write_bytes(bytes(300_000))


def certificate(folder: Path) -> None:
    """Writes a file, a key and a certificate."""
    file(folder)
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=server"
    made = ["openssl", *options.split(), "-keyout", "files/key", "-out", "files/cert"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)


def keys(folder: Path) -> None:
    """Writes the keys and the configuration of an SSH server."""
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    settings = [f"HostKey {folder}/host", f"AuthorizedKeysFile {folder}/user.pub", "StrictModes no", "PidFile none"]
    (folder / "sshd.conf").write_text("\n".join([*settings, "PermitRootLogin prohibit-password", ""]))


SSHD = shlex.join(
    [
        "unshare",
        "--mount",
        "sh",
        "-ec",
        "mount -t tmpfs tmpfs /run; mkdir /run/sshd; exec {sshd} -D -e -f {folder}/sshd.conf",
    ]
)
SSH = 'ssh -F none -i {folder}/user -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no root@"$SERVER" '
HTTP = shlex.join([sys.executable, "-m", "http.server", "8000", "--directory", "{folder}/files"])
BROWSER = (
    "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-extensions "
    "--disable-background-networking --disable-component-update --disable-sync --disable-default-apps "
    "--disable-features=OptimizationHints,MediaRouter --no-proxy-server --virtual-time-budget=60000 "
    '--user-data-dir={folder}/profile --dump-dom "http://$SERVER/index.html" > /dev/null'
)
NGINX = shlex.join(
    ["{nginx}", "-p", "{folder}", "-e", "stderr", "-c", str(TESTS / "ends" / "nginx.conf"), "-g", "user root;"]
)

SLOW = wired("2 Mbit/s", "50 ms", 60)
FAST = wired("20 Mbit/s", "10 ms", 100)
LONG = wired("20 Mbit/s", "60 ms", 400, "loss = 0.0007")
LOSSY = wired("4 Mbit/s", "50 ms", 100, "loss = 0.02")
DCH = radio("umts-dch-384")
OUTAGE = change("3 s", 'outage = "3 s"')
SIZE = "--size"

SITUATIONS = (
    # One transfer, three congestion controls, with and without offload.
    Situation("bulk-reno", SLOW, serve(SIZE, 1_200_000), get(SIZE, 1_200_000), "reno", short=True),
    Situation("bulk-cubic", SLOW, serve(SIZE, 1_200_000), get(SIZE, 1_200_000)),
    Situation("bulk-bbr", SLOW, serve(SIZE, 1_200_000), get(SIZE, 1_200_000), "bbr"),
    Situation("bulk-cubic-no-offload", SLOW, serve(SIZE, 1_200_000), get(SIZE, 1_200_000), options=("--no-offload",)),
    Situation("fast-cubic", FAST, serve(SIZE, 8_000_000), get(SIZE, 8_000_000)),
    Situation("long-reno", LONG, serve(SIZE, 6_000_000), get(SIZE, 6_000_000), "reno"),
    Situation(
        "long-reno-no-offload", LONG, serve(SIZE, 6_000_000), get(SIZE, 6_000_000), "reno", options=("--no-offload",)
    ),
    Situation("long-cubic", LONG, serve(SIZE, 8_000_000), get(SIZE, 8_000_000)),
    Situation("loss-reno", LOSSY, serve(SIZE, 1_000_000), get(SIZE, 1_000_000), "reno"),
    Situation("loss-cubic", LOSSY, serve(SIZE, 1_000_000), get(SIZE, 1_000_000)),
    Situation("loss-bbr", LOSSY, serve(SIZE, 2_000_000), get(SIZE, 2_000_000), "bbr"),
    Situation("small-queue", wired("2 Mbit/s", "20 ms", 10), serve(SIZE, 1_200_000), get(SIZE, 1_200_000), "reno"),
    Situation("rate-drop", SLOW + change("3 s", 'rate = "500 kbit/s"'), serve(SIZE, 1_000_000), get(SIZE, 1_000_000)),
    # The radio.
    Situation("dch", DCH, serve(SIZE, 300_000), get(SIZE, 300_000), "reno"),
    Situation("outage-reno", DCH + OUTAGE, serve(SIZE, 300_000), get(SIZE, 300_000), "reno", short=True),
    Situation("outage-bbr", DCH + OUTAGE, serve(SIZE, 300_000), get(SIZE, 300_000), "bbr"),
    Situation(
        "outage-bare",
        DCH + OUTAGE,
        serve(SIZE, 300_000),
        get(SIZE, 300_000),
        "reno",
        ("net.ipv4.tcp_sack=0", "net.ipv4.tcp_timestamps=0"),
    ),
    Situation("outage-upload", DCH + OUTAGE, serve("--mode", "sink"), client("put", SIZE, 60_000)),
    Situation(
        "outage-gprs", radio("gprs-3+1") + change("5 s", 'outage = "6 s"'), serve(SIZE, 60_000), get(SIZE, 60_000)
    ),
    Situation(
        "handover-discard",
        DCH + change("3 s", 'handover = "1 s"', 'buffer = "discard"'),
        serve(SIZE, 300_000),
        get(SIZE, 300_000),
        "reno",
    ),
    Situation(
        "outage-while-idle",
        DCH + change("5 s", 'outage = "3 s"'),
        serve(SIZE, 50_000),
        get(SIZE, 50_000, "--number", 2, "--think", 5),
    ),
    Situation(
        "outage-set-up", DCH + change("300 ms", 'outage = "3 s"'), serve(SIZE, 50_000), "sleep 1; " + get(SIZE, 50_000)
    ),
    Situation("states", radio("umts-r99-states"), serve(SIZE, 20_000), get(SIZE, 20_000, "--number", 2, "--think", 6)),
    # The applications.
    Situation("sleep", DCH, serve(SIZE, 50_000, "--sleep", 2), get(SIZE, 50_000, "--number", 2, "--think", 0.5)),
    Situation("drip", DCH, serve(SIZE, 10_000, "--pieces", 9, "--every", 0.5), get(SIZE, 90_000)),
    Situation("keep", DCH, serve(SIZE, 12_000), get(SIZE, 12_000, "--number", 6, "--think", 1)),
    Situation("long-poll", DCH, serve(SIZE, 400, "--sleep", 2), get(SIZE, 400, "--number", 4)),
    Situation("keep-alive", DCH, serve(SIZE, 30_000), get(SIZE, 30_000, "--keep-alive", 1, "--idle", 6)),
    Situation("nagle", SLOW, serve(SIZE, 100, "--request", 200), client("talk", SIZE, 100, "--number", 20), short=True),
    Situation(
        "no-delay",
        SLOW,
        serve(SIZE, 100, "--request", 200),
        client("talk", SIZE, 100, "--number", 20, "--no-delay", 1, "--think", 0.1),
    ),
    Situation("send-buffer", SLOW, serve(SIZE, 600_000, "--send-buffer", 8000), get(SIZE, 600_000)),
    Situation("abort-client", DCH, serve(SIZE, 300_000), get(SIZE, 300_000, "--abort", 100_000)),
    Situation("abort-server", DCH, serve(SIZE, 100_000, "--reset"), get(SIZE, 300_000)),
    # Receive windows.
    Situation(
        "receive-buffer",
        wired("8 Mbit/s", "160 ms", 100),
        serve(SIZE, 300_000),
        get(SIZE, 300_000, "--receive-buffer", 8000),
    ),
    Situation("pause", DCH, serve(SIZE, 300_000), get(SIZE, 300_000, "--pause", 5, "--receive-buffer", 16_000)),
    Situation(
        "pause-fast", FAST, serve(SIZE, 1_000_000), get(SIZE, 1_000_000, "--pause", 4, "--receive-buffer", 16_000)
    ),
    Situation(
        "slow-server",
        DCH,
        serve("--mode", "sink", "--sleep", 6, "--receive-buffer", 8000),
        client("put", SIZE, 60_000),
    ),
    Situation(
        "slow-reader-384",
        DCH,
        serve(SIZE, 200_000),
        get(SIZE, 200_000, "--chunk", 4000, "--every", 0.2, "--receive-buffer", 16_000),
    ),
    Situation(
        "slow-reader-3600",
        wired("3600 kbit/s", "30 ms", 100),
        serve(SIZE, 400_000),
        get(SIZE, 400_000, "--chunk", 10_000, "--every", 0.2, "--receive-buffer", 32_000),
    ),
    # Both directions, several connections.
    Situation("upload", DCH, serve("--mode", "sink"), client("put", SIZE, 80_000)),
    Situation("both-ways", DCH, serve("--mode", "both", SIZE, 300_000), client("put", SIZE, 60_000)),
    Situation(
        "up-and-down",
        DCH,
        serve("--mode", "both", SIZE, 200_000),
        client("put", SIZE, 0) + " & " + client("put", SIZE, 50_000) + "; wait",
    ),
    Situation("four-bulk", SLOW, serve(SIZE, 400_000), get(SIZE, 400_000, "--parallel", 4)),
    Situation("four-short", DCH, serve(SIZE, 12_000), get(SIZE, 12_000, "--number", 4, "--parallel", 4)),
    Situation(
        "iperf3-reverse",
        DCH,
        "iperf3 -s -1",
        'iperf3 -c "$SERVER" -R -n 400K > /dev/null',
        programs=("iperf3",),
    ),
    Situation(
        "iperf3-parallel", SLOW, "iperf3 -s -1", 'iperf3 -c "$SERVER" -R -P 3 -n 1M > /dev/null', programs=("iperf3",)
    ),
    Situation(
        "iperf3-both", SLOW, "iperf3 -s -1", 'iperf3 -c "$SERVER" --bidir -t 6 > /dev/null', programs=("iperf3",)
    ),
    # Programs.
    Situation(
        "curl",
        radio("hs-dsch-384"),
        HTTP,
        'curl -sS -o /dev/null "http://$SERVER:8000/file"',
        programs=("curl",),
        prepare=file,
    ),
    Situation(
        "tls",
        SLOW,
        "cd {folder}/files && exec openssl s_server -quiet -accept 4433 -WWW -key key -cert cert",
        "for i in 1 2 3; do curl -sSk -o /dev/null https://$SERVER:4433/file; done",
        programs=("curl", "openssl"),
        prepare=certificate,
    ),
    Situation(
        "ssh-copy",
        DCH,
        SSHD,
        SSH + '"head -c 200000 /dev/zero" | cat > /dev/null',
        programs=("ssh", "sshd"),
        prepare=keys,
    ),
    Situation(
        "ssh-dialogue",
        DCH,
        SSHD,
        "(for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done) | " + SSH + "cat > /dev/null",
        programs=("ssh", "sshd"),
        prepare=keys,
    ),
    Situation("browser", SLOW, NGINX, BROWSER, programs=("nginx", "chromium"), prepare=page),
    Situation("browser-hs-dsch", radio("hs-dsch-384"), NGINX, BROWSER, programs=("nginx", "chromium"), prepare=page),
    # A proxy in the path, and a capture between two links.
    Situation("proxy", DCH, serve(SIZE, 300_000), get(SIZE, 300_000), options=("--proxy",)),
    Situation("proxy-outage", DCH + OUTAGE, serve(SIZE, 300_000), get(SIZE, 300_000), options=("--proxy",)),
    Situation("middle", DCH, serve(SIZE, 300_000), get(SIZE, 300_000), middle=True),
    Situation("middle-outage", DCH + OUTAGE, serve(SIZE, 300_000), get(SIZE, 300_000), middle=True),
    # Two namespaces without a link.
    Situation(
        "plain-pause",
        "",
        serve(SIZE, 4_000_000),
        get(SIZE, 4_000_000, "--pause", 3, "--receive-buffer", 100_000),
        short=True,
    ),
    Situation(
        "plain-keep", "", serve(SIZE, 500_000, "--sleep", 0.3), get(SIZE, 500_000, "--number", 5, "--think", 0.4)
    ),
    Situation("plain-nagle", "", serve(SIZE, 100, "--request", 200), client("talk", SIZE, 100, "--number", 30)),
    Situation(
        "plain-slow-reader", "", serve(SIZE, 3_000_000), get(SIZE, 3_000_000, "--chunk", 100_000, "--every", 0.1)
    ),
)
"""All of them."""


def describe(situation: Situation) -> str:
    """The situation as JSON: a run is used again only if this is equal."""
    fields = {name: value for name, value in vars(situation).items() if name not in {"prepare", "short"}}
    return json.dumps(fields, default=list)
