"""Write the mirror of an agent's session as a compactd journal, so that `search`, `inspect` and recall find
it.

The journal is only appended to, under the session's lock. If another process holds the lock (a daemon that
has the mirror open), new records wait in a separate file until the next run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.history.entries import Appended, Compacted, Opened, OutputLink, number_of
from compactd.integrations.hooks.hook_state import HookState, HookStateFiles, append, mirror_id
from compactd.integrations.hooks.reduced_notes import OutputNote, newest_in, notes_in
from compactd.protocol.messages import NULL, CompactionResult, Message, Strategy
from compactd.storage import files
from compactd.storage.journal_file import JournalFile
from compactd.storage.journal_records import as_appended, scan
from compactd.storage.locks import Lock, take_lock
from compactd.storage.migrate import FORMAT
from compactd.storage.paths import real_folder

SESSIONS = "sessions"
ESTIMATOR = "chars4"

_WITHOUT_ID = (b'{"type":"reduction"', b'{"type":"usage"')
"""How records begin that are no entries with an id, and of which the daemon may have written many."""
_MIN_COMPARED_RECORDS = 64
"""New records are compared with the journal's last records, to find those that are already written. The
number of last records is the number of new ones plus this.
"""


class _Entry(Struct, frozen=True):
    """The fields by which two entries are recognised as the same. Their times may differ."""

    type: str
    id: str = ""
    message: Raw = NULL
    summary: str = ""
    parent: str | None = None


class _Stored(Struct, frozen=True):
    type: str
    id: str = ""


_MIRRORED: Final = ("message", "compaction")
"""The types of the records that a mirror makes from a transcript."""
_decode = msgspec.json.Decoder(_Entry).decode


class MirrorJournal:
    """The new records of a mirror's journal, which are collected and written together."""

    def __init__(self, files_: HookStateFiles, agent: str, state: HookState, now: float) -> None:
        self._files = files_
        self._id = mirror_id(agent, state.session_id)
        self._state = state
        self._now = now
        self._records: list[bytes] = []

    @property
    def path(self) -> Path:
        """The journal's path."""
        return self._files.folder.parent / SESSIONS / f"{self._files.stem}.jsonl"

    def add(
        self,
        message: Message,
        raw: bytes,
        tokens: int,
        client_id: str | None,
        outputs: tuple[OutputLink, ...] = (),
    ) -> str:
        """Add a message to the mirror's journal. `outputs`: the reduced tool outputs in it. Return the id of
        its entry.
        """
        entry_id, parent = self._next()
        entry = Appended(
            id=entry_id,
            at=message.created_at or self._now,
            tokens=(tokens, ESTIMATOR),
            message=Raw(raw),
            parent=parent,
            client_id=client_id,
            outputs=outputs,
        )
        self._records.append(msgspec.json.encode(entry))
        return entry_id

    def add_compaction(self, summary: str, tokens: int, *, is_own: bool = False) -> str:
        """Add a compaction by the agent. `is_own`: compactd wrote the summary. Return the id of its entry."""
        entry_id, parent = self._next()
        self._state.epoch += 1
        number = f"{self._state.session_id[:64]}-{self._state.epoch - 1}"
        strategy: Strategy = "extract" if is_own else "summarize"
        result = CompactionResult(
            compacted=True, compaction_id=number, strategy=strategy, created_at=self._now
        )
        entry = Compacted(
            id=entry_id,
            at=self._now,
            compaction_id=number,
            epoch=self._state.epoch,
            summary=summary,
            summary_tokens=tokens,
            result=result,
            parent=parent,
            estimator=ESTIMATOR,
        )
        self._records.append(msgspec.json.encode(entry))
        return entry_id

    def _open(self) -> bytes:
        folder = self._state.folder or None
        return msgspec.json.encode(
            Opened(
                v=FORMAT.version, id=self._id, at=self._now, working_dir=folder, real_dir=real_folder(folder)
            )
        )

    def _next(self) -> tuple[str, str | None]:
        self._state.entries += 1
        number = self._state.entries
        before = self._state.newest
        parent = (f"e{number - 1}" if number > 1 else None) if before is None else before or None
        self._state.newest = f"e{number}"
        return f"e{number}", parent

    def read_stored(self) -> tuple[list[str], dict[str, list[OutputNote]]]:
        """Return (the entry ids of the messages and compactions in the journal; call id -> reduced outputs,
        whose entries are between them). O(journal).
        """
        try:
            records = scan(files.read_whole(self.path)).records
        except OSError:
            return [], {}
        entries = (msgspec.json.decode(record, type=_Stored) for record in records)
        return [one.id for one in entries if one.type in _MIRRORED], notes_in(records)

    def write(self) -> bool:
        """Append the records to the journal, or to the waiting file if another process holds the lock.

        Return False if the journal is damaged or could not be written. O(new bytes), and O(journal) if
        another process changed the journal.
        """
        if not self._records and not self._waiting_path.exists():
            return True
        files.make_folder(self.path.parent)
        lock = take_lock(self.path.with_suffix(".lock"))
        if not isinstance(lock, Lock):
            return self._wait()
        try:
            return self._write()
        finally:
            lock.release()

    @property
    def _waiting_path(self) -> Path:
        return self._files.path(".wait")

    def _wait(self) -> bool:
        path = self._waiting_path
        size = path.stat().st_size if path.exists() else 0
        append(path, size, b"".join(record + b"\n" for record in self._records))
        self._records.clear()
        return True

    def _read_waiting(self) -> list[bytes]:
        try:
            return [line for line in self._waiting_path.read_bytes().split(b"\n") if line]
        except OSError:
            return []

    def _write(self) -> bool:
        state, new = self._state, [*self._read_waiting(), *self._records]
        fd = files.open_private(self.path, files.APPEND | os.O_CREAT)
        size = os.fstat(fd).st_size
        needs_newline = False
        if size != state.journal_bytes:
            found = scan(files.read_from(fd, 0))
            if found.damage is not None:
                os.close(fd)
                return False
            size, needs_newline = found.end, found.needs_newline
            state.journal_records = len(found.records)
            # Records without an id say nothing about which entries there are.
            there = [one for one in map(as_appended, found.records) if not one.startswith(_WITHOUT_ID)]
            new = _records_to_add(new, there)
            state.entries = max([0, *map(_number, there[-_MIN_COMPARED_RECORDS:]), *map(_number, new)])
            state.newest = newest_in(reversed([*there, *new]))
        if not state.journal_records:
            new = [self._open(), *new]
        journal = JournalFile(self.path, fd, size_bytes=size, needs_newline=needs_newline, sync=None)
        try:
            failure = journal.write(state.journal_records, new) if new else None
            if failure is not None:
                return False
            state.journal_bytes = journal.size_bytes
            state.journal_records += len(new)
        finally:
            journal.close()
        self._records.clear()
        self._waiting_path.unlink(missing_ok=True)
        return True


def _records_to_add(new: Sequence[bytes], there: Sequence[bytes]) -> list[bytes]:
    """Return the records `new` without those that are already in the journal `there`, numbered after its last
    entry. A killed run may have written some, and another process may have added others.
    """
    known = {
        (one.type, one.id, bytes(one.message), one.summary)
        for one in map(_decode, there[-len(new) - _MIN_COMPARED_RECORDS :])
    }
    last = max([0, *map(_number, there[-_MIN_COMPARED_RECORDS:])])
    newest = newest_in(reversed(there))
    left: list[bytes] = []
    for record in new:
        entry = _decode(record)
        if (entry.type, entry.id, bytes(entry.message), entry.summary) not in known:
            last += 1
            left.append(_renumber(record, entry, last, newest or None))
            newest = f"e{last}"
    return left


def _renumber(record: bytes, entry: _Entry, number: int, parent: str | None) -> bytes:
    if (entry.id, entry.parent) == (f"e{number}", parent):
        return record
    stored: Appended | Compacted = msgspec.json.decode(record, type=Appended | Compacted)
    return msgspec.json.encode(replace(stored, id=f"e{number}", parent=parent))


def _number(record: bytes) -> int:
    """Return the number of a record's entry; 0 if it has none."""
    entry = _decode(record)
    return 0 if entry.type == "session" else number_of(entry.id) or 0
