"""Random conversations over TCP, checked byte for byte at both ends.

    converse.py serve SEED REPORT
    converse.py talk SEED REPORT HOST COUNT PARALLEL

Both ends derive the content of a conversation from the seed and its number, which the mobile sends
first. Each end writes one line for each conversation into its report: the number, how the
conversation was to end, and what happened: `ok`, `unreported` for a reset that did not arrive, or
what is wrong.
"""

import asyncio
import contextlib
import random
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

PORT = 4200
LONGEST_S = 60
UNTIL_RESET_S = 6
NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Plan:
    """The content of a conversation, and its end."""

    sizes: tuple[int, int]
    """Bytes of the mobile and of the server."""
    end: str
    """Which end sends only after the other's end of stream, or resets the connection."""
    cut: int
    """Bytes that an end sends before it resets the connection."""
    pause_s: float
    """How long it waits before it ends its stream or resets the connection."""

    @staticmethod
    def of(seed: int, number: int) -> "Plan":
        """Return the plan of a conversation."""
        chance = random.Random(f"{seed} {number}")
        sizes = [chance.choice([0, 1, chance.randrange(3000), chance.randrange(120_000)]) for _ in range(2)]
        ends = ["both", "both", "both", "server-last", "mobile-last", "mobile-resets", "server-resets"]
        end = chance.choice(ends)
        resetting = sizes[0 if end == "mobile-resets" else 1]
        pause_s = chance.choice([0, 0, chance.random() * 0.2])
        return Plan((sizes[0], sizes[1]), end, chance.randrange(resetting + 1), pause_s)

    def content(self, seed: int, number: int, end: int) -> bytes:
        """Return what an end sends: 0 is the mobile, 1 the server."""
        return random.Random(f"{seed} {number} {end}").randbytes(self.sizes[end])


class WrongError(Exception):
    """A conversation that did not go as planned."""


class Conversation:
    """The part of one end: 0 is the mobile, 1 the server."""

    def __init__(
        self, seed: int, number: int, end: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Prepare what this end sends and expects."""
        self.number, self.reader, self.writer = number, reader, writer
        self.plan, name = Plan.of(seed, number), ("mobile", "server")[end]
        self.own, self.other = (self.plan.content(seed, number, each) for each in (end, 1 - end))
        self.resets = self.plan.end == f"{name}-resets"
        self.is_reset = self.plan.end.endswith("-resets") and not self.resets
        self.is_last = self.plan.end == f"{name}-last"
        self.heard = asyncio.Event()
        self.received = bytearray()

    def progress(self) -> str:
        """Return how much has arrived."""
        return f"after {len(self.received)} of {len(self.other)} bytes"

    async def listen(self) -> None:
        """Compare what arrives up to the end of the stream."""
        try:
            while data := await self.reader.read(30_000):
                self.received.extend(data)
                if not self.other.startswith(data, len(self.received) - len(data)):
                    raise WrongError(f"wrong bytes {self.progress()}")
        finally:
            self.heard.set()
        if self.is_reset or (not self.resets and len(self.received) != len(self.other)):
            raise WrongError(f"a clean end {self.progress()}, planned: {self.plan.end}")

    async def speak(self) -> None:
        """Send in random pieces, then end the stream or reset the connection."""
        if self.is_last:
            await self.heard.wait()
        chance = random.Random(self.number)
        content = self.own[: self.plan.cut] if self.resets else self.own
        while content:
            size = chance.randrange(1, 20_000)
            self.writer.write(content[:size])
            content = content[size:]
            await self.writer.drain()
            if chance.random() < 0.2:
                await asyncio.sleep(0.02 * chance.random())
        await asyncio.sleep(self.plan.pause_s)
        if self.resets:
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self.writer.transport.abort()
        elif not self.is_reset:
            self.writer.write_eof()

    async def hold(self) -> str:
        """Send and receive at the same time; return what happened."""
        tasks = [asyncio.create_task(self.listen()), asyncio.create_task(self.speak())]
        try:
            async with asyncio.timeout(UNTIL_RESET_S if self.is_reset else LONGEST_S):
                await asyncio.gather(*tasks)
            return "ok"
        except WrongError as wrong:
            return str(wrong)
        except TimeoutError:
            # A lost reset is not sent again; without outstanding data the peer cannot detect it.
            return "unreported" if self.is_reset else f"stuck {self.progress()}"
        except OSError as error:
            return "ok" if self.is_reset or self.resets else f"{type(error).__name__} {self.progress()}"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.writer.close()


async def serve(seed: int, report: Path) -> None:
    """Hold the server's part of all conversations."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        try:
            number = struct.unpack("!I", await reader.readexactly(4))[0]
        except (OSError, asyncio.IncompleteReadError):
            # The mobile has reset the connection after its first bytes.
            writer.transport.abort()
            return
        conversation = Conversation(seed, number, 1, reader, writer)
        outcome = await conversation.hold()
        with report.open("a") as lines:
            lines.write(f"{number} {conversation.plan.end} {outcome}\n")

    server = await asyncio.start_server(accepted, None, PORT, backlog=1000)
    await server.serve_forever()


async def talk(seed: int, report: Path, host: str, count: int, parallel: int) -> None:
    """Hold the mobile's part of `count` conversations, `parallel` of them at the same time."""
    free = asyncio.Semaphore(parallel)

    async def one(number: int) -> str:
        async with free:
            try:
                reader, writer = await asyncio.open_connection(host, PORT)
                writer.write(struct.pack("!I", number))
                outcome = await Conversation(seed, number, 0, reader, writer).hold()
            except OSError as error:
                outcome = f"{type(error).__name__} at the start"
            return f"{number} {Plan.of(seed, number).end} {outcome}\n"

    lines = await asyncio.gather(*map(one, range(count)))
    # The server ends its last conversations a little later.
    await asyncio.sleep(1)
    report.write_text("".join(lines))


def main() -> None:
    """Run an end."""
    part, seed, report, *rest = sys.argv[1:]
    with contextlib.suppress(KeyboardInterrupt):
        if part == "serve":
            asyncio.run(serve(int(seed), Path(report)))
        else:
            host, count, parallel = rest
            asyncio.run(talk(int(seed), Path(report), host, int(count), int(parallel)))


main()
