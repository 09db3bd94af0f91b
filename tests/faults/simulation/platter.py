"""A simulated disk: which files, names and bytes are left after a power cut. It keeps only what was synced.

Bytes are safe once their file was synced, a name once its folder was. Of later changes, a power cut keeps any
prefix of the changes of sizes and names, and any subset of the written pages and sectors; the others read as
zeros or as before. (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014.)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

SECTOR = 512
PAGE = 4096


class File:
    """An inode with bytes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        """The content as programs see it."""
        self.safe = bytearray()
        """The content that is certainly on the disk."""
        self.changes: list[tuple[int, bytes] | int] = []
        """Since the last sync: what was written where, or the size it was cut to."""
        self.modified_at = 0.0

    def write(self, offset: int, data: bytes) -> None:
        """Puts bytes somewhere, at most at the end."""
        self.data[offset : offset + len(data)] = data
        self.changes.append((offset, data))

    def truncate(self, size_bytes: int) -> None:
        """Cuts the file off."""
        if size_bytes != len(self.data):
            del self.data[size_bytes:]
            self.changes.append(size_bytes)

    def sync(self) -> None:
        """Make all content safe."""
        for change in self.changes:
            _apply(self.safe, change)
        self.changes.clear()

    def drop(self, dice: Random) -> None:
        """Let a sync fail: what is on the disk is unknown, and the next sync succeeds."""
        self.safe = self._left(dice)
        self.changes.clear()

    def lose_power(self, dice: Random) -> None:
        """Reset the content to what a power cut leaves."""
        if self.changes:
            self.safe = self._left(dice)
            self.changes.clear()
        self.data = bytearray(self.safe)

    def _left(self, dice: Random) -> bytearray:
        left = bytearray(self.safe)
        kept = _some(dice, len(self.changes))
        for at, change in enumerate(self.changes[:kept]):
            if isinstance(change, int):
                _apply(left, change)
                continue
            offset, data = change
            if at == kept - 1 and dice.random() < 0.4:
                _apply(left, (offset, data[: _some(dice, len(data))]))
                continue
            share = dice.choice((0.0, 0.5, 1.0, 1.0))
            unit = dice.choice((SECTOR, PAGE))
            end = offset + len(data)
            if end > len(left):
                left.extend(bytes(end - len(left)))
            start = offset
            while start < end:
                stop = min(end, (start // unit + 1) * unit)
                if dice.random() < share:
                    left[start:stop] = data[start - offset : stop - offset]
                start = stop
        return left


class Folder:
    """An inode with names."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, File | Folder] = {}
        self.safe: dict[str, File | Folder] = {}
        self.changes: list[tuple[tuple[str, File | Folder | None], ...]] = []
        """Since the last sync, each whole or not at all: names, and what they name now."""

    def change(self, *named: tuple[str, File | Folder | None]) -> None:
        """Gives names, or takes them."""
        _rename(self.names, named)
        self.changes.append(named)

    def sync(self) -> None:
        """Make all names safe."""
        self.safe = dict(self.names)
        self.changes.clear()

    def lose_power(self, dice: Random) -> None:
        """Reset the names to what a power cut leaves."""
        for named in self.changes[: _some(dice, len(self.changes))]:
            _rename(self.safe, named)
        self.changes.clear()
        self.names = dict(self.safe)


class Platter:
    """A disk with its folders, shared by all simulated processes."""

    def __init__(self) -> None:
        self._numbers = 1
        self.root = Folder(1)
        self.locks: dict[int, object] = {}
        """For each locked file, the open file that has the lock."""
        self.room_bytes: int | None = None
        """How many bytes may still be written; None if there is no limit."""

    def file(self) -> File:
        """A new one, nowhere yet."""
        self._numbers += 1
        return File(self._numbers)

    def folder(self) -> Folder:
        """A new one, nowhere yet."""
        self._numbers += 1
        return Folder(self._numbers)

    def at(self, path: Path) -> File | Folder | None:
        """Return the file or folder at `path`; None if there is none."""
        node: File | Folder = self.root
        for name in path.parts[1:]:
            if not isinstance(node, Folder) or name not in node.names:
                return None
            node = node.names[name]
        return node

    def lose_power(self, dice: Random) -> None:
        """Every process is gone, and what was not safe is left to chance."""
        self.locks.clear()
        waiting: list[File | Folder] = [self.root]
        while waiting:
            node = waiting.pop()
            node.lose_power(dice)
            if isinstance(node, Folder):
                waiting += [node.names[name] for name in sorted(node.names)]

    def files(self) -> Iterator[tuple[str, File]]:
        """Every file with its path, by path."""
        waiting: list[tuple[str, File | Folder]] = [("", self.root)]
        while waiting:
            path, node = waiting.pop()
            if isinstance(node, File):
                yield path, node
            else:
                waiting += [(f"{path}/{name}", node.names[name]) for name in sorted(node.names)]


def _apply(data: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        del data[change:]
        return
    offset, written = change
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(written)] = written


def _rename(names: dict[str, File | Folder], named: tuple[tuple[str, File | Folder | None], ...]) -> None:
    for name, node in named:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _some(dice: Random, most: int) -> int:
    """Return a random number from 0 to `most`, often 0 or `most`. It draws once or twice, whatever `most`
    is."""
    kind, share = dice.random(), dice.random()
    return 0 if kind < 0.25 else most if kind < 0.5 else round(share * most)
