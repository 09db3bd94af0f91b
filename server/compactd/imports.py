"""Imports in a worker that let everybody else on in between.

An import lets go of the interpreter for each file it looks for, opens and reads, mostly for microseconds: not
long enough for a thread that waits for it to wake, which then waits anew (`core/breath.py`). Without breaks
the loop stood still for most of numpy's import, 55 to 85 ms from a warm disk (measured 2026-11).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from compactd.core.breath import breathe

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


@contextmanager
def breathing_imports() -> Iterator[None]:
    """What this thread imports in the block takes a breath before each module."""
    with _putting:
        if _breath not in sys.meta_path:
            sys.meta_path.insert(0, _breath)
    before = getattr(_here, "breathes", False)
    _here.breathes = True
    try:
        yield
    finally:
        _here.breathes = before


class _Breath:
    """Asked first where a module is, and knows nothing of any (PEP 451).

    It stays where it was put. Whoever looks for a module walks along `sys.meta_path` while others change it:
    what is taken out in front of him moves the rest up, he passes over one, and a module that is there is
    not found (CPython 3.11 to 3.13, `_find_spec`). What is put in only has one of them asked twice.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Nothing, a moment later."""
        if getattr(_here, "breathes", False):
            breathe()
        return None


_breath: Final = _Breath()
_putting: Final = threading.Lock()
_here: Final = threading.local()
