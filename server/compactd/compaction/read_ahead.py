"""Extract facts from appended messages before the next compaction needs them, while the daemon is idle. Then
prepare compactions that will soon be due (`prepare.py`).

The facts of each message are computed once. During a compaction, this would take most of the time. So a
worker does it earlier, in slices of some milliseconds, and only after no request has come for `QUIET_S`
seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic

from compactd.compaction.prepare import is_wanted, prepare
from compactd.core.constraints.constraints import limits_in
from compactd.core.extract.facts import FactCache
from compactd.core.extract.recent_files import working_directory
from compactd.core.history.entries import Appended, Item
from compactd.protocol.errors import CompactdError
from compactd.protocol.methods import Method
from compactd.session.memory import release_all_memory
from compactd.session.message_cache import DecodedMessageCache
from compactd.session.session import Session

QUIET_S = 0.05
"""How many seconds must pass without a request before reading starts."""

SLICE_S = 0.005
"""The length of a slice in seconds. When this time is over, the worker still finishes the message that it is
reading."""

MAX_READ_AHEAD_CHARS = 100_000_000
"""The maximum number of code points that are read ahead, in all sessions together. Further messages are
read during the compaction."""

LEAST_TOKENS = 2_000
"""A session with a smaller context is not read ahead while it is far from its threshold: a compaction reads
it in a few milliseconds, and what was read takes memory in each of thousands of idle sessions.
"""

RELEASE_AFTER_CHARS = 1_000_000
"""How many code points must be read before free memory is returned to the system. It is returned when nothing
is left to read."""

MAX_QUEUED_ENTRIES = 2_000
"""The maximum number of entries that the event loop queues for reading at a time. Queueing so many takes less
than a millisecond."""

BUSY_S = 0.05
"""How many seconds the preparation of a compaction is put off while another session compacts."""

InWorker = Callable[[Callable[[], None]], Awaitable[None]]
"""A function that runs another function in a worker."""


class IdleAnalyzer:
    """The background reader of all sessions of this process. It extracts the facts of appended messages."""

    def __init__(
        self,
        sessions: Mapping[str, Session],
        in_worker: InWorker,
        *,
        quiet_s: float = QUIET_S,
        least_tokens: int = LEAST_TOKENS,
    ) -> None:
        self._sessions = sessions
        self._in_worker = in_worker
        self._quiet_s = quiet_s
        self._least_tokens = least_tokens
        self._cooler = DecodedMessageCache(sessions)
        self._asked_at = 0.0
        self._grown: dict[str, _ReadState] = {}
        self._learnt = self._given_back_at = 0
        """`_learnt` is how many code points were read in all open sessions; `_given_back_at` is what
        `_learnt` was when memory was last returned to the system."""
        self._task: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        """The compaction that is being prepared. There is at most one at a time."""

    def note_request(self, method: Method, session_id: str) -> None:
        """Note that a request `method` for this session arrived, and pause the background reading. If the
        request appends messages, they are read after no request has come for `QUIET_S` seconds."""
        self._asked_at = monotonic()
        self._cooler.note_request(method, session_id)
        if method.grows:
            self.note_grown(session_id)

    def note_grown(self, session_id: str) -> None:
        """Note that messages or a usage report came to this session, from a client or from the daemon's own
        loop. After no request has come for `QUIET_S` seconds, they are read, and the session's next
        compaction is prepared if it will soon be due. O(1)."""
        self._grown.setdefault(session_id, _ReadState())
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    async def wait_idle(self) -> None:
        """Wait until nothing is left to read, to prepare or to free."""
        for task in (self._task, self._preparing):
            if task is not None:
                await task
        await self._cooler.wait_idle()

    async def stop(self) -> None:
        """Stop reading and preparing. What is being computed in a worker runs to its end, or to its next
        step."""
        for session in self._sessions.values():
            session.drop_preparation()
        for task in (self._task, self._preparing):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))
        await self._cooler.stop()

    async def _run(self) -> None:
        """Read slice after slice while no requests come, until nothing is left."""
        while True:
            wait = self._asked_at + self._quiet_s - monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            found = self._next()
            if found is None:
                if self._next_wanted() is not None and (self._preparing is None or self._preparing.done()):
                    self._preparing = asyncio.ensure_future(self._prepare())
                if abs(self._learnt - self._given_back_at) < RELEASE_AFTER_CHARS:
                    return
                self._given_back_at = self._learnt
                await release_all_memory(self._in_worker)
                continue
            session, reading = found
            await self._in_worker(reading.slice_of(session))

    def _next(self) -> tuple[Session, _ReadState] | None:
        """Return a session with messages to read, and how far it was read; None if nothing is to be read."""
        learnt = 0
        for session_id, reading in tuple(self._grown.items()):
            session = self._sessions.get(session_id)
            if session is None or session.is_closed or session.journal is None or self._is_small(session):
                # Who writes a session compacts it. What another process writes is not read here.
                del self._grown[session_id]
                continue
            learnt += 0 if session.facts is None else session.facts.size
            self._learnt = learnt
            if learnt < MAX_READ_AHEAD_CHARS and session.operation is None and reading.is_behind(session):
                return session, reading
        return None

    def _is_small(self, session: Session) -> bool:
        status = session.budget_status()
        is_far = status.threshold is None or status.compared < status.threshold / 2
        return status.used < self._least_tokens and is_far

    def _next_wanted(self) -> Session | None:
        """Return a session whose next compaction should be prepared now; None if there is none."""
        known = (self._sessions.get(session_id) for session_id in self._grown)
        return next((session for session in known if session is not None and is_wanted(session)), None)

    async def _prepare(self) -> None:
        """Prepare compactions, one after the other, while no requests come and no session is compacted."""
        while (session := self._next_wanted()) is not None:
            wait = self._asked_at + self._quiet_s - monotonic()
            if any(one.operation is not None for one in self._sessions.values()):
                wait = BUSY_S
            if wait > 0:
                await asyncio.sleep(wait)
            else:
                await prepare(session)


class _ReadState:
    """How far a session was read ahead."""

    def __init__(self) -> None:
        self._facts: FactCache | None = None
        self._seen = 0
        """How many of the session's entries were queued, or skipped because they contain no message."""
        self._waiting: deque[Item] = deque()
        """The messages that are queued for reading."""
        self._is_settled = True
        """Whether all entries were read and the facts are complete."""
        self._is_once_more = False
        """Whether the whole session must be read again."""
        self._is_folder_known = False
        """Whether the working directory was looked for after the last message."""

    def is_behind(self, session: Session) -> bool:
        """Return whether something is left to read in this session. If no messages are queued, queue the next
        ones."""
        facts, entries, originals = session.ensure_facts(), session.entries, session.state.originals
        if facts is not self._facts or len(entries) < self._seen or self._is_once_more:
            self._facts, self._seen, self._is_once_more = facts, 0, False
            self._waiting.clear()
        if not self._waiting and self._seen < len(entries):
            # Slicing the end of a list is fast; a dict would be walked from its beginning.
            new = entries[self._seen : self._seen + MAX_QUEUED_ENTRIES]
            self._waiting.extend([originals[one.id] for one in new if isinstance(one, Appended)])
            self._seen += len(new)
            if self._waiting or self._seen < len(entries):
                self._is_settled = self._is_folder_known = False
        return not self._is_settled

    def slice_of(self, session: Session) -> Callable[[], None]:
        """Return a function that reads the next slice of queued messages. Run the function in a worker."""
        facts, waiting = session.ensure_facts(), self._waiting
        work = session.work()
        last = work.last_read
        unread = session.state.path_items_after(last)
        if unread is None:  # another branch
            last, unread = None, session.state.path_items()
        is_told = session.shown_dir is not None or self._is_folder_known
        is_all = self._seen >= len(session.entries)

        def read() -> None:
            with facts.lock:
                until = monotonic() + SLICE_S
                while waiting:
                    # A bad message is reported when it is compacted.
                    with suppress(CompactdError):
                        item = waiting.popleft().decoded()
                        facts.learn(item)
                        if item.entry_id not in facts.limits:
                            facts.limits[item.entry_id] = limits_in(item)
                    if monotonic() > until:
                        # Pack now: small objects left between freed ones would pin their memory.
                        facts.pack()
                        return
                if not is_all:
                    return
                if not is_told and facts.strip(working_directory(facts.all_facts(), facts.lexicon)):
                    # The working directory is known only now. Read the messages that name it again.
                    self._is_once_more = True
                    return
                self._is_folder_known = True
                if not work.read_ahead(unread, last, until):
                    return
                facts.settle()
                self._is_settled = True

        return read
