"""Write the originals of reduced tool outputs to the journal of a mirror, before its messages are written.

The hook that reduces an output must be fast, so it does not read the transcript and does not load what the
mirror needs (`mirror_journal.py`). It only appends records. Their entry ids are known before they are
written, because a reduced text names them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import Opened, Reduced, ReductionObserved, number_of
from compactd.integrations.hooks.output_counts import OutputCount, OutputCounts
from compactd.integrations.hooks.reduced_notes import MAX_NOTES, OutputNote, newest_in, notes_in
from compactd.storage import files
from compactd.storage.hook_files import STATE, WAIT, HookFiles
from compactd.storage.journal_file import JournalFile
from compactd.storage.journal_records import scan
from compactd.storage.locks import Lock, take_lock
from compactd.storage.migrate import FORMAT
from compactd.storage.paths import real_folder

LOCK_STEP_S: Final = 0.01
LAST_NUMBERS: Final = 64
"""So many last numbers in a journal are compared, to find the highest."""


class CannotKeep(Exception):
    """The original of an output cannot be kept now, so the output must stay as it is. The message says
    why."""


class _Numbers(Struct, frozen=True):
    """The fields of the hook's state (`HookState`) that this module reads and changes."""

    session_id: str = ""
    folder: str = ""
    entries: int = 0
    newest: str | None = None
    journal_bytes: int = 0
    journal_records: int = 0
    outputs: dict[str, list[OutputNote]] = {}
    reduced: OutputCounts = OutputCounts()
    observed: OutputCounts = OutputCounts()
    ignored: int = 0


class _Entry(Struct, frozen=True):
    type: str
    id: str = ""


class OutputJournal:
    """The journal of a mirror, open for appending. Use it only inside `opened`."""

    def __init__(self, hook_files: HookFiles, session_id: str, folder: str) -> None:
        self._files = hook_files
        self._session_id = session_id
        self._path = hook_files.journal_path
        self._fields, self._numbers = _read_state(hook_files)
        # A shell command may have changed the folder since the session began.
        self._folder = (self._numbers.folder if self._numbers.session_id else folder) or None
        self._entries = self._numbers.entries
        self._newest = self._numbers.newest
        if self._newest is None:
            self._newest = f"e{self._entries}" if self._entries else ""
        self._notes = dict(self._numbers.outputs)
        self._reduced, self._observed = self._numbers.reduced, self._numbers.observed
        self._fd = files.open_private(self._path, files.APPEND | os.O_CREAT)
        self._size = os.fstat(self._fd).st_size
        self._count = self._numbers.journal_records
        self._needs_newline = False
        if self._size != self._numbers.journal_bytes:
            self._scan()

    def _scan(self) -> None:
        """Read the whole journal, because another process changed it, or a run of the hook was killed."""
        found = scan(files.read_from(self._fd, 0))
        if found.damage is not None:
            self.close()
            raise CannotKeep("the mirror's journal is damaged")
        self._size, self._needs_newline = found.end, found.needs_newline
        self._count = len(found.records)
        entries = (msgspec.json.decode(one, type=_Entry) for one in reversed(found.records))
        numbers = (number_of(one.id) for one in entries if one.type != "session")
        # Many records in between may have no number.
        newest = islice((number for number in numbers if number is not None), LAST_NUMBERS)
        self._entries = max(newest, default=0)
        self._newest = newest_in(reversed(found.records))
        self._notes = {**notes_in(found.records), **self._notes}

    @property
    def next_number(self) -> int:
        """The number of the next entry."""
        return self._entries + 1

    @property
    def parent(self) -> str | None:
        """The id of the newest message or compaction; None if there is none."""
        return self._newest or None

    @property
    def ignored(self) -> int:
        """How often, one after the other, the agent has shown an original instead of the reduced text."""
        return self._numbers.ignored

    def write(
        self,
        entries: Sequence[Reduced],
        observed: Sequence[ReductionObserved],
        notes: Mapping[str, Sequence[OutputNote]],
    ) -> None:
        """Append the entries, and remember the notes and the counts. Originals are on disk when this returns.
        Raise `CannotKeep` if they could not be written; then nothing is. O(bytes).
        """
        sync = bool(entries)
        records = [msgspec.json.encode(entry) for entry in (*entries, *observed)]
        new = list(records) if self._count else [self._open(), *records]
        journal = JournalFile(
            self._path,
            self._fd,
            size_bytes=self._size,
            needs_newline=self._needs_newline,
            sync=files.sync if sync else None,
            unsynced_folders=() if self._count or not sync else (self._path.parent,),
        )
        if journal.write(self._count, new) is not None:
            raise CannotKeep("the mirror's journal could not be written")
        self._size, self._needs_newline = journal.size_bytes, False
        self._count += len(new)
        self._entries += len(entries)
        self._reduced = _counted(self._numbers.reduced, entries)
        self._observed = _counted(self._numbers.observed, observed)
        for call_id, added in notes.items():
            self._notes[call_id] = [*self._notes.get(call_id, ()), *added]
        for call_id in list(self._notes)[: max(0, len(self._notes) - MAX_NOTES)]:
            del self._notes[call_id]
        self._save()

    def _open(self) -> bytes:
        return msgspec.json.encode(
            Opened(
                v=FORMAT.version,
                id=self._session_id,
                at=time.time(),
                working_dir=self._folder,
                real_dir=real_folder(self._folder),
            )
        )

    def _save(self) -> None:
        """Save the numbers in the hook's state, whose other fields stay. Raise `OSError`."""
        encode = msgspec.json.encode
        if not self._numbers.session_id:
            agent_session = self._session_id.partition(":")[2]
            self._fields["session_id"] = Raw(encode(agent_session))
            self._fields["folder"] = Raw(encode(self._folder or ""))
        self._fields |= {
            "entries": Raw(encode(self._entries)),
            "newest": Raw(encode(self._newest)),
            "journal_bytes": Raw(encode(self._size)),
            "journal_records": Raw(encode(self._count)),
            "outputs": Raw(encode(self._notes)),
            "reduced": Raw(encode(self._reduced)),
            "observed": Raw(encode(self._observed)),
        }
        data = encode(self._fields)
        files.replace_file(self._files.path(STATE), (data,), durable=False)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


@contextmanager
def opened(hook_files: HookFiles, session_id: str, folder: str, until: float) -> Iterator[OutputJournal]:
    """Open the journal of a mirror, and hold its lock. `session_id`: the mirror's id. `folder`: where the
    agent works. Raise `CannotKeep` if another process has the lock until `time.monotonic` reaches `until`, or
    `OSError`.
    """
    path = hook_files.journal_path
    files.make_folder(path.parent)
    while not isinstance(lock := take_lock(path.with_suffix(".lock")), Lock):
        if time.monotonic() > until:
            raise CannotKeep("another process is writing the mirror")
        time.sleep(LOCK_STEP_S)
    try:
        if hook_files.path(WAIT).exists():
            # The next event that the mirror reads writes them. They take the next numbers.
            raise CannotKeep("records of the mirror are waiting to be written")
        journal = OutputJournal(hook_files, session_id, folder)
        try:
            yield journal
        finally:
            journal.close()
    finally:
        lock.release()


def _counted(counts: OutputCounts, entries: Sequence[Reduced | ReductionObserved]) -> OutputCounts:
    for entry in entries:
        if entry.rules:
            one = OutputCount(1, entry.tokens[0], entry.tokens_shown)
            counts = counts.plus(entry.name, entry.rules, one)
    return counts


def _read_state(hook_files: HookFiles) -> tuple[dict[str, Raw], _Numbers]:
    """Return the fields of the hook's state, and those that this module needs; none if it cannot be read."""
    try:
        data = hook_files.path(STATE).read_bytes()
        return msgspec.json.decode(data, type=dict[str, Raw]), msgspec.json.decode(data, type=_Numbers)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}, _Numbers()
