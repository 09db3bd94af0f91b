"""One session's journal, appended to from an event loop that never waits for the disk.

Records are put on a list; a thread takes the whole list, writes it and syncs once, while the next list
fills (group commit). The first refusal of the disk gives up everything that is not stored yet.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

from compactd.protocol.errors import StorageFailed
from compactd.storage import files
from compactd.storage.journal_file import Failure, JournalFile
from compactd.storage.locks import Lock
from compactd.storage.protocols import RecordsLost
from compactd.storage.records import check

_NOT_WRITTEN = "The session could not be written"
_NOT_REPLACED = "The records could not be replaced"


class _Batch:
    """What the thread does in one go: records to add, or, where `changes` is set, to replace."""

    def __init__(self, first_seq: int, changes: Mapping[int, bytes] | None = None) -> None:
        self.first_seq = first_seq
        self.changes = changes
        self.records: list[bytes] = []
        self.last = 0
        """The number of the last of `records`."""
        self.waiters: list[asyncio.Future[Failure | None]] = []

    def wake(self, outcome: Failure | None) -> None:
        """Tells everyone who waits, except those that were cancelled."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(outcome)


class FileJournal:
    """A `Journal` in a file of its own."""

    def __init__(
        self,
        file: JournalFile,
        lock: Lock,
        workers: Executor,
        *,
        seq: int,
        torn_bytes: int = 0,
        is_synced: bool = True,
    ) -> None:
        self._file = file
        self._lock = lock
        self._workers = workers
        self._next_seq = seq
        self._kept_seq = seq
        self._size_bytes = file.size_bytes
        self._torn_bytes = torn_bytes
        self._is_synced = is_synced
        """False while what the file held when it was opened may be in the system's memory alone: who wrote
        it may have been killed before its sync."""
        self._last = 0
        self._settled = 0
        """The number up to which every record is stored or lost."""
        self._queue: deque[_Batch] = deque()
        self._working: _Batch | None = None
        self._lost: list[tuple[int, int, Failure, int]] = []
        """(first number, last number, why, `lost_from`) of what could not be kept."""
        self._halted: tuple[Failure, int] | None = None
        """Why nothing is taken, and `lost_from`, until `resume`."""
        self._is_closed = False
        self._is_let_go = False
        self._lost_in_closing = False
        self._closers: list[asyncio.Future[None]] = []

    @property
    def last(self) -> int:
        """The number of the last record appended."""
        return self._last

    @property
    def size_bytes(self) -> int | None:
        """What the stored records take, in bytes; None while some are on their way or in doubt."""
        is_settled = self._working is None and not self._queue and self._halted is None
        return self._size_bytes if is_settled else None

    @property
    def torn_bytes(self) -> int:
        """Bytes at the end that were no whole record when this was opened."""
        return self._torn_bytes

    def append(self, records: Sequence[bytes]) -> int:
        """Puts records at the end and gives back the number to wait for; see `Journal.append`."""
        loop = asyncio.get_running_loop()
        self.add(records)
        self._work(loop)
        return self._last

    def add(self, records: Sequence[bytes]) -> None:
        """As `append`, but begins to write with the next `append`, `durable` or `close`: needs no loop."""
        self._refuse_if_halted()
        for record in records:
            check(record)
        if not records:
            return
        if not self._queue or self._queue[-1].changes is not None:
            self._queue.append(_Batch(self._next_seq))
        batch = self._queue[-1]
        batch.records.extend(records)
        self._next_seq += len(records)
        self._last += len(records)
        batch.last = self._last

    async def durable(self, number: int) -> None:
        """Returns when that record, and all before it, are stored; see `Journal.durable`."""
        loop = asyncio.get_running_loop()
        batch = self._batch_of(number)
        is_older = batch is None and not (self._is_synced or self._is_closed or self._halted)
        if is_older:
            batch = self._next_batch()
        failure = None
        if batch is not None:
            self._work(loop)
            failure = await self._wait(batch, loop)
        for first, last, lost, lost_from in self._lost:
            if first <= number <= last:
                raise _records_lost(lost, lost_from)
        if failure is not None and is_older:
            raise _records_lost(failure, self._kept_seq)

    def resume(self) -> int | None:
        """Takes records again after a failure; see `Journal.resume`."""
        if self._halted is None:
            return None
        failure, lost_from = self._halted
        if failure.is_broken:
            raise _records_lost(failure, lost_from)
        self._halted = None
        return lost_from

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Puts other bytes in the place of records; see `Journal.replace`."""
        loop = asyncio.get_running_loop()
        self._refuse_if_halted()
        for seq, record in changes.items():
            check(record)
            if not 0 <= seq < self._next_seq:
                raise ValueError(f"there is no record {seq}")
        batch = _Batch(self._next_seq, dict(changes))
        self._queue.append(batch)
        self._work(loop)
        failure = await self._wait(batch, loop)
        if failure is not None:
            raise StorageFailed(
                files.refusal(_NOT_REPLACED, failure.errno), reason=files.name_of(failure.errno)
            )

    async def close(self) -> None:
        """Waits for what was appended and lets go of the session; see `Journal.close`."""
        loop = asyncio.get_running_loop()
        if not self._is_closed:
            self._is_closed = True
            self._work(loop)
            self._let_go_if_done(loop)
        if not self._is_let_go:
            closer = loop.create_future()
            self._closers.append(closer)
            await closer
        if self._lost_in_closing and self._halted is not None:
            raise _records_lost(*self._halted)

    def _refuse_if_halted(self) -> None:
        if self._halted is not None:
            raise _records_lost(*self._halted)
        if self._is_closed:
            raise RuntimeError("the journal is closed")

    def _batch_of(self, number: int) -> _Batch | None:
        """Where that record is on its way; None where it is stored or lost."""
        if number <= self._settled:
            return None
        if self._working is not None and number <= self._working.last:
            return self._working
        return next((batch for batch in self._queue if number <= batch.last), None)

    def _next_batch(self) -> _Batch:
        """The one that is written next, or now; an empty one, for its sync, where there is none."""
        if self._working is not None:
            return self._working
        if not self._queue:
            self._queue.append(_Batch(self._next_seq))
            self._queue[-1].last = self._last
        return self._queue[0]

    async def _wait(self, batch: _Batch, loop: asyncio.AbstractEventLoop) -> Failure | None:
        waiter: asyncio.Future[Failure | None] = loop.create_future()
        batch.waiters.append(waiter)
        return await waiter

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Gives the next batch to a thread, unless one is at work."""
        # A callback, not a task: a loop that is shut down cancels its tasks, and then nobody would
        # know whether the batch was written.
        if self._working is not None or not self._queue:
            return
        batch = self._working = self._queue.popleft()
        loop.run_in_executor(self._workers, self._do, batch).add_done_callback(self._worked)

    def _do(self, batch: _Batch) -> Failure | None:
        if batch.changes is not None:
            return self._file.replace(batch.changes)
        return self._file.write(batch.first_seq, batch.records)

    def _worked(self, done: asyncio.Future[Failure | None]) -> None:
        batch = self._working
        if batch is None:
            return
        if done.cancelled() or done.exception() is not None:
            failure: Failure | None = Failure(errno=errno.EIO, is_broken=True)
        else:
            failure = done.result()
        self._working = None
        if failure is None:
            self._kept_seq = max(self._kept_seq, batch.first_seq + len(batch.records))
            self._settled = max(self._settled, batch.last)
            self._size_bytes = self._file.size_bytes
            self._is_synced = True
            batch.wake(None)
        elif batch.changes is not None and not failure.is_broken:
            batch.wake(failure)
        else:
            self._give_up(batch, failure)
        self._work(done.get_loop())
        self._let_go_if_done(done.get_loop())

    def _give_up(self, batch: _Batch, failure: Failure) -> None:
        """Everything from `batch` on is lost; records are taken again after `resume`, if ever."""
        given_up = [batch, *self._queue]
        self._queue.clear()
        lost = sum(len(one.records) for one in given_up)
        self._lost.append((self._last - lost + 1, self._last, failure, self._kept_seq))
        self._settled = self._last
        self._next_seq = self._kept_seq
        self._halted = (failure, self._kept_seq)
        self._lost_in_closing = self._is_closed
        if failure.is_broken:
            self._let_go()  # before anyone is told, who may want to open it again
            self._is_let_go = True
        for one in given_up:
            one.wake(failure)

    def _let_go_if_done(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_closed and self._working is None and not self._is_let_go:
            loop.run_in_executor(self._workers, self._let_go).add_done_callback(self._closed)
        elif self._is_let_go:
            self._wake_closers()

    def _let_go(self) -> None:
        # A session whose first record could not be stored never was: nothing of it stays.
        never_was = self._kept_seq == 0
        try:
            self._file.close(remove=never_was)
        finally:
            self._lock.release(remove=never_was)

    def _closed(self, done: asyncio.Future[None]) -> None:
        # A refused close or unlink has nothing to tell: every record has its answer by now.
        done.exception()
        self._is_let_go = True
        self._wake_closers()

    def _wake_closers(self) -> None:
        for closer in self._closers:
            if not closer.done():
                closer.set_result(None)
        self._closers.clear()


def _records_lost(failure: Failure, lost_from: int) -> RecordsLost:
    sentence = files.refusal(_NOT_WRITTEN, failure.errno)
    if failure.is_broken:
        sentence += " The session was closed; start it again."
    return RecordsLost(
        sentence,
        lost_from=lost_from,
        is_broken=failure.is_broken,
        reason=files.name_of(failure.errno),
    )
