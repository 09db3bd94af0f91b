"""JSON-RPC request ids, kept as the JSON text in which they came, so that they are returned unchanged."""

from __future__ import annotations

import re

NULL_ID = b"null"
"""The id of an answer to a message whose id could not be read."""

SNIFFED_BYTES = 256
"""The bytes of a refused body that are searched for its id (docs/dev/contract.md, "Transport")."""

_TOKEN = rb'[\s\xef\xbb\xbf]*("(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+)'


def is_id(text: bytes) -> bool:
    """Return true if the JSON value `text` can be an id: a string, a number (also a float) or null."""
    return text[0] in b'"-0123456789n'


def sniff_id(prefix: bytes | bytearray) -> bytes:
    """Return the id of a message, searched in its first bytes, or `NULL_ID` if they do not contain the whole
    id.

    Only a member `id` of the outermost object counts, not one inside params.
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
            # A number is complete only if something follows it.
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
