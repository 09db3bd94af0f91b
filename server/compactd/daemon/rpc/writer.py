"""The output: bytes are written in order, without blocking the event loop.

A thread is used instead of asyncio's pipe transport, because that refuses regular files and inherited Windows
handles. Each number that two threads share is written by only one of them.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

UNSENT_LIMIT_BYTES = 64 * 1024 * 1024
"""If more bytes than this wait for the client to read, the daemon stops reading and handling messages
(docs/dev/contract.md, "Transport")."""

_WRITE_BYTES = 1 << 20  # the most bytes per write, so that `unsent_bytes` is up to date
_JOIN_BYTES = 1 << 16  # the writer's thread joins smaller pieces, so that one write sends many

# If poll reports a pipe as writable, this many bytes do not block (Python's select documentation).
_DIRECT_BYTES: int = getattr(select, "PIPE_BUF", 0) if hasattr(select, "poll") else 0
# The flag for writing what fits without blocking: pwritev2(2), for pipes since Linux 6.4.
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0) if hasattr(os, "pwritev") else 0
_NOWAIT_BYTES = 1 << 16  # the capacity of a pipe
_CHECK_S = 1
"""The most seconds after which the writer's thread notices that nobody needs the output any more."""
_UNKNOWN = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ESPIPE)


class PipeWriter:
    """The output. It sends bytes in order without blocking the event loop. Call its methods only on the event
    loop's thread.

    Small output is written directly on the event loop if the pipe has room, which saves a switch to the
    writer's thread.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, gone: Callable[[], None]) -> None:
        self._fd = fd
        self._loop = loop
        self._gone = gone
        self.is_gone = False
        """True if nobody reads the output any more. Further writes are dropped."""
        self._unflushed: list[bytes] = []
        self._unflushed_bytes = 0
        self._queued_bytes = 0  # given to the writer's thread; changed on the event loop
        self._sent_bytes = 0  # written; changed on the event loop only while nothing is queued
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()  # None: the end
        self._thread: threading.Thread | None = None
        self._mark: tuple[int, Callable[[], None]] | None = None
        self._flushing = False
        kind = os.fstat(fd).st_mode
        self._poll = None
        self._nowait = _NOWAIT
        """The flag for writing without blocking, or 0 if the system or this output does not support it."""
        if _DIRECT_BYTES and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            self._poll = select.poll()
            self._poll.register(fd, select.POLLOUT)

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that are not written to the output yet."""
        return self._queued_bytes - self._sent_bytes + self._unflushed_bytes

    def is_full(self) -> bool:
        """Return true if too many bytes wait for a client that is still there."""
        return self.unsent_bytes > UNSENT_LIMIT_BYTES and not self.is_gone

    def write(self, data: bytes) -> None:
        """Append bytes to the output. The next `flush` sends them; it runs soon."""
        self._unflushed.append(data)
        self._unflushed_bytes += len(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def collect(self) -> None:
        """Promise that `flush` will be called soon, so that writes need not schedule it.

        A scheduled call would make the event loop poll once more, and wait for the GIL.
        """
        self._flushing = True

    def flush(self) -> None:
        """Send what `write` got: write it directly, or give it to the writer's thread."""
        self._flushing = False
        pieces, size = self._unflushed, self._unflushed_bytes
        self._unflushed, self._unflushed_bytes = [], 0
        if not pieces or self.is_gone:
            return
        if size < _WRITE_BYTES:
            pieces = [b"".join(pieces)]
        at_once = self._poll is not None and self._queued_bytes == self._sent_bytes
        if at_once and size <= (_NOWAIT_BYTES if self._nowait else _DIRECT_BYTES):
            self._write_now(pieces[0])
        else:
            self._queue_for_thread(pieces)

    def close(self) -> None:
        """Close the output. What is not written yet is lost."""
        self.is_gone = True
        self._unflushed.clear()
        self._unflushed_bytes = 0
        if self._thread is None:
            os.close(self._fd)
        else:
            self._queue.put(None)  # the thread closes it

    def when_below(self, unsent_bytes: int, act: Callable[[], None]) -> None:
        """Call `act` on the event loop as soon as at most `unsent_bytes` wait for the client. `act` may be
        called twice. A later call of this method replaces this one.
        """
        self._mark = (unsent_bytes, act)
        if self.unsent_bytes <= unsent_bytes or self.is_gone:
            self._mark = None
            self._loop.call_soon(act)

    def _write_now(self, data: bytes) -> None:
        try:
            written = self._write_without_waiting(data)
        except BlockingIOError:
            written = 0
        except OSError:
            self._on_lost()
            return
        if written < len(data):
            self._queue_for_thread([data[written:]])

    def _write_without_waiting(self, data: bytes) -> int:
        """Write what fits without waiting, and return the number of bytes."""
        if self._nowait:
            try:
                return os.pwritev(self._fd, (data,), -1, self._nowait)
            except OSError as refused:
                if refused.errno not in _UNKNOWN:
                    raise
                self._nowait = 0
        if len(data) > _DIRECT_BYTES or self._poll is None or not self._poll.poll(0):
            return 0
        return os.write(self._fd, data)

    def _queue_for_thread(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self._queued_bytes += len(piece)
            self._queue.put(piece)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="compactd-writer", daemon=True)
            self._thread.start()

    # --- in the writer's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        piece = self._queue.get()
        while piece is not None:
            pieces, size = [piece], len(piece)
            try:
                while size < _JOIN_BYTES and (piece := self._queue.get_nowait()) is not None:
                    pieces.append(piece)
                    size += len(piece)
            except Empty:
                pass
            for data in (b"".join(pieces),) if size < 2 * _JOIN_BYTES else pieces:
                self._send(data)
            if piece is not None:
                piece = self._queue.get()
        os.close(self._fd)

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = len(view)
            if not self.is_gone:
                try:
                    written = os.write(self._fd, view[:_WRITE_BYTES])
                except BlockingIOError:  # a shared daemon or another process made the output non-blocking
                    self._wait_until_writable()
                    continue
                except OSError:
                    self._loop_call(self._on_lost)
                    self.is_gone = True
            view = view[written:]
            self._sent_bytes += written
            mark = self._mark
            if mark is not None and self.unsent_bytes <= mark[0]:
                self._mark = None
                self._loop_call(mark[1])

    def _wait_until_writable(self) -> None:
        """Wait until the output takes more bytes, at most `_CHECK_S`."""
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._fd, select.POLLOUT)
            poll.poll(1_000 * _CHECK_S)
        else:
            select.select([], [self._fd], [], _CHECK_S)

    def _loop_call(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:
            return  # the loop is closed: the process is on its way out

    def _on_lost(self) -> None:
        self.is_gone = True
        self._gone()
