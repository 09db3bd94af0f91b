"""Search in every stored session, through the store's index."""

from __future__ import annotations

from time import monotonic

import msgspec
from msgspec import Raw, Struct

from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams
from compactd.session.search import texts_of
from compactd.storage.protocols import Index, IndexHit, Said

PATIENCE_S = 20.0
"""How long one search reads what is new; the next one goes on from there."""

_MESSAGE = b'"type":"message"'
_HEAD_BYTES = 64


class Everywhere(Struct, frozen=True):
    """What was found."""

    hits: tuple[IndexHit, ...]
    is_complete: bool
    """False where not every session could be looked at yet."""


class _Record(Struct, frozen=True):
    id: str
    at: float = 0.0
    message: Raw = Raw(b"{}")


_decode = msgspec.json.Decoder(_Record).decode


def search_everywhere(index: Index, query: str, limit: int, patience_s: float = PATIENCE_S) -> Everywhere:
    """The messages of all stored sessions that hold the words of `query`, best first, at most `limit`.

    Blocks: O(bytes that are new since the last search), then O(hits). Raises `OSError` where there is no
    index to be read.
    """
    until = monotonic() + patience_s
    try:
        is_complete = all(monotonic() < until for _ in index.catch_up(said_of))
    except OSError:
        # Another process may be reading the same news; what is there already is searched.
        is_complete = False
    return Everywhere(index.find(query, limit), is_complete)


def said_of(record: memoryview) -> Said | None:
    """What a record of a journal says; None where it is no message of ours."""
    if _MESSAGE not in bytes(record[:_HEAD_BYTES]):
        return None
    try:
        found = _decode(record)
        message = decode_message(found.message)
    except (msgspec.MsgspecError, InvalidParams, UnicodeDecodeError):
        return None
    return Said(found.id, message.role, found.at, "\n".join(texts_of(message.content)))
