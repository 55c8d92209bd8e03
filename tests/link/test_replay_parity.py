"""One bearer model, two clocks: a replay gives each packet exactly its fate on the link."""

import random
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest

import airpath
from airpath import control
from support import ROOT, Command
from support.needs import needs
from support.parity import check_parity

pytestmark = needs("network-namespace")

TRAFFIC = ROOT / "tests" / "ends" / "traffic.py"
# The preset `recorded` needs files and has its own test.
PRESETS = sorted(path.stem for path in (ROOT / "presets").glob("*.toml") if path.stem != "recorded")

CHANGES = """\
format = 1
name = "changes"
seed = 5

[fixed]
delay = "15 ms"
loss = 0.02

[bearer]
preset = "umts-dch-384"
bler = 0.1

[[change]]
at = "400 ms"
outage = "200 ms"

[[change]]
at = "700 ms"
to = "fixed"
rate = "300 kbit/s"

[[change]]
at = "1 s"
handover = "100 ms"
buffer = "discard"
"""


def link(command: Command, *arguments: str | Path, out: Path) -> list[str]:
    """Return the line for a link with traffic on it."""
    python = sys.executable
    serve = f"exec {python} {TRAFFIC} serve"
    return command.line("link", *arguments, "--out", out, "--serve", serve, "--", python, TRAFFIC, "use", "server")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_departure_and_every_drop_is_the_same(airpath_command: Command, tmp_path: Path, preset: str) -> None:
    name = preset
    if preset == "hs-dsch-classes-abc":
        name = tmp_path / "class.toml"
        name.write_text(f'format = 1\n[bearer]\npreset = "{preset}"\n[[mobile]]\nclass = "b"\n')
    subprocess.run(link(airpath_command, name, out=tmp_path / "live"), check=True, timeout=60)
    check_parity(airpath_command, tmp_path / "live")


def test_a_recorded_link(airpath_command: Command, tmp_path: Path) -> None:
    for name in ("rec.down", "rec.up"):
        (tmp_path / name).write_text("".join(f"{3 * n + n % 3}\n" for n in range(1, 400)))
    scenario = tmp_path / "scenario.toml"
    files = f'downlink.recorded = "{tmp_path / "rec.down"}"\nuplink.recorded = "{tmp_path / "rec.up"}"\n'
    scenario.write_text(f'format = 1\n[bearer]\nmodel = "recorded"\n{files}')
    subprocess.run(link(airpath_command, scenario, out=tmp_path / "live"), check=True, timeout=60)
    check_parity(airpath_command, tmp_path / "live")


def test_a_middlebox(airpath_command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "middlebox.toml"
    middlebox = '[middlebox]\nkind = "ack-filter"\nhold = "100 ms"\n'
    scenario.write_text(f'format = 1\n{middlebox}[bearer]\npreset = "umts-dch-384"\n')
    (tmp_path / "file").write_bytes(bytes(60_000))
    serve = f"exec {sys.executable} -m http.server 8000 --directory {tmp_path}"
    fetch = "import urllib.request as u; assert len(u.urlopen('http://server:8000/file').read()) == 60_000"
    live = tmp_path / "live"
    arguments = ("link", scenario, "--out", live, "--serve", serve, "--", sys.executable, "-c", fetch)
    subprocess.run(airpath_command.line(*arguments), check=True, timeout=60)
    steps = check_parity(airpath_command, live).get_column("step")
    assert (steps == "absorbed").sum() > 0
    rows = airpath.load(live).links.filter(component="middlebox", direction="up").to_dicts()
    for row in rows:
        out = row["delivered_packets"] + row["absorbed_packets"] + row["queued_packets"]
        assert row["offered_packets"] == out, "packets are conserved"


def fetch_a_file(airpath_command: Command, scenario: Path, *options: str) -> Path:
    """Fetch 400 kB by HTTP over a link beside its scenario; return the folder of the result."""
    folder = scenario.parent
    payload = random.Random(1).randbytes(400_000)
    (folder / "file").write_bytes(payload)
    serve = f"exec {sys.executable} -m http.server 8000 --directory {folder}"
    got = str(folder / "got")
    fetch = f"import urllib.request as u; open({got!r}, 'wb').write(u.urlopen('http://server:8000/file').read())"
    live = folder / "live"
    arguments = ("link", scenario, *options, "--out", live, "--serve", serve, "--", sys.executable, "-c", fetch)
    subprocess.run(airpath_command.line(*arguments), check=True, timeout=60)
    assert Path(got).read_bytes() == payload
    return live


def test_snoop_repairs_losses_of_real_packets(airpath_command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "snoop.toml"
    scenario.write_text(
        'format = 1\n[middlebox]\nkind = "snoop"\n[fixed]\ndelay = "50 ms"\n[bearer]\nmodel = "wired"\n'
        'downlink = { rate = "2 Mbit/s", delay = "10 ms", loss = 0.05 }\n'
        'uplink = { rate = "2 Mbit/s", delay = "10 ms" }\n'
    )
    # Without SACK the kernel cannot see what Snoop hides.
    live = fetch_a_file(airpath_command, scenario, "--sysctl", "net.ipv4.tcp_sack=0")
    packets = check_parity(airpath_command, live)
    lost = packets.filter(step="dropped", direction="down").height
    copies = set(packets.filter(step="created")["packet"])
    sent_copies = packets.filter(polars.col("packet").is_in(copies), step="delivered", component="middlebox").height
    assert lost > 5
    # A lost segment without data, such as a SYN, is not stored.
    assert sent_copies >= lost - 2, "each loss is repaired by a copy of the middlebox"
    (row,) = airpath.load(live).links.filter(component="middlebox", direction="down").to_dicts()
    inside = row["delivered_packets"] + row["absorbed_packets"] + row["queued_packets"]
    assert row["offered_packets"] + row["created_packets"] == inside, "packets are conserved"


def test_a_policer(airpath_command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "policer.toml"
    policer = 'policer = { rate = "4 Mbit/s", burst = "30 kB" }'
    scenario.write_text(
        f'format = 1\n[fixed.down]\n{policer}\n[bearer]\nmodel = "wired"\n'
        'downlink = { rate = "20 Mbit/s", delay = "10 ms" }\nuplink = { rate = "20 Mbit/s", delay = "10 ms" }\n'
    )
    live = fetch_a_file(airpath_command, scenario)
    lost = check_parity(airpath_command, live).filter(step="dropped")
    assert set(lost.select("component", "direction", "cause").rows()) == {("fixed", "down", "policer")}
    # In no time more passes than the burst, and what the rate brings in this time.
    passed = airpath.load(live).packets.filter(component="fixed", direction="down", step="delivered").sort("time")
    assert passed["size"].sum() > 400_000
    elapsed = (passed["time"] - passed["time"][0]).to_numpy() / 1e9
    assert (passed["size"].cum_sum().to_numpy() <= 30_000 + elapsed * 4e6 / 8 + 1e-3).all()


@pytest.mark.parametrize(
    ("setting", "host"),
    [("accept=early", "server"), ("accept=deferred", "server6"), ("queue.rate=300 kbit/s", "server")],
)
def test_a_proxy(airpath_command: Command, tmp_path: Path, setting: str, host: str) -> None:
    payload = random.Random(1).randbytes(80_000)
    (tmp_path / "file").write_bytes(payload)
    serve = f"exec {sys.executable} -m http.server 8000 --bind :: --directory {tmp_path}"
    url, got = f"http://{host}:8000/file", str(tmp_path / "got")
    fetch = f"import urllib.request as u; open({got!r}, 'wb').write(u.urlopen({url!r}).read())"
    live = tmp_path / "live"
    arguments = ("link", "umts-dch-384", "--proxy", "--set", f"proxy.{setting}", "--set", "bearer.bler=0.1")
    command = ("--out", live, "--serve", serve, "--", sys.executable, "-c", fetch)
    subprocess.run(airpath_command.line(*arguments, *command), check=True, timeout=60)
    assert (tmp_path / "got").read_bytes() == payload, "the payload passes byte for byte"
    steps = check_parity(airpath_command, live).get_column("step")
    assert (steps == "created").sum() > 50
    for row in airpath.load(live).links.filter(component="proxy").to_dicts():
        out = row["delivered_packets"] + row["absorbed_packets"] + row["queued_packets"]
        assert row["offered_packets"] + row["created_packets"] == out, "packets are conserved"


def test_changes_by_the_scenario_and_by_hand(airpath_command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "changes.toml"
    scenario.write_text(CHANGES)
    live = tmp_path / "live"
    with subprocess.Popen(link(airpath_command, scenario, out=live)) as running:
        while not list((live / "events").glob("packets")):
            assert running.poll() is None, "the link has not begun"
            time.sleep(0.02)
        time.sleep(0.6)
        assert control.send(control.find(live), {"change": {"bler": 0.5}})["time_s"] > 0
        assert running.wait(60) == 0
    kinds = airpath.load(live).changes["kind"].to_list()
    assert sorted(kinds) == ["bler", "handover", "outage", "rate"]
    causes = check_parity(airpath_command, live).get_column("cause").drop_nulls().unique().to_list()
    assert causes, "some packets were lost"
