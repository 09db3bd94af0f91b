"""Base class and helpers of the handlers: access to the daemon and its sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec import Raw, Struct

from compactd.core.history.entries import Item
from compactd.daemon.handler_host import HandlerHost
from compactd.session.session import Session

Handled = Struct | Awaitable[Struct] | Awaitable[Raw] | Awaitable[Struct | Raw]
Handler = Callable[..., Handled]

INLINE_ITEMS = 500
"""The most messages that a handler processes on the event loop. More messages are processed in a worker.

Building a context takes about 6 µs per message (measured 2026-11)."""


class HandlerGroup:
    """Base class of a group of method handlers.

    The handler of a method is the function with the method's name, `session_append` for `session/append`. It
    takes the params and the request.

    A handler is called in its request's turn (`session/queue.RequestQueue`). It changes the session at once,
    before it waits for anything, so changes happen in the order in which the requests came. The handler then
    returns an awaitable that ends when the change is on disk. If a handler must wait before it changes or
    reads the session, it keeps its turn meanwhile: `async with session.queue.hold()`.
    """

    def __init__(self, daemon: HandlerHost) -> None:
        self._daemon = daemon
        self._sessions = daemon.sessions

    async def _load(self, session: Session, *modules: str) -> None:
        """Load modules that the request needs. Later requests to the session wait meanwhile."""
        async with session.queue.hold():
            await self._daemon.modules.load(*modules)


def is_quick(items: Sequence[Item]) -> bool:
    """Return true if these messages are few enough to be processed on the event loop, and all decoded."""
    return len(items) <= INLINE_ITEMS and all(item.is_decoded for item in items)


def decode_all(items: Iterable[Item]) -> None:
    """Decode the messages that are not decoded yet. Call it in a worker: it may take long."""
    for item in items:
        _ = item.message
