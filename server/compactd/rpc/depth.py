"""How deep JSON may be nested: the same limit under every interpreter.

Where msgspec gives up depends on Python's version and on how deep it was called (about 950 levels under
3.11, 10,000 under 3.13), so that what one process took in and journalled another could not read back.
"""

from __future__ import annotations

import re
from itertools import accumulate

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
_BACKSLASH = ord("\\")
_REST_OF_ESCAPE = re.compile(rb"\\*[^\\]?", re.DOTALL)


def is_too_deep(body: bytes | bytearray, slice_bytes: int = SLICE_BYTES) -> bool:
    """Whether valid JSON is nested above `DEPTH_LIMIT`. About 2 ns a byte, and 10 to 50 ns a bracket.

    Strings are cut out first: the brackets of code in them need not close. All of it is done by calls
    that take a slice at once, shorter ones for each step: what is not a quote or a bracket goes, then
    quotes with nothing between them, for that leaves what is inside a string inside and the rest outside.
    """
    if len(body) <= SHALLOW_BYTES:
        return False
    if len(body) <= _COUNTED_BYTES and body.count(b"{") + body.count(b"[") <= DEPTH_LIMIT:
        return False
    view = memoryview(body)
    depth = is_inside = start = 0
    while start < len(body):
        end = min(start + slice_bytes, len(body))
        if body[end - 1] == _BACKSLASH and (rest := _REST_OF_ESCAPE.match(body, end)):
            end = rest.end()
        part = bytes(view[start:end])
        start = end
        if _BACKSLASH in part:
            if rb'\\"' in part:  # else each backslash before a quote belongs to it
                part = part.replace(rb"\\", b"  ")
            part = part.replace(rb"\"", b"  ")
        pieces = part.translate(_BRACES, _REST).replace(b'""', b"").split(b'"')
        braces = b"".join(pieces[is_inside::2])
        is_inside ^= ~len(pieces) & 1
        # Without its innermost pairs a tree is one level lower, and mostly a third of its size.
        few = braces.replace(b"{}", b"").replace(b"{}", b"")
        opened = few.count(b"{")
        if (
            depth + opened + 2 > DEPTH_LIMIT
            and _highest(few, depth) + 2 > DEPTH_LIMIT
            and _highest(braces, depth) > DEPTH_LIMIT
        ):
            return True
        depth += 2 * opened - len(few)
    return False


def _highest(braces: bytes, depth: int) -> int:
    return max(accumulate(map(_STEPS.__getitem__, braces), initial=depth))
