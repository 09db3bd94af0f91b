"""An event loop with a simulated clock and workers: the same seed gives the same order of everything.

A worker's job is done at one moment between two turns of the loop, chosen at random. If the loop has no job
and no timer while somebody still waits, a wake-up was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

Job = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[object, ...]]


class Stuck(AssertionError):
    """Somebody waits, and nothing will ever wake him."""


class Loop(asyncio.BaseEventLoop):
    """`select` is where the dice choose between the loop, the workers and the clock."""

    def __init__(self, dice: Random, step: Callable[[str], None]) -> None:
        super().__init__()
        self._selector = self
        self._dice = dice
        self._step = step
        self._jobs: list[Job] = []
        self._now = 0.0
        self.set_exception_handler(lambda _, __: None)

    def time(self) -> float:
        """Return the simulated seconds. They pass when there is nothing else to do."""
        return self._now

    def select(self, timeout: float | None) -> tuple[()]:
        """Does a job, or lets time pass, or neither."""
        if self._jobs and (timeout != 0 or self._dice.random() < 0.5):
            self._do(self._jobs.pop(int(self._dice.random() * len(self._jobs))))
        elif timeout is None:
            raise Stuck("nothing will ever wake those that wait")
        elif timeout > 0:
            self._now += timeout
        return ()

    def run_in_executor(  # type: ignore[override]  # it is a future there too
        self, executor: Executor | None, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Puts a job on the list of all workers."""
        future: asyncio.Future[T] = self.create_future()
        self._jobs.append((future, func, args))
        return future

    def _do(self, job: Job) -> None:
        future, work, arguments = job
        if future.cancelled():
            return
        self._step("worker")
        try:
            done = work(*arguments)
        except Exception as error:
            self.call_soon(_fail, future, error)
        else:
            self.call_soon(_fulfil, future, done)

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps."""

    def abandon(self) -> None:
        """The process died: nothing of it goes on. What its coroutines do at their end finds it dead."""
        self._jobs.clear()
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._ready.clear()
        self._scheduled.clear()
        self.close()


def _fulfil(future: asyncio.Future[Any], done: object) -> None:
    if not future.done():
        future.set_result(done)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
