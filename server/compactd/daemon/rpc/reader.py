"""The input: read bytes on the event loop, and split them into messages.

If a thread read, each request would wait for the GIL twice while a worker computes: first the thread, then
the event loop, each for up to `sys.setswitchinterval` (docs/dev/decisions/0012-one-read-path.md).
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable

from compactd.daemon.rpc.checked_body import LARGE_BYTES, BodyCheck
from compactd.daemon.rpc.framing import Frame, Framer

READ_BYTES = 1 << 16
"""The bytes requested per read. After a read that returned this many, the next one requests
`_BIG_READ_BYTES`."""
_BIG_READ_BYTES = 1 << 18


class PipeReader:
    """The reader of the input. Call its methods only on the event loop's thread.

    Take messages from `frames`, oldest first. None marks the end. If the event loop cannot watch the input
    (regular files, terminals, Windows), a thread reads instead, and gives the bytes of each read to the event
    loop.
    """

    def __init__(
        self, fd: int, framer: Framer, loop: asyncio.AbstractEventLoop, ready: Callable[[], None]
    ) -> None:
        """`ready` is called after each read. It may call `pause` and `resume`."""
        self._fd = fd
        self._framer = framer
        self._loop = loop
        self._ready = ready
        self.frames: deque[Frame | BodyCheck | None] = deque()
        self._check: BodyCheck | None = None
        self._size = READ_BYTES
        self._is_reading = False
        self._is_over = False
        self._is_in_thread = False
        self._may_read = threading.Event()  # for the thread

    def start(self) -> None:
        """Begin to read."""
        kind = os.fstat(self._fd).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            try:
                self.resume()
            except (NotImplementedError, OSError):  # for example the event loop of Windows
                self._is_reading = False
            else:
                return
        self._is_in_thread = True
        self.resume()
        threading.Thread(target=self._run, name="compactd-reader", daemon=True).start()

    def pause(self) -> None:
        """Read no more until `resume` is called. A read that the thread has begun still gives its bytes."""
        self._may_read.clear()
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Go on reading, unless the input has ended."""
        if self._is_over:
            return
        if self._is_in_thread:
            self._may_read.set()
        elif not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Close the input. If a thread waits in a read, the descriptor stays open."""
        self.pause()
        was_over, self._is_over = self._is_over, True
        if not self._is_in_thread or was_over:
            os.close(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, self._size)
        except BlockingIOError:  # another process read the data
            return
        except OSError:
            data = b""
        self._take(data)

    def _take(self, data: bytes) -> None:
        """Split the bytes of one read into messages. Empty `data` means the end of the input."""
        if self._is_over:
            return
        self._size = _BIG_READ_BYTES if len(data) >= READ_BYTES else READ_BYTES
        try:
            self._split(data)
        except BaseException:  # also out of memory: a connection that can no longer read has ended
            data = b""
            raise
        finally:
            if not data or self._framer.broken:
                self._is_over = True
                self.pause()
                self.frames.append(None)
            self._ready()

    def _split(self, data: bytes) -> None:
        for frame in self._framer.feed(data) if data else self._framer.end():
            # Larger messages than one read are bytearrays.
            if isinstance(frame, bytearray) and len(frame) > LARGE_BYTES:
                check = self._check_of(frame)
                check.check_new(is_all=True)
                self.frames.append(check)
            else:
                self.frames.append(frame)
        if len(self._framer.incomplete) > LARGE_BYTES:
            self._check_of(self._framer.incomplete).check_new(is_all=False)
        else:
            self._check = None

    def _check_of(self, text: bytearray) -> BodyCheck:
        if self._check is None or self._check.text is not text:
            self._check = BodyCheck(text)
        return self._check

    # --- in the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        data = b"?"
        while data:
            self._may_read.wait()
            self._may_read.clear()  # `resume` sets it again after the messages are handled
            try:
                data = os.read(self._fd, self._size)
            except BlockingIOError:
                select.select([self._fd], [], [])
                self._may_read.set()
                continue
            except (OSError, MemoryError):  # for example a terminal that hung up
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._take, data)
            except RuntimeError:
                return  # the loop is closed: the process is on its way out
