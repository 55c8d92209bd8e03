"""Transfers under the real clock.

The kernel's TCP over an emulated link, measured like a simulated flow.

    from airpath import realtime

    reno = {"net.ipv4.tcp_congestion_control": "reno"}
    measured = realtime.measure("examples/hs-dsch.toml", bytes=100_000, sysctl=reno)
    measured.transfers[0].duration_s

| module | what |
| --- | --- |
| `ends` | the two programs on the link: a server that sends, a client that receives |
| `measure` | one link with its two programs, and their measurements |
"""

from airpath.realtime.measure import Links, Measured, RealtimeError, Transfer, measure, obstacle

__all__ = ["Links", "Measured", "RealtimeError", "Transfer", "measure", "obstacle"]
