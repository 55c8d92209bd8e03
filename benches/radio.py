"""Measures the processor time of the cellular bearers, and prints a table in Markdown.

    python benches/radio.py [--rounds 3]

One download, or a cell of mobiles, over each bearer, with and without further idle mobiles. The
figure is the processor time (user and system) of the run on one core, without parsing; building the
objects has its own column. It is the minimum of the rounds. Events are those of the event queue: an
idle mobile adds none.
"""

import argparse
from pathlib import Path

from compare import ROOT, SCENARIOS, Program, built

STUDIES = ROOT / "studies"

Sets = dict[str, object]


def cases() -> list[tuple[str, Path, int, Sets]]:
    """A workload: its title, scenario, repetitions and overrides."""
    umts: Sets = {"flow.0.bytes": "16 MB", "tcp.profile": "linux-6"}
    idle = SCENARIOS / "idle-mobiles.toml"
    hsdpa = SCENARIOS / "hsdpa-cat10.toml"
    cell, messages = SCENARIOS / "lte-cell.toml", SCENARIOS / "messages.toml"
    nr: Sets = {"bearer.preset": "nr-n78-100mhz-sa", "bearer.pdcp.queue.bytes": "40 MB", "duration": "10 s"}
    # The product of 1.4 Gbit/s and the round trip is above the window of linux-6, of 3 MB.
    window: Sets = {"bearer.conditions.ci": "45 dB", "tcp.receive_buffer.maximum": "16 MB"}
    beside = [(count, f"the same with {count:,} idle mobiles" if count > 1 else "") for count in (1, 100, 1000)]
    return [
        ("download of 16 MB over UMTS with its RLC", STUDIES / "umts-live" / "download.toml", 20, umts),
        ("download of 600 kB over GPRS", STUDIES / "gprs-proxy" / "download.toml", 40, {}),
        (
            "download of 500 kB over GPRS to a car past four cells, with link adaptation",
            STUDIES / "gprs-la" / "download.toml",
            40,
            {"bearer.conditions.environment": "driving"},
        ),
        ("GPRS cell of 50 mobiles with full buffers, 600 s", SCENARIOS / "gprs-cell-50.toml", 1, {}),
        *(
            (
                title or f"{name}, one mobile loads 2 MB, one is idle",
                idle,
                5,
                {"bearer.preset": preset, "mobile.1.count": count},
            )
            for name, preset in (("GPRS", "gprs-4+1"), ("UMTS", "umts-r99-384"), ("HSDPA", "hsdpa-cat10"))
            for count, title in beside
        ),
        ("HSDPA of category 10, one mobile with a full buffer, 60 s", hsdpa, 5, {}),
        ("HSDPA of category 10, 50 mobiles with full buffers, 60 s", hsdpa, 1, {"mobile.0.count": 50}),
        ("LTE 20 MHz, one layer, one mobile with a full buffer, 60 s", cell, 1, {"bearer.mobile.layers": 1}),
        ("LTE 20 MHz, two layers, one mobile with a full buffer, 60 s", cell, 1, {}),
        ("LTE 20 MHz, 50 mobiles with full buffers, 60 s", cell, 1, {"mobile.0.count": 50}),
        ("NR 100 MHz, one mobile with a full buffer, 10 s", cell, 1, nr | {"bearer.conditions.ci": "45 dB"}),
        ("NR 100 MHz, one mobile with a full buffer and a receive buffer of 16 MB, 10 s", cell, 1, nr | window),
        ("NR 100 MHz, 50 mobiles with full buffers, 10 s", cell, 1, nr | {"mobile.0.count": 50}),
        ("LTE 20 MHz, 10,000 mobiles with a message a minute, 600 s", messages, 1, {}),
        ("NB-IoT, 10,000 mobiles with a message a minute, 600 s", messages, 1, {"bearer.preset": "nb-iot-psm"}),
        ("NB-IoT, 100,000 devices that report twice a day, 3600 s", SCENARIOS / "nb-iot-100000.toml", 1, {}),
    ]


def main() -> None:
    """Builds, runs, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    binary = built()
    programs = []
    for title, scenario, repeat, sets in cases():
        options = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        programs.append(Program(title, [str(binary), "--repeat", str(repeat), *options, str(scenario)]))
    for _ in range(arguments.rounds):
        for program in programs:
            program.run()
    print("| workload | simulated s | CPU s | × real time | events | set-up s | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for program in programs:
        print(row(program))


def row(program: Program) -> str:
    """A line of the table."""
    figures = program.figures
    if "cpu_s" not in figures:
        return f"| {program.name} | – | | | | | |"
    cpu = figures["cpu_s"]
    return (
        f"| {program.name} | {figures['sim_s']:,.0f} | {cpu:.3f} | {figures['sim_s'] / cpu:,.0f} "
        f"| {figures['events']:,.0f} | {figures['setup_s']:.4f} | {figures['peak_kb'] / 1024:.1f} |"
    )


if __name__ == "__main__":
    main()
