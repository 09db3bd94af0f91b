"""Lazy imports: modules are imported in a worker when they are first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module


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
    """Import a module in this thread."""
    import_module(name)
