"""A cache of what session files report, so that an unchanged file is not read again.

It is one file in the platform's cache folder, accessible only to the user. It contains counts, times, model
names, session ids and folders, but no text of a conversation. The file is replaced as a whole, so processes
that run at the same time never see a part of it. A file that is damaged or of another version is ignored and
written again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.cli.usage.requests import FileUsage
from compactd.storage.files import make_folder, replace_users_file

VERSION = b"compactd usage 1\n"
"""The first line of the file. Change it with every change of `FileUsage`, `Request` or a reader."""
_HASH_BYTES = 16
_HEAD_BYTES = 4096


class Known(Struct, array_like=True):
    """What is known about one session file."""

    size_bytes: int
    modified_ns: int
    inode: int
    head_hash: bytes
    """A hash of the first `_HEAD_BYTES` bytes, or of `size_bytes` if that is less."""
    usage: FileUsage


class UsageCache:
    """What is known about session files, by path. `path` is the cache's file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.files: dict[str, Known] = _load(path)
        self.is_changed = False

    def unchanged(self, path: str, stat: os.stat_result) -> FileUsage | None:
        """Return what the file reports if it has not changed since it was read; otherwise None."""
        known = self.files.get(path)
        if known is None or known.inode != stat.st_ino:
            return None
        is_same = (known.size_bytes, known.modified_ns) == (stat.st_size, stat.st_mtime_ns)
        return known.usage if is_same else None

    def grown(self, path: str, stat: os.stat_result) -> FileUsage | None:
        """Return what the beginning of the file reported if the file has only grown since; otherwise None."""
        known = self.files.get(path)
        if known is None or known.inode != stat.st_ino or stat.st_size <= known.size_bytes:
            return None
        if not known.usage.read_bytes or head_hash(path, known.size_bytes) != known.head_hash:
            return None
        return known.usage

    def put(self, path: str, stat: os.stat_result, usage: FileUsage) -> None:
        """Remember what a file reports. `stat` is from before it was read."""
        self.files[path] = Known(
            size_bytes=stat.st_size,
            modified_ns=stat.st_mtime_ns,
            inode=stat.st_ino,
            head_hash=head_hash(path, stat.st_size),
            usage=usage,
        )
        self.is_changed = True

    def drop(self, path: str) -> None:
        """Forget a file: its reading has failed, perhaps after a part of it was added."""
        self.is_changed |= self.files.pop(path, None) is not None

    def save(self) -> None:
        """Write the cache if it has changed, without files that no longer exist. If it cannot be written, the
        next run reads the session files again.
        """
        if not self.is_changed:
            return
        kept = {path: known for path, known in self.files.items() if Path(path).exists()}
        payload = msgspec.msgpack.encode(kept)
        try:
            make_folder(self._path.parent)
            replace_users_file(self._path, VERSION + _hash(payload) + payload)
        except OSError:
            return
        self.is_changed = False


def head_hash(path: str, size_bytes: int) -> bytes:
    """Return a hash of the first bytes of a file that had `size_bytes` bytes; empty if it cannot be read."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            return _hash(file.read(min(size_bytes, _HEAD_BYTES)))
    except OSError:
        return b""


def _load(path: Path) -> dict[str, Known]:
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    start = len(VERSION) + _HASH_BYTES
    payload = memoryview(data)[start:]
    if not data.startswith(VERSION) or data[len(VERSION) : start] != _hash(payload):
        return {}
    try:
        return msgspec.msgpack.decode(payload, type=dict[str, Known])
    except msgspec.MsgspecError:
        return {}


def _hash(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).digest()
