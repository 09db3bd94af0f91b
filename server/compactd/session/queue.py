"""The order of the requests to one session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class RequestQueue:
    """A queue in which the requests to one session wait for their turn, in the order in which they came.

    A request's turn lasts until the request first waits for something else. If its effect comes later than
    that, the request must keep its turn with `hold`. If nothing waits, a request need not join the queue.
    """

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        """One future per request in the queue, oldest first. A future is done when its request's turn
        comes."""
        self._is_held = False
        self._transitions = 0
        """The number of requests in the queue that open, close or delete the session."""

    @property
    def is_idle(self) -> bool:
        """True if it is nobody's turn and nobody waits. Then a request may run at once."""
        return not (self._is_held or self._waiting)

    @property
    def is_in_transition(self) -> bool:
        """True if a request that opens, closes or deletes the session runs or waits."""
        return self._transitions > 0

    async def wait_turn(self) -> None:
        """Wait for the caller's turn: until all earlier requests have had theirs. If the queue is idle, this
        returns at once. If the caller is cancelled, later requests do not wait for it.
        """
        if self.is_idle:
            return
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(turn)
            raise
        loop.call_soon(self._leave, turn)  # runs when the caller next waits, or has ended

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Keep the caller's turn until the block ends: later requests wait. Call it in the caller's turn."""
        if self._is_held:
            # An editor's command took the turn after this handler was called, but before its first step.
            await self.wait_turn()
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self._wake()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the caller's turn, and keep it until the block ends."""
        await self.wait_turn()
        async with self.hold():
            yield

    @asynccontextmanager
    async def transition(self) -> AsyncIterator[None]:
        """Like `turn`, for a request that opens, closes or deletes the session. All later requests wait for
        it, including those that otherwise do not join the queue.
        """
        self._transitions += 1
        try:
            async with self.turn():
                yield
        finally:
            self._transitions -= 1

    def _leave(self, turn: asyncio.Future[None]) -> None:
        self._waiting.remove(turn)
        self._wake()

    def _wake(self) -> None:
        """Give the first waiting request its turn, unless it is still another's."""
        if self._waiting and not self._is_held and not self._waiting[0].done():
            self._waiting[0].set_result(None)
