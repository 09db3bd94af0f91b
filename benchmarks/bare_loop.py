"""The lower bound for the transport's time: a minimal daemon that answers any request with `{}`.

A thread that reads, an asyncio loop, a thread that writes, msgspec for the envelope; nothing is checked,
bounded or protected. Framing: `Content-Length: N`, CRLF, and nothing else.

    python benchmarks/bare_loop.py
"""

from __future__ import annotations

import asyncio
import os
import threading
from queue import SimpleQueue

import msgspec

HEADER = b"Content-Length: "


class Envelope(msgspec.Struct):
    """The fields of a message that are read."""

    id: int | str | None = None
    method: str = ""


class Answer(msgspec.Struct):
    """The answer to every request."""

    jsonrpc: str
    id: int | str | None
    result: dict[str, int]


async def serve() -> None:
    """Answers until stdin ends."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    sent: SimpleQueue[bytes | None] = SimpleQueue()
    decode = msgspec.json.Decoder(Envelope).decode
    encode = msgspec.json.Encoder().encode

    def handle(bodies: list[bytes]) -> None:
        answers = []
        for body in bodies:
            message = decode(body)
            if message.id is not None:
                answer = encode(Answer("2.0", message.id, {}))
                answers += (b"%b%d\r\n\r\n" % (HEADER, len(answer)), answer)
        sent.put(b"".join(answers))

    def read() -> None:
        held = b""
        parts: list[bytes] = []
        missing = 0  # bytes of a large message, whose parts are joined once
        while data := os.read(0, 1 << 16):
            parts.append(data)
            missing -= len(data)
            if missing > 0:
                continue
            held += b"".join(parts)
            parts.clear()
            bodies = []
            position = 0
            while (end := held.find(b"\r\n\r\n", position)) > 0:
                stop = end + 4 + int(held[position + len(HEADER) : end])
                if stop > len(held):
                    missing = stop - len(held)
                    break
                bodies.append(held[end + 4 : stop])
                position = stop
            held = held[position:]
            loop.call_soon_threadsafe(handle, bodies)
        loop.call_soon_threadsafe(ended.set_result, None)

    def write() -> None:
        while (data := sent.get()) is not None:
            while data:
                data = data[os.write(1, data) :]

    threading.Thread(target=read, daemon=True).start()
    writer = threading.Thread(target=write)
    writer.start()
    await ended
    sent.put(None)
    writer.join()


if __name__ == "__main__":
    asyncio.run(serve())
