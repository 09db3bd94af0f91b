"""A queue of asynchronous work that runs one item at a time, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")


class SerialQueue:
    """A work queue: each item runs after the one before it has ended."""

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True if no work runs or waits in the queue. Then a caller may also do its work at once, without
        `run`."""
        return self._last is None or self._last.done()

    def run(self, work: Callable[[], Coroutine[object, object, T]]) -> Awaitable[T]:
        """Append `work` to the queue, and return an awaitable of its result.

        Cancelling the awaitable removes the work from the queue; later work goes on.
        """
        loop = asyncio.get_running_loop()
        before, done = self._last, loop.create_future()
        self._last = done
        task = loop.create_task(self._after(before, work))
        task.add_done_callback(lambda _: _release(before, done))
        return task

    @staticmethod
    async def _after(
        before: asyncio.Future[None] | None, work: Callable[[], Coroutine[object, object, T]]
    ) -> T:
        if before is not None:
            await asyncio.shield(before)
        return await work()


def _release(before: asyncio.Future[None] | None, done: asyncio.Future[None]) -> None:
    """Set `done`, for which the next item waits: now, or, if this item was cancelled while it waited, when
    the item before it (`before`) is done.
    """
    if before is None or before.done():
        done.set_result(None)
    else:
        before.add_done_callback(lambda _: done.set_result(None))
