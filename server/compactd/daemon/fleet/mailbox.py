"""The calls that this daemon sends to other daemons, and those that it gets from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from compactd.daemon.fleet.messages import Answered
from compactd.protocol.errors import CompactdError, StorageFailed
from compactd.protocol.messages import encode
from compactd.storage.protocols import Call, Calls, Post

T = TypeVar("T")

TELL_S = 0.03
"""Seconds for which things to tell are collected, so that words that come one by one are sent together."""
MAX_TOLD = 10_000
RETRY_S = 1.0
"""Seconds until the database is tried again after a failure."""

_decode_answer = msgspec.json.Decoder(Answered).decode
_log = logging.getLogger("compactd.fleet")


class Workers(Protocol):
    """What runs blocking work."""

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread and return its result."""
        ...


class Mailbox:
    """Sends and reads calls. What is posted while the database is busy goes with the next statement, in the
    order in which it was posted. Use it only on the event loop's thread.
    """

    def __init__(
        self,
        workers: Workers,
        calls: Calls,
        on_call: Callable[[Call], None],
        on_gone: Callable[[str], None],
    ) -> None:
        """`on_call` gets each call of another daemon, in their order. `on_gone` gets the name of a daemon
        that was to be told something and is gone.
        """
        self._workers = workers
        self._calls = calls
        self._on_call = on_call
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, asyncio.Future[Answered]] = {}
        """By the id of a call that was posted, who waits for its answer."""
        self._posts: list[Post] = []
        self._answers: list[tuple[Call, bytes]] = []
        self._told: list[Post] = []
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_sending = self._has_news = False
        self._reading: asyncio.Task[None] | None = None
        calls.listen(self._wake)

    @property
    def node(self) -> str:
        """The name of this daemon."""
        return self._calls.node

    def post(self, node: str, body: bytes) -> tuple[str, asyncio.Future[Answered]]:
        """Send a call to another daemon. Return its id and a future of its answer, which fails if the call
        could not be sent. Call `forget` if the answer is no longer wanted.
        """
        call_id = self._calls.new_id()
        waiter = self._waiting[call_id] = self._loop.create_future()
        self._posts.append(Post(id=call_id, node=node, body=body))
        self._send_soon()
        return call_id, waiter

    def answer(self, call: Call, answered: Answered) -> None:
        """Answer a call of another daemon. Tried again until the database takes it."""
        self._answers.append((call, encode(answered)))
        self._send_soon()

    def tell(self, node: str, body: bytes) -> None:
        """Send another daemon something that needs no answer, within `TELL_S` seconds. It is lost if the
        daemon is gone, and the oldest of more than `MAX_TOLD` if the database cannot be reached.
        """
        if not self._told:
            self._loop.call_later(TELL_S, self._send_soon)
        self._told.append(Post(id=self._calls.new_id(), node=node, body=body))
        del self._told[:-MAX_TOLD]

    def drop(self, call: Call) -> None:
        """Note that a call was read that needs no answer."""
        self._calls.drop(call)

    def forget(self, call_id: str) -> None:
        """Wait no longer for an answer. Does nothing if it has come. The call is not withdrawn."""
        waiter = self._waiting.pop(call_id, None)
        if waiter is not None:
            waiter.cancel()
            self._posts = [post for post in self._posts if post.id != call_id]

    async def withdraw(self, call_ids: Collection[str]) -> set[str]:
        """Take calls back. Return those that the other daemon has not read and will not read."""
        return await self._workers.in_worker(partial(self._calls.withdraw, tuple(call_ids)))

    async def writer_of(self, session_id: str) -> str | None:
        """Return the name of the daemon that writes a session, or None if there is none."""
        return await self._workers.in_worker(partial(self._calls.writer_of, session_id))

    async def known(self, call_ids: Collection[str]) -> set[str]:
        """Return those of these calls that the database still has. It loses calls when it is restarted."""
        return await self._workers.in_worker(partial(self._calls.known, tuple(call_ids)))

    async def read(self) -> None:
        """Read the calls and answers for this daemon, of which there may be some."""
        self._has_news = True
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read())
        await asyncio.shield(self._reading)

    def start(self, work: Coroutine[object, object, object]) -> None:
        """Run `work` as a task. Its failure is logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, CompactdError):
            _log.warning("a call between daemons failed: %s", error.message)
        else:
            _log.error("a call between daemons failed", exc_info=error)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(lambda: self.start(self.read()))

    def _send_soon(self) -> None:
        if not self._is_sending:
            self._is_sending = True
            self.start(self._send())

    async def _send(self) -> None:
        try:
            while self._posts or self._answers or self._told:
                posts, self._posts = self._posts, []
                answers, self._answers = self._answers, []
                try:
                    if posts or answers:
                        await self._workers.in_worker(partial(self._calls.send, posts, answers))
                    posts, answers = [], []
                    await self._send_told()
                except CompactdError as error:
                    self._answers = [*answers, *self._answers]
                    for post in posts:
                        waiter = self._waiting.pop(post.id, None)
                        if waiter is not None:
                            waiter.set_exception(error)
                    _log.warning("calls between daemons could not be sent: %s", error.message)
                    await asyncio.sleep(RETRY_S)
        finally:
            self._is_sending = False

    async def _send_told(self) -> None:
        told, self._told = self._told, []
        if not told:
            return
        try:
            alive = await self._workers.in_worker(partial(self._calls.tell, told))
        except CompactdError:
            self._told = [*told, *self._told][-MAX_TOLD:]
            raise
        for node in {post.node for post in told} - alive:
            self._on_gone(node)

    async def _read(self) -> None:
        try:
            while self._has_news:
                self._has_news = False
                waiting = tuple(self._waiting)
                calls, answers = await self._workers.in_worker(partial(self._calls.take, waiting))
                for call_id, body in answers.items():
                    waiter = self._waiting.pop(call_id, None)
                    if waiter is not None:
                        _set_answer(waiter, body)
                for call in calls:
                    self._on_call(call)
        except CompactdError as error:
            _log.warning("calls of other daemons could not be read: %s", error.message)
            self._loop.call_later(RETRY_S, self._wake)
        finally:
            self._reading = None


def _set_answer(waiter: asyncio.Future[Answered], body: bytes) -> None:
    try:
        waiter.set_result(_decode_answer(body))
    except msgspec.DecodeError:
        waiter.set_exception(
            StorageFailed(
                "The daemon that writes this session has another version of compactd, and its answer cannot "
                "be read. Run the same version on all nodes, read agent/state, and send the request again if "
                "needed."
            )
        )
