"""The file `trusted.json`: folders whose `.compactd.toml` the user trusts, each with the hash of that file.

It is a private file next to the sessions. A process that changes it holds a lock, so that no process
overwrites another's change. A change writes a whole new file, syncs it and renames it. If the file is broken
or a symbolic link, or if other users may write to it or its folder, nothing is trusted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.protocol.errors import StorageFailed
from compactd.storage.files import make_folder, replace_file, storage_failed, sync_folder
from compactd.storage.locks import LockHeld, take_lock
from compactd.storage.write_access import exposure

FILE = "trusted.json"
LIMIT_BYTES = 8 << 20

_TRIES = 500
_WAIT_S = 0.01
"""Seconds between two tries to take the lock. All tries combined take five seconds. A change of the file,
for which the lock is held, takes far less."""


class Trust(Struct, frozen=True, kw_only=True):
    """One trusted folder."""

    path: str
    """The folder's absolute path, without symbolic links."""
    sha256: str
    """The SHA-256 of the trusted `.compactd.toml`, in lower-case hexadecimal."""
    at: float
    """When the user trusted the folder, in Unix seconds."""


class _Document(Struct, frozen=True, kw_only=True):
    v: int
    folders: tuple[Trust, ...]


class TrustedFolders(Struct, frozen=True, kw_only=True):
    """The content of `trusted.json`."""

    by_path: Mapping[str, Trust]
    problem: str | None = None
    """Why the file cannot be used, or None. If the file cannot be used, `by_path` is empty."""
    is_newer: bool = False
    """True if another version of compactd wrote the file. This version does not overwrite it."""


class TrustFile:
    """The file `trusted.json` in `folder`, which need not exist. Safe to use from several threads and
    processes.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def read(self) -> TrustedFolders:
        """Return the file's current content. Never raises."""
        flags = os.O_RDONLY
        for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):
            flags |= getattr(os, name, 0)
        try:
            fd = os.open(self._path, flags)
        except FileNotFoundError:
            return TrustedFolders(by_path={})
        except OSError as error:
            return _unusable(f"it cannot be read: {os.strerror(error.errno or 0)}")
        try:
            with os.fdopen(fd, "rb") as file:
                found = os.fstat(file.fileno())
                if sys.platform != "win32" and (
                    found.st_mode & 0o022 or found.st_uid not in (os.getuid(), 0)
                ):
                    return _unusable("other users may change it")
                # Someone who can write to the folder can replace the file.
                if (who := exposure(self._path.parent)) is not None:
                    return _unusable(who)
                data = file.read(LIMIT_BYTES + 1)
        except OSError as error:
            return _unusable(f"it cannot be read: {os.strerror(error.errno or 0)}")
        return _parse(data)

    def set(self, path: str, sha256: str, at: float) -> bool:
        """Record that the user trusts the folder `path` with a `.compactd.toml` whose hash is `sha256`, at
        the time `at` (Unix seconds). Return false if that was already recorded. The record is on disk when
        this returns.

        If the file is broken, a new one replaces it: a broken file trusts no folder anyway. Raises
        `StorageFailed`.
        """
        with self._lock():
            known = self._read()
            before = known.get(path)
            if before is not None and before.sha256 == sha256:
                return False
            known[path] = Trust(path=path, sha256=sha256, at=at)
            self._write(known)
            return True

    def remove(self, path: str) -> bool:
        """Take the trust in the folder `path` back. Return false if it was not trusted. The change is on disk
        when this returns. Raises `StorageFailed`.
        """
        with self._lock():
            known = self._read()
            if known.pop(path, None) is None:
                return False
            self._write(known)
            return True

    def _read(self) -> dict[str, Trust]:
        if (who := exposure(self._path.parent)) is not None:
            raise StorageFailed(
                f"{who}, so the list of trusted folders in it is not used and was not changed. Remove that "
                "permission (chmod go-w), or set COMPACTD_HOME to a folder that only you can write."
            )
        found = self.read()
        if found.is_newer:
            raise StorageFailed(
                "Another version of compactd wrote the list of trusted folders; it was not changed. Use that "
                f"version, or remove {FILE} from the data folder and trust your folders again."
            )
        return dict(found.by_path)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            make_folder(self._path.parent)
            for _ in range(_TRIES):
                lock = take_lock(self._path.with_name(FILE + ".lock"))
                if not isinstance(lock, LockHeld):
                    break
                time.sleep(_WAIT_S)
            else:
                raise StorageFailed("Another process is changing the list of trusted folders. Try again.")
        except OSError as refused:
            raise storage_failed("The list of trusted folders could not be changed", refused) from None
        try:
            yield
        finally:
            lock.release()

    def _write(self, known: Mapping[str, Trust]) -> None:
        folders = tuple(sorted(known.values(), key=lambda one: one.path))
        data = msgspec.json.format(msgspec.json.encode(_Document(v=1, folders=folders)), indent=1)
        try:
            replace_file(self._path, [data + b"\n"], durable=True)
            sync_folder(self._path.parent)
        except OSError as refused:
            raise storage_failed("The list of trusted folders could not be changed", refused) from None


def _parse(data: bytes) -> TrustedFolders:
    if len(data) > LIMIT_BYTES:
        return _unusable("it is too large")
    try:
        document = msgspec.json.decode(data, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _unusable("it is not valid")
    if document.v != 1:
        return replace(_unusable("another version of compactd wrote it"), is_newer=True)
    return TrustedFolders(by_path={one.path: one for one in document.folders})


def _unusable(why: str) -> TrustedFolders:
    problem = (
        f"the list of trusted folders, {FILE} in the data folder, is not used: {why}. No folder is trusted"
    )
    return TrustedFolders(by_path={}, problem=problem)
