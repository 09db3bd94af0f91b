"""Empty very large lists and dicts piece by piece, so that freeing them does not hold the interpreter lock
for long.

A compaction runs in a thread while the event loop answers other sessions. One C call that frees a million
elements holds the lock for 5 to 30 ms (2026-11). Between two calls of Python functions, another thread can
take the lock.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

PIECE = 4096
"""How many elements are freed at a time."""


def release(values: list[T]) -> None:
    """Empty a list piece by piece. It helps if nothing else references the elements, so that they are
    freed with it."""
    while values:
        _drop(values)


def clear(table: dict[K, V]) -> None:
    """Empty a dict, one item at a time. It helps if nothing else references the values, so that they are
    freed with it."""
    take = table.popitem
    while table:
        take()


def _drop(values: list[T]) -> None:
    """Remove the last `PIECE` elements. It is a function of its own, so that another thread can take the
    lock between two calls."""
    del values[-PIECE:]
