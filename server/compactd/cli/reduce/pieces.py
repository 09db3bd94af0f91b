"""Read a stream of any size in pieces of text, with bounded memory. What is no text is told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from msgspec import Struct

PIECE_BYTES: Final = 4 * 1024 * 1024
"""The most bytes of a piece. Each piece is reduced by itself."""


class Source(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, or fewer at the end of the stream."""
        ...


class Piece(Struct, frozen=True):
    """A part of a stream."""

    data: bytes
    text: str | None
    """The same as text. None if the stream is no text from here on."""
    is_last: bool


def pieces(source: Source, size: int = PIECE_BYTES) -> Iterator[Piece]:
    """Yield the stream in pieces that end with a line, if their lines are not longer than a piece. Nothing is
    lost: the pieces' bytes are the stream's. From the first bytes on that are no UTF-8 text (a NUL is none),
    every piece is without text. At most two pieces are in memory. `size`: of a piece, in bytes, at least 4.
    """
    rest = b""
    is_text = True
    while True:
        block = source.read(size)
        is_last = len(block) < size
        data = rest + block
        rest = b""
        if is_text and not is_last:
            end = _end_of_text(data)
            data, rest = data[:end], data[end:]
        text = _text_of(data) if is_text else None
        if text is None:
            is_text = False
            data, rest = data + rest, b""
        if data or is_last:
            yield Piece(data, text, is_last)
        if is_last:
            return


def _end_of_text(data: bytes) -> int:
    """Return where to cut: after the last line, otherwise before a character that is not complete."""
    end = data.rfind(b"\n") + 1
    if end > len(data) // 2:
        return end
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] & 0b1100_0000 != 0b1000_0000:
            # The first byte of the last character.
            return len(data) - back
    return len(data)


def _text_of(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
