"""A key-value store that keeps its values compressed in memory. The values are packed into pages, and each
page is deflated.

Pages keep the heap compact. Many small values that come and go while a session is read would leave gaps that
the process cannot return to the system. A page is allocated and freed as one piece. The facts of messages,
deflated in pages of 64 KB, take 0.62 of their packed size. For a session of a million tokens, unpacking takes
11 ms and packing 40 ms (2026-11).

A `PackedDict` follows the same idea: its values are packed into a single byte string while nobody uses them,
and unpacked on demand.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from marshal import dumps, loads
from threading import Lock
from typing import Final, Generic, TypeVar
from zlib import compress, decompress

from msgspec.msgpack import Encoder

V = TypeVar("V")

PAGE_BYTES: Final = 1 << 16
"""The size of a full page, before compression. When the packed values of a page have this many bytes, the
page is compressed and a new one is begun."""
LEVEL: Final = 1
"""The compression level of zlib. Higher levels take longer and save only 2 % (2026-11)."""
MAX_GONE: Final = 4
"""`tidy` rewrites a page without its deleted values if at least a quarter of its values are deleted. This is
the divisor."""

_ARRAY: Final = b"\xdd"
"""The msgpack marker of an array of any length. Four bytes with the length follow, big-endian."""

_pack_into = Encoder().encode_into


class CompressedStore(Generic[V]):
    """A key-value store with values compressed in pages. `unpack` decodes a page, given as a msgpack array of
    (key, value) pairs."""

    def __init__(self, unpack: Callable[[bytes], list[tuple[str, V]]]) -> None:
        self._unpack = unpack
        # Pages are held in one list, and counts in arrays, instead of one object per page. A small long-lived
        # object would pin a 1 MB heap arena.
        self._pages: list[bytes] = []
        """The finished pages, deflated."""
        self._counts, self._gones = array("I"), array("I")
        """For each page, the number of its values, deleted ones included (`_counts`), and the number of
        deleted ones (`_gones`)."""
        self._place: dict[str, int] = {}
        """For each key, the index of its page. The page that is being filled has the next free index."""
        self._number = 0
        """The number of finished pages. All keys of a page refer to this one int object, which saves
        memory."""
        self._room = bytearray()
        """The packed (key, value) pairs of the page that is being filled."""
        self._count = 0
        self._gone = 0

    def __contains__(self, key: str) -> bool:
        return key in self._place

    def put(self, key: str, value: V) -> bool:
        """Add a value under a new key. Return whether that worked: a value that contains half of a surrogate
        pair cannot be packed. O(value), plus O(page) when a page becomes full."""
        room = self._room
        if not room:
            self._open()
            room = self._room
        before = len(room)
        try:
            _pack_into((key, value), room, -1)
        except UnicodeEncodeError:
            del room[before:]
            return False
        self._place[key] = self._number
        self._count += 1
        if len(room) >= PAGE_BYTES:
            self._close()
        return True

    def page_of(self, key: str) -> list[tuple[str, V]]:
        """Return all (key, value) pairs of the page that contains `key`, that of `key` included; empty if the
        key is unknown. O(page)."""
        number = self._place.get(key)
        return [] if number is None else self._pairs(number)

    def items(self) -> Iterator[tuple[str, V]]:
        """Yield all (key, value) pairs in the order in which they were put. Only one page is unpacked at a
        time."""
        for number in range(self._number + 1):
            yield from self._pairs(number)

    def drop(self, key: str) -> None:
        """Delete a value, if there is one. Its bytes stay in memory until `tidy` rewrites the page. O(1)."""
        number = self._place.pop(key, None)
        if number is None:
            return
        if number == self._number:
            self._gone += 1
        else:
            self._gones[number] += 1

    def erase(self, key: str) -> None:
        """Delete a value and its bytes, by rewriting the page. O(page)."""
        number = self._place.get(key)
        if number is not None:
            self.drop(key)
            if number == self._number:
                self._close()
            self._repack(number)

    def tidy(self) -> None:
        """Compress the page that is being filled, and rewrite pages with many deleted values. Call it when
        nothing will be put for a while. O(pages)."""
        if self._room:
            self._close()
        for number, (count, gone) in enumerate(zip(self._counts, self._gones, strict=True)):
            if gone and gone * MAX_GONE >= count:
                self._repack(number)

    def clear(self) -> None:
        """Delete all values."""
        self._place.clear()
        self._pages.clear()
        self._counts, self._gones, self._number = array("I"), array("I"), 0
        self._room, self._count, self._gone = bytearray(), 0, 0

    def _open(self) -> None:
        """Start a page to fill. If the last page is less than half full, unpack it and continue it."""
        if not self._pages:
            return
        packed = decompress(self._pages[-1]) if self._counts[-1] else b""
        if 2 * len(packed) < PAGE_BYTES:
            self._pages.pop()
            self._number = len(self._pages)
            self._room += packed
            self._count, self._gone = self._counts.pop(), self._gones.pop()

    def _close(self) -> None:
        """Compress the page that is being filled."""
        self._pages.append(compress(self._room, LEVEL))
        self._counts.append(self._count)
        self._gones.append(self._gone)
        self._number = len(self._pages)
        self._room, self._count, self._gone = bytearray(), 0, 0

    def _pairs(self, number: int) -> list[tuple[str, V]]:
        """Return the (key, value) pairs of the page with this index, without deleted ones."""
        if number == self._number:
            packed, count, gone = bytes(self._room), self._count, self._gone
        else:
            packed, count = decompress(self._pages[number]), self._counts[number]
            gone = self._gones[number]
        pairs = self._unpack(b"".join((_ARRAY, count.to_bytes(4, "big"), packed)))
        if not gone:
            return pairs
        found, place = dict(pairs), self._place
        # If a key was put twice on the same page, its last value counts.
        return [(key, value) for key, value in found.items() if place.get(key) == number]

    def _repack(self, number: int) -> None:
        """Rewrite the page with this index without its deleted values."""
        pairs = self._pairs(number)
        room = bytearray()
        for pair in pairs:
            _pack_into(pair, room, -1)
        self._pages[number] = compress(room, LEVEL)
        self._counts[number], self._gones[number] = len(pairs), 0


class PackedDict(Generic[V]):
    """A dict of tuples of strings and booleans, with string keys. `pack` packs the values; the next access to
    a packed value unpacks all of them, in O(all values). Safe to use from any thread."""

    __slots__ = ("_away", "_here", "_one_at_a_time", "_packed")

    def __init__(self) -> None:
        self._here: dict[str, V] = {}
        self._away: dict[str, None] = {}
        """The keys of the packed values, in the order in which the values are packed."""
        self._packed = b""
        self._one_at_a_time = Lock()

    def __len__(self) -> int:
        with self._one_at_a_time:
            return len(self._here) + len(self._away)

    def __contains__(self, key: str) -> bool:
        with self._one_at_a_time:
            return key in self._here or key in self._away

    def __getitem__(self, key: str) -> V:
        """Return the value. Raise `KeyError` if the key is unknown. O(all values) if the value is packed."""
        with self._one_at_a_time:
            return self._unpack_with(key)[key]

    def __setitem__(self, key: str, value: V) -> None:
        with self._one_at_a_time:
            self._unpack_with(key)[key] = value

    def get(self, key: str) -> V | None:
        """Return the value, or None if the key is unknown. O(all values) if the value is packed, because all
        values are then unpacked."""
        with self._one_at_a_time:
            return self._unpack_with(key).get(key)

    def drop(self, key: str) -> None:
        """Remove a value, if there is one. O(all values) if the value is packed."""
        with self._one_at_a_time:
            self._unpack_with(key).pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        with self._one_at_a_time:
            self._here.clear()
            self._away, self._packed = {}, b""

    def pack(self) -> None:
        """Pack all values except empty ones. O(all values)."""
        with self._one_at_a_time:
            if not any(self._here.values()):
                return
            self._unpack()
            some = [(key, value) for key, value in self._here.items() if value]
            self._packed = dumps([value for _, value in some])
            self._away = dict.fromkeys([key for key, _ in some])
            for key in self._away:
                del self._here[key]

    def _unpack_with(self, key: str) -> dict[str, V]:
        """Return the dict of unpacked values. If the value of `key` is packed, unpack all values first."""
        if key in self._away:
            self._unpack()
        return self._here

    def _unpack(self) -> None:
        """Unpack all packed values."""
        if self._away:
            values: list[V] = loads(self._packed)
            self._here.update(zip(self._away, values, strict=True))
            self._away, self._packed = {}, b""
