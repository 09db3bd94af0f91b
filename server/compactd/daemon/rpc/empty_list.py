"""The empty list that stands for an empty object."""

from __future__ import annotations

from msgspec import Raw

_SHORT_BYTES = 64


def is_empty_list(raw: Raw) -> bool:
    """True for `[]`: what Lua and PHP write for an empty table, whatever it stands for."""
    return len(memoryview(raw)) < _SHORT_BYTES and bytes(raw).translate(None, b" \t\r\n") == b"[]"
