"""The two ends of the wire: a thread that reads, a thread that writes, and what each may have waiting.

Threads and not asyncio's pipe transports: those refuse regular files and inherited Windows handles, and a
blocked client would block the loop. Numbers that two threads share are each written by one of them only.
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

from compactd.daemon.rpc.checked_body import LARGE_BYTES, Large, Looking
from compactd.daemon.rpc.framing import Frame, Framer

if TYPE_CHECKING:
    import asyncio

UNSENT_LIMIT_BYTES = 64 * 1024 * 1024
"""Above it the daemon stops reading and handling until the client has read (docs/dev/contract.md,
"Transport")."""

UNHANDLED_LIMIT_BYTES = 8 * 1024 * 1024
"""Of complete messages that were read and not yet handled; above it the reader waits."""

READ_BYTES = 1 << 16
"""Asked for at once, as long as no read gives so much."""
_BIG_READ_BYTES = 1 << 20
_WRITE_BYTES = 1 << 20  # in one call: how fine `unsent_bytes` is counted
_SMALL_BYTES = 4096  # pieces that are no larger on average are joined without a look at each
JOIN_BYTES = 1 << 16
"""Larger pieces are written by themselves rather than copied."""

# poll promises that so much can be written to a pipe without blocking (Python's select documentation).
_DIRECT_BYTES: int = getattr(select, "PIPE_BUF", 0) if hasattr(select, "poll") else 0
# Where the system writes what there is room for, and does not block: pwritev2(2), for pipes since Linux 6.4.
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0) if hasattr(os, "pwritev") else 0
_NOWAIT_BYTES = 1 << 16  # what a pipe holds
_UNKNOWN = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ESPIPE)


class Writer:
    """Sends bytes in order without ever holding the loop. Its methods belong to the loop's thread.

    A few bytes go out at once where the pipe surely takes them, which spares the switch to a thread.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, gone: Callable[[], None]) -> None:
        self._fd = fd
        self._loop = loop
        self._gone = gone
        self.is_gone = False
        """Nobody reads any more: what is written is dropped."""
        self.progressed: Callable[[], None] = _nothing
        """Called, in the writer's thread, whenever fewer bytes wait."""
        self.unflushed_bytes = 0
        """Written and not handed on yet. Handing on is for the loop, so only `flush` makes it less."""
        self.outbox: list[bytes] = []
        """What is not flushed yet. Who adds to it without `write` counts it, and has called `collect`."""
        self._queued_bytes = 0  # handed on, by the loop
        self._sent_bytes = 0  # written, by whoever writes; the loop only while nothing is queued
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._mark: tuple[int, Callable[[], None]] | None = None
        self._flushing = False
        kind = os.fstat(fd).st_mode
        self._poll = None
        self._nowait = _NOWAIT
        """The flag, as long as the system knows it."""
        if _DIRECT_BYTES and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            self._poll = select.poll()
            self._poll.register(fd, select.POLLOUT)

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return self._queued_bytes - self._sent_bytes + self.unflushed_bytes

    def is_full(self) -> bool:
        """Whether too much waits for a client that is still there."""
        return self.unsent_bytes > UNSENT_LIMIT_BYTES and not self.is_gone

    def write(self, data: bytes) -> None:
        """Puts bytes at the end of what is to be sent. The next `flush` sends them."""
        self.outbox.append(data)
        self.unflushed_bytes += len(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def collect(self) -> None:
        """Promises a `flush` soon, so that no write has to ask the loop for one."""
        self._flushing = True

    def flush(self) -> None:
        """Hands on all that was written."""
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
            self._hand_on(pieces)

    def when_below(self, unsent_bytes: int, act: Callable[[], None]) -> None:
        """Calls `act` on the loop as soon as at most so much waits; maybe twice. The latest call counts."""
        self._mark = (unsent_bytes, act)
        if self.unsent_bytes <= unsent_bytes or self.is_gone:
            self._mark = None
            self._loop.call_soon(act)

    def _write_now(self, data: bytes) -> None:
        try:
            written = self._what_goes(data)
        except BlockingIOError:
            written = 0
        except OSError:
            self._lost()
            return
        if written < len(data):
            self._queued_bytes += len(data) - written
            self._hand_on([data[written:]])

    def _what_goes(self, data: bytes) -> int:
        """Writes what goes without waiting, and says how much."""
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

    def _hand_on(self, pieces: list[bytes]) -> None:
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
                except BlockingIOError:  # someone else made the description non-blocking
                    select.select([], [self._fd], [])
                    continue
                except OSError:
                    self._loop_call(self._lost)
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

    def _lost(self) -> None:
        self.is_gone = True
        self._gone()


class Reader:
    """Reads and frames in a thread. `frames` is for the loop to take from, oldest first; None is the end."""

    def __init__(self, fd: int, framer: Framer, loop: asyncio.AbstractEventLoop, writer: Writer) -> None:
        self._fd = fd
        self._framer = framer
        self._loop = loop
        self._writer = writer
        self._ready: Callable[[], None] = _nothing
        self.frames: deque[Frame | Large | None] = deque()
        self.handled_bytes = 0
        """Of the messages taken from `frames`; counted by whoever takes them."""
        self.woken = False
        """The loop has been called and has not yet found `frames` empty."""
        self._looking: Looking | None = None
        self._read_bytes = 0
        self._waiting = False
        self._room = threading.Condition()
        writer.progressed = self.release

    def start(self, ready: Callable[[], None]) -> None:
        """Begins to read; `ready` is called on the loop when there are frames."""
        self._ready = ready
        threading.Thread(target=self._run, name="compactd-reader", daemon=True).start()

    def release(self) -> None:
        """To be called when there may be room again: in any thread, and cheap when nobody waits."""
        if self._waiting:
            with self._room:
                self._room.notify()

    # --- in the reader's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._read()
        finally:  # also where memory ran out: a connection that reads nothing more has ended
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
            except OSError:  # a terminal that hung up: there is no more to come
                data = b""
            size = _BIG_READ_BYTES if len(data) >= READ_BYTES else READ_BYTES
            self._take(data)
            if data and not self._goes_on(data):
                return

    def _take(self, data: bytes) -> None:
        """Hands over what a read gave; nothing is the end."""
        frames = self._framer.feed(data) if data else self._framer.end()
        self._read_bytes += sum(map(len, frames))
        looking, self._looking = self._looking, None
        if frames and isinstance(first := frames[0], bytearray):
            # Begun by an earlier read: no other can be, nor be as large.
            if looking is None or looking.text is not first:
                looking = Looking(first)
            self._hand_over([looking.done() if len(first) > LARGE_BYTES else bytes(first)])
            del frames[0]
        self._hand_over(frames)
        if len(held := self._framer.held) > LARGE_BYTES:
            self._looking = looking if looking is not None and looking.text is held else Looking(held)
            self._looking.look()

    def _goes_on(self, data: bytes) -> bool:
        """Behind each read that gave something: False where no more is to be read."""
        return True

    def _hand_over(self, frames: Sequence[Frame | Large | None]) -> None:
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
            self._waiting = True  # before the look, so that no release is missed
            while self._is_full():
                self._room.wait()
            self._waiting = False


def _nothing() -> None:
    """Nobody listens yet."""
