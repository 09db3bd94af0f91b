"""Bytes of a stream into events, as they arrive: server-sent events, and JSON lines.

Rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. Lines end
in LF, CR or CRLF and in nothing else: `httpx.Response.aiter_lines` also breaks at U+2028, U+0085 and others,
which stand inside JSON (httpx 0.28.1, tried 2026-10).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

LINE_BYTES = 16 * 1024 * 1024
"""Longest line: the last event of OpenAI's Responses holds the whole answer, a Gemini part a picture."""

_BOM = b"\xef\xbb\xbf"


class TooLong(Exception):
    """A line, or the data of one event, is longer than the limit."""


class ServerEvent(Struct, frozen=True):
    """One event."""

    name: str
    """Of its `event:` line; empty where it has none."""
    data: bytes


class Lines:
    """Lines of a stream. Each byte is looked at once, however it is cut. O(bytes)."""

    def __init__(self, limit_bytes: int = LINE_BYTES) -> None:
        self._limit = limit_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` ends, without their ends. Raises `TooLong`."""
        start = 0
        if self._after_cr and chunk:
            start = 1 if chunk[0] == 0x0A else 0
            self._after_cr = False
        line_feed = chunk.find(b"\n", start)
        carriage = chunk.find(b"\r", start)
        while line_feed >= 0 or carriage >= 0:
            if carriage < 0 or 0 <= line_feed < carriage:
                end, after = line_feed, line_feed + 1
            elif carriage + 1 == len(chunk):
                end, after = carriage, carriage + 1
                self._after_cr = True
            else:
                end = carriage
                after = carriage + (2 if line_feed == carriage + 1 else 1)
            yield self._line(chunk[start:end])
            start = after
            if 0 <= line_feed < start:
                line_feed = chunk.find(b"\n", start)
            if 0 <= carriage < start:
                carriage = chunk.find(b"\r", start)
        self._hold(chunk[start:])

    def rest(self) -> bytes:
        """What stands after the last line's end; nothing is held afterwards."""
        return self._line(b"")

    def _line(self, tail: bytes) -> bytes:
        self._hold(tail)
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._held = [], 0
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        return line

    def _hold(self, part: bytes) -> None:
        if not part:
            return
        self._held += len(part)
        if self._held > self._limit:
            raise TooLong
        self._parts.append(part)


class ServerEvents:
    """Events of a stream of server-sent events. O(bytes)."""

    def __init__(self, limit_bytes: int = LINE_BYTES) -> None:
        self._lines = Lines(limit_bytes)
        self._limit = limit_bytes
        self._name = ""
        self._data: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that `chunk` ends. Comments, ids and unknown fields are left out. Raises `TooLong`."""
        for line in self._lines.feed(chunk):
            yield from self._take(line)

    def end(self) -> Iterator[ServerEvent]:
        """What the stream ended in: an event without the empty line that should follow it.

        The standard drops it; some servers leave that line out before they close, and what is cut in the
        middle does not parse.
        """
        yield from self._take(self._lines.rest())
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[ServerEvent]:
        if not line:
            if self._data:
                yield ServerEvent(self._name, b"\n".join(self._data))
            self._name, self._data, self._held = "", [], 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._held += len(value)
            if self._held > self._limit:
                raise TooLong
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
