"""Recognise an empty list `[]` that a client sent in place of an empty object."""

from __future__ import annotations

from msgspec import Raw

_SHORT_BYTES = 64


def is_empty_list(raw: Raw) -> bool:
    """Return true for `[]`, which Lua and PHP write for an empty table."""
    return len(memoryview(raw)) < _SHORT_BYTES and bytes(raw).translate(None, b" \t\r\n") == b"[]"
