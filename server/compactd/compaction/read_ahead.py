"""Reading what was appended, for the next compaction, while the daemon has nothing else to do.

What belongs to one message is found out once. Done at the compaction it took 2.5 s for a million tokens,
beside 0.6 s for all the rest (measured 2026-11); so it is done before, in a worker, in slices of some
milliseconds, and only where nobody has asked for anything for a moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic

import msgspec

from compactd.core.constraints.constraints import limits_in
from compactd.core.extract.facts import FactCache
from compactd.core.extract.working_dir import working_directory
from compactd.core.history.entries import Appended, Item
from compactd.core.history.lazy_message import OnDemand
from compactd.protocol.errors import CompactdError
from compactd.session.memory import give_all_back
from compactd.session.message_cache import Cooler
from compactd.session.session import Session

QUIET_S = 0.05
"""So long nobody must have asked for anything."""

SLICE_S = 0.005
"""A slice ends with the message in which this has passed."""

MOST_CHARS = 100_000_000
"""Of all sessions together, code points; further messages are read when they are compacted."""

GIVEN_BACK_CHARS = 1_000_000
"""After so many more, memory that is free again is given back to the system, once all is read."""

TAKEN_UP = 2_000
"""Entries at most that are taken up at once, on the loop: less than a millisecond."""

TOLD = frozenset(("session/append", "turn/end", "turn/begin", "agent/prompt"))
"""The methods by which a session grows."""

InWorker = Callable[[Callable[[], None]], Awaitable[None]]


class Learner:
    """Reads ahead in the sessions that grow in this process."""

    def __init__(
        self, sessions: Mapping[str, Session], in_worker: InWorker, *, quiet_s: float = QUIET_S
    ) -> None:
        self._sessions = sessions
        self._in_worker = in_worker
        self._quiet_s = quiet_s
        self._cooler = Cooler(sessions)
        self._asked_at = 0.0
        self._grown: dict[str, _Reading] = {}
        self._learnt = self._given_back_at = 0
        """Code points of all sessions, now and when memory was given back."""
        self._task: asyncio.Task[None] | None = None

    def asked(self, method: str, session_id: str) -> None:
        """Told of every request: what was begun waits; a session that grows is read once it is quiet."""
        self._asked_at = monotonic()
        self._cooler.asked(method, session_id)
        if method not in TOLD:
            return
        self._grown.setdefault(session_id, _Reading())
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    async def rested(self) -> None:
        """Returns when there is nothing left to read or to let go of."""
        if self._task is not None:
            await self._task
        await self._cooler.rested()

    async def stop(self) -> None:
        """Ends it, but for the slice that is being read."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._cooler.stop()

    async def _run(self) -> None:
        while True:
            wait = self._asked_at + self._quiet_s - monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            found = self._next()
            if found is None:
                if abs(self._learnt - self._given_back_at) < GIVEN_BACK_CHARS:
                    return
                self._given_back_at = self._learnt
                await give_all_back(self._in_worker)
                continue
            session, reading = found
            await self._in_worker(reading.slice_of(session))

    def _next(self) -> tuple[Session, _Reading] | None:
        """A session with something to read."""
        learnt = 0
        for session_id, reading in tuple(self._grown.items()):
            session = self._sessions.get(session_id)
            if session is None or session.is_closed:
                del self._grown[session_id]
                continue
            learnt += 0 if session.facts is None else session.facts.size
            self._learnt = learnt
            if learnt < MOST_CHARS and session.running is None and reading.is_behind(session):
                return session, reading
        return None


class _Reading:
    """How far a session is read."""

    def __init__(self) -> None:
        self._facts: FactCache | None = None
        self._seen = 0
        """Of the session's entries, so many were taken up."""
        self._waiting: deque[Item] = deque()
        self._is_settled = True
        self._is_once_more = False
        """All of it is to be read again."""

    def is_behind(self, session: Session) -> bool:
        """True while there is anything to do."""
        if session.facts is None:
            session.facts = FactCache(session.shown_dir)
        entries, originals = session.entries, session.fold.originals
        if session.facts is not self._facts or len(entries) < self._seen or self._is_once_more:
            self._facts, self._seen, self._is_once_more = session.facts, 0, False
            self._waiting.clear()
        if not self._waiting and self._seen < len(entries):
            # A list gives its end in the time of that end, a dict in the time of all that is before it.
            new = entries[self._seen : self._seen + TAKEN_UP]
            self._waiting.extend([originals[one.id] for one in new if isinstance(one, Appended)])
            self._seen += len(new)
            if self._waiting or self._seen < len(entries):
                self._is_settled = False
        return not self._is_settled

    def slice_of(self, session: Session) -> Callable[[], None]:
        """Reads some of what waits; to be called in a worker."""
        facts, waiting = session.facts, self._waiting
        is_told, is_all = session.shown_dir is not None, self._seen >= len(session.entries)

        def read() -> None:
            if facts is None:
                return
            with facts.lock:
                until = monotonic() + SLICE_S
                while waiting:
                    # What is wrong with a message is told when it is compacted.
                    with suppress(CompactdError):
                        item = _decoded(waiting.popleft())
                        facts.learn(item)
                        if item.entry_id not in facts.limits:
                            facts.limits[item.entry_id] = limits_in(item)
                    if monotonic() > until:
                        # At once: what stays among what goes keeps that from the system.
                        facts.pack()
                        return
                if not is_all:
                    return
                if not is_told and facts.strip(working_directory(facts.known(), facts.lexicon)):
                    # Once more those that name the directory which all of them tell.
                    self._is_once_more = True
                    return
                facts.settle()
                self._is_settled = True

        return read


def _decoded(item: Item) -> Item:
    """`item` with its message, which is not kept where nobody else asked for it."""
    if item.is_decoded or not isinstance(item.body, OnDemand):
        return item
    return msgspec.structs.replace(item, body=item.body.decode(item.body.source))
