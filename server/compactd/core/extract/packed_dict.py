"""A dict whose values are packed into a single byte string while nobody uses them, and unpacked on demand.

Packing protects the heap: small long-lived objects between short-lived ones keep arenas of a megabyte each
from being returned to the system. Allocating such objects again later does not help, because they fill the
same gaps.
"""

from __future__ import annotations

from marshal import dumps, loads
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Stowed(Generic[V]):
    """A dict of tuples of strings and booleans, with string keys. `stow` packs the values; the next access to
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
            return self._with(key)[key]

    def __setitem__(self, key: str, value: V) -> None:
        with self._one_at_a_time:
            self._with(key)[key] = value

    def get(self, key: str) -> V | None:
        """Return the value, or None if the key is unknown. O(all values) if the value is packed, because all
        values are then unpacked."""
        with self._one_at_a_time:
            return self._with(key).get(key)

    def drop(self, key: str) -> None:
        """Remove a value, if there is one. O(all values) if the value is packed."""
        with self._one_at_a_time:
            self._with(key).pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        with self._one_at_a_time:
            self._here.clear()
            self._away, self._packed = {}, b""

    def stow(self) -> None:
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

    def _with(self, key: str) -> dict[str, V]:
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
