"""Make the captures of this folder again, and the table of README.md: `.venv/bin/python tests/captures/make.py`.

The simulated ones come out the same each time, as long as the simulator does. Those of real
programs do not: their times and ports are of the kernel. Needs root or user namespaces, and tshark.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
AIRPATH = Path(sys.executable).with_name("airpath")
WEB = HERE.parent / "ends" / "http.py"

HTTP = {
    "http-separate": ("eight objects by HTTP, a connection each", ["separate", "server"]),
    "http-persistent": ("eight objects by HTTP, one after the other", ["persistent", "server"]),
    "http-pipelined": ("eight objects by HTTP, seven of them pipelined", ["pipelined", "server"]),
    "http-ipv6": ("`http-persistent` over IPv6", ["persistent", "server6"]),
}
"""Real programs over a link: what they do, and the arguments of the client."""

VARIANTS = {
    "loss-server-snap60.pcap": ("of 60 bytes of each packet, with microseconds", ["-s", "60", "-F", "pcap"]),
    "loss-server-nsec.pcap": ("as pcap with nanoseconds", ["-F", "nsecpcap"]),
}
"""Other formats of `loss-server.pcapng`: what they are, and the options of editcap."""


def simulate(scenario: Path, work: Path) -> dict[str, str]:
    """Run a scenario, and keep what both ends captured. What each file is, and how it was made."""
    airpath("run", scenario, "--out", work, "--capture")
    what = scenario.read_text().splitlines()[0].removeprefix("# ").rstrip(".")
    made = {}
    for end in ("mobile", "server"):
        name = f"{scenario.stem}-{end}.pcapng"
        shutil.copyfile(work / "captures" / f"0000-{end}.pcapng", HERE / name)
        made[name] = f"{what}, at the {end} | `airpath run {scenario.name}`"
    return made


def emulate(name: str, work: Path) -> dict[str, str]:
    """Run the web client over a link, and keep what the mobile captured."""
    what, client = HTTP[name]
    python = [sys.executable, str(WEB)]
    link = ["wired", "--set", "fixed.delay=40 ms", "--serve", shlex.join([*python, "serve"])]
    airpath("link", *link, "--out", work, "--capture", "--no-log", "--", *python, *client)
    shutil.copyfile(work / "captures" / "0000-mobile.pcapng", HERE / f"{name}.pcapng")
    return {f"{name}.pcapng": f"{what}, at the mobile | `airpath link wired -- http.py {' '.join(client)}`"}


def convert(name: str) -> dict[str, str]:
    """Write another format of a capture."""
    what, options = VARIANTS[name]
    subprocess.run(["editcap", *options, str(HERE / "loss-server.pcapng"), str(HERE / name)], check=True)
    return {name: f"`loss-server.pcapng`, {what} | `editcap {' '.join(options)}`"}


def airpath(*arguments: str | Path) -> None:
    """Run the command."""
    subprocess.run([str(AIRPATH), *map(str, arguments)], stdout=subprocess.DEVNULL, check=True)


def segments(capture: Path) -> int:
    """Return how many packets have TCP, as tshark counts them."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp"]
    return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


def main() -> None:
    """Make all."""
    made: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for scenario in sorted(HERE.glob("*.toml")):
            made |= simulate(scenario, Path(folder) / scenario.stem)
        for name in HTTP:
            made |= emulate(name, Path(folder) / name)
    for name in VARIANTS:
        made |= convert(name)
    rows = [
        f"| {name} | {text} | {(HERE / name).stat().st_size} | {segments(HERE / name)} |" for name, text in made.items()
    ]
    page = HERE / "README.md"
    table = "\n".join(["| file | what it is | how it was made | bytes | TCP packets |", "|" + " --- |" * 5, *rows, ""])
    page.write_text(re.sub(r"^\| file .*(?=^$|\Z)", lambda _: table, page.read_text(), flags=re.MULTILINE | re.DOTALL))


if __name__ == "__main__":
    main()
