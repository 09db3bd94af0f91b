"""What the hook remembers of tool outputs that it reduced, to link them to their messages later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from compactd.core.reduce.numbering import plain_lines
from compactd.storage.hook_files import message_key

MAX_NOTES: Final = 1_000
"""The most calls that are remembered."""
_REDUCED: Final = b'"type":"reduced"'
_TYPE_BYTES: Final = 96
"""The type of a record is in so many of its first bytes."""


class OutputNote(Struct, frozen=True, array_like=True):
    """A reduced text of a tool's output."""

    entry_id: str
    """The entry that has the original."""
    shown: int
    """A hash of the text that is shown instead (`text_key`)."""
    original: int
    """A hash of the original text."""
    is_redacted: bool = False
    """Whether the original was redacted."""


class _Entry(Struct, frozen=True):
    type: str
    id: str = ""


_SPOKEN: Final = ("message", "compaction", "prune")
"""The types of the entries that follow one another in a conversation."""


class _Output(Struct, frozen=True):
    """The fields of a `Reduced` record that a note needs."""

    id: str
    message: Raw
    shown: str
    call_id: str | None = None


class _Result(Struct, frozen=True):
    content: str


class _Message(Struct, frozen=True):
    content: list[_Result]


def newest_in(newest_first: Iterable[bytes | memoryview]) -> str:
    """Return the id of the newest message or compaction in a journal's records, which come newest first;
    empty if there is none. O(records after it).
    """
    entries = (msgspec.json.decode(record, type=_Entry) for record in newest_first)
    return next((entry.id for entry in entries if entry.type in _SPOKEN), "")


def text_key(text: str) -> int:
    """Return a hash of a text by which it is recognised with or without line numbers, and without white space
    at the end. O(characters).
    """
    return message_key("\n".join(plain_lines(text.rstrip().split("\n"))))


def keys_of(said: str) -> Iterator[int]:
    """Yield the hashes of a result's text, and of it without the lines that Claude Code adds before or after
    it: how many files `Grep` found, that `Glob` cut its list off (2.1.197 to 2.1.330, run 2026-11).
    """
    yield text_key(said)
    yield text_key(said.partition("\n")[2])
    yield text_key(said.rpartition("\n\n")[0])
    yield text_key(said.rstrip().rpartition("\n")[0])


def notes_in(records: Iterable[bytes | memoryview]) -> dict[str, list[OutputNote]]:
    """Return call id -> notes of the reduced outputs in a journal's records. O(bytes)."""
    from compactd.core.redaction.scrub import MARK

    found: dict[str, list[OutputNote]] = {}
    for record in records:
        if _REDUCED not in bytes(record[:_TYPE_BYTES]):
            continue
        try:
            output = msgspec.json.decode(record, type=_Output)
            original = msgspec.json.decode(output.message, type=_Message).content[0].content
        except (msgspec.MsgspecError, IndexError, UnicodeDecodeError):
            continue
        if output.call_id:
            keys = text_key(output.shown), text_key(original)
            note = OutputNote(output.id, *keys, output.shown == MARK)
            found.setdefault(output.call_id, []).append(note)
    return found
