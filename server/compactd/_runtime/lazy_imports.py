"""What is imported at its first need: in a worker, which lets everybody else on in between.

An import lets go of the interpreter for each file it looks for, opens and reads, mostly for microseconds: not
long enough for a waiting thread to wake, which then waits again (`_runtime/yield_gil.py`). Without breaks the
loop stood still for most of numpy's import, 55 to 85 ms from a warm disk (measured 2026-11).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from compactd._runtime.yield_gil import breathe

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class Modules:
    """The modules that the loop needs later, each imported in a worker when somebody waits for it first.

    An `import` in the loop waits for the module's lock where a worker is importing it, and everybody with it:
    behind `load` it finds the module there. For the loop's thread only.
    """

    def __init__(self, in_worker: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        self._in_worker = in_worker
        self._imports: dict[str, asyncio.Future[None]] = {}

    def have(self, names: Sequence[str]) -> bool:
        """True where `load` would not wait for any of them."""
        return all(name in self._imports and _is_there(self._imports[name]) for name in names)

    async def load(self, *names: str) -> None:
        """Returns when these are there. Who asks for one that is on its way waits for the same import; one
        that failed is tried again. Raises what the import raises."""
        for name in names:
            known = self._imports.get(name)
            if known is None or (known.done() and not _is_there(known)):
                known = asyncio.ensure_future(self._in_worker(partial(_imported, name)))
                self._imports[name] = known
            # Who waits may be cancelled; the import goes on.
            await asyncio.shield(known)


def _is_there(loading: asyncio.Future[None]) -> bool:
    return loading.done() and not loading.cancelled() and loading.exception() is None


def _imported(name: str) -> None:
    with breathing_imports():
        import_module(name)


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
