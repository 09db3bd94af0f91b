"""Full-text search in all stored sessions, through the store's index."""

from __future__ import annotations

from time import monotonic

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import OutputLink
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams
from compactd.protocol.wire import SearchResult
from compactd.session.search import searchable_texts
from compactd.storage.protocols import Index, SearchableText

MAX_INDEXING_S = 20.0
"""Seconds that one search may spend on indexing new records. The next search continues from there."""

_SEARCHED = (b'"type":"message"', b'"type":"reduced"')
_HEAD_BYTES = 64


class _Record(Struct, frozen=True):
    id: str
    at: float = 0.0
    message: Raw = Raw(b"{}")
    outputs: tuple[OutputLink, ...] = ()


_decode = msgspec.json.Decoder(_Record).decode


def search_everywhere(
    index: Index, query: str, limit: int, patience_s: float = MAX_INDEXING_S
) -> SearchResult:
    """Return at most `limit` messages of all stored sessions that contain every word of `query`, best first.

    First adds new records to the index, for at most `patience_s` seconds. Blocks. Takes O(bytes added since
    the last search), then O(hits). Raises `OSError` if the index cannot be read.
    """
    until = monotonic() + patience_s
    try:
        is_complete = all(monotonic() < until for _ in index.catch_up(searchable_text))
    except OSError:
        # Another process may be indexing. Search what is indexed so far.
        is_complete = False
    return SearchResult(hits=index.find(query, limit), complete=is_complete)


def searchable_text(record: memoryview) -> SearchableText | None:
    """Return the searchable content of a journal record, or None if the record is neither a message nor the
    original of a reduced tool output."""
    head = bytes(record[:_HEAD_BYTES])
    if not any(kind in head for kind in _SEARCHED):
        return None
    try:
        found = _decode(record)
        message = decode_message(found.message)
    except (msgspec.MsgspecError, InvalidParams, UnicodeDecodeError):
        return None
    texts = searchable_texts(message.content, found.outputs)
    return SearchableText(found.id, message.role, found.at, "\n".join(texts))
