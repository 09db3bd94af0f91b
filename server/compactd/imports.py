"""Imports in a worker that let everybody else on in between.

An import lets go of the interpreter for each file it looks for, opens and reads, mostly for microseconds: not
long enough for a thread that waits for it to wake, which then waits anew (`core/breath.py`). Without breaks
the loop stood still for most of numpy's import, 55 to 85 ms from a warm disk (measured 2026-11).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from compactd.core.breath import breathe

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


@contextmanager
def breathing_imports() -> Iterator[None]:
    """What this thread imports in the block takes a breath before each module."""
    finder = _Breath(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.meta_path.remove(finder)


class _Breath:
    """Asked first where a module is, and knows nothing of any (PEP 451)."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Nothing, a moment later."""
        if threading.get_ident() == self._thread:
            breathe()
        return None
