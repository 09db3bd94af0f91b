"""Split a byte stream into JSON-RPC messages: with LSP headers (Content-Length), or one message per line.

The first byte of the connection decides which of the two forms it has. This module does not parse JSON,
except for the id of a message that is too large.
"""

from __future__ import annotations

from msgspec import Struct

from compactd.daemon.rpc.ids import NULL_ID, SNIFFED_BYTES, sniff_id

FRAME_LIMIT_BYTES = 64 * 1024 * 1024
"""The most bytes of a message. A larger one is refused with error 1009 and not stored (docs/dev/contract.md,
"Transport")."""

LENGTH_LIMIT_BYTES = 4 * 1024**3
"""The largest Content-Length. A larger one is treated as noise and ends the connection (docs/dev/contract.md,
"Transport")."""

HEADER_LIMIT_BYTES = 8 * 1024
"""The most bytes of the header lines before one message. A longer header is an error. Usual clients send less
than 100 bytes.
"""

PARSE_ERROR = -32700
TOO_LARGE = 1009

_LINE_STARTS = b"{[ \t\r\n\xef"
"""First bytes that mean one message per line: an object, a batch, white space, a byte order mark. Any other
byte begins a header."""

_LENGTH = b"content-length"
_LENGTH_DIGITS = 10  # of LENGTH_LIMIT_BYTES
_RESYNC_BYTES = 64  # the bytes kept of the end of an overlong line: enough for a header at its end


class Fault(Struct, frozen=True):
    """The error that takes the place of a message that could not be read."""

    code: int
    message: str
    id: bytes = NULL_ID
    """The JSON text of the message's id, or `null`."""
    size_bytes: int | None = None
    limit_bytes: int | None = None
    fatal: bool = False
    """True if it is unknown where the next message begins. The connection then ends."""


Frame = bytes | bytearray | Fault


class Framer:
    """A splitter of arriving bytes into messages. A read may end anywhere in a message.

    Each byte is copied once if a read contains the whole message, otherwise twice.
    """

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.lines: bool | None = None
        """True for one message per line, false for LSP headers, None before the first byte."""
        self.broken = False
        """True after a fatal fault. No further messages come."""
        self._held = bytearray()  # the incomplete body or line
        self._need = 0  # missing bytes of the incomplete body
        self._skip = 0  # bytes of a refused body that are still to come
        self._sniffed: bytearray | None = None  # the first bytes of a body to be refused
        self._refused_bytes = 0
        self._skip_line = False
        self._header = bytearray()  # the begun header line
        self._block_bytes = 0
        self._fields = 0
        self._length: int | None = None
        self._overlong = False

    @property
    def incomplete(self) -> bytearray:
        """The bytes of the incomplete message. This object grows until the message is complete."""
        return self._held

    def feed(self, data: bytes) -> list[Frame]:
        """Return the messages that `data` completes, in order, with a `Fault` for each that cannot be
        read.
        """
        frames: list[Frame] = []
        if self.broken or not data:
            return frames
        if self.lines is None:
            self.lines = data[0] in _LINE_STARTS
        if self.lines:
            self._feed_lines(data, frames)
        else:
            self._feed_blocks(data, frames)
        return frames

    def end(self) -> list[Frame]:
        """Return the last messages or faults, after the input has ended. A last line without a newline is a
        message.
        """
        if self.broken:
            return []
        if self._sniffed is not None:
            return [self._too_large(self._sniffed, self._refused_bytes)]
        if self.lines and self._held:
            return _message(self._held)
        if self._need or self._header or self._fields:
            return [Fault(PARSE_ERROR, "the input ended inside a message")]
        return []

    # --- one message per line -----------------------------------------------------------------------

    def _feed_lines(self, data: bytes, frames: list[Frame]) -> None:
        position = 0
        while (newline := data.find(b"\n", position)) >= 0:
            if self._skip_line:
                self._skip_line = False
            elif not self._held and newline - position <= self.limit_bytes:
                frames += _message(data[position:newline])
            elif self._add_to_line(data, position, newline, frames):
                frames += _message(self._held)
                self._held = bytearray()
            position = newline + 1
        if not self._skip_line and position < len(data):
            self._skip_line = not self._add_to_line(data, position, len(data), frames)

    def _add_to_line(self, data: bytes, start: int, stop: int, frames: list[Frame]) -> bool:
        """Add `data[start:stop]` to the incomplete line and return true. If the line gets too long, drop it,
        append a `Fault` to `frames`, and return false.
        """
        size = len(self._held) + stop - start
        if size <= self.limit_bytes:
            self._held += memoryview(data)[start:stop]
            return True
        self._held += memoryview(data)[start : min(stop, start + SNIFFED_BYTES)]
        frames.append(self._too_large(self._held[:SNIFFED_BYTES], None))
        self._held = bytearray()
        return False

    # --- LSP headers --------------------------------------------------------------------------------

    def _feed_blocks(self, data: bytes, frames: list[Frame]) -> None:
        position = 0
        while position < len(data) and not self.broken:
            if self._need:
                position = self._body(data, position, frames)
            elif self._skip:
                position = self._skip_body(data, position, frames)
            else:
                position = self._header_line(data, position, frames)

    def _body(self, data: bytes, position: int, frames: list[Frame]) -> int:
        stop = position + self._need
        if not self._held and stop <= len(data):
            frames.append(data[position:stop])
            self._need = 0
            return stop
        part = memoryview(data)[position:stop]
        self._held += part
        self._need -= len(part)
        if not self._need:
            frames.append(self._held)
            self._held = bytearray()
        return position + len(part)

    def _skip_body(self, data: bytes, position: int, frames: list[Frame]) -> int:
        stop = min(position + self._skip, len(data))
        self._skip -= stop - position
        if self._sniffed is not None:
            self._sniffed += data[position : min(stop, position + SNIFFED_BYTES - len(self._sniffed))]
            if len(self._sniffed) == SNIFFED_BYTES or not self._skip:
                frames.append(self._too_large(self._sniffed, self._refused_bytes))
                self._sniffed = None
        return stop

    def _header_line(self, data: bytes, position: int, frames: list[Frame]) -> int:
        newline = data.find(b"\n", position)
        stop = newline if newline >= 0 else len(data)
        self._header += memoryview(data)[position:stop]
        self._block_bytes += stop - position + (newline >= 0)
        if self._block_bytes > HEADER_LIMIT_BYTES and not self._overlong:
            if len(self._header) > _RESYNC_BYTES and self._header.lstrip().lower().startswith(_LENGTH):
                self._break(frames)
                return stop
            self._overlong = True
            frames.append(
                Fault(PARSE_ERROR, f"the header of a message is longer than {HEADER_LIMIT_BYTES} bytes")
            )
        if self._overlong:
            # Keep the same last bytes of the line, however the reads split it.
            del self._header[:-_RESYNC_BYTES]
        if newline < 0:
            return stop
        line = bytes(self._header).strip()
        self._header.clear()
        if line:
            self._fields += 1
            self._field(line, frames)
        else:
            self._end_block(frames)
        return newline + 1

    def _field(self, line: bytes, frames: list[Frame]) -> None:
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        if name != _LENGTH:
            if name.replace(b"-", b"").isalnum() and not self._overlong:
                return
            # This is not a header but the end of a body whose length was missing or wrong, followed by the
            # next header. Continue with that header, so that the connection survives.
            _, found, value = line.lower().rpartition(_LENGTH + b":")
            if not found:
                return
            self._overlong, self._block_bytes = False, len(found + value)
        value = value.strip()
        digits = value.lstrip(b"0") or b"0"
        if not value.isdigit() or len(digits) > _LENGTH_DIGITS or int(digits) > LENGTH_LIMIT_BYTES:
            self._break(frames)
        else:
            self._length = int(digits)

    def _end_block(self, frames: list[Frame]) -> None:
        fields, length, overlong = self._fields, self._length, self._overlong
        self._fields, self._length, self._overlong, self._block_bytes = 0, None, False, 0
        if overlong:
            self._skip = length or 0  # the message was already answered with an error
        elif length is not None:
            self._begin(length, frames)
        elif fields:
            frames.append(Fault(PARSE_ERROR, "the header of a message has no Content-Length"))

    def _begin(self, length: int, frames: list[Frame]) -> None:
        if length > LENGTH_LIMIT_BYTES:
            self._break(frames)
        elif length > self.limit_bytes:
            self._skip = self._refused_bytes = length
            self._sniffed = bytearray()
        elif length:
            self._need = length
        else:
            frames.append(b"")

    def _break(self, frames: list[Frame]) -> None:
        self.broken = True
        frames.append(
            Fault(
                PARSE_ERROR,
                "the Content-Length of a message is not a number from 0 to 4 GiB, so the connection ends",
                fatal=True,
            )
        )

    def _too_large(self, prefix: bytes | bytearray, size_bytes: int | None) -> Fault:
        return Fault(
            TOO_LARGE,
            f"a message is larger than the limit of {self.limit_bytes} bytes: send a smaller one, or raise "
            "the limit with `compactd serve --frame-limit`",
            sniff_id(prefix),
            size_bytes,
            self.limit_bytes,
        )


def _message(line: bytes | bytearray) -> list[Frame]:
    return [line] if line and not line.isspace() else []
