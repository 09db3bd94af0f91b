"""Decode the messages of a session's journal, and report a record that is not a message."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.history.entries import Appended, Entry, Reduced
from compactd.core.history.lazy_message import Decode
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams, LimitExceeded, SessionCorrupt
from compactd.protocol.messages import Message


def decoder_of(entries: Sequence[Entry]) -> Decode:
    """Return a function that decodes single messages of `entries`. `entries` must be all entries of the
    journal.

    The function raises `SessionCorrupt` with the record's number for a record that is not a message. Such a
    record has the right checksum, so the disk did not damage it: another program wrote it.
    """

    def decode(raw: Raw) -> Message:
        try:
            return decode_message(raw)
        except (InvalidParams, LimitExceeded) as error:
            raise _no_message(entries, raw, error.message) from None

    return decode


def _no_message(entries: Sequence[Entry], raw: Raw, why: str) -> SessionCorrupt:
    places = (
        i for i, entry in enumerate(entries) if isinstance(entry, Appended | Reduced) and entry.message is raw
    )
    at = next(places, len(entries))  # A record that was removed meanwhile is not in the list.
    return SessionCorrupt(
        f"Record {at + 1} of the session's journal should be a message, but cannot be read as one: {why}. "
        "Nothing was changed. `compactd doctor` can save the other records to a new file.",
        line=at + 1,
        readable_before=at,
        readable_after=max(0, len(entries) - at - 1),
    )
