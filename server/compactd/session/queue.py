"""Work that must happen in the order it came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")


class InOrder:
    """Work of one session, one after another in the order it was put in line."""

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True where nothing is in line, so that work may be done at once."""
        return self._last is None or self._last.done()

    def run(self, work: Callable[[], Coroutine[object, object, T]]) -> Awaitable[T]:
        """Puts `work` in line now; what it gives back comes after all that was in line before.

        Cancelling takes it out of line; what comes after it goes on.
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
    """Lets the next one go on: now, or, where work was taken out of line early, after what was before it."""
    if before is None or before.done():
        done.set_result(None)
    else:
        before.add_done_callback(lambda _: done.set_result(None))
