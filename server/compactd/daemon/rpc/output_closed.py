"""Detect that nobody reads the daemon's output any more, without writing to it."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from contextlib import suppress

CHECK_INTERVAL_S = 1.0
"""The most seconds between two checks, in case the system does not wake the thread."""


def watch_output(
    fd: int,
    gone: Callable[[], None],
    loop: asyncio.AbstractEventLoop,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Call `gone` once, on the event loop, when the reader of `fd` has closed it. Once `is_over` returns
    true, `fd` may be closed: the thread ends within `CHECK_INTERVAL_S`.

    Does nothing if `fd` is neither a pipe nor a socket, or if the system has no poll(2). A thread waits in
    poll, so the event loop is not woken. A socket whose peer only stopped writing does not count as closed:
    it has no POLLHUP (poll(2), Linux).
    """
    kind = os.fstat(fd).st_mode
    if not hasattr(select, "poll") or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return
    poll = select.poll()
    poll.register(fd, 0)  # POLLERR and POLLHUP are always reported

    def wait() -> None:
        with suppress(OSError):  # this process closed it, because it is ending
            while not poll.poll(CHECK_INTERVAL_S * 1000):
                if is_over():
                    return
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(gone)

    threading.Thread(target=wait, name="compactd-vanished", daemon=True).start()
