"""The 29 situations of an independent review, by the situations that repeat them."""

from collections.abc import Mapping

RIGHT = 0.85
"""A situation is right if each of its runs has the true cause for this share of the time."""

ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a server that sleeps", ("sleep",)),
    ("a small receive buffer", ("receive-buffer",)),
    ("outage", ("outage-reno",)),
    ("outage with BBR", ("outage-bbr",)),
    ("outage without SACK and timestamps", ("outage-bare",)),
    ("upload in an outage", ("outage-upload",)),
    ("outage over GPRS", ("outage-gprs",)),
    ("handover that discards", ("handover-discard",)),
    ("outage that begins while idle", ("outage-while-idle",)),
    ("reader that pauses", ("pause", "pause-fast")),
    ("server that does not read", ("slow-server",)),
    ("slow reader", ("slow-reader-384", "slow-reader-3600")),
    ("write-write-read", ("nagle",)),
    ("ping-pong", ("no-delay", "ssh-dialogue")),
    ("data in drips", ("drip",)),
    ("replies with think time", ("keep",)),
    ("reset by client or server", ("abort-client", "abort-server")),
    ("upload", ("upload",)),
    ("both directions", ("both-ways", "up-and-down")),
    ("iperf3 with its control connection", ("iperf3-reverse",)),
    ("several connections", ("four-short", "browser", "browser-hs-dsch")),
    ("loss of 2 %", ("loss-reno",)),
    ("loss with BBR", ("loss-bbr",)),
    ("small queue", ("small-queue",)),
    ("states of the radio connection", ("states",)),
    ("SYN in an outage", ("outage-set-up",)),
    ("small send buffer", ("send-buffer",)),
    ("curl", ("curl",)),
    ("segmentation offload", ("long-reno", "bulk-reno")),
)


def table(shares: Mapping[str, Mapping[str, float]]) -> str:
    """The verdicts as Markdown, from the share of each situation by view.

    Without the situations that did not run; the cell of a view without a comparison is empty.
    """
    views = ("sender", "receiver", "both")
    lines = ["| situation | runs | " + " | ".join(views) + " |", "| --- | --- |" + " --- |" * len(views)]
    right, judged = dict.fromkeys(views, 0), dict.fromkeys(views, 0)
    rows = [row for row in ROWS if all(name in shares for name in row[1])]
    for title, names in rows:
        cells = []
        for view in views:
            found = [shares[name][view] for name in names if view in shares[name]]
            if not found:
                cells.append("")
                continue
            least = min(found)
            judged[view] += 1
            right[view] += least >= RIGHT
            cells.append("right" if least >= RIGHT else f"{100 * least:.0f} %")
        lines.append(f"| {title} | {', '.join(names)} | " + " | ".join(cells) + " |")
    lines.append("| right | | " + " | ".join(f"{right[view]} of {judged[view]}" for view in views) + " |")
    return "\n".join(lines)
