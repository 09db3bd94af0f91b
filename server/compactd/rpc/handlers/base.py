"""What all handlers share: the daemon's sessions, and each session's line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.session import Session

if TYPE_CHECKING:
    from compactd.daemon import Daemon

Handled = Struct | Awaitable[Struct]
Handler = Callable[..., Handled]


class Area:
    """The handlers of some methods.

    A handler that changes a session applies the change at once, in the order in which requests came, and
    gives back an awaitable that ends when the disk has it.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._sessions = daemon.sessions

    def by_method(self) -> Mapping[str, Handler]:
        """The handler of each method: it takes params and the request."""
        raise NotImplementedError


async def durable(session: Session, number: int, result: Struct) -> Struct:
    """`result`, once the disk has what `session.write` gave `number`."""
    await session.durable(number)
    return result


async def line_reached(session: Session) -> None:
    """Waits for what stands in the session's line; a session without one is not waited for."""
    if not session.queue.is_idle:
        await session.queue.run(_nothing)


def in_order(session: Session, work: Callable[[], Handled]) -> Handled:
    """`work` now, or after what stands in the session's line."""
    if session.queue.is_idle:
        return work()

    async def later() -> Struct:
        done = work()
        return done if isinstance(done, Struct) else await done

    return session.queue.run(later)


async def _nothing() -> None:
    return None
