"""Messages of megabytes: what is looked at of their bytes, before the loop has to do with them."""

from __future__ import annotations

import codecs

from msgspec import Struct

from compactd.daemon.rpc.depth import Depth

LARGE_BYTES = 1 << 20
"""Above it a message is looked at where it was read, for that takes 1 to 3 ms a megabyte."""

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


class Looking:
    """A body that is looked at while it comes: its sender goes on sending meanwhile. For any one thread."""

    def __init__(self, text: bytearray) -> None:
        self.text = text
        """What has come of it. Others add to it, and nothing else."""
        self._depth = Depth()

    def look(self) -> None:
        """Looks at what has come since. O(its bytes), in calls of 0.1 ms."""
        self._depth.look(self.text, is_all=False)

    def done(self) -> Large:
        """The body with what its bytes say, once all has come. O(bytes), in calls of a few milliseconds."""
        text = self.text
        self._depth.look(text, is_all=True)
        return Large(text, text.isascii() or is_utf8(text), self._depth.is_too_deep)


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
