"""A limit on the nesting depth of JSON, the same for every Python version.

msgspec's own limit depends on Python's version and the call depth (about 950 levels under 3.11, 10,000 under
3.13). So without this limit, a process could write a message to the journal that a process with another
Python version cannot read.
"""

from __future__ import annotations

from itertools import accumulate

import msgspec
from msgspec import Raw

DEPTH_LIMIT = 512
"""The most nesting levels of a message. A syntax tree as JSON has about 200. compactd's own code recurses
once per level."""

_SHALLOW_BYTES = 2 * DEPTH_LIMIT
"""Valid JSON of up to this size cannot be nested too deeply: each level takes two brackets."""

SLICE_BYTES = 1 << 15
"""The bytes that are checked at once (a slice). They fit into the processor's cache."""

_COUNTED_BYTES = 1 << 20

_OTHER_BYTES = bytes(set(range(256)) - set(b'[]{}"'))
_BRACES = bytes.maketrans(b"[]", b"{}")
_STEPS = [{0x7B: 1, 0x7D: -1}.get(byte, 0) for byte in range(256)]

_BETWEEN = (b'},{"', b'}, {"')  # objects of an array, as most programs write them
_KEY_BYTES = 64
_MAX_SLICE_BYTES = 1 << 17  # the most bytes of array elements that are skipped at once
_MIN_SLICE_BYTES = 1 << 13
_MAX_SLICES = 64  # the most slices until whole elements are searched again

_read_array = msgspec.json.Decoder(list[Raw]).decode


def is_too_deep(body: bytes | bytearray, slice_bytes: int = SLICE_BYTES) -> bool:
    """Return true if `body`, which is valid JSON, is nested deeper than `DEPTH_LIMIT`. Faster than
    `DepthCheck` for flat JSON.
    """
    if len(body) <= _SHALLOW_BYTES:
        return False
    if len(body) <= _COUNTED_BYTES and body.count(b"{") + body.count(b"[") <= DEPTH_LIMIT:
        return False
    depth = DepthCheck(slice_bytes)
    depth.check_new(body, is_all=True)
    return depth.is_too_deep


class DepthCheck:
    """A check of how deep valid JSON is nested, done piece by piece while the JSON arrives.

    Cost: 0.5 to 3 ns per byte, and 10 to 50 ns per bracket outside strings. For an array of objects that
    begin with the same key, as messages do, 1 ns per byte.
    """

    def __init__(self, slice_bytes: int = SLICE_BYTES) -> None:
        self.is_too_deep = False
        """True if the bytes checked so far are nested deeper than `DEPTH_LIMIT`."""
        self._slice_bytes = slice_bytes
        self._at = 0  # the bytes before this offset are checked
        self._depth = 0  # the depth at `_at`
        self._is_inside = 0  # 1 if `_at` is inside a string
        self._is_escaped = False  # true if the byte before `_at` escapes the next one
        self._has_escapes = False  # true if the slice before `_at` contains escapes
        self._between = b""  # `},{"key"` if an element begins at `_at` and others may begin the same way
        self._reach_bytes = slice_bytes
        self._rests = 0  # the number of slices to check before whole elements are searched again
        self._next_rests = 1

    def check_new(self, body: bytes | bytearray, *, is_all: bool) -> None:
        """Check the bytes of `body` that no earlier call has checked. `is_all` says that `body` is complete;
        otherwise an incomplete slice at the end is left for later.
        """
        size = len(body)
        with memoryview(body) as view:
            while self._at < size and not self.is_too_deep:
                if not is_all and size - self._at <= max(_MAX_SLICE_BYTES, self._slice_bytes):
                    return
                if self._between and self._skip(body, view):
                    continue
                end = min(self._at + self._slice_bytes, size)
                between, start = self._find_next_element(body, end)
                end = start or end
                part, self._at = bytes(view[self._at : end]), end
                self._walk(part)
                if between and not self._is_inside:
                    self._between = between

    # --- whole elements of an array -------------------------------------------------------------------

    def _find_next_element(self, body: bytes | bytearray, end: int) -> tuple[bytes, int]:
        """Search the bytes before `end` for a place where one array element ends and the next one begins.
        Return (the bytes at that place, such as `},{"id"`, the offset of the next element), or (empty, 0) if
        there is none.

        A string may contain the same bytes. After checking the bytes before the offset, the caller knows
        whether the offset is inside a string.
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
        self._pause_search()
        return b"", 0

    def _skip(self, body: bytes | bytearray, view: memoryview) -> bool:
        """Skip whole array elements, without following their brackets. Return false if there are none, if
        they may be too deep, or if msgspec finds that they are not valid.

        A valid element closes every bracket that it opens, so the depth after it is the depth before it. An
        element is at most as deep as its number of brackets, including those in strings.
        """
        start, between = self._at, self._between
        last = body.rfind(between, start, start + self._reach_bytes)
        if last < 0:
            last = body.find(between, start, start + _MAX_SLICE_BYTES)
        if last >= 0:
            part = b"".join((b"[", view[start : last + 1], b"]"))
            longest, room = _longest(part), DEPTH_LIMIT - self._depth
            # Replacing one kind of bracket and counting once is faster than counting twice.
            if 0 < longest <= 2 * room or (longest and part.replace(b"{", b"[").count(b"[") <= room + 1):
                self._at = last + between.index(b"{")
                self._next_rests = 1
                return True
            if longest:
                self._reach_bytes = max(self._reach_bytes // 2, _MIN_SLICE_BYTES)
        self._between = b""
        self._pause_search()
        return False

    def _pause_search(self) -> None:
        self._rests = self._next_rests
        self._next_rests = min(2 * self._next_rests, _MAX_SLICES)

    # --- anything else --------------------------------------------------------------------------------

    def _walk(self, part: bytes) -> None:
        """Follow the brackets of a slice: update the depth, and whether its end is inside a string.

        Strings are removed first, because brackets in them need not match. Every step handles the whole
        slice in one call: remove all bytes except quotes and brackets, then remove pairs of adjacent
        quotes, which does not change what is inside and outside of strings.
        """
        if self._is_escaped:
            part = part[1:]
        self._is_escaped = part.endswith(b"\\") and (len(part) - len(part.rstrip(b"\\"))) % 2 == 1
        self._has_escapes = b"\\" in part
        if self._has_escapes:
            if rb'\\"' in part:  # otherwise every backslash before a quote escapes it
                part = part.replace(rb"\\", b"  ")
            part = part.replace(rb"\"", b"  ")
        pieces = part.translate(_BRACES, _OTHER_BYTES).replace(b'""', b"").split(b'"')
        braces = b"".join(pieces[self._is_inside :: 2])
        self._is_inside ^= ~len(pieces) & 1
        # Removing the innermost pairs lowers the depth by one, and mostly leaves a third of the size.
        few = braces.replace(b"{}", b"").replace(b"{}", b"")
        opened, depth = few.count(b"{"), self._depth
        self.is_too_deep = (
            depth + opened + 2 > DEPTH_LIMIT
            and _highest(few, depth) + 2 > DEPTH_LIMIT
            and _highest(braces, depth) > DEPTH_LIMIT
        )
        self._depth += 2 * opened - len(few)


def _longest(array: bytes) -> int:
    """Return the size in bytes of a JSON array's longest element, or 0 if the array is not valid JSON."""
    try:
        return max(map(len, _read_array(array)), default=0)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0


def _highest(braces: bytes, depth: int) -> int:
    return max(accumulate(map(_STEPS.__getitem__, braces), initial=depth))
