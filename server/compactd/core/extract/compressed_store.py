"""Values by key that nobody looks at for a while: packed, many to a page, each page deflated.

One by one they left gaps between them: of what came and went while a session was read, the process could give
little back. A page comes whole and goes whole. Of what is known of messages, 64 KB to a page, 0.62 is left;
that takes 11 ms to be values again for a million tokens, and 40 ms to be packed (measured 2026-11).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar
from zlib import compress, decompress

from msgspec.msgpack import Encoder

from compactd.core.text.slices import clear

V = TypeVar("V")

PAGE_BYTES: Final = 1 << 16
"""Of packed values; then a page is full."""
LEVEL: Final = 1
"""Of zlib: higher ones take longer and save 2 % (measured 2026-11)."""
MOST_GONE: Final = 4
"""A page is packed anew where one in so many of its values is gone."""

_ARRAY: Final = b"\xdd"
"""What a msgpack array of any length begins with; four bytes for the length follow, big-endian."""

_pack_into = Encoder().encode_into


class Shelf(Generic[V]):
    """Values by key. `unpack` makes the pairs of a page out of a msgpack array of them."""

    def __init__(self, unpack: Callable[[bytes], list[tuple[str, V]]]) -> None:
        self._unpack = unpack
        # Side by side, not an object a page: each of those stood alone in what the reading left free, and
        # kept a megabyte of that from the system (78 of them nine behind 2M tokens, measured 2026-11).
        self._pages: list[bytes] = []
        """Deflated."""
        self._counts, self._gones = array("I"), array("I")
        """Of each page: values in it, those that are gone included; those."""
        self._place: dict[str, int] = {}
        """By key the number of its page; of the one that is being filled the number of pages."""
        self._number = 0
        """The number of pages: one object for all keys of a page."""
        self._room = bytearray()
        """The pairs of the page that is being filled."""
        self._count = 0
        self._gone = 0

    def __contains__(self, key: str) -> bool:
        return key in self._place

    def put(self, key: str, value: V) -> bool:
        """Takes in a value under a new key. False where it cannot be packed: it holds half a surrogate pair.
        O(value), and of a full page O(page)."""
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

    def beside(self, key: str) -> list[tuple[str, V]]:
        """The pairs of the page on which `key` is; none for an unknown one. O(page)."""
        number = self._place.get(key)
        return [] if number is None else self._pairs(number)

    def items(self) -> Iterator[tuple[str, V]]:
        """All pairs, as they were put, page by page. O(1) memory beside a page."""
        for number in range(self._number + 1):
            yield from self._pairs(number)

    def drop(self, key: str) -> None:
        """Forgets a value; its bytes go with `tidy`. O(1)."""
        number = self._place.pop(key, None)
        if number is None:
            return
        if number == self._number:
            self._gone += 1
        else:
            self._gones[number] += 1

    def erase(self, key: str) -> None:
        """Forgets a value and its bytes. O(page)."""
        number = self._place.get(key)
        if number is not None:
            self.drop(key)
            if number == self._number:
                self._close()
            self._repack(number)

    def tidy(self) -> None:
        """Nothing is put for a while: the last page is closed, and what is gone leaves its page. O(pages)."""
        if self._room:
            self._close()
        for number, (count, gone) in enumerate(zip(self._counts, self._gones, strict=True)):
            if gone and gone * MOST_GONE >= count:
                self._repack(number)

    def clear(self) -> None:
        """Forgets everything, piece by piece."""
        clear(self._place)
        self._pages.clear()
        self._counts, self._gones, self._number = array("I"), array("I"), 0
        self._room, self._count, self._gone = bytearray(), 0, 0

    def _open(self) -> None:
        """Goes on with the last page, where that is small."""
        if not self._pages:
            return
        packed = decompress(self._pages[-1]) if self._counts[-1] else b""
        if 2 * len(packed) < PAGE_BYTES:
            self._pages.pop()
            self._number = len(self._pages)
            self._room += packed
            self._count, self._gone = self._counts.pop(), self._gones.pop()

    def _close(self) -> None:
        self._pages.append(compress(self._room, LEVEL))
        self._counts.append(self._count)
        self._gones.append(self._gone)
        self._number = len(self._pages)
        self._room, self._count, self._gone = bytearray(), 0, 0

    def _pairs(self, number: int) -> list[tuple[str, V]]:
        """Those of a page that are not gone."""
        if number == self._number:
            packed, count, gone = bytes(self._room), self._count, self._gone
        else:
            packed, count = decompress(self._pages[number]), self._counts[number]
            gone = self._gones[number]
        pairs = self._unpack(b"".join((_ARRAY, count.to_bytes(4, "big"), packed)))
        if not gone:
            return pairs
        found, place = dict(pairs), self._place
        # A key that was put again on the same page: the last of its values.
        return [(key, value) for key, value in found.items() if place.get(key) == number]

    def _repack(self, number: int) -> None:
        """Writes a page anew without what is gone."""
        pairs = self._pairs(number)
        room = bytearray()
        for pair in pairs:
            _pack_into(pair, room, -1)
        self._pages[number] = compress(room, LEVEL)
        self._counts[number], self._gones[number] = len(pairs), 0
