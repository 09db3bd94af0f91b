"""Read small input directly on the event loop, which saves a switch between threads per request.

While a worker computes, every thread that wakes up waits for the GIL for up to `sys.setswitchinterval`. With
a reader's thread, a request would wait twice: for that thread, then for the event loop. Only large input is
read in the reader's thread.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from compactd.daemon.rpc.checked_body import CheckedBody
from compactd.daemon.rpc.framing import Frame, Framer
from compactd.daemon.rpc.pipes import READ_BYTES, PipeReader, PipeWriter

if TYPE_CHECKING:
    import asyncio

MAX_LOOP_READ_BYTES = 4096
"""If a read in the thread returns at most this many bytes and ends with a complete message, reading goes back
to the event loop."""


class LoopReader(PipeReader):
    """A reader of the input. It reads on the event loop, or in a thread while much arrives or a message is
    incomplete.

    If the event loop cannot watch the input (regular files, terminals, Windows), the thread reads
    everything.
    """

    def __init__(self, fd: int, framer: Framer, loop: asyncio.AbstractEventLoop, writer: PipeWriter) -> None:
        super().__init__(fd, framer, loop, writer)
        self._is_near = False
        self._is_begun = False
        self._is_over = False
        """True after the event loop has reported the end of the input. The reader's thread then stops."""
        self._far = threading.Semaphore(0)

    def start(self, ready: Callable[[], None]) -> None:
        """Begin to read. Call `ready` on the event loop when there are frames, as `PipeReader.start` does."""
        kind = os.fstat(self._fd).st_mode
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            super().start(ready)
            return
        self._ready = ready
        try:
            self._read_on_loop()
        except (NotImplementedError, OSError):
            self._is_near = False
            super().start(ready)

    # --- on the event loop ----------------------------------------------------------------------------

    def _read_on_loop(self) -> None:
        self._is_near = True
        self._loop.add_reader(self._fd, self._read_near)

    def _read_near(self) -> None:
        if self._is_full():
            self._read_in_thread()
            return
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:  # another process read the data
            return
        except OSError:
            data = b""
        try:
            self._take(data)
        except BaseException:  # also out of memory: a connection that can no longer read has ended
            data = b""
            raise
        finally:
            if not data or self._framer.broken:
                self._loop.remove_reader(self._fd)
                self._hand_over([None])
                self._is_over = True
                self._far.release()
            elif len(data) >= READ_BYTES or self._framer.is_inside:
                self._read_in_thread()

    def _read_in_thread(self) -> None:
        self._loop.remove_reader(self._fd)
        self._is_near = False
        if self._is_begun:
            self._far.release()
        else:
            self._is_begun = True
            super().start(self._ready)

    def _hand_over(self, frames: Sequence[Frame | CheckedBody | None]) -> None:
        if self._is_over:
            return
        if not self._is_near:
            super()._hand_over(frames)
            return
        self.frames += frames
        if frames and not self.woken:
            self.woken = True
            self._ready()

    # --- in the reader's thread -----------------------------------------------------------------------

    def _keeps_reading(self, data: bytes) -> bool:
        """Return true at once while much arrives or a message is incomplete. Otherwise give the reading back
        to the event loop and wait until the thread is needed again; return false if the input has ended
        meanwhile.
        """
        if not self._is_begun or len(data) > MAX_LOOP_READ_BYTES or self._framer.is_inside:
            return True
        try:
            self._loop.call_soon_threadsafe(self._read_on_loop)
        except RuntimeError:
            return False  # the loop is closed: the process is on its way out
        self._far.acquire()
        return not self._is_over
