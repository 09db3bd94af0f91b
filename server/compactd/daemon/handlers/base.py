"""Base class and helpers of the handlers: access to the daemon's sessions and to each session's queue."""

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

    A handler that changes a session applies the change at once, so changes happen in the order in which the
    requests came. The handler returns an awaitable that ends when the change is on disk.
    """

    def __init__(self, daemon: HandlerHost) -> None:
        self._daemon = daemon
        self._sessions = daemon.sessions

    async def _wait_for_queue(self, session: Session, *modules: str) -> None:
        """Wait until all earlier requests in the session's queue are done and `modules` are loaded.

        Modules are loaded in the queue, so later requests wait as well. If the queue is empty and the modules
        are loaded, this returns at once.
        """
        loaded = self._daemon.modules
        if not (session.queue.is_idle and loaded.are_loaded(modules)):
            await session.queue.run(lambda: loaded.load(*modules))


def is_quick(items: Sequence[Item]) -> bool:
    """Return true if these messages are few enough to be processed on the event loop, and all decoded."""
    return len(items) <= INLINE_ITEMS and all(item.is_decoded for item in items)


def decode_all(items: Iterable[Item]) -> None:
    """Decode the messages that are not decoded yet. Call it in a worker: it may take long."""
    for item in items:
        _ = item.message


def run_in_order(session: Session, work: Callable[[], Handled]) -> Handled:
    """Call `work` now, or in the session's queue if other requests are waiting there. Return the result of
    `work`, or an awaitable of it.
    """
    if session.queue.is_idle:
        return work()

    async def later() -> Struct | Raw:
        done = work()
        return done if isinstance(done, Struct) else await done

    return session.queue.run(later)
