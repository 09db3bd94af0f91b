"""Request ids: kept as the JSON text they came in, so that they go back exactly as they came."""

from __future__ import annotations

import re

NULL_ID = b"null"
"""The id of an answer to something whose id could not be read."""

SNIFFED_BYTES = 256
"""How much of a body that is not held is looked at for its id (docs/dev/contract.md, "Transport")."""

ID_STARTS = frozenset(b'"-0123456789n')
"""The first byte of a value that may be an id: a string, a number (also a float) or null."""

_TOKEN = rb'[\s\xef\xbb\xbf]*("(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+)'


def is_id(text: bytes) -> bool:
    """Whether a JSON value may be an id: a string, a number (also a float) or null."""
    return text[0] in ID_STARTS


def sniff_id(prefix: bytes | bytearray) -> bytes:
    """The top-level `id` in the first bytes of a message, or `NULL_ID` where they do not show it whole.

    Only a member of the outermost object counts: an `id` inside params names something else.
    """
    token = re.compile(_TOKEN, re.DOTALL)
    depth = 0
    at_key = found = False
    value = b""
    position = 0
    while match := token.match(prefix, position):
        position = match.end()
        word = match[1]
        if value:
            # Only what follows tells that a number is complete.
            return value if word in b",}" and is_id(value) else NULL_ID
        if word in (b"{", b"["):
            if found:
                return NULL_ID
            depth += 1
            at_key = depth == 1 and word == b"{"
        elif word in (b"}", b"]"):
            depth -= 1
        elif word == b",":
            at_key = depth == 1
        elif word == b":":
            continue
        elif found:
            value = word
        elif at_key:
            found = word == b'"id"'
            at_key = False
    return NULL_ID
