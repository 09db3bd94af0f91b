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
    """Empty a list piece by piece. The elements are freed only if nothing else references them."""
    while values:
        _drop(values)


def clear(table: dict[K, V]) -> None:
    """Empty a dict, one item at a time. The values are freed only if nothing else references them."""
    take = table.popitem
    while table:
        take()


def _drop(values: list[T]) -> None:
    """Remove the last `PIECE` elements. This is a separate function because another thread can take the
    interpreter lock only between two calls."""
    del values[-PIECE:]
