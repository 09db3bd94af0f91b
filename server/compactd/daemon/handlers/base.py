"""What all handlers share: the daemon's sessions, and each session's line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec import Raw, Struct

from compactd.core.history.entries import Item
from compactd.daemon.host import Host
from compactd.session.session import Session

Handled = Struct | Awaitable[Struct] | Awaitable[Raw] | Awaitable[Struct | Raw]
Handler = Callable[..., Handled]

INLINE_ITEMS = 500
"""Messages of a view up to which a request is built on the loop: about 6 µs each (measured 2026-11)."""


class Area:
    """The handlers of some methods.

    A handler that changes a session applies the change at once, in the order in which requests came, and
    gives back an awaitable that ends when the disk has it.
    """

    def __init__(self, daemon: Host) -> None:
        self._daemon = daemon
        self._sessions = daemon.sessions

    def by_method(self) -> Mapping[str, Handler]:
        """The handler of each method: it takes params and the request."""
        raise NotImplementedError

    async def _line_reached(self, session: Session, *modules: str) -> None:
        """Waits for what stands in the session's line, and in that line for modules that are not there yet:
        what comes later stays behind. A session without a line is not waited for."""
        loaded = self._daemon.modules
        if not (session.queue.is_idle and loaded.have(modules)):
            await session.queue.run(lambda: loaded.load(*modules))


def is_quick(items: Sequence[Item]) -> bool:
    """True where the loop may look at each of these messages: few, and none to be decoded."""
    return len(items) <= INLINE_ITEMS and all(item.is_decoded for item in items)


def decode_all(items: Iterable[Item]) -> None:
    """Decodes those that nobody has asked for since the session was opened: for a worker."""
    for item in items:
        _ = item.message


async def durable(session: Session, number: int, result: Struct) -> Struct:
    """`result`, once the disk has what `session.write` gave `number`."""
    await session.durable(number)
    return result


def in_order(session: Session, work: Callable[[], Handled]) -> Handled:
    """`work` now, or after what stands in the session's line."""
    if session.queue.is_idle:
        return work()

    async def later() -> Struct | Raw:
        done = work()
        return done if isinstance(done, Struct) else await done

    return session.queue.run(later)
