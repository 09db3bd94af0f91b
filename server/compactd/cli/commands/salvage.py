"""Repair a damaged compactd journal: copy the records that can be read into a new journal that can be
opened.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from compactd.core.history.entries import (
    Appended,
    Branched,
    Compacted,
    Entry,
    Opened,
    PinSet,
    Pruned,
    Redacted,
    Redone,
    Reduced,
    Snapshot,
    Stub,
    Undone,
    UsageReported,
    number_of,
)
from compactd.storage.journal_records import as_appended, encode_record, scan

NUMBERED = (Appended, Compacted, Pruned, Reduced)
"""The kinds of entries that have an id."""
ON_PATH = (Appended, Compacted, Pruned)
"""The kinds of entries that another one can follow."""

_decode = msgspec.json.Decoder(Entry).decode


def salvage(data: bytes) -> bytes | None:
    """Return a new journal of the readable records in `data`; None if the first record is lost.

    Entries keep their order and get new numbers. A reference to a lost entry becomes a reference to a
    neighbour of that entry, or is removed. O(bytes).
    """
    found = scan(data)
    after = () if found.damage is None else found.damage.after
    entries: list[Entry] = []
    for record in (*found.records, *after):
        try:
            entries.append(_decode(as_appended(record)))
        except msgspec.MsgspecError:
            continue
    if not entries or not isinstance(entries[0], Opened):
        return None
    encode = msgspec.json.encode
    return b"".join(encode_record(seq, encode(entry)) for seq, entry in enumerate(_renumber(entries)))


class _Names:
    """A map from the old ids of entries to their new ids."""

    def __init__(self, numbers: Sequence[int], on_path: Sequence[int]) -> None:
        """Both are sorted. `on_path` has the numbers of the entries that another one can follow."""
        self._numbers = numbers
        self._on_path = on_path

    def new_id(self, entry_id: str | None) -> str | None:
        """Return the new id of the entry; None if the entry is lost."""
        at = bisect_left(self._numbers, _number(entry_id))
        there = at < len(self._numbers) and self._numbers[at] == _number(entry_id)
        return f"e{at + 1}" if there and entry_id is not None else None

    def before(self, entry_id: str | None) -> str | None:
        """Return the new id of the entry, or of the nearest entry before it that another one can follow; None
        if there is none."""
        at = bisect_right(self._on_path, _number(entry_id))
        return self.new_id(f"e{self._on_path[at - 1]}") if at and entry_id is not None else None

    def after(self, entry_id: str | None) -> str | None:
        """Return the new id of the entry, or of the nearest entry after it that another one can follow; None
        if there is none."""
        at = bisect_left(self._on_path, _number(entry_id))
        there = at < len(self._on_path) and entry_id is not None
        return self.new_id(f"e{self._on_path[at]}") if there else None

    def remaining(self, entry_ids: Sequence[str]) -> tuple[str, ...]:
        """Return the new ids of the entries that are not lost."""
        return tuple(name for name in map(self.new_id, entry_ids) if name is not None)

    def stubs(self, stubs: Sequence[Stub]) -> tuple[Stub, ...]:
        """Return the stubs of entries that are not lost."""
        named = [(self.new_id(stub.entry_id), stub) for stub in stubs]
        return tuple(replace(stub, entry_id=name) for name, stub in named if name is not None)


def _number(entry_id: str | None) -> int:
    return number_of(entry_id or "") or 0


def _renumber(entries: Sequence[Entry]) -> list[Entry]:
    numbers = {_number(entry.id) for entry in entries if isinstance(entry, NUMBERED)}
    on_path = {_number(entry.id) for entry in entries if isinstance(entry, ON_PATH)}
    names = _Names(sorted(numbers), sorted(on_path))
    kept: list[Entry] = []
    last: str | None = None
    steps: set[str] = set()
    count = 0
    for entry in entries:
        renamed = _rename(entry, names)
        if renamed is None:
            continue
        if isinstance(renamed, NUMBERED):
            count += 1
            # A lost parent is replaced by the nearest entry before it.
            parent = None if renamed.parent is None else names.before(renamed.parent) or last
            renamed = replace(renamed, id=f"e{count}", parent=parent)
            if isinstance(renamed, ON_PATH):
                last = renamed.id
            if isinstance(renamed, Compacted | Pruned):
                steps.add(renamed.id)
        elif isinstance(renamed, Undone | Redone) and renamed.target not in steps:
            continue
        kept.append(renamed)
    return kept


def _rename(entry: Entry, names: _Names) -> Entry | None:
    """Return the entry with new ids in its references; None if it is about a lost entry."""
    match entry:
        case UsageReported() | Snapshot():
            return replace(entry, entry_id=names.new_id(entry.entry_id))
        case Compacted():
            first_kept = names.after(entry.first_kept)
            condensed = names.new_id(entry.result.condensed_request or None)
            result = replace(
                entry.result,
                first_kept_entry_id=first_kept,
                pinned_entry_ids=names.remaining(entry.result.pinned_entry_ids),
                pinned=tuple(
                    replace(one, entry_id=name)
                    for one in entry.result.pinned
                    for name in names.remaining((one.entry_id,))
                ),
                condensed_request=condensed or UNSET,
            )
            return replace(
                entry,
                first_kept=first_kept,
                pinned=names.remaining(entry.pinned),
                stubs=names.stubs(entry.stubs),
                result=result,
            )
        case Pruned():
            return replace(entry, stubs=names.stubs(entry.stubs))
        case Undone() | Redone():
            target = names.new_id(entry.target)
            return None if target is None else replace(entry, target=target)
        case Branched():
            return replace(entry, entry_id=names.before(entry.entry_id) or "e1")
        case PinSet() | Redacted():
            return replace(entry, entry_ids=names.remaining(entry.entry_ids))
        case Appended():
            named = [(names.new_id(link.output), link) for link in entry.outputs]
            return replace(
                entry, outputs=tuple(replace(link, output=name) for name, link in named if name is not None)
            )
        case Reduced():
            return replace(entry, refers=names.remaining(entry.refers))
        case _:
            return entry
