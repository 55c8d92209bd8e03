"""`airpath measure`: runs the workloads over a real network, against a responder."""

import inspect
import json
import tomllib
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Annotated, Any, Literal

import typer

from airpath.cli.key_value import parse_pairs
from airpath.cli.messages import (
    Problem,
    explained,
    help_without_command,
    interrupted_by_signals,
    note,
    replacing_result,
)
from airpath.cli.option_groups import with_groups
from airpath.cli.option_of_value import with_option
from airpath.cli.options import Out, Quiet, is_given

Format = Literal["text", "json", "jsonl", "csv"]

_HELP = """Measure a real network with the workloads of the simulator.

The other end runs `airpath measure serve`; `ping --icmp` works with any host. Figures have the same
definition and the same place in the result as those of a simulated flow of the same kind.

\b
Examples:
  airpath measure serve --listen 0.0.0.0                on the one host
  airpath measure ping server.example --count 100       on the other
  airpath measure ping --icmp example.org                without a responder
  airpath measure bulk server.example --upload --bytes "5 MB" --out runs/upload
  airpath measure datagrams server.example --rate "64 kbit/s" --duration "1 min"
  airpath measure transactions server.example --connections each
  airpath measure page server.example static-site

\b
Exit codes:
  0    done; aborted or unfinished flows are a result, not a failure
  1    no responder, it refused, or the connection was lost
  2    bad usage
  3    the result could not be written in full; the written part is kept
  130  interrupted by Ctrl-C or SIGTERM; the result so far is printed and kept, marked as partial
"""

app = typer.Typer(help=_HELP, rich_markup_mode=None)

Host = Annotated[
    str, typer.Argument(metavar="HOST[:PORT]", help="Where `airpath measure serve` runs; [ADDRESS]:PORT for IPv6.")
]
Interval = Annotated[
    str | None, typer.Option(metavar="TIME", help="Print a line for each interval, as in --interval '1 s'.")
]
Duration = Annotated[str, typer.Option(metavar="TIME", help="Limit of the measurement; then it is unfinished.")]


@dataclass(frozen=True)
class Common:
    """Options of every measurement."""

    out: Out = None
    format: Annotated[
        Format,
        typer.Option(
            help="On standard output: a table, the summary as JSON, one JSON line per flow, or the flows as CSV."
        ),
    ] = "text"
    ipv4: Annotated[bool, typer.Option("--ipv4", "-4", help="Over IPv4 only.")] = False
    ipv6: Annotated[bool, typer.Option("--ipv6", "-6", help="Over IPv6 only.")] = False
    quiet: Quiet = False


@dataclass(frozen=True)
class Segments:
    """TCP options of both ends, without that of small segments."""

    mss: Annotated[int | None, typer.Option(min=1, metavar="BYTES", help="Largest segment of TCP, at both ends.")] = (
        None
    )
    send_buffer: Annotated[str | None, typer.Option(metavar="SIZE", help="Send buffer of TCP, at both ends.")] = None
    receive_buffer: Annotated[str | None, typer.Option(metavar="SIZE", help="Receive buffer of TCP, at both ends.")] = (
        None
    )
    congestion: Annotated[
        str | None, typer.Option(metavar="NAME", help="Congestion control by its name in the kernel: reno, cubic, bbr.")
    ] = None


@dataclass(frozen=True)
class Tcp(Segments):
    """TCP options of both ends."""

    no_delay: Annotated[
        bool, typer.Option("--no-delay", help="Send small segments at once, without Nagle's algorithm.")
    ] = False


_PROTOCOLS = ("http/1.0", "http/1.1")


def _names(incomplete: str) -> list[str]:
    from airpath.page import names

    return [name for name in names() if name.startswith(incomplete)]


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    help_without_command(context)


@app.command()
def serve(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR[:PORT]",
            help="Listen on this address; 0.0.0.0 and [::] serve other hosts. Default: this host only, port 7474.",
        ),
    ] = None,
) -> None:
    """Respond to measurements over TCP and UDP on one port, until Ctrl-C.

    The load of one client is limited; docs/measure.md has the limits and the protocol.

    \b
    Examples:
      airpath measure serve
      airpath measure serve --listen 0.0.0.0
      airpath measure serve --listen '[::]:9000'
    """
    from airpath import _native

    def started(addresses: list[str]) -> None:
        others = "" if listen else "; this host only: --listen 0.0.0.0 serves others"
        note(f"the responder listens on {' and '.join(addresses)}{others}")

    with explained():
        _native.serve(listen, started)


@app.command()
@with_groups
def ping(
    host: Host,
    common: Common,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Number of echo requests.")] = 10,
    interval: Annotated[str, typer.Option(metavar="TIME", help="Interval between requests.")] = "1 s",
    size: Annotated[int, typer.Option(metavar="BYTES", help="Payload of each, after the UDP or ICMP header.")] = 56,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Wait for the last replies at most this long.")] = "10 s",
    icmp: Annotated[
        bool,
        typer.Option("--icmp", help="With ICMP, as ping(8): every host replies, without `airpath measure serve`."),
    ] = False,
    duration: Duration = "1 h",
) -> None:
    """Measure round trips.

    \b
    Examples:
      airpath measure ping server.example
      airpath measure ping --icmp example.org
      airpath measure ping server.example --count 500 --interval "20 ms" --size 1400 --format csv
    """
    work = {"kind": "ping", "size": size, "interval": interval, "count": count, "timeout": timeout}
    _measure(host, work, duration, common, icmp=icmp)


@app.command()
@with_groups
def bulk(
    host: Host,
    tcp: Tcp,
    common: Common,
    upload: Annotated[bool, typer.Option("--upload", help="Send to the responder instead.")] = False,
    bytes: Annotated[str, typer.Option(metavar="SIZE", help="Size of each flow.")] = "10 MB",
    request: Annotated[
        str, typer.Option(metavar="SIZE", help="Size of the request before a download; by default none.")
    ] = "0 B",
    flows: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="Number of parallel flows.")] = 1,
    transport: Annotated[
        Literal["tcp", "quic-quinn"],
        typer.Option(help="QUIC has the code of the simulator, without encryption; of --congestion cubic, new-reno."),
    ] = "tcp",
    interval: Interval = None,
    duration: Duration = "1 h",
) -> None:
    """Measure downloads or uploads over TCP or QUIC.

    \b
    Examples:
      airpath measure bulk server.example
      airpath measure bulk server.example --interval '1 s'
      airpath measure bulk server.example --request "300 B" --bytes "100 kB" --format json
      airpath measure bulk server.example --upload --flows 4 --congestion reno --out runs/four
      airpath measure bulk server.example --transport quic-quinn --congestion new-reno
    """
    if upload and request != "0 B":
        raise Problem("--request: an upload has no request", next_step="leave out --request or --upload")
    transfer = {"direction": "up" if upload else "down", "bytes": bytes, "request": request}
    work = {"kind": "bulk", "transfer": transfer, "flows": flows}
    work |= {"tcp": asdict(tcp)} if transport == "tcp" else {"quic": _quic(tcp)}
    _measure(host, work, duration, common, every=interval)


def _quic(tcp: Tcp) -> dict[str, Any]:
    """Return the settings of QUIC: of the options of TCP it has the congestion control only.

    Raises:
        Problem: Another option of TCP is set.
    """
    if replace(tcp, congestion=None) != Tcp():
        raise Problem(
            "--transport quic-quinn: QUIC has no --mss, --send-buffer, --receive-buffer, --no-delay",
            next_step="leave them out",
        )
    return {} if tcp.congestion is None else {"congestion": tcp.congestion}


@app.command()
@with_groups
def datagrams(
    host: Host,
    common: Common,
    upload: Annotated[bool, typer.Option("--upload", help="Send to the responder instead of from it.")] = False,
    rate: Annotated[
        str, typer.Option(metavar="RATE", help="Rate of the IP packets; above the path's rate it is overload.")
    ] = "1 Mbit/s",
    size: Annotated[int, typer.Option(metavar="BYTES", help="Payload of each, at least 32.")] = 1000,
    duration: Annotated[str, typer.Option(metavar="TIME", help="Send for this time.")] = "10 s",
    late: Annotated[str, typer.Option(metavar="TIME", help="A datagram with a longer delay is late.")] = "150 ms",
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Wait for the last datagrams at most this long.")
    ] = "2 s",
    interval: Interval = None,
) -> None:
    """Measure a stream of datagrams: one-way delay, loss, gaps, delay periods.

    \b
    Examples:
      airpath measure datagrams server.example --rate "64 kbit/s" --size 172 --duration "1 min"
      airpath measure datagrams server.example --upload --rate "20 Mbit/s" --format json
    """
    direction = "up" if upload else "down"
    work = {"kind": "datagrams", "direction": direction, "rate": rate, "size": size}
    work |= {"duration": duration, "late": late, "timeout": timeout}
    _measure(host, work, "3 h", common, every=interval)


@app.command()
@with_groups
def transactions(
    host: Host,
    tcp: Tcp,
    common: Common,
    connections: Annotated[
        Literal["one", "each"], typer.Option(help="One connection for all (RR), or one for each (CRR).")
    ] = "one",
    request: Annotated[str, typer.Option(metavar="SIZE", help="Size of a request, at least 16 B.")] = "100 B",
    response: Annotated[str, typer.Option(metavar="SIZE", help="Size of a response.")] = "1 kB",
    count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of transactions; 10 by default without --duration.")
    ] = None,
    duration: Annotated[str | None, typer.Option(metavar="TIME", help="Start new transactions for this time.")] = None,
    think: Annotated[str, typer.Option(metavar="TIME", help="Time from a response to the next request.")] = "0 s",
    interval: Interval = None,
) -> None:
    """Measure requests and responses over TCP.

    \b
    Examples:
      airpath measure transactions server.example --count 100
      airpath measure transactions server.example --response "20 kB"
      airpath measure transactions server.example --connections each --duration "10 s"
    """
    exchange = {
        "request": request,
        "response": response,
        "transactions": count if count is not None else 10 if duration is None else 2**32 - 1,
        "think": think,
        "connections": connections,
    } | ({} if duration is None else {"duration": duration})
    work = {"kind": "transactions", "transactions": exchange, "tcp": asdict(tcp)}
    _measure(host, work, "3 h", common, every=interval)


@app.command()
@with_groups
def terminal(
    host: Host,
    tcp: Tcp,
    common: Common,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Rounds of text, scrolling, window and file.")] = 1,
    keys: Annotated[int, typer.Option(min=0, metavar="N", help="Keystrokes in a round.")] = 40,
    key_interval: Annotated[str, typer.Option(metavar="TIME", help="Mean time between keystrokes.")] = "200 ms",
    scrolls: Annotated[int, typer.Option(min=0, metavar="N", help="Steps of scrolling in a round.")] = 20,
    think: Annotated[str, typer.Option(metavar="TIME", help="Time of the user between parts of a round.")] = "2 s",
    window: Annotated[str, typer.Option(metavar="SIZE", help="Size of an update of a window.")] = "10 kB",
    file: Annotated[str, typer.Option(metavar="SIZE", help="Size of the display of a file.")] = "30 kB",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the times between keystrokes.")] = 0,
    interval: Interval = None,
) -> None:
    """Measure a remote terminal: keystroke and echo, scrolling, window updates, opening a file.

    \b
    Examples:
      airpath measure terminal server.example
      airpath measure terminal server.example --rounds 5 --no-delay
    """
    session = {"rounds": rounds, "keys": keys, "key_interval": key_interval, "scrolls": scrolls}
    session |= {"think": think, "window": window, "open": file}
    work = {"kind": "terminal", "session": session, "seed": seed, "tcp": asdict(tcp)}
    _measure(host, work, "3 h", common, every=interval)


@app.command()
@with_groups
def page(
    host: Host,
    pages: Annotated[
        list[str],
        typer.Argument(
            metavar="PAGE...",
            help="A page of `airpath page list`, or a page file; several in turn.",
            autocompletion=_names,
        ),
    ],
    tcp: Segments,
    common: Common,
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help="http/1.1, or http/1.0: a connection for each request.")
    ] = "http/1.1",
    connections: Annotated[int, typer.Option(min=1, metavar="N", help="Most connections to a host.")] = 6,
    speculative: Annotated[
        int, typer.Option(min=0, metavar="N", help="Connections opened beside that of the document.")
    ] = 0,
    pipeline: Annotated[
        int, typer.Option(min=1, metavar="N", help="Requests without response on a connection; 1 is no pipelining.")
    ] = 1,
    pipelines: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Connections of a host that pipeline; all by default.")
    ] = None,
    after: Annotated[int, typer.Option(min=0, metavar="N", help="Responses on a connection before it pipelines.")] = 0,
    compression: Annotated[
        bool, typer.Option("--compression/--no-compression", help="Servers send the compressed sizes of the page.")
    ] = True,
    request: Annotated[str, typer.Option(metavar="SIZE", help="Head of a request.")] = "400 B",
    response: Annotated[str, typer.Option(metavar="SIZE", help="Head of a response.")] = "300 B",
    keep_alive: Annotated[
        str, typer.Option(metavar="TIME", help="The browser closes a connection that is idle for longer.")
    ] = "60 s",
    views: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of views; one of each page by default.")
    ] = None,
    reading: Annotated[
        str | None, typer.Option(metavar="TIME", help="From a loaded page to the next view; 10 s by default.")
    ] = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Later views use the cache.")] = True,
    interval: Interval = None,
    duration: Duration = "1 h",
) -> None:
    """Measure web pages: the browser of the simulator, and a responder with HTTP/1.x in clear text.

    HTTP/2, HTTP/3 and TLS need a real browser: `airpath page load`.

    \b
    Examples:
      airpath measure page server.example static-site
      airpath measure page server.example static-site --protocol http/1.0 --connections 8 --out runs/page
      airpath measure page server.example umts-live-yahoo --connections 2 --pipeline 4
      airpath measure page server.example my.page --views 2 --reading "5 s" --format json
    """
    from airpath.page import load

    if protocol not in _PROTOCOLS:
        raise Problem(
            f"--protocol {protocol}: over real sockets pages use HTTP/1.x in clear text: {' or '.join(_PROTOCOLS)}",
            next_step="use one of them, or load the page in Chromium: `airpath page load`",
        )
    with explained():
        files = [load(name) for name in pages]
    settings: dict[str, Any] = {"protocol": protocol, "connections": connections, "speculative": speculative}
    settings |= {"compression": compression, "request": request, "response": response, "keep_alive": keep_alive}
    settings |= {"views": len(pages) if views is None else views, "cache": cache}
    if reading is not None:
        settings["reading"] = reading
    if (pipeline, pipelines, after) != (1, None, 0):
        limit = {} if pipelines is None else {"connections": pipelines}
        settings["pipeline"] = {"depth": pipeline, "after": after} | limit
    work = {
        "kind": "page",
        "pages": [{"name": file["name"], "object": file["object"]} for file in files],
        "settings": settings,
        # Browsers and web servers set it.
        "tcp": asdict(tcp) | {"no_delay": True},
    }
    _measure(host, work, duration, common, every=interval)


@app.command()
@with_groups
def voice(
    host: Host,
    common: Common,
    codec: Annotated[Literal["amr", "amr-wb"], typer.Option(help="Codec of both parties.")] = "amr",
    duration: Annotated[str, typer.Option(metavar="TIME", help="Length of the call.")] = "1 min",
    dtx: Annotated[bool, typer.Option("--dtx/--no-dtx", help="Do not transmit pauses, but for comfort noise.")] = True,
    frames: Annotated[int, typer.Option(min=1, max=12, metavar="N", help="Speech frames in a packet.")] = 1,
    jitter_buffer: Annotated[Literal["adaptive", "fixed"], typer.Option(help="Choice of the depth.")] = "adaptive",
    depth: Annotated[str, typer.Option(metavar="TIME", help="Depth of the jitter buffer, at first.")] = "60 ms",
    max_depth: Annotated[
        str | None, typer.Option(metavar="TIME", help="Greatest depth of an adaptive one; by default 200 ms.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the talk spurts.")] = 0,
    interval: Interval = None,
) -> None:
    """Measure a call: delay from mouth to ear, frames lost and late, MOS by the E-model.

    \b
    Examples:
      airpath measure voice server.example
      airpath measure voice server.example --codec amr-wb --jitter-buffer fixed --depth "100 ms"
    """
    settings = {"codec": codec, "duration": duration, "dtx": dtx, "frames_per_packet": frames}
    settings |= {"jitter_buffer": jitter_buffer, "depth": depth}
    settings |= {} if max_depth is None else {"max_depth": max_depth}
    _measure(host, {"kind": "voice", "settings": settings, "seed": seed}, "3 h", common, every=interval)


_GENERATED = {"rate", "duration", "frame_rate", "gop", "b_frames", "peak_to_mean"}
_RTP_OPTIONS: dict[str | None, set[str]] = {
    None: _GENERATED | {"packet", "buffer", "max_buffer", "repair", "speed", "ahead", "probes", "timeout", "seed"},
    "send": {"video", "sdp", "transport", "lead", "frame_rate", "packet", "speed", "ahead", "seed"},
    "receive": {"listen", "sdp", "transport", "buffer", "timeout", "seed"},
}
"""Options of `stream` by --rtp, beside those of every measurement."""


@app.command()
@with_groups
def stream(
    context: typer.Context,
    common: Common,
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="HOST[:PORT]",
            help="Where `airpath measure serve` runs, or with --rtp send the player, at port 5004 by default.",
        ),
    ] = None,
    rtp: Annotated[
        Literal["send", "receive"] | None,
        typer.Option(help="Real media without a responder: send --video to a player, or receive from another program."),
    ] = None,
    video: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --rtp send: H.264 in a byte stream, as ffmpeg -f h264.")
    ] = None,
    sdp: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Description of the session: --rtp send writes it for the player, receive reads it."
        ),
    ] = None,
    transport: Annotated[
        Literal["udp", "tcp"],
        typer.Option(
            help="With --rtp: the protocol below RTP; over tcp the receiver listens. receive also reads --sdp."
        ),
    ] = "udp",
    lead: Annotated[
        str, typer.Option(metavar="TIME", help="With --rtp send: time to start the player, before the first packet.")
    ] = "2 s",
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR[:PORT]",
            help="With --rtp receive: listen on this address. Default: this host only, port 5004 or that of --sdp.",
        ),
    ] = None,
    rate: Annotated[str, typer.Option(metavar="RATE", help="Mean rate of the video, without headers.")] = "148 kbit/s",
    duration: Annotated[str, typer.Option(metavar="TIME", help="Length of the video.")] = "1 min",
    frame_rate: Annotated[
        float, typer.Option(metavar="N", help="Frames per second; with --rtp send by default those of the file.")
    ] = 15,
    gop: Annotated[int, typer.Option(min=1, metavar="N", help="Frames from an I frame to the next.")] = 60,
    b_frames: Annotated[int, typer.Option(min=0, metavar="N", help="B frames between two other frames.")] = 0,
    peak_to_mean: Annotated[float, typer.Option(metavar="N", help="Size of an I frame to that of the mean.")] = 10,
    packet: Annotated[str, typer.Option(metavar="SIZE", help="Most bytes of a frame in a packet.")] = "1400 B",
    buffer: Annotated[str, typer.Option(metavar="TIME", help="Media to wait for before playback.")] = "5 s",
    max_buffer: Annotated[
        str | None, typer.Option(metavar="TIME", help="Most media to store: the responder stops there.")
    ] = None,
    repair: Annotated[Literal["none", "once", "nack"], typer.Option(help="Repair of lost packets.")] = "none",
    speed: Annotated[
        float, typer.Option(metavar="N", help="Highest rate of the responder, as a multiple of the video's.")
    ] = 1,
    ahead: Annotated[str, typer.Option(metavar="TIME", help="Most media sent ahead of real time.")] = "0 s",
    probes: Annotated[bool, typer.Option("--probes", help="Three probe packets first, which limit --speed.")] = False,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Give up after this time without a packet.")] = "30 s",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of first numbers and report times.")] = 0,
    interval: Interval = None,
) -> None:
    """Measure a video over RTP from the responder: start-up, stalls, loss, repair, frames decoded.

    With --rtp the other end is another program, such as ffmpeg, and the media are real.

    \b
    Examples:
      airpath measure stream server.example
      airpath measure stream server.example --rate "1 Mbit/s" --repair nack --out runs/stream
      airpath measure stream player.example:5004 --rtp send --video clip.h264 --sdp session.sdp
      airpath measure stream --rtp receive --listen 0.0.0.0 --out runs/received
      airpath measure stream --rtp receive --transport tcp --listen 0.0.0.0
    """
    _check_rtp_options(context, rtp)
    if rtp == "receive":
        if host is not None:
            raise Problem(
                f"HOST ({host}): --rtp receive takes packets of any sender",
                next_step="leave it out; --listen ADDR[:PORT] is the address of this host",
            )
        work = {"kind": "rtp-receive", "listen": listen, "description": sdp}
        if is_given(context, "transport"):
            work["transport"] = transport
        _measure(
            listen or sdp or "this host",
            work | {"buffer": buffer, "timeout": timeout, "seed": seed},
            "3 h",
            common,
            every=interval,
        )
        return
    if host is None:
        raise Problem("HOST is missing", next_step="give the host, or receive from another program: --rtp receive")
    if rtp == "send":
        if video is None:
            raise Problem("--rtp send needs --video FILE", next_step="ffmpeg -i VIDEO -c:v libx264 -f h264 clip.h264")
        work = {"kind": "rtp-send", "video": video, "description": sdp, "lead": lead, "packet": packet}
        work |= {"speed": speed, "ahead": ahead, "seed": seed, "transport": transport}
        if is_given(context, "frame_rate"):
            work["frame_rate"] = frame_rate
        _measure(host, work, "3 h", common, every=interval)
        return
    generated = {"rate": rate, "duration": duration, "frame_rate": frame_rate, "gop": gop}
    generated |= {"b_frames": b_frames, "peak_to_mean": peak_to_mean}
    settings = {"packet": packet, "buffer": buffer, "repair": repair, "speed": speed, "ahead": ahead}
    settings |= {"probes": probes, "timeout": timeout}
    if max_buffer is not None:
        settings["max_buffer"] = max_buffer
    work = {"kind": "stream", "video": generated, "settings": settings, "seed": seed}
    _measure(host, work, "3 h", common, every=interval)


def _check_rtp_options(context: typer.Context, rtp: str | None) -> None:
    """Check that all options of `stream` that were given have an effect.

    Raises:
        Problem: One belongs to another kind of stream.
    """
    every = {name for names in _RTP_OPTIONS.values() for name in names}
    unused = [name for name in context.params if name in every - _RTP_OPTIONS[rtp] and is_given(context, name)]
    if unused:
        option = "--" + unused[0].replace("_", "-")
        modes = [
            "without --rtp" if mode is None else f"with --rtp {mode}"
            for mode in _RTP_OPTIONS
            if unused[0] in _RTP_OPTIONS[mode]
        ]
        has = "without --rtp" if rtp is None else f"with --rtp {rtp}"
        raise Problem(f"{option} has no effect {has}", next_step=f"leave it out, or use it {' or '.join(modes)}")


@app.command()
@with_groups
def adaptive(
    host: Host,
    tcp: Segments,
    common: Common,
    qualities: Annotated[
        str | None,
        typer.Option(metavar="RATES", help="Rates of the qualities in rising order, separated by commas."),
    ] = None,
    algorithm: Annotated[Literal["rate", "bba", "bola"], typer.Option(help="Choice of the quality.")] = "rate",
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help='Parameter of the algorithm, such as reservoir="8 s"; repeatable.'),
    ] = None,
    duration: Annotated[str, typer.Option(metavar="TIME", help="Length of the video.")] = "2 min",
    segment: Annotated[str, typer.Option(metavar="TIME", help="Length of a segment.")] = "4 s",
    buffer: Annotated[str, typer.Option(metavar="TIME", help="Most media that the player stores.")] = "30 s",
    startup: Annotated[
        str, typer.Option(metavar="TIME", help="Media to wait for at the start and after a stall.")
    ] = "4 s",
    request: Annotated[str, typer.Option(metavar="SIZE", help="Size of a request, at least 16 B.")] = "400 B",
    head: Annotated[str, typer.Option(metavar="SIZE", help="Head of a response.")] = "300 B",
    manifest: Annotated[str, typer.Option(metavar="SIZE", help="List of the segments.")] = "2 kB",
    processing: Annotated[str, typer.Option(metavar="TIME", help="Time of the server for each response.")] = "0 s",
    interval: Interval = None,
) -> None:
    """Measure adaptive streaming over TCP: start-up, stalls, quality and its switches, buffer.

    \b
    Examples:
      airpath measure adaptive server.example
      airpath measure adaptive server.example --algorithm bba --parameter reservoir="8 s"
      airpath measure adaptive server.example --qualities "200 kbit/s, 400 kbit/s"
    """
    settings: dict[str, Any] = {"duration": duration, "segment": segment, "buffer": buffer, "startup": startup}
    settings |= {"request": request, "head": head, "manifest": manifest, "processing": processing}
    pairs = parse_pairs("--parameter", parameter or [], example='reservoir="8 s"')
    settings["adaptation"] = {"algorithm": algorithm} | {name: _number_or_text(text) for name, text in pairs.items()}
    if qualities is not None:
        settings["qualities"] = [rate.strip() for rate in qualities.split(",")]
    # Browsers and web servers set it.
    work = {"kind": "adaptive", "settings": settings, "tcp": asdict(tcp) | {"no_delay": True}}
    _measure(host, work, "3 h", common, every=interval)


def _number_or_text(text: str) -> int | float | str:
    """Return the value of a parameter; text is a value with a unit."""
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if isfinite(value):
            return value
    return text.strip("\"'")


def _options(kind: str) -> set[str]:
    """Return the names of the options of a command."""
    command = next(
        each.callback for each in app.registered_commands if each.callback and each.callback.__name__ == kind
    )
    return inspect.signature(command).parameters.keys() - {"context", "host", "pages"}


def _measure(
    host: str, work: dict[str, Any], limit: str, common: Common, *, icmp: bool = False, every: str | None = None
) -> None:
    from airpath import _native
    from airpath.cli.interval_lines import interval_lines, seconds_of, text_of
    from airpath.cli.output import print_line, print_summary
    from airpath.cli.progress import progress_bar
    from airpath.cli.warnings import warn_about
    from airpath.result_folder import NewResult, new_result, written_to

    if common.ipv4 and common.ipv6:
        raise Problem("--ipv4 and --ipv6 exclude each other", next_step="use one of them, or none")
    family = "v4" if common.ipv4 else "v6" if common.ipv6 else "any"
    seconds = seconds_of(every, common.format)
    request = json.dumps({"host": host, "family": family, "work": work, "icmp": icmp, "limit": limit})
    # Plain RTP is a stream, too.
    kind = "stream" if work["kind"].startswith("rtp-") else work["kind"]

    def invalid(error: ValueError) -> Problem:
        message = str(error)
        # One about the content of a file begins with the file's name.
        names_file = message.partition(": ")[0] in map(str, work.values())
        words = message if names_file else with_option(message, _options(kind))
        return Problem(words, next_step=f"`airpath measure {kind} --help` shows the options")

    with (
        explained(),
        interrupted_by_signals(),
        replacing_result(common.out),
        progress_bar(f"{kind} {host}") as progress,
        ExitStack() as stack,
    ):
        try:
            scenario = tomllib.loads(_native.measurement(request))
        except ValueError as error:
            raise invalid(error) from None
        folder = None
        if common.out is not None:
            folder = stack.enter_context(new_result(common.out, NewResult("measure", scenario)))
        if common.format == "jsonl":
            print_line("start", {"measurement": kind, "host": host})

        def show(line: dict[str, Any]) -> None:
            if common.format == "jsonl":
                print_line("interval", line)
            else:
                typer.echo(text_of(line))

        try:
            with interval_lines(seconds, kind, show, progress) as counted:
                out = None if folder is None else str(folder)
                summary = json.loads(_native.measure(request, out, counted, note))
        except ValueError as error:
            raise invalid(error) from None
    print_summary(summary, common.format)
    raise typer.Exit(warn_about(summary, common.out and written_to(common.out)))
