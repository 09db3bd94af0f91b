"""Plays one step of a script on one connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

from tests.support.loopback.script import (
    Answer,
    Cut,
    Dribble,
    EmptyBody,
    Endless,
    ErrorEvent,
    ErrorIn200,
    Events,
    Fail,
    Gated,
    Hangup,
    Html,
    LongLine,
    Noise,
    Overflow,
    Packed,
    Plain,
    Redirect,
    Silence,
    Stall,
    Step,
    Together,
    TornJson,
)
from tests.support.loopback.seen import Seen
from tests.support.loopback.wires import Generate, Messages, OllamaChat
from tests.support.loopback.wires_openai import Chat, Responses
from tests.support.loopback.writing import Json, line

WRITERS: dict[str, Chat | Responses | Messages | Generate | OllamaChat] = {
    "openai": Chat(),
    "openai_responses": Responses(),
    "anthropic": Messages(),
    "gemini": Generate(),
    "ollama": OllamaChat(),
}

FAILURES = {401: "auth", 402: "quota", 403: "auth", 429: "rate_limit", 503: "overloaded", 529: "overloaded"}

PAGE = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"


class Player:
    """Plays one step on one connection. What it gives back: True if another request may follow."""

    def __init__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen = seen
        self.reader = reader
        self.writer = writer
        self.wire = WRITERS[seen.wire or "openai"]
        self.is_lines = seen.wire == "ollama"

    async def play(self, step: Step) -> bool:
        match step:
            case Answer():
                answer = self._counted(step)
                if not self._wants_stream():
                    return await self.whole(200, line(self.wire.whole(answer)))
                return await self._stream(self._encoded(answer))
            case Plain(answer):
                return await self.whole(200, line(self.wire.whole(self._counted(answer))))
            case Noise(answer):
                return await self._stream(self._noisy(answer))
            case Dribble(answer, size):
                return await self._stream(_cut_up(self._encoded(answer), size))
            case Together(answer, barrier):
                await barrier.wait()
                return await self.play(answer)
            case Gated(answer, gate, pieces):
                if not self._wants_stream():
                    await _opened(gate)
                    return await self.play(answer)
                return await self._stream(_gated(self._encoded(self._counted(answer)), gate, pieces))
            case Fail(status, body, headers):
                text = line(self.wire.failure(FAILURES.get(status, "invalid"))[1]) if body is None else body
                return await self.whole(status, text, headers=headers)
            case Packed(body, encoding, status, kind):
                named = {"Content-Type": kind, "Content-Encoding": encoding, "Content-Length": str(len(body))}
                self._write_head(status, named)
                self.writer.write(body)
                await self.writer.drain()
                return True
            case Events(events):
                return await self._stream(self._given(events))
            case Overflow(requested, limit):
                status, given = self.wire.overflow(requested, limit)
                return await self.whole(status, line(given))
            case ErrorEvent(text, kind):
                return await self._stream(self._broken(text, self.wire.error_event(kind)))
            case ErrorIn200(kind):
                return await self.whole(200, self.wire.error_event(kind)[1])
            case TornJson(text):
                return await self._stream(self._broken(text, ("", '{"choices":[{"delta":{"conte')))
            case EmptyBody(status):
                return await self.whole(status, "")
            case Html(status):
                return await self.whole(status, PAGE, kind="text/html")
            case Redirect(location, status):
                return await self.whole(status, "", headers={"Location": location})
            case Hangup():
                return False
            case Silence():
                await self._until_gone()
                return False
            case Stall(text):
                await self._head()
                await self._chunk(b"".join([piece async for piece in self._broken(text, None)]))
                await self._until_gone()
                return False
            case Cut(answer, after_bytes, clean):
                body = b"".join([piece async for piece in self._encoded(answer)])
                await self._head()
                if after_bytes:  # an empty chunk is the end of the body
                    await self._chunk(body[:after_bytes])
                if clean:
                    await self._chunk(b"")
                return False
            case Endless(text):
                return await self._endless(text)
            case LongLine(size):
                await self._head()
                start = b"" if self.is_lines else b"data: "
                await self._chunk(start + b'{"a":"')
                sent = 0
                while sent < size and await self._chunk(b"x" * 65_536):
                    sent += 65_536
                await self._until_gone()
                return False

    async def whole(
        self,
        status: int,
        text: str,
        *,
        headers: dict[str, str] | None = None,
        kind: str = "application/json",
    ) -> bool:
        body = text.encode()
        named = {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        self._write_head(status, named)
        self.writer.write(body)
        await self.writer.drain()
        return True

    def _counted(self, answer: Answer) -> Answer:
        return replace(answer, input_tokens=self.seen.tokens) if answer.count_input else answer

    def _wants_stream(self) -> bool:
        if self.seen.wire == "gemini":
            return "streamGenerateContent" in self.seen.path
        return self.seen.body.get("stream", self.is_lines) is True

    async def _encoded(self, answer: Answer) -> AsyncIterator[bytes]:
        for name, data in self.wire.events(answer):
            yield self._event(name, data)

    async def _given(self, events: tuple[Json, ...]) -> AsyncIterator[bytes]:
        for event in events:
            yield self._event(event["type"], line(event))

    def _event(self, name: str, data: str, end: str = "\n") -> bytes:
        if self.is_lines:
            return f"{data}{end}".encode()
        # Gemini's lines end in CRLF.
        end = "\r\n" if self.seen.wire == "gemini" else end
        head = f"event: {name}{end}" if name else ""
        return f"{head}data: {data}{end}{end}".encode()

    async def _noisy(self, answer: Answer) -> AsyncIterator[bytes]:
        if self.is_lines:
            for _, data in self.wire.events(answer):
                yield f"\r\n{data}\r\n".encode()
            return
        yield b"\xef\xbb\xbf: OPENROUTER PROCESSING\r\n\r\nretry: 3000\r\n\r\n"
        for name, data in self.wire.events(answer):
            yield b'event: brand.new\r\nid: 7\r\ndata: {"type":"brand.new","x":[1]}\r\n\r\n:\r\n'
            yield b"event: ping\r\ndata: ping\r\n\r\n"
            head = f"event:{name}\r\n" if name else ""
            yield f"{head}data:{data}\r\n\r\n".encode()

    async def _broken(self, text: str, event: tuple[str, str] | None) -> AsyncIterator[bytes]:
        """Yield an answer up to its middle, then `event`."""
        if text:
            for name, data in self.wire.events(Answer(text=text, stop="none", usage=False)):
                # Nothing that could be taken for the end.
                if data != "[DONE]":
                    yield self._event(name, data)
        elif not self.is_lines:
            yield b": nothing yet\n\n"
        if event is not None:
            yield self._event(*event)

    async def _stream(self, pieces: AsyncIterator[bytes]) -> bool:
        await self._head()
        async for piece in pieces:
            if not await self._chunk(piece):
                self.seen.gone.set()
                return False
        return await self._chunk(b"")

    async def _endless(self, text: str) -> bool:
        await self._head()
        start = b"".join([piece async for piece in self._broken(text, None)])
        more = start.split(b"\n\n")[-2] + b"\n\n" if b"\n\n" in start else start
        await self._chunk(start)
        while await self._chunk(more * 50):
            await asyncio.sleep(0)
        self.seen.gone.set()
        return False

    async def _head(self) -> None:
        kind = "application/x-ndjson" if self.is_lines else "text/event-stream"
        self._write_head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"})
        await self.writer.drain()

    def _write_head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Said So", *(f"{name}: {value}" for name, value in headers.items())]
        self.writer.write("\r\n".join((*lines, "", "")).encode())

    async def _chunk(self, data: bytes) -> bool:
        """Sends a chunk (an empty one ends the body); False if nobody listens any more."""
        if self.reader.at_eof() or self.writer.is_closing():
            return False
        try:
            self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await self.writer.drain()
        except ConnectionError:
            return False
        return True

    async def _until_gone(self) -> None:
        with suppress(ConnectionError):
            while await self.reader.read(65_536):
                pass
        self.seen.gone.set()


async def _cut_up(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    async for piece in pieces:
        for at in range(0, len(piece), size):
            yield piece[at : at + size]


async def _gated(pieces: AsyncIterator[bytes], gate: threading.Event, first: int) -> AsyncIterator[bytes]:
    """Yield the first pieces, and the others once the gate is set."""
    sent = 0
    async for piece in pieces:
        if sent == first:
            await _opened(gate)
        yield piece
        sent += 1


async def _opened(gate: threading.Event) -> None:
    """Wait for a gate that another thread opens."""
    while not gate.is_set():
        await asyncio.sleep(0.01)
