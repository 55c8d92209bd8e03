"""Relays connections from a link to ports of this host: `python -m airpath.sidecar.host_ports FD`.

The link listens in the namespace of its server end and passes its sockets over `FD`, each with its
port (`crates/emu/src/host_ports.rs`). Each connection is relayed to the same port at this host's
loopback address, IPv4 or IPv6.
"""

import asyncio
import socket
import struct
import sys
from contextlib import suppress

_ADDRESSES = ("127.0.0.1", "::1")
_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: the connection is reset."""


async def serve(link: socket.socket) -> None:
    """Relay until the other end of `link` is closed."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    link.setblocking(False)
    loop.add_reader(link, readable.set)
    servers: list[asyncio.Server] = []
    while True:
        await readable.wait()
        readable.clear()
        try:
            message, descriptors, *_ = socket.recv_fds(link, 2, 1)
        except BlockingIOError:
            continue
        if not message:
            return
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        relay = _Relay(int.from_bytes(message))
        servers.append(await asyncio.start_server(relay.connected, sock=listener, limit=_CHUNK))


class _Relay:
    """Relays the connections to one port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_reported = False

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a connection."""
        host = await self._connect()
        if host is None:
            _reset(writer)
            return
        host_reader, host_writer = host
        try:
            await asyncio.gather(_copy(reader, host_writer), _copy(host_reader, writer))
        except (OSError, asyncio.CancelledError):
            # One end has reset its connection, or the link has ended: so is the other.
            _reset(writer)
            _reset(host_writer)
        finally:
            writer.close()
            host_writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for address in _ADDRESSES:
            try:
                return await asyncio.open_connection(address, self._port, limit=_CHUNK)
            except OSError:
                continue
        if not self._is_reported:
            with suppress(OSError):
                sys.stderr.write(f"airpath: nothing listens at port {self._port} of this host's loopback address\n")
            self._is_reported = True
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy a direction to its end, and close it there."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own_end:
        asyncio.run(serve(own_end))
