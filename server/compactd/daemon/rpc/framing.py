"""Bytes in, bodies out: both framings of JSON-RPC, told apart by the first byte of the connection.

Nothing here knows JSON but for the id of a message that is too large to be held.
"""

from __future__ import annotations

from msgspec import Struct

from compactd.daemon.rpc.ids import NULL_ID, SNIFFED_BYTES, sniff_id

FRAME_LIMIT_BYTES = 64 * 1024 * 1024
"""A larger message is refused with 1009 and never held (docs/dev/contract.md, "Transport")."""

LENGTH_LIMIT_BYTES = 4 * 1024**3
"""A larger length is no length but noise: it ends the connection (docs/dev/contract.md, "Transport")."""

HEADER_LIMIT_BYTES = 8 * 1024
"""Of one header block. Stock clients send under 100."""

PARSE_ERROR = -32700
TOO_LARGE = 1009

_LINE_STARTS = b"{[ \t\r\n\xef"
"""An object, a batch, white space, a byte order mark: one message a line. Anything else begins a header."""

_LENGTH = b"content-length"
_COMMON = b"Content-Length: "
_LENGTH_DIGITS = 10  # of LENGTH_LIMIT_BYTES
_GAP = b"\r\n\r\n"
_SMALL_BYTES = 4096  # many as small as that may be in one read: they are cut in one go
_MANY = 4096  # in one go
_LENGTHS = 1024  # that are known by their digits
_RESYNC_BYTES = 64  # kept of an overlong line: enough for the header that may end it


class Fault(Struct, frozen=True):
    """What stands in the place of a message that could not be read."""

    code: int
    message: str
    id: bytes = NULL_ID
    """The JSON text of its id, or `null`."""
    size_bytes: int | None = None
    limit_bytes: int | None = None
    fatal: bool = False
    """Where the next message begins is not known: the connection ends."""

    def __len__(self) -> int:
        """Nothing of the message is held."""
        return 0


Frame = bytes | bytearray | Fault


class Framer:
    """Cuts what arrives into messages, however it was split on its way.

    Cost: each byte is copied once where a read holds the whole message, twice where it does not.
    """

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.lines: bool | None = None
        """One message a line; false: LSP headers; None: nothing has arrived yet."""
        self.broken = False
        """A fatal fault was given out; nothing more comes."""
        self._held = bytearray()  # the begun body, or the begun line
        self._need = 0  # bytes that the begun body still lacks
        self._skip = 0  # bytes of a refused body that are still to come
        self._sniffed: bytearray | None = None  # the first bytes of a body to be refused
        self._refused_bytes = 0
        self._skip_line = False
        self._header = bytearray()  # the begun header line
        self._block_bytes = 0
        self._fields = 0
        self._length: int | None = None
        self._overlong = False
        self._lengths: dict[bytes, int] = {}

    @property
    def is_inside(self) -> bool:
        """Whether a message, or one to be refused, has begun and is not over."""
        return bool(self._need or self._held or self._skip or self._skip_line)

    @property
    def held(self) -> bytearray:
        """What has come of the begun message; the same object grows until that is whole."""
        return self._held

    def feed(self, data: bytes) -> list[Frame]:
        """The messages that `data` completes, in order; a `Fault` in the place of each that cannot be."""
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
        """What is left when the input ends: a last line without its newline is a message."""
        if self.broken:
            return []
        if self._sniffed is not None:
            return [self._too_large(self._sniffed, self._refused_bytes)]
        if self.lines and self._held:
            return _message(self._held)
        if self._need or self._header or self._fields:
            return [Fault(PARSE_ERROR, "the input ended inside a message")]
        return []

    # --- one message a line -------------------------------------------------------------------------

    def _feed_lines(self, data: bytes, frames: list[Frame]) -> None:
        position = 0
        while (newline := data.find(b"\n", position)) >= 0:
            if self._skip_line:
                self._skip_line = False
            elif not self._held and newline - position <= self.limit_bytes:
                frames += _message(data[position:newline])
            elif self._hold_line(data, position, newline, frames):
                frames += _message(self._held)
                self._held = bytearray()
            if newline - position <= _SMALL_BYTES and 0 < len(data) - newline <= self.limit_bytes:
                newline = _take_lines(data, newline + 1, frames) - 1
            position = newline + 1
        if not self._skip_line and position < len(data):
            self._skip_line = not self._hold_line(data, position, len(data), frames)

    def _hold_line(self, data: bytes, start: int, stop: int, frames: list[Frame]) -> bool:
        """Adds to the begun line; false where that makes it too long: then it is refused and let go."""
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
        size = len(data)
        are_usual = True
        while position < size and not self.broken:
            if self._need:
                position = self._body(data, position, frames)
            elif self._skip:
                position = self._skip_body(data, position, frames)
            elif not self._block_bytes and (start := _common_header(data, position)):
                length = int(data[position + len(_COMMON) : start - 4])
                position = start + length
                if length <= self.limit_bytes and position <= size:
                    frames.append(data[start:position])
                    if length <= _SMALL_BYTES and are_usual and size - position > 2 * length:
                        position, are_usual = self._take_blocks(data, position, frames)
                else:
                    position = start
                    self._begin(length, frames)
            else:
                position = self._header_line(data, position, frames)

    def _take_blocks(self, data: bytes, position: int, frames: list[Frame]) -> tuple[int, bool]:
        """Many messages at once, as long as they are whole and their headers of the usual shape.

        (Where the next one begins; false where that is no such message.)
        """
        first, *pieces = data[position:].split(_COMMON, _MANY)
        if first:
            return position, False
        lengths, add, taken = self._lengths, frames.append, -len(frames)
        end = len(data)
        if len(pieces) == _MANY:
            end -= len(_COMMON) + len(pieces.pop())
        for piece in pieces:
            digits, _, body = piece.partition(_GAP)
            if lengths.get(digits) != len(body) and (not body or self._length_in(digits) != len(body)):
                begun = pieces[taken + len(frames) :]
                return end - sum(map(len, begun)) - len(_COMMON) * len(begun), False
            add(body)
        return end, True

    def _length_in(self, digits: bytes) -> int:
        """The length that a header of the usual shape gives; 0 where that is none, or too much."""
        if len(digits) > _LENGTH_DIGITS or not digits.isdigit() or int(digits) > self.limit_bytes:
            return 0
        length = int(digits)
        if 0 < length <= _SMALL_BYTES and len(self._lengths) < _LENGTHS:
            self._lengths[digits] = length
        return length

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
            frames.append(Fault(PARSE_ERROR, f"a header block is above {HEADER_LIMIT_BYTES} bytes"))
        if self._overlong:
            # The same end of the line counts, however the line was cut on its way here.
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
            # No header looks like this: it is the end of a body whose length was missing or wrong,
            # with the next header behind it. Going on from there is how the connection survives.
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
            self._skip = length or 0  # its request has its answer already
        elif length is not None:
            self._begin(length, frames)
        elif fields:
            frames.append(Fault(PARSE_ERROR, "a header block has no Content-Length"))

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
                "Content-Length is no number of bytes up to 4 GiB: the connection ends",
                fatal=True,
            )
        )

    def _too_large(self, prefix: bytes | bytearray, size_bytes: int | None) -> Fault:
        return Fault(
            TOO_LARGE,
            f"a message is above the limit of {self.limit_bytes} bytes: send less, or raise the limit",
            sniff_id(prefix),
            size_bytes,
            self.limit_bytes,
        )


def _common_header(data: bytes, position: int) -> int:
    """Where the body behind a header of the usual shape begins, or 0 for any other shape."""
    if not data.startswith(_COMMON, position):
        return 0
    start = position + len(_COMMON)
    end = data.find(b"\r\n\r\n", start, start + _LENGTH_DIGITS + 4)
    return end + 4 if end > 0 and data[start:end].isdigit() else 0


def _take_lines(data: bytes, position: int, frames: list[Frame]) -> int:
    """Many lines at once, none too long; where the next begins."""
    *lines, rest = data[position:].split(b"\n", _MANY)
    frames += [line for line in lines if line and not line.isspace()]
    return len(data) - len(rest)


def _message(line: bytes | bytearray) -> list[Frame]:
    return [line] if line and not line.isspace() else []
