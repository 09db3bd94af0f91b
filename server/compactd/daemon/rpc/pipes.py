"""The input and output pipes: a reader thread, a writer thread, and limits on the bytes that wait in each.

Threads are used instead of asyncio's pipe transports, because those refuse regular files and inherited
Windows handles, and because a blocked client would block the event loop. Each number that two threads share
is written by only one of them.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from compactd.daemon.rpc.checked_body import LARGE_BYTES, BodyCheck, CheckedBody
from compactd.daemon.rpc.framing import Frame, Framer

if TYPE_CHECKING:
    import asyncio

UNSENT_LIMIT_BYTES = 64 * 1024 * 1024
"""If more bytes than this wait for the client to read, the daemon stops reading and handling messages
(docs/dev/contract.md, "Transport")."""

UNHANDLED_LIMIT_BYTES = 8 * 1024 * 1024
"""If more bytes of complete messages than this wait to be handled, the reader waits."""

READ_BYTES = 1 << 16
"""The bytes requested per read. After a read that returned this many, the next one requests
`_BIG_READ_BYTES`."""
_BIG_READ_BYTES = 1 << 20
_WRITE_BYTES = 1 << 20  # the most bytes per write, so that `unsent_bytes` is up to date
_SMALL_BYTES = 4096  # pieces up to this average size are joined without checking the size of each
JOIN_BYTES = 1 << 16
"""Pieces of output of at least this size are written separately. Smaller ones are joined, so that one write
sends many.
"""

# If poll reports a pipe as writable, this many bytes do not block (Python's select documentation).
_DIRECT_BYTES: int = getattr(select, "PIPE_BUF", 0) if hasattr(select, "poll") else 0
# The flag for writing what fits without blocking: pwritev2(2), for pipes since Linux 6.4.
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0) if hasattr(os, "pwritev") else 0
_NOWAIT_BYTES = 1 << 16  # the capacity of a pipe
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
        self.progressed: Callable[[], None] = _ignore
        """A callback that the writer's thread calls after each write, because fewer bytes wait then."""
        self.unflushed_bytes = 0
        """The number of bytes in `outbox`. Only `flush`, on the event loop, reduces this number."""
        self.outbox: list[bytes] = []
        """The pieces that are not flushed yet. To append without `write`, first call `collect`, and add the
        size to `unflushed_bytes`."""
        self._queued_bytes = 0  # given to the writer's thread; changed on the event loop
        self._sent_bytes = 0  # written; changed on the event loop only while nothing is queued
        self._queue: SimpleQueue[bytes] = SimpleQueue()
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
        return self._queued_bytes - self._sent_bytes + self.unflushed_bytes

    def is_full(self) -> bool:
        """Return true if too many bytes wait for a client that is still there."""
        return self.unsent_bytes > UNSENT_LIMIT_BYTES and not self.is_gone

    def write(self, data: bytes) -> None:
        """Append bytes to the output. The next `flush` sends them; it runs soon."""
        self.outbox.append(data)
        self.unflushed_bytes += len(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def collect(self) -> None:
        """Promise that `flush` will be called soon, so that writes need not schedule it."""
        self._flushing = True

    def flush(self) -> None:
        """Send the pieces in `outbox`: write them directly, or give them to the writer's thread."""
        self._flushing = False
        pieces, size = self.outbox.copy(), self.unflushed_bytes
        if not pieces:
            return
        self.outbox.clear()
        self.unflushed_bytes = 0
        if self.is_gone:
            return
        if size < min(_WRITE_BYTES, _SMALL_BYTES * len(pieces)):
            pieces = [b"".join(pieces)]
        at_once = self._poll is not None and self._queued_bytes == self._sent_bytes
        if at_once and size <= (_NOWAIT_BYTES if self._nowait else _DIRECT_BYTES):
            self._write_now(b"".join(pieces))
        else:
            self._queued_bytes += size
            self._queue_for_thread(pieces)

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
            self._queued_bytes += len(data) - written
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
        small: list[bytes] = []
        for piece in pieces:
            if len(piece) < JOIN_BYTES:
                small.append(piece)
                continue
            if small:
                self._queue.put(b"".join(small))
                small = []
            self._queue.put(piece)
        if small:
            self._queue.put(b"".join(small))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="compactd-writer", daemon=True)
            self._thread.start()

    # --- in the writer's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            pieces = [self._queue.get()]
            size = len(pieces[0])
            try:
                while size < JOIN_BYTES:
                    pieces.append(self._queue.get_nowait())
                    size += len(pieces[-1])
            except Empty:
                pass
            for data in (b"".join(pieces),) if size < 2 * JOIN_BYTES else pieces:
                self._send(data)

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = len(view)
            if not self.is_gone:
                try:
                    written = os.write(self._fd, view[:_WRITE_BYTES])
                except BlockingIOError:  # another process made the file description non-blocking
                    select.select([], [self._fd], [])
                    continue
                except OSError:
                    self._loop_call(self._on_lost)
                    self.is_gone = True
            view = view[written:]
            self._sent_bytes += written
            self.progressed()
            mark = self._mark
            if mark is not None and self.unsent_bytes <= mark[0]:
                self._mark = None
                self._loop_call(mark[1])

    def _loop_call(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:
            return  # the loop is closed: the process is on its way out

    def _on_lost(self) -> None:
        self.is_gone = True
        self._gone()


class PipeReader:
    """The input. It reads in a thread and splits the bytes into messages.

    The event loop takes messages from `frames`, oldest first. None marks the end.
    """

    def __init__(self, fd: int, framer: Framer, loop: asyncio.AbstractEventLoop, writer: PipeWriter) -> None:
        self._fd = fd
        self._framer = framer
        self._loop = loop
        self._writer = writer
        self._ready: Callable[[], None] = _ignore
        self.frames: deque[Frame | CheckedBody | None] = deque()
        self.handled_bytes = 0
        """The bytes of the messages taken from `frames`, updated by the code that takes them."""
        self.woken = False
        """True if `ready` was called and the event loop has not emptied `frames` yet."""
        self._looking: BodyCheck | None = None
        self._read_bytes = 0
        self._waiting = False
        self._room = threading.Condition()
        writer.progressed = self.release

    def start(self, ready: Callable[[], None]) -> None:
        """Begin to read. `ready` is called on the event loop when there are frames."""
        self._ready = ready
        threading.Thread(target=self._run, name="compactd-reader", daemon=True).start()

    def release(self) -> None:
        """Wake the reader's thread if it waits because too much is unhandled or unsent. May be called in any
        thread. Cheap if the thread does not wait.
        """
        if self._waiting:
            with self._room:
                self._room.notify()

    # --- in the reader's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._read()
        finally:  # also out of memory: a connection that can no longer read has ended
            self._hand_over([None])

    def _read(self) -> None:
        size = READ_BYTES
        data = b"?"
        while data and not self._framer.broken:
            if self._is_full():
                self._wait()
            try:
                data = os.read(self._fd, size)
            except BlockingIOError:
                select.select([self._fd], [], [])
                continue
            except OSError:  # for example a terminal that hung up
                data = b""
            size = _BIG_READ_BYTES if len(data) >= READ_BYTES else READ_BYTES
            self._take(data)
            if data and not self._keeps_reading(data):
                return

    def _take(self, data: bytes) -> None:
        """Split the bytes of one read into messages, and give these to the event loop. Empty `data` means the
        end.
        """
        frames = self._framer.feed(data) if data else self._framer.end()
        self._read_bytes += sum(map(len, frames))
        looking, self._looking = self._looking, None
        if frames and isinstance(first := frames[0], bytearray):
            # Only the first frame can have begun in an earlier read, and only that one can be large.
            if looking is None or looking.text is not first:
                looking = BodyCheck(first)
            self._hand_over([looking.finish() if len(first) > LARGE_BYTES else bytes(first)])
            del frames[0]
        self._hand_over(frames)
        if len(held := self._framer.incomplete) > LARGE_BYTES:
            self._looking = looking if looking is not None and looking.text is held else BodyCheck(held)
            self._looking.check_new()

    def _keeps_reading(self, data: bytes) -> bool:
        """Return false to stop reading. Called after each read that returned data; subclasses override it."""
        return True

    def _hand_over(self, frames: Sequence[Frame | CheckedBody | None]) -> None:
        self.frames += frames
        if frames and not self.woken:
            self.woken = True
            try:
                self._loop.call_soon_threadsafe(self._ready)
            except RuntimeError:
                return  # the loop is closed: the process is on its way out

    def _is_full(self) -> bool:
        return (
            self._read_bytes - self.handled_bytes > UNHANDLED_LIMIT_BYTES
            or self._writer.unsent_bytes > UNSENT_LIMIT_BYTES
        )

    def _wait(self) -> None:
        with self._room:
            self._waiting = True  # set before the check, so that no release is missed
            while self._is_full():
                self._room.wait()
            self._waiting = False


def _ignore() -> None:
    """Do nothing. This is the default callback."""
