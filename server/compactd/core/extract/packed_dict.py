"""Values by key that nobody asks for for a while, together as one piece of bytes.

Small things that outlive what they were made amid keep a megabyte each of it from the system. To make them
anew when it is gone helps little: they take the gaps that others of their size left (measured 2026-11).
"""

from __future__ import annotations

from marshal import dumps, loads
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Stowed(Generic[V]):
    """Tuples of strings and truth values by key. Any thread may ask and add."""

    __slots__ = ("_away", "_here", "_one_at_a_time", "_packed")

    def __init__(self) -> None:
        self._here: dict[str, V] = {}
        self._away: dict[str, None] = {}
        """Keys of what is packed, in its order."""
        self._packed = b""
        self._one_at_a_time = Lock()

    def __len__(self) -> int:
        with self._one_at_a_time:
            return len(self._here) + len(self._away)

    def __contains__(self, key: str) -> bool:
        with self._one_at_a_time:
            return key in self._here or key in self._away

    def __getitem__(self, key: str) -> V:
        """Raises `KeyError` for an unknown key."""
        with self._one_at_a_time:
            return self._with(key)[key]

    def __setitem__(self, key: str, value: V) -> None:
        with self._one_at_a_time:
            self._with(key)[key] = value

    def get(self, key: str) -> V | None:
        """The value, or None for an unknown key. O(all) at first behind a `stow`."""
        with self._one_at_a_time:
            return self._with(key).get(key)

    def drop(self, key: str) -> None:
        """Forgets a value, if there is one. O(all) behind a `stow`."""
        with self._one_at_a_time:
            self._with(key).pop(key, None)

    def clear(self) -> None:
        """Forgets everything."""
        with self._one_at_a_time:
            self._here.clear()
            self._away, self._packed = {}, b""

    def stow(self) -> None:
        """Packs all values that are not empty, where some are not. O(all)."""
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
        """The values that are here, with that of `key` if there is one."""
        if key in self._away:
            self._unpack()
        return self._here

    def _unpack(self) -> None:
        if self._away:
            values: list[V] = loads(self._packed)
            self._here.update(zip(self._away, values, strict=True))
            self._away, self._packed = {}, b""
