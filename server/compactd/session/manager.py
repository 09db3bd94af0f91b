"""The open sessions of this process: start, resume, list, close and delete sessions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import Entry, Opened, SettingsSet
from compactd.core.models.observed import recorded_window
from compactd.protocol.errors import (
    CompactdError,
    Detail,
    SessionCorrupt,
    SessionLocked,
    SessionNotFound,
    StorageFailed,
)
from compactd.protocol.messages import SessionClosed, Tool, WriterChanged
from compactd.protocol.settings import GivenSettings
from compactd.protocol.wire import Left, SessionInfo
from compactd.session.follower import SessionFollower, decode_entries, prompt_lost, refuse_misfits
from compactd.session.host import SessionHost, acting
from compactd.session.ledger import bare_id
from compactd.session.listing import ListedSession, listed_of, read_listing
from compactd.session.queue import RequestQueue
from compactd.session.remote_entries import RemoteEntries, count_same
from compactd.session.session import Session
from compactd.storage.memory_journal import MemoryJournal
from compactd.storage.paths import real_folder
from compactd.storage.protocols import Durability, Follower, Journal, Store, Stored

if TYPE_CHECKING:
    from pathlib import Path

    from compactd.session.git.snapshots import GitTrees
    from compactd.session.snapshots import Snapshots

T = TypeVar("T")

Trees = Callable[[str], "GitTrees"]
"""A function that takes a session's id and returns the store of that session's snapshots."""

_CREATION_S = 5.0
"""Seconds in which a session that another process is creating must be there."""
_CREATION_LOOKS = 100
_REOPEN_PAUSES_S = (0.0, 1.0, 3.0, 10.0)
"""Pauses before the attempts to read a session that another process has taken over."""
LARGE_BYTES = 1_000_000
"""The size of a journal from which on the memory of a closed session is returned to the system. The memory of
smaller ones is used again.
"""
VERSION = 1
"""The version of the journal format that new sessions get."""


class Start(Struct, frozen=True, kw_only=True):
    """The params of `session/start`, decoded."""

    session_id: str | None = None
    model: str | None = None
    base_url: str | None = None
    context_window: int | None = None
    system_prompt: str | None = None
    tools: tuple[tuple[Tool, Raw], ...] | None = None
    compaction: GivenSettings | None = None
    title: str | None = None
    working_dir: str | None = None
    parent_session_id: str | None = None
    snapshots: bool | None = None
    persist: bool = True
    durability: Durability = "disk"
    is_guest: bool = False
    """True if another client has opened the session before. The session then keeps its own model, settings
    and other values."""
    read_only: bool = False
    """True to open the session only to read and follow it, without taking its lock."""
    is_borrowed: bool = False
    """True if an editor's command opens the session for its own use."""


class SessionNotOpen(SessionNotFound):
    """A session is not open here. Whether it is stored must be asked in a worker: see `Sessions.explain`."""


class StartedSession(Struct, frozen=True):
    """The result of `Sessions.start`: the open session, `resumed` (true if the session existed before), and
    warnings for the client.
    """

    session: Session
    resumed: bool
    warnings: tuple[str, ...]


def new_id() -> str:
    """Return a new random id for a session."""
    return os.urandom(8).hex()


class Sessions:
    """All sessions that are open in this process, and the store that keeps them."""

    def __init__(self, world: SessionHost, store: Store, trees: Trees) -> None:
        self.world = world
        self.store = store
        self._trees = trees
        self.on_writer: Callable[[str, str], None] = lambda session_id, node: None
        """Gets (session id, node) when another process is found to write a session that is open here, and may
        be asked to change it."""
        self.open: dict[str, Session] = {}
        self.queues: WeakValueDictionary[str, RequestQueue] = WeakValueDictionary()
        """By session id, the queue of the requests to the session. It exists while the session is open, and
        while a request waits in it or holds it."""
        self._reopening: set[asyncio.Task[None]] = set()

    def get(self, session_id: str) -> Session:
        """Return the open session with this id.

        Raises `SessionNotFound`; its data has `exists: true` if the session is stored but not open. With a
        database, raises `SessionNotOpen` instead, without a look there.
        """
        session = self.open.get(session_id)
        if session is not None:
            return session
        if self.store.calls is not None:
            raise SessionNotOpen("This session is not open here.", session_id=session_id)
        raise _not_open(session_id, is_stored=self.store.exists(session_id))

    async def explain(self, error: SessionNotOpen) -> SessionNotFound:
        """Return the error that says whether the session is stored. Raises `StorageFailed`."""
        session_id = str(error.data["session_id"])
        is_stored = await self.world.in_worker(lambda: self.store.exists(session_id))
        return _not_open(session_id, is_stored=is_stored)

    def newest(self) -> str | None:
        """Return the id of the open session that was changed last, or None. Sessions that an editor's command
        has opened for itself do not count.
        """
        opened = [session for session in self.open.values() if not session.is_borrowed]
        return max(opened, key=lambda session: session.touched_at).id if opened else None

    # --- starting -------------------------------------------------------------------------------------

    async def start(self, want: Start) -> StartedSession:
        """Open or resume a session and apply the values in `want`. Everything is on disk when this returns.

        If another process has the session open for writing, this process only reads it and follows the
        changes: `Session.journal` is None. Raises `SessionCorrupt`, `StorageFailed`, and `FormatNotSupported`
        for a file of a newer version.
        """
        session_id = want.session_id or new_id()
        try:
            queue = self._queue_of(session_id)
            async with queue.transition():
                return await _to_its_end(self._start(session_id, want, queue))
        except SessionCorrupt as damaged:
            damaged.data.update(session_id=session_id, path=self.store.file_of(session_id))
            raise

    def _queue_of(self, session_id: str) -> RequestQueue:
        """Return the queue of a session that may not exist yet. The caller must keep a reference to it."""
        return self.queues.setdefault(session_id, RequestQueue())

    async def _start(self, session_id: str, want: Start, queue: RequestQueue) -> StartedSession:
        session = replaced = self.open.get(session_id)
        resumed = was_open = session is not None
        was_followed = session is not None and session.journal is None
        known: Sequence[Entry] = ()
        turn_id = None if session is None or session.following is None else session.following.turn_id
        if session is not None and (session.journal is None or session.journal.is_broken):
            session.is_reopened = True
            known = tuple(session.entries)
            with suppress(StorageFailed):  # what could not be stored was reported
                await self._close_journal(session)
            session, was_open = None, False
        else:
            replaced = None
        if want.base_url is not None:
            await self.world.ask_server(want.model, want.base_url)
        if want.model is not None:
            await self.world.in_worker(partial(self._look_up, want.model, want.base_url))
        await self.world.read_settings(want.working_dir if session is None else session.working_dir)
        if session is not None:
            session.refresh()
        else:
            exists = want.persist and await self.world.in_worker(lambda: self.store.exists(session_id))
            if want.read_only and not exists:
                raise _not_found(session_id)
            if not exists:
                session = await self._create(session_id, want)
            resumed = session is None
            if session is None:
                session, news = await self._resume(session_id, want, known)
                self._put_in_place(replaced, session, news)
        session.is_borrowed = want.is_borrowed and (session.is_borrowed or session_id not in self.open)
        session.queue = queue
        self.open[session_id] = session
        if session.is_imported and want.working_dir not in (None, session.working_dir):
            # The folder in an imported file is not used for settings. A folder that the client names is.
            session.working_dir = want.working_dir
            await self.world.read_settings(session.working_dir)
            session.refresh()
        state = session.state
        if session.snapshots is None and (want.snapshots or state.takes_snapshots or state.snapshots):
            made = partial(_snapshots_of, self._trees, session_id)
            snapshots = session.snapshots = await self.world.in_worker(made)
            if not resumed:
                # An earlier session with this id may have left snapshots: its deletion was interrupted.
                await snapshots.forget()
        if turn_id is not None:
            if session.following is not None:
                session.following.turn_id = turn_id
            else:
                session.emit(prompt_lost(turn_id))
        if session.is_forwarded:
            return StartedSession(session, resumed, ())
        if session.journal is None:
            return StartedSession(session, resumed, _read_only_warnings(session, want))
        if was_followed and resumed:
            session.emit(WriterChanged(owner="this"))
        refused: tuple[str, ...] = ()
        if was_open and want.is_guest:
            want, refused = _without_conflicts(session, want)
        number = self._apply(session, want)
        if number is not None:
            await session.wait_durable(number)
        if not was_open:
            session.last_sent_epoch = session.state.epoch
        warnings = (*refused, *session.budget_status().warnings, *_learned_warnings(session))
        torn = session.journal.torn_bytes
        if torn:
            text = f"the last {torn} bytes of the session's file are an incomplete record and are ignored"
            warnings = (text, *warnings)
        return StartedSession(session, resumed, warnings)

    def _look_up(self, model: str, base_url: str | None) -> None:
        """Look the model up once in a worker, so that later look-ups on the event loop are fast. The first
        look-up may read the registry or build an index.
        """
        found = self.world.lookup(model, base_url)
        if found is not None:
            self.world.observed_window(found, base_url)
            if found.pricing is None:
                self.world.lookup(bare_id(found.model), None)

    async def _create(self, session_id: str, want: Start) -> Session | None:
        """Create a session. Return None if another process has just created it."""
        try:
            return await self._create_alone(session_id, want)
        except (FileExistsError, SessionLocked):
            for _ in range(_CREATION_LOOKS):
                if await self.world.in_worker(lambda: self.store.exists(session_id)):
                    return None
                await asyncio.sleep(_CREATION_S / _CREATION_LOOKS)
            raise

    async def _create_alone(self, session_id: str, want: Start) -> Session:
        folder = want.working_dir
        real_dir = None if folder is None else await self.world.in_worker(partial(real_folder, folder))
        first = Opened(
            v=VERSION,
            id=session_id,
            at=self.world.now(),
            parent_session_id=want.parent_session_id,
            working_dir=want.working_dir,
            real_dir=real_dir,
        )
        record = msgspec.json.encode(first)
        if not want.persist:
            memory = MemoryJournal()
            memory.append([record])
            return Session(self.world, session_id, memory, (first,), persistent=False)
        journal = await self.world.in_worker(lambda: self.store.create(session_id, record, want.durability))
        try:
            session = Session(self.world, session_id, journal, (first,))
            self._watch(session)
            await session.wait_durable(journal.last)
        except BaseException:
            await journal.close()  # otherwise this process would keep its lock
            raise
        return session

    async def adopt(self, session: Session) -> None:
        """Store and open a new session that was made in memory.

        The session is on disk when this returns. If this fails, nothing of the session is left. Raises
        `StorageFailed`.
        """
        store, world = self.store, self.world

        def created() -> tuple[Journal, list[bytes]]:
            records = [msgspec.json.encode(entry) for entry in session.entries]
            return store.create(session.id, records[0], "disk"), records[1:]

        journal, records = await world.in_worker(created)
        try:
            await world.read_settings(session.working_dir)
            # The settings of the session's folder may select another token counter.
            await world.in_worker(session.refresh)
            await world.in_worker(session.bill)
            await journal.durable(journal.append(records))
        except BaseException:
            await journal.close()
            with suppress(CompactdError):  # nothing is stored, or the disk refuses everything
                await store.delete(session.id)
            raise
        session.journal, session.persistent = journal, True
        self._watch(session)
        self.queues[session.id] = session.queue
        self.open[session.id] = session

    async def _resume(
        self, session_id: str, want: Start, known: Sequence[Entry]
    ) -> tuple[Session, Sequence[Entry]]:
        """Open a stored session. `known`: what the clients know of it, if it was open here. Return the
        session as far as they know it, and the entries that they do not know.
        """
        owner: dict[str, Detail] = {}

        def read() -> tuple[Journal | None, Follower | None, bool, list[memoryview]]:
            if not want.read_only:
                try:
                    journal, records = self.store.open(session_id, durability=want.durability)
                except SessionLocked as locked:
                    owner.update(locked.data)
                else:
                    return journal, None, False, records
            follower, records = self.store.read(session_id)
            try:
                is_owned = follower.is_owned()
            except OSError:  # the follower looks again
                is_owned = bool(owner)
            return None, follower, is_owned, records

        journal, follower, is_owned, records = await self.world.in_worker(read)

        def folded() -> tuple[Session, Sequence[Entry]]:
            with refuse_misfits():
                entries = decode_entries(records)
                same = count_same(known, entries) if known else len(entries)
                session = Session(self.world, session_id, journal, entries[:same])
            session.bill()  # here, so that the event loop need not add up all requests
            return session, entries[same:]

        try:
            head = decode_entries(records[:1])
            await self.world.read_settings(next((e.working_dir for e in head if isinstance(e, Opened)), None))
            session, news = await self.world.in_worker(folded)
        except BaseException:
            # Release the lock, so that others can open the session.
            if journal is not None:
                await journal.close()
            if follower is not None:
                follower.close()
            raise
        if follower is not None:
            session.writer = owner
            session.is_forwarded = self.store.calls is not None and not want.read_only
            deleted = partial(self._close_deleted, session)
            on_writer = partial(self._note_writer, session)
            session.following = SessionFollower(session, follower, is_owned, deleted, on_writer)
        self._watch(session)
        return session, news

    def _put_in_place(self, replaced: Session | None, session: Session, news: Sequence[Entry]) -> None:
        """Go on with the events of the session that `session` replaces, and send those about `news`."""
        client = acting.set(None)  # the changes are another process's
        try:
            if replaced is not None:
                session.event_seq, replaced.replaced_by = replaced.event_seq, session
                if replaced.journal is not None and session.journal is None:
                    session.emit(WriterChanged(owner=session.owner))
            if news:
                if session.following is None:
                    RemoteEntries(session).append(news)
                else:
                    session.following.apply(news)
                session.emit_usage()
        finally:
            acting.reset(client)

    def _watch(self, session: Session) -> None:
        """Open the session again when another process has taken it over."""
        if session.journal is not None:
            session.journal.listen(partial(self._on_taken, session))

    def _on_taken(self, session: Session) -> None:
        task = asyncio.ensure_future(self._reopen_patiently(session))
        self._reopening.add(task)
        task.add_done_callback(self._reopening.discard)

    async def _reopen_patiently(self, session: Session) -> None:
        """Open a session again that another process has taken over. If the store fails, try again a few
        times, then tell the clients.
        """
        why = ""
        for pause_s in _REOPEN_PAUSES_S:
            await asyncio.sleep(pause_s)
            try:
                await self.reopen(session)
            except CompactdError as error:
                why = error.message
                if not isinstance(error, StorageFailed):
                    break
            else:
                return
        self.world.notice(session.id, f"session {session.id} is not open here any more: {why}")

    async def reopen(self, session: Session) -> None:
        """Open a session again that another process has taken over. Does nothing if that was done, or if the
        session was closed. Raises the errors of `start`.
        """
        queue = self._queue_of(session.id)
        async with queue.transition():
            journal = session.journal
            if session.replaced_by is not None or journal is None or not journal.is_broken:
                return
            is_closed = session.is_closed and not session.is_reopened
            if is_closed or self.open.get(session.id, session) is not session:
                return
            await _to_its_end(self._reopen(session, queue))

    async def _reopen(self, session: Session, queue: RequestQueue) -> None:
        if not await self.world.in_worker(lambda: self.store.exists(session.id)):
            session.is_reopened = True
            await self._close_journal(session)
            session.emit(SessionClosed(reason="deleted"))
            return
        self.open[session.id] = session
        await self._start(session.id, Start(session_id=session.id), queue)

    def _note_writer(self, session: Session, node: str) -> None:
        if session.is_forwarded:
            self.on_writer(session.id, node)

    def _close_deleted(self, session: Session) -> None:
        """Close a followed session that another process has deleted."""
        if self.open.get(session.id) is session:
            del self.open[session.id]
        session.is_closed = True
        session.emit(SessionClosed(reason="deleted"))

    def _apply(self, session: Session, want: Start) -> int | None:
        """Replace the session's model, settings and other values by those that `want` gives. Return the
        number of the last new record, for `wait_durable`, or None if nothing changed.
        """
        number: int | None = None
        old = session.state.model
        model = old.model if want.model is None else want.model
        stays = model == old.model
        window = old.context_window if stays and want.context_window is None else want.context_window
        base_url = want.base_url or (old.base_url if stays else None)
        if (model, base_url, window) != (old.model, old.base_url, old.context_window):
            number = session.set_model(model, base_url, window)
        prompt = want.system_prompt if want.system_prompt != session.state.system_prompt else None
        changed = session.configure(
            "start", compaction=want.compaction, system_prompt=prompt, tools=want.tools, title=want.title
        )
        number = number if changed is None else changed
        if want.snapshots is not None and want.snapshots != session.state.takes_snapshots:
            number = session.write(SettingsSet(at=self.world.now(), snapshots=want.snapshots))
        return number

    # --- ending ---------------------------------------------------------------------------------------

    async def close(
        self, session_id: str, reason: str = "closed", *, is_kept: Callable[[], bool] = lambda: False
    ) -> bool:
        """Close the session in this process. Stops a running prompt, cancels a running compaction, and waits
        until all appended messages are on disk. If `is_kept` returns true when the close has its turn,
        nothing happens. Return whether the session was closed.
        """
        async with self._queue_of(session_id).transition():
            session = self.get(session_id)
            if is_kept():
                return False
            await _to_its_end(self._close(session, reason))
            return True

    async def _close(self, session: Session, reason: str) -> None:
        if session.agent_loop is not None:
            await session.agent_loop.abort()
        if session.operation is not None:
            await session.operation.cancel()
        await self._close_journal(session)
        session.emit(SessionClosed(reason=reason))
        if session.journal is not None and (session.journal.size_bytes or 0) >= LARGE_BYTES:
            from compactd.session.memory import release_closed_soon

            release_closed_soon(self.world.in_worker)

    async def close_all(self) -> None:
        """Close every session without sending events."""
        for session in tuple(self.open.values()):
            if session.agent_loop is not None:
                await session.agent_loop.abort()
            # The client already got the error about a full disk. The other sessions must still be written.
            with suppress(StorageFailed):
                await self._close_journal(session)

    async def _close_journal(self, session: Session) -> None:
        self.open.pop(session.id, None)
        session.is_closed = True
        session.drop_preparation()
        if session.following is not None:
            await session.following.stop()
        journal = session.journal
        if journal is None:
            return
        await journal.close()
        if session.persistent and journal.size_bytes is not None:
            info = msgspec.json.encode(listed_of(session.state))
            await self.store.save_info(session.id, info, size_bytes=journal.size_bytes)
        await self.world.in_worker(session.release)

    async def delete(self, session_id: str, home: Path | None = None) -> tuple[Left, ...]:
        """Delete a session, open or stored, with its snapshots. It cannot be restored. Return the copies of
        its messages outside the data folder `home`, which are not deleted.

        Raises `SessionNotFound`, `SessionLocked`, `SessionBusy`.
        """
        from compactd.storage.outside_copies import left_outside

        session = self.open.get(session_id)
        if session is not None:
            session.require_idle()
        async with self._queue_of(session_id).transition():
            left = () if home is None else await self.world.in_worker(partial(left_outside, home, session_id))
            await _to_its_end(self._delete(session_id))
        return left

    async def _delete(self, session_id: str) -> None:
        session = self.open.get(session_id)
        if session is not None:
            # An earlier request may have started a compaction.
            session.require_idle()
            if session.persistent:
                session.require_journal()
            await self._close_journal(session)
            session.emit(SessionClosed(reason="deleted"))
            if not session.persistent:
                return
        await self.store.delete(session_id)
        if session is not None and session.snapshots is not None:
            await session.snapshots.forget(for_good=True)
        else:
            await self.world.in_worker(lambda: self._trees(session_id).forget())

    # --- listing --------------------------------------------------------------------------------------

    async def list(self) -> tuple[SessionInfo, ...]:
        """Return every session, stored or open, newest first."""
        stored = await self.world.in_worker(self.store.list)
        rows: list[SessionInfo] = []
        for one in stored:
            session = self.open.get(one.session_id)
            if session is not None:
                listed = listed_of(session.state)
            else:
                listed = await self.world.in_worker(partial(read_listing, self.store, one.session_id))
            rows.append(_info_of(one, listed, session))
        known = {one.session_id for one in stored}
        for session in self.open.values():
            # A followed session that is no longer stored was just deleted by another process.
            if session.id not in known and session.journal is not None:
                size_bytes, at = session.journal.size_bytes or 0, session.touched_at
                one = Stored(session_id=session.id, size_bytes=size_bytes, updated_at=at, is_locked=True)
                rows.append(_info_of(one, listed_of(session.state), session))
        return tuple(sorted(rows, key=lambda row: (-row.updated_at, row.session_id)))


async def _to_its_end(work: Coroutine[object, object, T]) -> T:
    """Wait for `work`, even if the caller is cancelled meanwhile; the cancellation is raised afterwards.

    A session that is half opened or half closed would keep its lock.
    """
    task, interrupted = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None and not task.cancelled() and task.exception() is None:
        raise interrupted
    return task.result()


def _info_of(stored: Stored, listed: ListedSession, session: Session | None) -> SessionInfo:
    """Return the row of `session/list` for a session, which is open in this process if `session` is not
    None.
    """
    return SessionInfo(
        session_id=stored.session_id,
        title=listed.title,
        model=listed.model,
        message_count=listed.message_count,
        compactions=listed.compactions,
        bytes=stored.size_bytes,
        updated_at=stored.updated_at,
        open=stored.is_locked or session is not None,
        working_dir=stored.working_dir if session is None else session.working_dir,
    )


def _not_open(session_id: str, *, is_stored: bool) -> SessionNotFound:
    if not is_stored:
        return _not_found(session_id)
    return SessionNotFound(
        "This session is stored but not open here: call session/start with its session_id first.",
        session_id=session_id,
        exists=True,
    )


def _not_found(session_id: str) -> SessionNotFound:
    return SessionNotFound(
        "No session has this id. Call session/start to create one, or session/list to see those that exist.",
        session_id=session_id,
        exists=False,
    )


def _read_only_warnings(session: Session, want: Start) -> tuple[str, ...]:
    """Return warnings: why the session can only be read, and which values in `want` are therefore not
    applied.
    """
    why = (
        "another process has this session open for writing: here it can be read and followed, but not changed"
        if session.owner == "other"
        else "the session is open read-only: it can be read and followed, but not changed. To change it, "
        "call session/start without `read_only`"
    )
    given = {
        "model": want.model,
        "context_window": want.context_window,
        "system_prompt": want.system_prompt,
        "tools": want.tools,
        "compaction": want.compaction,
        "title": want.title,
        "snapshots": want.snapshots,
    }
    ignored = [name for name, value in given.items() if value is not None]
    if not ignored:
        return (why,)
    return (
        why,
        f"not applied, because the session is read-only: the params {', '.join(ignored)}",
    )


def _without_conflicts(session: Session, want: Start) -> tuple[Start, tuple[str, ...]]:
    """Return (`want` without the values that are not the session's own, a warning that names them or an empty
    tuple). A client that joins gives a session only what it does not have yet.
    """
    state, model = session.state, session.state.model
    own = {
        "model": model.model,
        "base_url": model.base_url,
        "context_window": model.context_window,
        "system_prompt": state.system_prompt or None,
        "tools": session.tools() or None,
        "title": state.title,
    }
    given = {name: getattr(want, name) for name in own}
    if want.tools is not None:
        given["tools"] = tuple(tool for tool, _ in want.tools)
    refused = [
        name
        for name, value in given.items()
        if value is not None and own[name] is not None and value != own[name]
    ]
    if want.compaction is not None and not _has_settings(session, want.compaction):
        refused.append("compaction")
    if want.snapshots is not None and want.snapshots != state.takes_snapshots:
        refused.append("snapshots")
    if not refused:
        return want, ()
    kept = msgspec.structs.replace(want, **dict.fromkeys(refused))
    if "model" in refused:
        kept = msgspec.structs.replace(kept, base_url=None, context_window=None)
    return kept, (
        f"not applied, because another client has the session open: {', '.join(refused)}. The session keeps "
        "its own values; `session/configure` and `model/set` change them for all its clients",
    )


def _has_settings(session: Session, wanted: GivenSettings) -> bool:
    """Return whether the session was given these settings already."""
    own: dict[str, object] = {}
    for layer in ("start", "configure"):
        if layer in session.state.given:
            own |= _given(msgspec.json.decode(session.state.given[layer], type=GivenSettings))
    return all(own.get(name) == value for name, value in _given(wanted).items())


def _given(settings: GivenSettings) -> dict[str, object]:
    """Return the settings that have a value."""
    return {name: value for name, value in msgspec.structs.asdict(settings).items() if value is not None}


def _learned_warnings(session: Session) -> tuple[str, ...]:
    """Return a warning if an observed window is used instead of a larger one in the registry."""
    found, learned = session.lookup, session.learned
    known = None if found is None else recorded_window(found)
    if found is None or learned is None or known is None or learned.window >= known:
        return ()
    if session.budget_status().window != learned.window:
        return ()
    on = datetime.fromtimestamp(learned.at, UTC).date().isoformat()
    where = f" --base-url {learned.base_url}" if learned.base_url else ""
    return (
        f"a window of {learned.window:,} tokens is used for {found.model} instead of the registry's "
        f"{known:,}. It was learned on {on} from {learned.source}. To forget it, run "
        f"`compactd models {found.model}{where} --forget`",
    )


def _snapshots_of(trees: Trees, session_id: str) -> Snapshots:
    # Imported only when needed: most sessions take no snapshots.
    from compactd.session.snapshots import Snapshots

    return Snapshots(trees(session_id))
