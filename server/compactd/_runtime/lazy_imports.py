"""Lazy imports: modules are imported when they are first needed, in a worker that regularly yields the GIL.

An import releases the GIL at each file, but only for microseconds. A waiting thread cannot take the GIL in
such a short time (`yield_gil.py`). Without longer pauses, a long import such as numpy's would block the event
loop most of the time.
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

from compactd._runtime.yield_gil import yield_gil

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class BackgroundImporter:
    """Imports slow modules in a worker thread when they are first needed. Use it only on the event loop's
    thread.

    Await `load` before you import such a module; then the `import` takes no time. Otherwise, an `import` on
    the event loop would wait for a worker that imports the same module.
    """

    def __init__(self, in_worker: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        self._in_worker = in_worker
        self._imports: dict[str, asyncio.Future[None]] = {}

    def are_loaded(self, names: Sequence[str]) -> bool:
        """Return whether all these modules are imported, so that `load` would not wait."""
        return all(name in self._imports and _is_there(self._imports[name]) for name in names)

    async def load(self, *names: str) -> None:
        """Import these modules and return when all are imported. Raises what the import raises.

        Simultaneous calls for the same module share one import. A failed import is tried again at the next
        call.
        """
        for name in names:
            known = self._imports.get(name)
            if known is None or (known.done() and not _is_there(known)):
                known = asyncio.ensure_future(self._in_worker(partial(_import, name)))
                self._imports[name] = known
            # If the waiting caller is cancelled, the import still goes on.
            await asyncio.shield(known)


def _is_there(loading: asyncio.Future[None]) -> bool:
    """Return whether the import `loading` has succeeded."""
    return loading.done() and not loading.cancelled() and loading.exception() is None


def _import(name: str) -> None:
    """Import a module in this thread, with pauses."""
    with yielding_imports():
        import_module(name)


@contextmanager
def yielding_imports() -> Iterator[None]:
    """Run a block. Whenever this thread imports a module in it, the thread first yields the GIL."""
    with _putting:
        if _yielding_finder not in sys.meta_path:
            sys.meta_path.insert(0, _yielding_finder)
    before = getattr(_here, "breathes", False)
    _here.breathes = True
    try:
        yield
    finally:
        _here.breathes = before


class _YieldingFinder:
    """An import finder that finds nothing and only yields the GIL (PEP 451).

    Once inserted in `sys.meta_path`, the finder stays there. If it were removed while another thread iterates
    over the list, that thread would skip a finder and not find an existing module (CPython 3.11 to 3.13,
    `_find_spec`). Inserting the finder is safe: at worst another finder is asked twice.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Yield the GIL if this thread asked for it. Return None, so that the next finder is asked."""
        if getattr(_here, "breathes", False):
            yield_gil()
        return None


_yielding_finder: Final = _YieldingFinder()
_putting: Final = threading.Lock()
_here: Final = threading.local()
