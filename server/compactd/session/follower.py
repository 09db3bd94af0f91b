"""Follow a session that another process writes, by reading its journal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import msgspec

from compactd.core.history.entries import Entry
from compactd.protocol.errors import CompactdError, SessionCorrupt, SessionNotFound, StorageFailed
from compactd.protocol.messages import (
    AgentEnd,
    AgentError,
    AgentStart,
    Event,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    WriterChanged,
)
from compactd.session.host import AgentStatus, acting
from compactd.session.remote_entries import RemoteEntries
from compactd.session.session import Session
from compactd.storage.protocols import Follower

FOLLOW_S = 0.3
"""Seconds between two reads of a followed session. Clients may rely on seeing a change within one second
(docs/dev/contract.md)."""
NEWS_S = 0.1
"""If a store reports changes, the least number of seconds between two reads."""
FAILED_S = 1.0
"""Seconds after a failed read until the next one."""
LOOK_S = 5.0
"""If a store reports changes, seconds without any after which the session is read. So it is noticed that the
process that writes it is gone.
"""
END_S = 1.0
"""Seconds after the process that writes the session is gone until the prompt that it answered is ended."""

_decode = msgspec.json.Decoder(Entry).decode
_log = logging.getLogger("compactd.session")


def decode_entries(records: Sequence[bytes | memoryview]) -> list[Entry]:
    """Return the entries of journal records, oldest first. O(records).

    Raises `SessionCorrupt` for a record that has the right checksum but that this version cannot decode.
    """
    entries: list[Entry] = []
    for record in records:
        try:
            entries.append(_decode(record))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SessionCorrupt(
                f"Record {len(entries) + 1} of the session's journal cannot be decoded: {error}. "
                "Nothing was changed; a newer version of compactd may have written it.",
                line=len(entries) + 1,
                readable_before=len(entries),
            ) from None
    return entries


@contextmanager
def refuse_misfits() -> Iterator[None]:
    """Raise `SessionCorrupt` if the code in this context cannot build a session from its entries.

    This happens if each entry is valid but the entries contradict each other. A daemon never writes such a
    journal, but someone may have edited one.
    """
    try:
        yield
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        raise SessionCorrupt(
            "The records of the session's journal contradict each other: it was edited by hand, or another "
            "program wrote it. Nothing was changed. Run `compactd doctor` to examine it."
        ) from error


_STATUS: Mapping[type, AgentStatus] = {
    AgentStart: "running",
    MessageStart: "streaming",
    MessageEnd: "running",
    ToolExecutionStart: "executing_tools",
    ToolExecutionEnd: "running",
}
"""What the agent loop does after an event."""


class SessionFollower:
    """A task that reads the journal of `session` until it is stopped, applies the new entries, and sends
    events about them.
    """

    def __init__(
        self,
        session: Session,
        follower: Follower,
        is_owned: bool,
        deleted: Callable[[], None],
        on_writer: Callable[[str], None],
    ) -> None:
        """`is_owned` is true if a process had the session open for writing when `follower` first read it.
        `deleted` is called when the session has been deleted. `on_writer` gets the name in `Calls` of the
        process that writes the session, now and whenever it is another one.
        """
        self._session = session
        self._follower = follower
        self._deleted = deleted
        self._on_writer = on_writer
        self._writer: str | None = None
        self.turn_id: str | None = None
        """The prompt that the other process is answering, if it said so."""
        self.status: AgentStatus | None = None
        """What its agent loop is doing, if it said so."""
        self._remote = RemoteEntries(session)
        self._note_owner(is_owned)
        self._reading = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._is_told = follower.listen(self._wake)
        self._note_writer()
        self._task = self._loop.create_task(self._run())

    @property
    def is_compacting(self) -> bool:
        """True if the process that writes the session has begun a compaction and the journal does not show
        its end.
        """
        return self._remote.is_compacting and self._session.owner == "other"

    def is_owned_now(self) -> bool:
        """Return true if a process has the session open for writing now. Checks one lock. If the store
        reports changes, this is as of the last look: the event loop does not wait for a database.
        """
        if self._is_told:
            return self._session.owner == "other"
        try:
            return self._follower.is_owned()
        except OSError:
            return self._session.owner == "other"

    async def read_to(self, count: int) -> None:
        """Read on until the session has `count` records here, too. Return at once if it has."""
        async with self._reading:
            if len(self._session.entries) < count:
                await self._read_on()

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply the next entries, which the follower read before, and send the events about them."""
        self._remote.append(entries)

    def send_on(self, event: Event) -> None:
        """Send an event of the process that writes the session, which its journal does not show. O(1)."""
        match event:
            case AgentStart(turn_id=turn_id):
                self.turn_id = turn_id
            case AgentEnd() | AgentError():
                self.turn_id = None
            case _:
                pass
        if self.turn_id is None:
            self.status = None
        elif (status := _STATUS.get(type(event))) is not None:
            self.status = status
        self._session.emit(event)

    async def stop(self) -> None:
        """Stop reading."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        self._follower.close()

    async def _run(self) -> None:
        session = self._session
        acting.set(None)  # the changes are another process's
        is_failing = False
        while True:
            await self._wait()
            try:
                async with self._reading:
                    await self._read_on()
                is_failing = False
            except SessionNotFound:
                self._follower.close()
                self._deleted()
                return
            except StorageFailed as error:
                # The next look may succeed, and then finds what this one has missed.
                if not is_failing:
                    _log.warning("session %s could not be read: %s", session.id, error.message)
                is_failing = True
                self._news.set()
                await asyncio.sleep(FAILED_S)
            except CompactdError as error:
                # The file was damaged. The entries read so far stay readable in this process.
                session.host.notice(
                    session.id, f"session {session.id} is no longer followed: {error.message}"
                )
                return

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._news.set)

    async def _wait(self) -> None:
        """Wait until there may be something to read."""
        if not self._is_told:
            await asyncio.sleep(FOLLOW_S)
            return
        await asyncio.sleep(NEWS_S)
        timer = self._loop.call_later(LOOK_S, self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()
        self._news.clear()

    async def _read_on(self) -> None:
        session = self._session
        news = await session.host.in_worker(self._follower.poll)
        is_owned = session.owner == "other" if news.is_owned is None else news.is_owned
        self._note_writer()
        if news.records:
            entries = await session.host.in_worker(lambda: decode_entries(news.records))
            if news.first_seq == len(session.entries):
                self._remote.append(entries)
            else:
                self._remote.replace(news.first_seq, entries)
            session.emit_usage()
        if is_owned != (session.owner == "other"):
            self._note_owner(is_owned)
            self._end_prompt_soon()
            session.emit(WriterChanged(owner=session.owner))

    def _note_owner(self, is_owned: bool) -> None:
        self._session.owner = "other" if is_owned else "none"

    def _note_writer(self) -> None:
        if self._follower.writer not in (None, self._writer):
            self._end_prompt_soon()
            self._writer = self._follower.writer
            self._on_writer(self._writer)

    def _end_prompt_soon(self) -> None:
        """Send the end of the prompt that the other process was answering, unless that says so itself."""
        if self.turn_id is not None:
            self._loop.call_later(END_S, self._end_prompt, self.turn_id)

    def _end_prompt(self, turn_id: str) -> None:
        if self.turn_id == turn_id and not self._task.done():
            self.send_on(prompt_lost(turn_id))


def prompt_lost(turn_id: str) -> AgentError:
    """Return the event that ends a prompt whose answering process is gone."""
    return AgentError(
        turn_id=turn_id,
        code=StorageFailed.code,
        message="Another daemon answered this prompt, and has stopped. What it has stored is kept. Send the "
        "prompt again.",
    )
