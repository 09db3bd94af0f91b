"""The way of one session's requests to the daemon that writes it, which may change while they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

from compactd.daemon.fleet.mailbox import Mailbox
from compactd.daemon.fleet.messages import Answered, Cancel
from compactd.protocol.errors import StorageFailed
from compactd.protocol.messages import encode

LOOK_S = 1.0
"""Seconds without an answer to a request after which a route looks whether its receiver still writes the
session. A route also ends when it had nothing to do for so long.
"""
RETRY_S = 0.05
"""Seconds until the writer of a session is looked for again."""

GRACE_S = 10.0
"""Seconds in which another daemon must have read what is sent to it."""


class PendingRequest:
    """A request that goes to the daemon that writes its session."""

    def __init__(self, body: bytes, *, is_repeatable: bool, on_sent: Callable[[str], None]) -> None:
        """`on_sent` gets the id of each call with which it is sent."""
        self.body = body
        self.is_repeatable = is_repeatable
        self.on_sent = on_sent
        self.done: asyncio.Future[Answered | None] = asyncio.get_running_loop().create_future()
        """The writer's answer. None if this daemon writes the session now: it is to be carried out here."""
        self.call_id: str | None = None
        """The call with which it was sent. None if it is to be sent."""
        self.receiver: str | None = None
        """The daemon to which it was sent last."""
        self.sent_at = 0.0
        """When it was sent last: the event loop's time."""


class Route:
    """The requests of this daemon's clients to one session that another daemon writes. They are sent, and
    sent again, in the order in which they came. Use it only on the event loop's thread.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        session_id: str,
        open_here: Callable[[], Awaitable[bool]],
        on_end: Callable[[], None],
    ) -> None:
        """`open_here` opens the session in this daemon, and returns whether this daemon writes it then."""
        self._mailbox = mailbox
        self._session_id = session_id
        self._open_here = open_here
        self._on_end = on_end
        self._pending: dict[PendingRequest, None] = {}
        """In their order. A request is among them until it is answered."""
        self._writer: str | None = None
        self._is_closed = False
        """True if the daemon that was asked had closed the session."""
        self._last_news = self._looked_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        mailbox.start(self._run())

    @property
    def is_busy(self) -> bool:
        """Whether requests wait, which later ones must not overtake."""
        return bool(self._pending)

    async def send(self, request: PendingRequest) -> Answered | None:
        """Return the writer's answer to a request, or None if it is to be carried out here. If this is
        cancelled, so is the request, also at the writer.

        Raises `StorageFailed` if the answer was lost and the request must not be sent twice, and the error of
        a session that cannot be opened.
        """
        if not self._pending:
            self._last_news = self._loop.time()
        self._pending[request] = None
        self._woken.set()
        try:
            return await request.done
        except asyncio.CancelledError:
            if request.call_id is not None and request.receiver is not None:
                self._mailbox.start(self._cancel(request.receiver, request.call_id))
            raise
        finally:
            self._pending.pop(request, None)

    async def _run(self) -> None:
        try:
            while True:
                self._woken.clear()
                if self._pending and (self._writer is not None or await self._find_writer()):
                    self._send()
                left_s = self._due_at() - self._loop.time()
                if left_s > 0 and self._writer is not None:
                    timer = self._loop.call_later(left_s, self._woken.set)
                    try:
                        await self._woken.wait()
                    finally:
                        timer.cancel()
                elif not self._pending:
                    return
                elif self._writer is not None:
                    await self._look()
        except Exception as error:
            self._fail(error)
        finally:
            self._on_end()

    def _due_at(self) -> float:
        """Return when to look after the request that waits longest, or to end if none waits. Answers to other
        requests do not put that off.
        """
        oldest = next(self._waiting(), None)
        since = self._last_news if oldest is None else max(oldest.sent_at, self._looked_at)
        return since + LOOK_S

    async def _find_writer(self) -> bool:
        """Find the daemon that writes the session. If there is none, this one becomes it. Return whether
        there is another one.
        """
        if self._is_closed:
            self._is_closed = False
            await asyncio.sleep(RETRY_S)
        writer = await self._mailbox.writer_of(self._session_id)
        # What another daemon was asked, and may have carried out, is not simply asked again.
        await self._recall([one for one in self._waiting() if one.receiver != writer])
        if writer is not None and writer != self._mailbox.node:
            self._writer, self._last_news = writer, self._loop.time()
            return True
        if await self._open_here():
            for request in self._pending:
                if not request.done.done():
                    request.done.set_result(None)
            self._pending.clear()
        else:
            await asyncio.sleep(RETRY_S)
        return False

    def _send(self) -> None:
        assert self._writer is not None
        for request in self._pending:
            if request.call_id is None and not request.done.done():
                request.call_id, answer = self._mailbox.post(self._writer, request.body)
                request.receiver, request.sent_at = self._writer, self._loop.time()
                request.on_sent(request.call_id)
                answer.add_done_callback(partial(self._on_answer, request))

    def _on_answer(self, request: PendingRequest, answer: asyncio.Future[Answered]) -> None:
        if answer.cancelled() or request.done.done():
            return
        self._last_news = self._loop.time()
        error = answer.exception()
        if error is not None:
            request.done.set_exception(error)
        elif answer.result().is_closed:
            request.call_id = None
            if request.receiver == self._writer:
                self._writer = None
                self._is_closed = True
            self._woken.set()
        else:
            request.done.set_result(answer.result())

    async def _look(self) -> None:
        """Check that the requests were sent to the daemon that writes the session, and that the calls are not
        lost. If not, prepare to send them again.
        """
        self._looked_at = self._loop.time()
        await self._mailbox.read()  # a notification may have been lost
        known = await self._mailbox.known([one.call_id for one in self._waiting() if one.call_id is not None])
        writer = await self._mailbox.writer_of(self._session_id)
        # A call that was posted just now may not be in the database yet.
        lost_before = self._looked_at - LOOK_S
        gone = [
            one
            for one in self._waiting()
            if one.receiver != writer or (one.call_id not in known and one.sent_at <= lost_before)
        ]
        if gone or writer != self._writer:
            self._writer = None
            await self._recall(gone)

    def _waiting(self) -> Iterator[PendingRequest]:
        """Yield the requests that were sent and not answered, the oldest first."""
        return (one for one in self._pending if one.call_id is not None and not one.done.done())

    async def _recall(self, requests: Sequence[PendingRequest]) -> None:
        """Prepare to send these requests again. Those that must not be sent twice, and were read, fail."""
        sent = {one.call_id: one for one in requests if one.call_id is not None}
        if not sent:
            return
        withdrawn = await self._mailbox.withdraw(sent)
        await self._mailbox.read()  # what was answered before it was withdrawn
        for call_id, request in sent.items():
            if request.done.done() or request.call_id != call_id:
                continue
            self._mailbox.forget(call_id)
            request.call_id = None
            if call_id not in withdrawn and not request.is_repeatable:
                request.done.set_exception(_answer_lost())

    async def _cancel(self, writer: str, call_id: str) -> None:
        self._mailbox.forget(call_id)
        if await self._mailbox.withdraw((call_id,)):
            return
        cancel_id, told = self._mailbox.post(writer, encode(Cancel(call=call_id)))
        await asyncio.wait((told,), timeout=GRACE_S)
        self._mailbox.forget(cancel_id)

    def _fail(self, error: Exception) -> None:
        for request in self._pending:
            if not request.done.done():
                request.done.set_exception(error)


def _answer_lost() -> StorageFailed:
    return StorageFailed(
        "The daemon that wrote this session has ended, perhaps after it carried the request out. Read "
        "agent/state, and send the request again if needed."
    )
