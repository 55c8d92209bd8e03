"""Measures how fast links carry TCP and how late their packets leave; prints a table in Markdown.

    .venv/bin/python benches/link_rates.py [--seconds 10] [--only WORD] [--airpath PROGRAM]

Each link has its own server of iperf3 and a download of the given length. The links of a row run at
the same time. Rates are those at the receivers, summed over the links; the rate of the same
download in virtual time is beside it. Lateness is the time from when the bearer has a packet leave
until the link gives it to the kernel, over all packets of all links of the row (the result's
`emulation.lateness`; of several links, the highest of each percentile). "In time" is how many of
the links have 99 % of their packets less than 1 ms late, the goal. The buffers of both ends
have room for the product of rate and round trip, so that TCP is limited by the link alone. Needs
iperf3 and links (`airpath doctor`), and a machine without other load.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import airpath

BUFFER = 32 << 20
"""The most that a kernel's socket buffers, in bytes, its overhead of about a half included."""

GOAL = 1e-3
"""How late 99 % of the packets of a link may be, in seconds."""

GOOD = {"bearer.conditions.ci": "45 dB"}
"""A mobile that gets the highest rate of its cell."""


@dataclass(frozen=True, slots=True)
class Row:
    """Links of one preset that run at once."""

    title: str
    preset: str
    links: int = 1
    sets: dict[str, str] = field(default_factory=dict)
    most: str | None = None
    """The most that each server sends, as iperf3 writes it; without it as fast as TCP can."""


ROWS = (
    Row("LTE 20 MHz, two layers", "lte-20mhz", sets=GOOD),
    Row("LTE 20 MHz, two layers, 256QAM", "lte-20mhz", sets=GOOD | {"bearer.mobile.modulation": "256qam"}),
    Row("LTE 2 × 20 MHz, two layers", "lte-2x20mhz", sets=GOOD),
    Row("LTE 2 × 20 MHz, two layers, 256QAM", "lte-2x20mhz", sets=GOOD | {"bearer.mobile.modulation": "256qam"}),
    Row("NR 100 MHz", "nr-n78-100mhz-sa", sets=GOOD | {"bearer.pdcp.queue.bytes": "40 MB"}),
    Row("LTE 20 MHz, 2 links", "lte-20mhz", links=2, sets=GOOD),
    Row("LTE 20 MHz at 20 dB, 16 links, 20 Mbit/s each", "lte-20mhz", links=16, most="20M"),
    Row("LTE 20 MHz at 20 dB, 16 links, as fast as they can", "lte-20mhz", links=16),
)


def main() -> None:
    """Runs, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", metavar="WORD", help="only the rows whose title has this word in it")
    program = Path(sys.executable).parent / "airpath"
    parser.add_argument("--airpath", metavar="PROGRAM", default=str(program) if program.exists() else "airpath")
    arguments = parser.parse_args()
    if shutil.which("iperf3") is None:
        sys.exit("there is no iperf3; install Debian's package iperf3")
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| links | Mbit/s | simulated, Mbit/s | late p50, ms | p99, ms | p99.9, ms | in time | packets |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in ROWS:
        if arguments.only is None or arguments.only in row.title:
            print(measured(row, arguments.airpath, arguments.seconds), flush=True)


def measured(row: Row, program: str, seconds: int) -> str:
    """Runs the links of a row; a line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder) / str(number) for number in range(row.links)]
        sets = [word for key, value in row.sets.items() for word in ("--set", f"{key}={value}")]
        pace = [] if row.most is None else ["-b", row.most]
        buffers = [
            word for key in ("rmem", "wmem") for word in ("--sysctl", f"net.ipv4.tcp_{key}=4096 131072 {BUFFER}")
        ]
        download = ["iperf3", "-c", "server", "-R", "-J", "-t", str(seconds), *pace]
        running = [
            subprocess.Popen(
                [
                    program,
                    "link",
                    row.preset,
                    *sets,
                    *buffers,
                    "-q",
                    "-o",
                    str(out),
                    "--serve",
                    "iperf3 -s -1",
                    "--",
                    *download,
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for out in folders
        ]
        texts = [process.communicate() for process in running]
        for process, (_, errors) in zip(running, texts, strict=True):
            if process.returncode != 0:
                sys.exit(f"{row.title}: a link ended with {process.returncode}\n{errors.decode()[-600:]}")
        rate = sum(json.loads(json_of(out))["end"]["sum_received"]["bits_per_second"] for out, _ in texts)
        emulations = [json.loads((out / "summary.json").read_bytes())["emulation"] for out in folders]
    lateness = [each["lateness"] for each in emulations]
    control = emulations[0]["host"]["congestion_control"]
    simulated = f"{row.links * virtual(row, seconds, control) / 1e6:.0f}" if row.most is None else "–"
    late = " | ".join(f"{highest(lateness, key) * 1e3:.3f}" for key in ("p50_s", "p99_s", "p99_9_s"))
    in_time = sum(each["p99_s"] < GOAL for each in lateness)
    packets = sum(each["packets"] for each in lateness)
    return f"| {row.title} | {rate / 1e6:.0f} | {simulated} | {late} | {in_time} of {row.links} | {packets:,} |"


def json_of(output: bytes) -> bytes:
    """The object that iperf3 printed; its server prints text beside it."""
    return output[output.index(b"{\n") : output.rindex(b"}\n") + 1]


def highest(lateness: Sequence[dict[str, Any]], key: str) -> float:
    """The highest value of a figure over the links."""
    return max(each[key] for each in lateness)


def virtual(row: Row, seconds: int, control: str) -> float:
    """The rate of the same download in virtual time with a congestion control, in bit/s."""
    scenario = (
        f'format = 1\nduration = "{seconds} s"\n[bearer]\npreset = "{row.preset}"\n'
        '[tcp]\nprofile = "linux-6"\n[[flow]]\nkind = "download"\nbytes = "20 GB"\n'
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(scenario)
        file.flush()
        sets = row.sets | {"tcp.congestion": control, "tcp.receive_buffer.maximum": f"{BUFFER // 2} B"}
        result = airpath.run(file.name, set=sets)
    return 8 * float(result.flows["delivered_bytes"].sum()) / seconds


if __name__ == "__main__":
    main()
