"""A session's journal with asynchronous writes and group commit. The event loop never waits for the disk.

Records are added to a batch. A worker thread writes the whole batch and syncs once, while the next batch
fills. After a failed write, all records that are not stored yet are lost.

A `BatchWriter` stores the batches: in a file (`file_journal.py`) or in a database (`postgres/`). Its methods
run in a worker, and `add` may be called in any thread before the first write. All other methods are called on
the event loop.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial

from compactd.protocol.errors import StorageFailed
from compactd.storage.batch_writer import BatchWriter, WriteFailure
from compactd.storage.journal_file import DiskFailure
from compactd.storage.journal_records import check_record
from compactd.storage.protocols import LOST_LEASE, RecordsLost

_NOT_WRITTEN = "The session could not be written"
_NOT_REPLACED = "The records could not be replaced"


class _Batch:
    """One job of the worker thread: records to append or, if `changes` is set, records to replace."""

    def __init__(self, first_seq: int, changes: Mapping[int, bytes] | None = None) -> None:
        self.first_seq = first_seq
        self.changes = changes
        self.records: list[bytes] = []
        self.last = 0
        """The number of the last record in `records`."""
        self.waiters: list[asyncio.Future[WriteFailure | None]] = []
        self.is_check = False
        """Whether it stores nothing and only finds out if another process has taken the session over."""

    def wake(self, outcome: WriteFailure | None) -> None:
        """Give the outcome (None for success) to all callers that wait for this batch."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(outcome)


class BatchedJournal:
    """A `Journal` whose batches are stored by `writer`, in a thread of `workers`."""

    def __init__(
        self,
        writer: BatchWriter,
        workers: Executor,
        *,
        seq: int,
        torn_bytes: int = 0,
        is_synced: bool = True,
    ) -> None:
        self._writer = writer
        self._workers = workers
        self._next_seq = seq
        self._kept_seq = seq
        self._size_bytes = writer.size_bytes
        self.torn_bytes = torn_bytes
        """The number of bytes at the journal's end that were not a whole record when it was opened."""
        self._is_synced = is_synced
        """False if the records that were in the file at its opening may not be on disk yet: the process that
        wrote them may have been killed before its sync. The first sync sets this to true."""
        self.last = 0
        """The number of the last record appended."""
        self._settled = 0
        """The highest number up to which every record is stored or lost."""
        self._queue: list[_Batch] = []
        """Short: records are added to the last batch. An empty deque would take 600 bytes more."""
        self._working: _Batch | None = None
        self._lost: list[tuple[int, int, WriteFailure, int]] = []
        """For each failed write, (number of the first lost record, number of the last lost record, failure,
        `RecordsLost.lost_from`)."""
        self._halted: tuple[WriteFailure, int] | None = None
        """(the last failure, its `RecordsLost.lost_from`), or None. After a failure, the journal accepts no
        records until `resume`."""
        self._is_closed = False
        self._is_let_go = False
        self._lost_in_closing = False
        self._closers: list[asyncio.Future[None]] = []
        self._on_taken: Callable[[], None] | None = None

    @property
    def size_bytes(self) -> int | None:
        """The size of the stored records in bytes, or None while records are being written or after a
        failure.
        """
        is_settled = self._working is None and not self._queue and self._halted is None
        return self._size_bytes if is_settled else None

    @property
    def is_broken(self) -> bool:
        """True after a failure after which the journal has to be opened again."""
        return self._halted is not None and self._halted[0].is_broken

    def listen(self, on_taken: Callable[[], None]) -> None:
        """Call `on_taken` when another process has taken the session over. See `Journal.listen`."""
        self._on_taken = on_taken
        self._writer.listen(partial(_call_soon, asyncio.get_running_loop(), self._check))

    def append(self, records: Sequence[bytes]) -> int:
        """Append records and return the number of the last one, for `durable`. See `Journal.append`."""
        loop = asyncio.get_running_loop()
        self.add(records)
        self._start_batch(loop)
        return self.last

    def add(self, records: Sequence[bytes]) -> None:
        """Append records, as `append` does, but do not write them yet. The next `append`, `durable` or
        `close` starts the write. Needs no event loop.
        """
        self._refuse_if_halted()
        for record in records:
            check_record(record)
        if not records:
            return
        if not self._queue or self._queue[-1].changes is not None:
            self._queue.append(_Batch(self._next_seq))
        batch = self._queue[-1]
        batch.records.extend(records)
        batch.is_check = False
        self._next_seq += len(records)
        self.last += len(records)
        batch.last = self.last

    async def durable(self, number: int) -> None:
        """Wait until the record with this number, and all before it, are stored. See `Journal.durable`."""
        loop = asyncio.get_running_loop()
        batch = self._batch_of(number)
        is_older = batch is None and not (self._is_synced or self._is_closed or self._halted)
        if is_older:
            batch = self._next_batch()
        failure = None
        if batch is not None:
            self._start_batch(loop)
            failure = await self._wait(batch, loop)
        for first, last, lost, lost_from in self._lost:
            if first <= number <= last:
                raise _lost_records(lost, lost_from)
        if failure is not None and is_older:
            raise _lost_records(failure, self._kept_seq)

    def resume(self) -> int | None:
        """Accept records again after a failure. See `Journal.resume`."""
        if self._halted is None:
            return None
        failure, lost_from = self._halted
        if failure.is_broken:
            raise _lost_records(failure, lost_from)
        self._halted = None
        return lost_from

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Replace the bytes of records. See `Journal.replace`."""
        loop = asyncio.get_running_loop()
        self._refuse_if_halted()
        for seq, record in changes.items():
            check_record(record)
            if not 0 <= seq < self._next_seq:
                raise ValueError(f"there is no record {seq}")
        batch = _Batch(self._next_seq, dict(changes))
        self._queue.append(batch)
        self._start_batch(loop)
        failure = await self._wait(batch, loop)
        if failure is not None:
            raise StorageFailed(failure.sentence(_NOT_REPLACED), reason=failure.reason)

    async def close(self) -> None:
        """Wait until the appended records are stored, then release the session. See
        `Journal.close`.
        """
        loop = asyncio.get_running_loop()
        if not self._is_closed:
            self._is_closed = True
            self._start_batch(loop)
            self._close_writer_if_done(loop)
        if not self._is_let_go:
            closer = loop.create_future()
            self._closers.append(closer)
            await closer
        if self._lost_in_closing and self._halted is not None:
            raise _lost_records(*self._halted)

    def _refuse_if_halted(self) -> None:
        if self._halted is not None:
            raise _lost_records(*self._halted)
        if self._is_closed:
            raise RuntimeError("the journal is closed")

    def _batch_of(self, number: int) -> _Batch | None:
        """Return the batch that contains this record, or None if the record is stored or lost."""
        if number <= self._settled:
            return None
        if self._working is not None and number <= self._working.last:
            return self._working
        return next((batch for batch in self._queue if number <= batch.last), None)

    def _next_batch(self) -> _Batch:
        """Return the batch that is being written, or else the next batch. If there is no batch, add an empty
        one: writing it only makes the stored records durable.
        """
        if self._working is not None:
            return self._working
        if not self._queue:
            self._queue.append(_Batch(self._next_seq))
            self._queue[-1].last = self.last
        return self._queue[0]

    def _check(self) -> None:
        """Find out if another process has taken the session over."""
        if self._halted is not None or self._is_closed:
            return
        if not self._queue:  # else the next batch finds out
            self._queue.append(_Batch(self._next_seq))
            self._queue[-1].last = self.last
            self._queue[-1].is_check = True
        self._start_batch(asyncio.get_running_loop())

    async def _wait(self, batch: _Batch, loop: asyncio.AbstractEventLoop) -> WriteFailure | None:
        waiter: asyncio.Future[WriteFailure | None] = loop.create_future()
        batch.waiters.append(waiter)
        return await waiter

    def _start_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the next batch to a worker thread, unless a batch is being written."""
        # Use a callback, not a task: an event loop that shuts down cancels its tasks, and then the outcome
        # of the batch would be unknown.
        if self._working is not None or not self._queue:
            return
        batch = self._working = self._queue.pop(0)
        loop.run_in_executor(self._workers, self._write_batch, batch).add_done_callback(self._on_batch_done)

    def _write_batch(self, batch: _Batch) -> WriteFailure | None:
        if batch.changes is not None:
            return self._writer.replace(batch.changes)
        return self._writer.write(batch.first_seq, batch.records)

    def _on_batch_done(self, done: asyncio.Future[WriteFailure | None]) -> None:
        batch = self._working
        if batch is None:
            return
        if done.cancelled() or done.exception() is not None:
            failure: WriteFailure | None = DiskFailure(errno=errno.EIO, is_broken=True)
        else:
            failure = done.result()
        self._working = None
        if failure is None:
            self._kept_seq = max(self._kept_seq, batch.first_seq + len(batch.records))
            self._settled = max(self._settled, batch.last)
            self._size_bytes = self._writer.size_bytes
            self._is_synced = True
            batch.wake(None)
        elif (batch.changes is not None or batch.is_check) and not failure.is_broken:
            batch.wake(failure)
        else:
            self._mark_lost(batch, failure)
        self._start_batch(done.get_loop())
        self._close_writer_if_done(done.get_loop())

    def _mark_lost(self, batch: _Batch, failure: WriteFailure) -> None:
        """Count the records of `batch` and of all later batches as lost. Records are accepted again only
        after `resume`.
        """
        given_up = [batch, *self._queue]
        self._queue.clear()
        lost = sum(len(one.records) for one in given_up)
        self._lost.append((self.last - lost + 1, self.last, failure, self._kept_seq))
        self._settled = self.last
        self._next_seq = self._kept_seq
        self._halted = (failure, self._kept_seq)
        self._lost_in_closing = self._is_closed
        if failure.is_broken:
            self._close_writer()  # before the waiters wake, because they may open the session again
            self._is_let_go = True
        for one in given_up:
            one.wake(failure)
        if failure.reason == LOST_LEASE and self._on_taken is not None:
            self._on_taken()

    def _close_writer_if_done(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_closed and self._working is None and not self._is_let_go:
            loop.run_in_executor(self._workers, self._close_writer).add_done_callback(self._on_closed)
        elif self._is_let_go:
            self._wake_closers()

    def _close_writer(self) -> None:
        # If not even the first record was stored, the session does not exist. Nothing of it must remain.
        self._writer.close(remove=self._kept_seq == 0)

    def _on_closed(self, done: asyncio.Future[None]) -> None:
        # An error of close or unlink does not matter: the outcome of every record is known.
        done.exception()
        self._is_let_go = True
        self._wake_closers()

    def _wake_closers(self) -> None:
        for closer in self._closers:
            if not closer.done():
                closer.set_result(None)
        self._closers.clear()


def _call_soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the event loop has ended
        loop.call_soon_threadsafe(work)


def _lost_records(failure: WriteFailure, lost_from: int) -> RecordsLost:
    sentence = failure.sentence(_NOT_WRITTEN)
    if failure.is_broken:
        sentence += " The session was closed; open it again with session/start."
    return RecordsLost(
        sentence,
        lost_from=lost_from,
        is_broken=failure.is_broken,
        reason=failure.reason,
    )
