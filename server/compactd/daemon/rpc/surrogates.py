r"""Lone surrogates in JSON: `\ud83d` without its partner, as JavaScript writes a string cut inside an emoji.

They are not valid text, and msgspec refuses a whole message because of one. This module replaces them by
U+FFFD. Everything else stays byte for byte.
"""

from __future__ import annotations

import re

import msgspec

from compactd.protocol.errors import Detail

_BACKSLASH = ord("\\")


def without_lone_surrogates(body: bytes | bytearray) -> bytes | None:
    r"""Return the JSON text with `\ufffd` for each lone surrogate, or None if it has none. O(bytes)."""
    parts: list[bytes | bytearray] = []
    copied, partner = 0, -1
    for match in re.finditer(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", body):
        start = match.start()
        if start == partner or _is_escaped(body, start):
            continue
        is_high = body[start + 3] in b"89abAB"
        if is_high and re.match(rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}", body[start + 6 : start + 12]):
            partner = start + 6
            continue
        parts += (body[copied:start], rb"\ufffd")
        copied = start + 6
    if not parts:
        return None
    parts.append(body[copied:])
    return b"".join(parts)


def encode_detail(value: Detail) -> bytes:
    """Encode a value as plain JSON, even if it contains a file name that is not valid text."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json  # rare, and 2 ms at every start

        text = json.dumps(value, separators=(",", ":")).encode()
        return without_lone_surrogates(text) or text


def _is_escaped(body: bytes | bytearray, position: int) -> bool:
    """Return true if the backslash at `position` is itself escaped."""
    first = position
    while first > 0 and body[first - 1] == _BACKSLASH:
        first -= 1
    return (position - first) % 2 == 1
