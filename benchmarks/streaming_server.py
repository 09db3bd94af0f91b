"""A fake model server for the benchmark `streaming`: OpenAI's chat API on loopback, with timestamps.

    python benchmarks/streaming_server.py

Prints its address, then one line of JSON per request that says when it was read and answered, in seconds of
the monotonic clock. Serves until its stdin ends. The answer depends on the requested model.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from time import monotonic

DELTAS = 50
GAP_S = 0.02
"""An answer is streamed in `DELTAS` pieces, `GAP_S` apart; each piece says when it was written."""

SUMMARY_S = 2.5
"""How long a long summary takes, all at its end: no model reads 100 000 tokens and writes 200 in less."""

LONG_BYTES = 200_000
"""A request body of at least this size is a long one."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

SUMMARY = """## Goal
- Make it faster.
## Constraints & Preferences
- Never change the public names.
## Progress
### Done
- [x] The profile was read.
### In Progress
- [ ] The journal's index.
### Blocked
(none)
## Key Decisions
- **Index**: the list is long.
## Next Steps
1. Run the tests.
## Critical Context
(none)
"""

STREAMS, STALLS = "gpt-4o", "gpt-4o-mini"
"""Models by what they do; every other answers at once."""


def chunk(text: str, stop: str | None = None) -> bytes:
    """Return one piece of an answer, as one HTTP chunk of the body."""
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": stop}
    event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


async def answer(model: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
    """Write one answer. Return false if the answer never ends."""
    writer.write(HEAD)
    if model == STALLS:
        writer.write(chunk("Hm"))
        return False
    if model == STREAMS and b"<conversation>" not in body:
        for _ in range(DELTAS):
            writer.write(chunk(f"{monotonic():.6f} "))
            await asyncio.sleep(GAP_S)
        writer.write(chunk("", "stop") + END)
        return True
    if b"<conversation>" in body and len(body) > LONG_BYTES:
        await asyncio.sleep(SUMMARY_S)
    text = SUMMARY if b"<conversation>" in body else "Done."
    writer.write(chunk(text) + chunk("", "stop") + END)
    return True


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r")[0])
            body = await reader.readexactly(length)
            came = monotonic()
            model = json.loads(body)["model"]
            goes_on = await answer(model, body, writer)
            await writer.drain()
            told = {"came": came, "went": monotonic(), "model": model, "summary": b"<conversation>" in body}
            print(json.dumps(told), flush=True)
            if not goes_on:
                await reader.read()
                return
    writer.close()


async def serve() -> None:
    """Serve until stdin ends."""
    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 26)
    print(json.dumps({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
