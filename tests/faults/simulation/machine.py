"""One process on a simulated disk: descriptors, locks, system calls that fail on demand, and its death."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Literal

from compactd.storage.os_files import Chunk
from tests.faults.simulation.platter import File, Folder, Platter

Death = Literal["kill", "power"]


class Died(SystemExit):
    """The process is no more. A `SystemExit`, since an event loop lets nothing else through."""


class _Open:
    def __init__(self, node: File, flags: int) -> None:
        self.node = node
        self.flags = flags
        self.offset = 0


class Machine:
    """A `Disk` for one process; of several on one platter, each has its own."""

    def __init__(self, platter: Platter, dice: Random, note: Callable[[str], None]) -> None:
        self.platter = platter
        self._dice = dice
        self._note = note
        self._open: dict[int, _Open] = {}
        self._next_fd = 3
        self.is_dead = False
        self.most_open = 1000
        self.calls: Counter[str] = Counter()
        self.dies_in: tuple[int, Death] | None = None
        """Calls from now, and of what."""
        self.refuses_in: tuple[int, int] | None = None
        """Calls from now, and the error's number."""
        self.now: Callable[[], float] = lambda: 0.0

    # --- what may happen at any call ------------------------------------------------------------------

    def _call(self, name: str, path: object = "") -> None:
        if self.is_dead:
            raise Died
        self.calls[name] += 1
        self._note(f"{name} {path}")
        if self.dies_in is not None:
            left, how = self.dies_in
            self.dies_in = (left - 1, how)
            if left <= 0:
                self.die(how)
                raise Died
        if self.refuses_in is not None:
            left, number = self.refuses_in
            self.refuses_in = (left - 1, number) if left > 0 else None
            if left <= 0:
                self._note(f"refused {errno.errorcode[number]}")
                raise OSError(number, os.strerror(number))

    def die(self, how: Death) -> None:
        """All descriptors and locks are gone; after a power cut, what was not safe too."""
        self.is_dead = True
        self._note(f"died: {how}")
        mine = set(map(id, self._open.values()))
        for number in [number for number, held in self.platter.locks.items() if id(held) in mine]:
            del self.platter.locks[number]
        if how == "power":
            self.platter.lose_power(self._dice)

    # --- files by descriptor --------------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        """See `Disk.open`."""
        self._call("open", path)
        if len(self._open) >= self.most_open:
            raise OSError(errno.EMFILE, "too many open files")
        folder = self._folder(path.parent)
        node = folder.names.get(path.name)
        if node is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, "no such file")
            node = self.platter.file()
            folder.change((path.name, node))
        elif flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, "it is there")
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, "a folder")
        if flags & os.O_TRUNC:
            node.truncate(0)
        fd, self._next_fd = self._next_fd, self._next_fd + 1
        self._open[fd] = _Open(node, flags)
        return fd

    def close(self, fd: int) -> None:
        """See `Disk.close`."""
        found = self._open.pop(fd)
        if self.platter.locks.get(found.node.number) is found:
            del self.platter.locks[found.node.number]
        self._call("close")

    def read(self, fd: int, size_bytes: int) -> bytes:
        """See `Disk.read`."""
        self._call("read")
        found = self._open[fd]
        data = bytes(found.node.data[found.offset : found.offset + size_bytes])
        found.offset += len(data)
        return data

    def write(self, fd: int, data: Chunk) -> int:
        """See `Disk.write`: all of it, a part where the room ends or the process dies in the middle."""
        found, node = self._open[fd], self._open[fd].node
        offset = len(node.data) if found.flags & os.O_APPEND else found.offset
        if self.dies_in is not None and self.dies_in[0] <= 0 and not self.is_dead:
            node.write(offset, bytes(data[: int(self._dice.random() * len(data))]))
        self._call("write", len(data) if len(data) > 8 else "a process id")
        room = self.platter.room_bytes
        if room is not None:
            if room <= 0:
                raise OSError(errno.ENOSPC, "no space left")
            data = data[:room]
            self.platter.room_bytes = room - len(data)
        elif len(data) > 1 and self._dice.random() < 0.02:
            data = data[: len(data) // 2]  # a short write is no error
        node.write(offset, bytes(data))
        node.modified_at = self.now()
        found.offset = offset + len(data)
        return len(data)

    def seek(self, fd: int, offset: int) -> None:
        """See `Disk.seek`."""
        self._open[fd].offset = offset

    def truncate(self, fd: int, size_bytes: int) -> None:
        """See `Disk.truncate`."""
        self._call("truncate", size_bytes)
        self._open[fd].node.truncate(size_bytes)

    def stat_open(self, fd: int) -> os.stat_result:
        """See `Disk.stat_open`."""
        return _facts(self._open[fd].node)

    def sync(self, fd: int) -> None:
        """See `Disk.sync`."""
        try:
            self._call("sync")
        except OSError:
            self._open[fd].node.drop(self._dice)
            # To be killed between a failed sync and the cut that follows it is past mending: what the system
            # shows then is not on the disk, and every later sync says yes (docs/proof.md).
            self.dies_in = None
            raise
        self._open[fd].node.sync()

    # --- files and folders by path --------------------------------------------------------------------

    def stat(self, path: Path) -> os.stat_result:
        """See `Disk.stat`."""
        self._call("stat", path)
        node = self.platter.at(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file")
        return _facts(node)

    def sync_folder(self, path: Path) -> None:
        """See `Disk.sync_folder`."""
        self._call("sync_folder", path)
        self._folder(path).sync()

    def make_folder(self, path: Path) -> None:
        """See `Disk.make_folder`."""
        self._call("make_folder", path)
        parent = self._folder(path.parent)
        if path.name in parent.names:
            raise FileExistsError(errno.EEXIST, "it is there")
        parent.change((path.name, self.platter.folder()))

    def names(self, folder: Path) -> list[str]:
        """See `Disk.names`."""
        self._call("names", folder)
        node = self.platter.at(folder)
        return sorted(node.names) if isinstance(node, Folder) else []

    def remove(self, path: Path) -> bool:
        """See `Disk.remove`."""
        self._call("remove", path)
        parent = self.platter.at(path.parent)
        if not isinstance(parent, Folder) or path.name not in parent.names:
            return False
        parent.change((path.name, None))
        return True

    def rename(self, old: Path, new: Path) -> None:
        """See `Disk.rename`; within one folder."""
        self._call("rename", new)
        parent = self._folder(old.parent)
        assert old.parent == new.parent
        parent.change((old.name, None), (new.name, parent.names[old.name]))

    # --- locks ----------------------------------------------------------------------------------------

    def lock(self, fd: int) -> bool:
        """See `Disk.lock`."""
        self._call("lock")
        mine = self._open[fd]
        return self.platter.locks.setdefault(mine.node.number, mine) is mine

    def unlock(self, fd: int) -> None:
        """See `Disk.unlock`."""
        self._call("unlock")
        mine = self._open[fd]
        if self.platter.locks.get(mine.node.number) is mine:
            del self.platter.locks[mine.node.number]

    def is_free(self, fd: int) -> bool:
        """See `Disk.is_free`."""
        self._call("is_free")
        return self.platter.locks.get(self._open[fd].node.number, self._open[fd]) is self._open[fd]

    @property
    def open_files(self) -> int:
        """Descriptors that were not closed."""
        return len(self._open)

    def _folder(self, path: Path) -> Folder:
        node = self.platter.at(path)
        if not isinstance(node, Folder):
            raise FileNotFoundError(errno.ENOENT, "no such folder")
        return node


def _facts(node: File | Folder) -> os.stat_result:
    if isinstance(node, Folder):
        return os.stat_result((stat.S_IFDIR | 0o700, node.number, 1, 1, 0, 0, 0, 0, 0, 0))
    at = int(node.modified_at)
    return os.stat_result((stat.S_IFREG | 0o600, node.number, 1, 1, 0, 0, len(node.data), at, at, at))
