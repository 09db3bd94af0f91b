"""Parsers of streams: server-sent events and JSON lines.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. Lines end
only at LF, CR or CRLF. `httpx.Response.aiter_lines` also splits at U+2028, U+0085 and others, which can occur
inside JSON (httpx 0.28.1, tried 2026-10).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

LINE_BYTES = 16 * 1024 * 1024
"""The maximum length of a line, in bytes. The last event of OpenAI's Responses contains the whole answer,
and a part of a Gemini answer can contain an image."""

_BOM = b"\xef\xbb\xbf"


class TooLong(Exception):
    """The error that a line, or the data of one event, is longer than the limit."""


class ServerEvent(Struct, frozen=True):
    """One server-sent event."""

    name: str
    """The name in the event's `event:` line; empty if it has none."""
    data: bytes


class Lines:
    """A splitter of a stream into lines. A line may be spread over many chunks; each byte is still
    examined only once. O(bytes)."""

    def __init__(self, limit_bytes: int = LINE_BYTES) -> None:
        self._limit = limit_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that end in `chunk`, without their line ends. Raises `TooLong`."""
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

    def take_rest(self) -> bytes:
        """Return the text after the last line end, and forget it."""
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
    """A parser of a stream of server-sent events. O(bytes)."""

    def __init__(self, limit_bytes: int = LINE_BYTES) -> None:
        self._lines = Lines(limit_bytes)
        self._limit = limit_bytes
        self._name = ""
        self._data: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that end in `chunk`. Comments, ids and unknown fields are ignored. Raises
        `TooLong`."""
        for line in self._lines.feed(chunk):
            yield from self._take(line)

    def end(self) -> Iterator[ServerEvent]:
        """Yield the event at the end of the stream if the empty line after it is missing.

        The standard drops such an event, but some servers omit that line before they close the stream. If the
        event was cut, its data is not valid JSON, and reading it fails.
        """
        yield from self._take(self._lines.take_rest())
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
