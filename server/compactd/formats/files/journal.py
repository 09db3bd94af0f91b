"""The messages of a session's own journal, and what to say of one that is no message."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.history.entries import Appended, Entry
from compactd.core.history.lazy_message import Decode
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams, LimitExceeded, SessionCorrupt
from compactd.protocol.messages import Message


def decoder_of(entries: Sequence[Entry]) -> Decode:
    """Decodes messages of `entries`, the whole journal: the index is the record's number.

    Raises `SessionCorrupt` for one of a shape that is no message: its record is whole, so it is no damage
    of the disk's but somebody else's writing.
    """

    def decode(raw: Raw) -> Message:
        try:
            return decode_message(raw)
        except (InvalidParams, LimitExceeded) as error:
            raise _no_message(entries, raw, error.message) from None

    return decode


def _no_message(entries: Sequence[Entry], raw: Raw, why: str) -> SessionCorrupt:
    places = (i for i, entry in enumerate(entries) if isinstance(entry, Appended) and entry.message is raw)
    at = next(places, len(entries))  # a record that was taken back meanwhile stands nowhere
    return SessionCorrupt(
        f"Record {at + 1} of the session's journal holds no message: {why}. Nothing was changed; "
        "`compactd doctor` saves the other records into a new file.",
        line=at + 1,
        readable_before=at,
        readable_after=max(0, len(entries) - at - 1),
    )
