"""Ground truth of real transfers: runs them over emulated links, compares, prints the tables.

    .venv/bin/python tests/ground_truth/emulated.py [--work FOLDER] [--only NAME]

The link's events describe real packets as they describe simulated ones. They lack the kernel's
congestion window: slow start and congestion window are one cause here.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from analyser import analyser, pieces
from compare import Confusion, compare
from radio_log import ORIGIN
from truth import Flow, Truth

EXCHANGE = Path(__file__).parents[1] / "ends" / "exchange.py"
"""The programs at the two ends."""

REQUEST = 100
"""Bytes of a request, as that program sends them."""

LEAST_TIMER = 200_000_000
"""Nanoseconds: the minimum retransmission time-out of Linux (TCP_RTO_MIN)."""


@dataclass(frozen=True)
class Transfer:
    """A link, and the traffic over it."""

    name: str
    link: str
    """The scenario without its heading."""
    number: int
    """Requests, one after the other."""
    size: int
    """Bytes of each response."""
    think_s: float = 0
    """From a response to the next request."""
    buffer: int = 0
    """Bytes of the client's receive buffer; by default what the system takes."""


def wired(rate: str, delay: str, packets: int, more: str = "") -> str:
    """A plain link, the same both ways but for its queue."""
    ways = {"downlink": packets, "uplink": 1000}
    lines = ["[bearer]", 'model = "wired"']
    for way, queue in ways.items():
        lines += [f"[bearer.{way}]", f'rate = "{rate}"', f'delay = "{delay}"', f"queue = {{ packets = {queue} }}"]
        lines += [more] if way == "downlink" else []
    return "\n".join(lines)


OUTAGE = '[[change]]\nat = "2 s"\noutage = "2 s"'

TRANSFERS = (
    Transfer("bulk", wired("2 Mbit/s", "50 ms", 60), 1, 1_200_000),
    Transfer("outage", wired("2 Mbit/s", "50 ms", 60) + "\n" + OUTAGE, 1, 1_000_000),
    Transfer("lossy", wired("4 Mbit/s", "40 ms", 100, "loss = 0.01"), 1, 1_500_000),
    Transfer("think", wired("2 Mbit/s", "50 ms", 60), 6, 60_000, think_s=0.6),
    Transfer("small-buffer", wired("8 Mbit/s", "60 ms", 100), 1, 400_000, buffer=8_000),
    Transfer("dch", '[bearer]\npreset = "umts-dch-384"', 1, 250_000),
)
"""All of them."""


class Observed(Flow):
    """A flow between real programs."""

    def __init__(self, result: Path, transfer: Transfer):
        self.transfer = transfer
        super().__init__(result, "server")

    def described(self) -> dict[str, Any]:
        """What the programs did."""
        return {
            "kind": "transactions",
            "request_bytes": REQUEST,
            "response_bytes": self.transfer.size,
            "tcp": {},
        }

    def sender(self) -> pl.DataFrame:
        """The events of the kernel's TCP, inferred from its packets."""
        rows: list[tuple[int, str, int | None]] = [(self._third_of_handshake(), "established", None)]
        acks = self.acks.filter(pl.col("ack") > 0).sort("received")["received"].to_numpy()
        arrived = dict(self.data.filter(~pl.col("retransmission")).select("offset", "received").iter_rows())
        for time, offset in self.data.filter("retransmission").select("sent", "offset").iter_rows():
            heard = acks[acks < time]
            if len(heard) and time - heard[-1] < LEAST_TIMER:
                rows.append((time, "fast-retransmit", None))
                continue
            rows.append((time, "timeout", None))
            after = acks[acks > time]
            if arrived.get(offset) is not None and len(after):
                # Timestamps reveal the spurious time-out; the kernel undoes it (RFC 3522).
                rows.append((int(after[0]), "undo", None))
        rows += [(time, "ack", sample) for time, sample in self._round_trips()]
        known = pl.DataFrame(rows, schema=["time", "trigger", "round_trip"], orient="row").sort("time")
        nothing = pl.lit(None, dtype=pl.Int64)
        return known.with_columns(congestion_window=pl.lit(2**60), slow_start_threshold=nothing.fill_null(0))

    def _third_of_handshake(self) -> int:
        opened = self.acks.filter((pl.col("flags") & 2 == 0) & pl.col("ack").is_not_null())
        return int(opened["received"].min())  # type: ignore[arg-type]

    def _round_trips(self) -> list[tuple[int, int]]:
        """Round trips of data that was sent once, to the acknowledgement that covers it."""
        again = set(self.data.filter("retransmission")["offset"].to_list())
        acks = self.acks.filter(pl.col("ack").is_not_null()).sort("received")
        times, reached = acks["received"].to_numpy(), np.maximum.accumulate(acks["ack"].to_numpy())
        found = []
        for offset, length, sent in self.data.select("offset", "length", "sent").iter_rows():
            at = int(np.searchsorted(reached, offset + length))
            if offset not in again and at < len(times):
                found.append((int(times[at]), int(times[at]) - sent))
        return found


def run(transfer: Transfer, folder: Path) -> None:
    """Runs a transfer over a link, and writes the result into a folder."""
    scenario = folder.with_suffix(".toml")
    scenario.write_text(f'format = 1\nname = "{transfer.name}"\nseed = 7\n{transfer.link}\n[[flow]]\nkind = "ping"\n')
    program = [sys.executable, "-I", "-S", str(EXCHANGE)]
    server = shlex.join([*program, "serve", str(transfer.size)])
    client = [
        *program,
        "request",
        "server",
        *map(str, (transfer.number, transfer.size, transfer.think_s, transfer.buffer)),
    ]
    installed = Path(sys.executable).with_name("airpath")
    words = [str(installed), "link", str(scenario), "--out", str(folder), "--capture", "--serve", server, "--", *client]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{transfer.name}: {done.stderr}")


def merged(causes: np.ndarray) -> np.ndarray:
    """Slow start is counted as congestion window."""
    return np.where(causes == "slow-start", "congestion-window", causes)


def judge(transfer: Transfer, work: Path, program: Path, peer: bool) -> Confusion:
    """Analyses the capture at the server of a transfer, and compares."""
    folder = work / transfer.name
    flow = Observed(folder, transfer)
    true = flow.classify()
    captures = [folder / "captures" / f"0000-{end}.pcapng" for end in (("server", "mobile") if peer else ("server",))]
    found = pieces(program, *captures)
    # Captures have the time of day, events the time of the link: the SYN is in both.
    ahead = ORIGIN + flow.span[0] - int(found[0]["begin"])
    for piece in found:
        piece["begin"], piece["end"] = piece["begin"] + ahead, piece["end"] + ahead
        piece["cause"] = str(merged(np.array(piece["cause"])))
    return compare(Truth(true.edges, merged(true.causes)), found)


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="keep the runs in this folder, and use those that are there")
    parser.add_argument("--only", default="", help="transfers whose names contain this")
    arguments = parser.parse_args()
    program = analyser()
    out = sys.stdout.write
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        wanted = [transfer for transfer in TRANSFERS if arguments.only in transfer.name]
        for transfer in wanted:
            if not (work / transfer.name).exists():
                run(transfer, work / transfer.name)
        for peer in (False, True):
            whole = Confusion()
            lines = ["| transfer | seconds | same cause |", "| --- | ---: | ---: |"]
            for transfer in wanted:
                confusion = judge(transfer, work, program, peer)
                whole.add(confusion)
                lines.append(f"| {transfer.name} | {confusion.total():.1f} | {100 * confusion.agreement():.1f} % |")
            out(f"\n{'both ends' if peer else 'sender'}, {len(wanted)} transfers: same cause ")
            out(f"{100 * whole.agreement():.1f} % of the time\n\n{whole.table()}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
