"""One transcript as a file: one line of JSON per entry, after a first line that names its key.

A line counts if it ends with a line feed. If a process was killed while it wrote, a part of a line may be at
the end; the next writer removes it. Writers take turns by a lock file, in all processes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct

from compactd.integrations.frameworks.claude_agent_sdk.keys import LOCK, Key
from compactd.storage import files
from compactd.storage.locks import Lock, take_lock
from compactd.storage.os_files import SYSTEM

HEADER: Final = "compactd-session-store"
"""The `type` of the first line."""
LOCK_S: Final = 20.0
"""The most seconds to wait for another process that writes the same transcript."""
MAX_KNOWN: Final = 128
"""How many transcripts' ids are kept in memory."""
_MAX_HEADER: Final = 1 << 20
_LOCK_STEP_S: Final = 0.002

_log = logging.getLogger("compactd.claude_agent_sdk")


class StoreBusy(OSError):
    """Another process has held the lock of a transcript for too long."""


class NotOurs(OSError):
    """The file at a transcript's place does not belong to its key."""


class _Header(Struct, kw_only=True, tag_field="type", tag=HEADER):
    project_key: str
    session_id: str
    subpath: str | None = None
    file: str
    """A random text, by which this file differs from a later one at the same place."""


class _Line(Struct):
    uuid: Any = None


_read_header = msgspec.json.Decoder(_Header)
_read_line = msgspec.json.Decoder(_Line)


class _Write:
    """Entries that wait to be written, and whether that has succeeded."""

    def __init__(self, lines: Sequence[tuple[str | None, bytes]]) -> None:
        self.lines = lines
        self.is_done = False
        self.error: Exception | None = None


def encode(entries: Sequence[object]) -> list[tuple[str | None, bytes]]:
    """Return (uuid, line) of each entry. The uuid is None if the entry has none that is a text.

    O(their text). Raise `TypeError` or `ValueError` if an entry cannot be written as JSON.
    """
    return [(uuid_of(entry), _line_of(entry)) for entry in entries]


def uuid_of(entry: object) -> str | None:
    """Return the entry's `uuid`; None if it has none that is a text."""
    uuid = entry.get("uuid") if isinstance(entry, dict) else None
    return uuid if isinstance(uuid, str) and uuid else None


def _line_of(entry: object) -> bytes:
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


class Transcript:
    """The file at `path`, which belongs to `key`. May be used from several threads. All methods block."""

    def __init__(self, path: Path, key: Key) -> None:
        self.path = path
        self.key = key
        self._waiting: deque[_Write] = deque()
        self._lock = threading.Lock()
        self.compacting = threading.Lock()
        """Held by the thread that loads the transcript compacted."""
        self._forget()

    def _forget(self) -> None:
        self._header = b""
        """The file's first line, as far as this process has read the file."""
        self._size = 0
        self._uuids: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no thread uses it."""
        return not (self._waiting or self._lock.locked() or self.compacting.locked())

    # --- writing ----------------------------------------------------------------------------------------

    def enter(self, lines: Sequence[tuple[str | None, bytes]]) -> _Write:
        """Put the result of `encode` in the queue. Entries are written in the order of this call. Does not
        block."""
        write = _Write(lines)
        self._waiting.append(write)
        return write

    def finish(self, write: _Write) -> None:
        """Write everything in the queue, unless another thread has written `write` already. It is on disk
        when this returns. Raise `OSError`. O(what is new), after the first call O(file).
        """
        with self._lock:
            if not write.is_done:
                batch = list(self._taken())
                try:
                    self._write([line for each in batch for line in each.lines])
                except Exception as error:
                    for each in batch:
                        each.error = error
                for each in batch:
                    each.is_done = True
        if write.error is not None:
            raise write.error

    def _taken(self) -> Iterator[_Write]:
        while True:
            try:
                yield self._waiting.popleft()
            except IndexError:  # `withdraw` may have taken the last one
                return

    def withdraw(self, write: _Write) -> None:
        """Take `write` out of the queue if nobody has written it. Does not block."""
        if not write.is_done:
            with contextlib.suppress(ValueError):
                self._waiting.remove(write)

    def _write(self, lines: Sequence[tuple[str | None, bytes]]) -> None:
        changed = files.make_folder(self.path.parent)
        for folder in changed:
            files.sync_folder(folder)
        with locked(self.path):
            fd = files.open_private(self.path, files.APPEND | os.O_CREAT)
            try:
                self._catch_up(fd)
                seen: set[str] = set()
                new: list[bytes] = []
                for uuid, line in lines:
                    if uuid is None:
                        new.append(line)
                    elif uuid not in self._uuids and uuid not in seen:
                        seen.add(uuid)
                        new.append(line)
                if not new:
                    return
                header = b"" if self._header else self._new_header()
                try:
                    written = files.write_all(fd, (header, *new) if header else new)
                    files.sync(fd)
                except BaseException:
                    SYSTEM.truncate(fd, self._size)
                    raise
                if header:
                    self._header = header
                    files.sync_folder(self.path.parent)
                self._size += written
                self._uuids |= seen
            finally:
                os.close(fd)

    def _new_header(self) -> bytes:
        header = {"type": HEADER, "project_key": self.key.project_key, "session_id": self.key.session_id}
        more = {} if self.key.subpath is None else {"subpath": self.key.subpath}
        return _line_of({**header, **more, "file": uuid4().hex})

    def _catch_up(self, fd: int) -> None:
        """Read what other processes have added, and remove the rest of a line that a killed process left."""
        size = os.fstat(fd).st_size
        SYSTEM.seek(fd, 0)
        if size < self._size or SYSTEM.read(fd, len(self._header)) != self._header:
            self._forget()
        if size == self._size:
            return
        new = files.read_from(fd, self._size)
        end = new.rfind(b"\n") + 1
        if end < len(new):
            SYSTEM.truncate(fd, self._size + end)
        lines = new[:end].split(b"\n")[:-1]
        if lines and not self._header:
            self._check(lines[0])
            self._header = lines.pop(0) + b"\n"
        for line in lines:
            uuid = _uuid_in(line)
            if uuid is not None:
                self._uuids.add(uuid)
        self._size += end

    def _check(self, line: bytes) -> None:
        if key_in(line) != self.key:
            raise NotOurs(
                f"{self.path} does not belong to this session. Move it away, or use another folder."
            )

    # --- reading ----------------------------------------------------------------------------------------

    def read(self) -> list[Any] | None:
        """Return the entries; None if there are none. Raise `OSError`. O(file)."""
        try:
            data = files.read_whole(self.path)
        except FileNotFoundError:
            return None
        lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
        if not lines:
            return None
        self._check(lines[0])
        return list(entries_in(lines[1:], self.path)) or None

    def delete(self, *others: Path) -> None:
        """Remove the file, and the files `others`. Nothing happens if there is none. Raise `OSError`."""
        if not self.path.parent.is_dir():
            return
        with self._lock, locked(self.path, is_removed=True):
            for path in (self.path, *others):
                path.unlink(missing_ok=True)
            self._forget()
            files.sync_folder(self.path.parent)


def entries_in(lines: Sequence[bytes], path: Path) -> Iterator[Any]:
    """Yield the entries in lines of a transcript. A line that is no JSON is left out, and logged."""
    damaged = 0
    for line in lines:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            damaged += 1
    if damaged:
        _log.warning("%s: %d damaged lines were left out", path, damaged)


def key_of(path: Path) -> Key | None:
    """Return the key of the transcript at `path`; None if it is none, or was deleted meanwhile."""
    try:
        with path.open("rb") as file:
            line = file.readline(_MAX_HEADER)
    except OSError:
        return None
    return key_in(line)


def key_in(line: bytes) -> Key | None:
    """Return the key in the first line of a transcript; None if it has none."""
    try:
        header = _read_header.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:  # a key with half of a surrogate pair
            given = json.loads(line)
            return Key.of(given) if given["type"] == HEADER else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
    return Key(header.project_key, header.session_id, header.subpath)


def _uuid_in(line: bytes) -> str | None:
    try:
        uuid = _read_line.decode(line).uuid
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:  # JSON of Python's that msgspec does not take: NaN, half of a surrogate pair
            return uuid_of(json.loads(line))
        except (ValueError, RecursionError):
            return None
    return uuid if isinstance(uuid, str) and uuid else None


@contextmanager
def locked(path: Path, *, is_removed: bool = False) -> Iterator[None]:
    """Hold the lock of the transcript at `path` in this context. Blocks. Raise `StoreBusy` or `OSError`.

    `is_removed`: remove the lock's file, too.
    """
    end = time.monotonic() + LOCK_S
    while not isinstance(lock := take_lock(path.with_suffix(LOCK)), Lock):
        if time.monotonic() > end:
            raise StoreBusy(f"process {lock.pid} has been writing {path} for {LOCK_S:.0f} s")
        time.sleep(_LOCK_STEP_S)
    try:
        yield
    finally:
        lock.release(remove=is_removed)


_known: OrderedDict[Path, Transcript] = OrderedDict()
_known_lock = threading.Lock()


def transcript_of(path: Path, key: Key) -> Transcript:
    """Return the transcript at `path`, one object for all stores of this process."""
    with _known_lock:
        transcript = _known.get(path)
        if transcript is None:
            transcript = _known[path] = Transcript(path, key)
            idle = [old for old, each in _known.items() if each.is_idle and each is not transcript]
            for old in idle[: max(0, len(_known) - MAX_KNOWN)]:
                del _known[old]
        _known.move_to_end(path)
        return transcript


def _forget_parents() -> None:
    """After a fork, in the child: threads that are not here may hold the locks."""
    global _known_lock
    _known_lock = threading.Lock()
    _known.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
