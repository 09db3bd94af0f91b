"""Messages of megabytes: what is looked at of their bytes, before the loop has to do with them."""

from __future__ import annotations

import codecs

from msgspec import Struct

from compactd.rpc.depth import is_too_deep

LARGE_BYTES = 1 << 20
"""Above it a message is looked at where it was read, for that takes about 3 ms a megabyte."""

_SLICE_BYTES = 1 << 20  # of UTF-8 checked at once: a str of one emoji takes four bytes a character


class Large(Struct, frozen=True):
    """A body that was looked at already."""

    text: bytes | bytearray
    is_utf8: bool
    is_too_deep: bool
    """Nested too deeply, if it is valid JSON."""

    def __len__(self) -> int:
        return len(self.text)


Body = bytes | bytearray | Large


def looked_at(text: bytes | bytearray) -> Large:
    """The same with what its bytes say, for any thread. O(bytes), in calls of a millisecond or two."""
    return Large(text, text.isascii() or is_utf8(text), is_too_deep(text))


def is_utf8(text: bytes | bytearray) -> bool:
    """Whether bytes are text. About 0.1 ns a byte of ASCII, and up to 1 ns of anything else."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(text)
    try:
        if len(text) <= _SLICE_BYTES:
            codecs.utf_8_decode(view, "strict", True)
            return True
        for start in range(0, len(text), _SLICE_BYTES):
            decoder.decode(view[start : start + _SLICE_BYTES])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True
