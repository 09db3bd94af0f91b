"""How deep JSON may be nested: the same limit under every interpreter.

Where msgspec gives up depends on Python's version and on how deep it was called (about 950 levels under
3.11, 10,000 under 3.13), so that what one process took in and journalled another could not read back.
"""

from __future__ import annotations

from itertools import accumulate

import msgspec
from msgspec import Raw

DEPTH_LIMIT = 512
"""Levels of one message, inclusive. A syntax tree as JSON has 200; walkers here recurse once a level."""

SHALLOW_BYTES = 2 * DEPTH_LIMIT
"""No more levels fit into so much."""

SLICE_BYTES = 1 << 15
"""Looked at at once: it stays in the processor's cache, and mostly opens too little to be counted."""

_COUNTED_BYTES = 1 << 20

_REST = bytes(set(range(256)) - set(b'[]{}"'))
_BRACES = bytes.maketrans(b"[]", b"{}")
_STEPS = [{0x7B: 1, 0x7D: -1}.get(byte, 0) for byte in range(256)]

_BETWEEN = (b'},{"', b'}, {"')  # objects of an array, as most programs write them
_KEY_BYTES = 64
_MOST_BYTES = 1 << 17  # of elements that are skipped at once
_LEAST_BYTES = 1 << 13
_MOST_SLICES = 64  # until elements are looked for again

_read_array = msgspec.json.Decoder(list[Raw]).decode


def is_too_deep(body: bytes | bytearray, slice_bytes: int = SLICE_BYTES) -> bool:
    """Whether valid JSON is nested above `DEPTH_LIMIT`. As `Depth`, and sooner where little opens."""
    if len(body) <= SHALLOW_BYTES:
        return False
    if len(body) <= _COUNTED_BYTES and body.count(b"{") + body.count(b"[") <= DEPTH_LIMIT:
        return False
    depth = Depth(slice_bytes)
    depth.look(body, is_all=True)
    return depth.is_too_deep


class Depth:
    """How deep valid JSON is nested, looked at as it comes.

    Cost: 0.5 to 3 ns a byte, and 10 to 50 ns a bracket outside strings; 1 ns a byte of an array of objects
    that begin alike, as messages do. All of it is done by calls that take 0.1 ms at most.
    """

    def __init__(self, slice_bytes: int = SLICE_BYTES) -> None:
        self.is_too_deep = False
        """What was looked at so far is nested above `DEPTH_LIMIT`."""
        self._slice_bytes = slice_bytes
        self._at = 0  # what is before it was looked at
        self._depth = 0  # there
        self._is_inside = 0  # a string: 1
        self._is_escaped = False  # by the last byte before it
        self._has_escapes = False  # the slice before it
        self._between = b""  # `},{"key"`, if an element begins there, and others may begin with that key
        self._reach_bytes = slice_bytes
        self._rests = 0  # slices until elements are looked for again
        self._next_rests = 1

    def look(self, body: bytes | bytearray, *, is_all: bool) -> None:
        """Looks at what is there behind what it was given before: all of it, or what makes whole slices."""
        size = len(body)
        with memoryview(body) as view:
            while self._at < size and not self.is_too_deep:
                if not is_all and size - self._at <= max(_MOST_BYTES, self._slice_bytes):
                    return
                if self._between and self._skip(body, view):
                    continue
                end = min(self._at + self._slice_bytes, size)
                between, start = self._sought(body, end)
                end = start or end
                part, self._at = bytes(view[self._at : end]), end
                self._walk(part)
                if between and not self._is_inside:
                    self._between = between

    # --- whole elements of an array -------------------------------------------------------------------

    def _sought(self, body: bytes | bytearray, end: int) -> tuple[bytes, int]:
        """(What is between two elements, where the second begins), before `end`; else (nothing, 0).

        A string may hold the same: whether it is one is known when it was looked at up to there.
        """
        if self._rests or not self._has_escapes:
            self._rests = max(0, self._rests - 1)
            return b"", 0
        for usual in _BETWEEN:
            found = body.find(usual, self._at, end)
            if found >= 0:
                quote = body.find(b'"', found + len(usual), found + len(usual) + _KEY_BYTES)
                if quote >= 0:
                    return bytes(body[found : quote + 1]), found + usual.index(b"{")
        self._rest()
        return b"", 0

    def _skip(self, body: bytes | bytearray, view: memoryview) -> bool:
        """Goes on behind whole elements; false where there are none, or msgspec finds that they are not.

        What is valid by itself closes all that it opens: the depth is the same behind it. Inside, it is no
        deeper than it has brackets, those in strings among them.
        """
        start, between = self._at, self._between
        last = body.rfind(between, start, start + self._reach_bytes)
        if last < 0:
            last = body.find(between, start, start + _MOST_BYTES)
        if last >= 0:
            part = b"".join((b"[", view[start : last + 1], b"]"))
            longest, room = _longest(part), DEPTH_LIMIT - self._depth
            # Both brackets are made one first, for that takes less than to count another time.
            if 0 < longest <= 2 * room or (longest and part.replace(b"{", b"[").count(b"[") <= room + 1):
                self._at = last + between.index(b"{")
                self._next_rests = 1
                return True
            if longest:
                self._reach_bytes = max(self._reach_bytes // 2, _LEAST_BYTES)
        self._between = b""
        self._rest()
        return False

    def _rest(self) -> None:
        self._rests = self._next_rests
        self._next_rests = min(2 * self._next_rests, _MOST_SLICES)

    # --- anything else --------------------------------------------------------------------------------

    def _walk(self, part: bytes) -> None:
        """Follows the brackets of a slice.

        Strings are cut out first: the brackets of code in them need not close. All of it is done by calls
        that take a slice at once, shorter ones for each step: what is not a quote or a bracket goes, then
        quotes with nothing between them, for that leaves what is inside a string inside and the rest outside.
        """
        if self._is_escaped:
            part = part[1:]
        self._is_escaped = part.endswith(b"\\") and (len(part) - len(part.rstrip(b"\\"))) % 2 == 1
        self._has_escapes = b"\\" in part
        if self._has_escapes:
            if rb'\\"' in part:  # else each backslash before a quote belongs to it
                part = part.replace(rb"\\", b"  ")
            part = part.replace(rb"\"", b"  ")
        pieces = part.translate(_BRACES, _REST).replace(b'""', b"").split(b'"')
        braces = b"".join(pieces[self._is_inside :: 2])
        self._is_inside ^= ~len(pieces) & 1
        # Without its innermost pairs a tree is one level lower, and mostly a third of its size.
        few = braces.replace(b"{}", b"").replace(b"{}", b"")
        opened, depth = few.count(b"{"), self._depth
        self.is_too_deep = (
            depth + opened + 2 > DEPTH_LIMIT
            and _highest(few, depth) + 2 > DEPTH_LIMIT
            and _highest(braces, depth) > DEPTH_LIMIT
        )
        self._depth += 2 * opened - len(few)


def _longest(array: bytes) -> int:
    """Bytes of the longest element; 0 where it is no valid JSON."""
    try:
        return max(map(len, _read_array(array)), default=0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0


def _highest(braces: bytes, depth: int) -> int:
    return max(accumulate(map(_STEPS.__getitem__, braces), initial=depth))
