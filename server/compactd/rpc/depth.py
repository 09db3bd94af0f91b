"""How deep JSON may be nested: the same limit under every interpreter.

Where msgspec gives up depends on Python's version and on how deep it was called (about 950 levels under
3.11, 10,000 under 3.13), so that what one process took in and journalled another could not read back.
"""

from __future__ import annotations

import re
from itertools import accumulate

DEPTH_LIMIT = 512
"""Levels of one message, inclusive. A syntax tree as JSON has 200; walkers here recurse once a level."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [{0x5B: 1, 0x7B: 1, 0x5D: -1, 0x7D: -1}.get(byte, 0) for byte in range(256)]


def is_too_deep(body: bytes | bytearray) -> bool:
    """Whether valid JSON is nested above `DEPTH_LIMIT`. Two scans; 50 ns a bracket where there are many."""
    if len(body) <= 2 * DEPTH_LIMIT or body.count(b"{") + body.count(b"[") <= DEPTH_LIMIT:
        return False
    # Brackets in strings count too, at first: for most bodies that is enough, and spares a copy.
    return (
        _depth(body) > DEPTH_LIMIT and _depth(re.sub(rb'"[^"\\]*(?:\\.[^"\\]*)*"', b"", body)) > DEPTH_LIMIT
    )


def _depth(body: bytes | bytearray) -> int:
    return max(accumulate(map(_STEPS.__getitem__, body.translate(None, _NO_BRACKETS))), default=0)
