"""Notices that nobody holds the other end of our output any more, without writing to it."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from contextlib import suppress

LOOK_S = 1.0
"""How often the end is looked at if the system does not wake us by itself."""


def watch_output(fd: int, gone: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
    """Calls `gone` once, on the loop, when the reader of `fd` has closed it. Does nothing for what is neither
    a pipe nor a socket, and where the system has no poll(2).

    A thread waits in poll: the daemon is not woken for it. An end of the input is no sign: a socket whose
    peer only stopped writing has no POLLHUP (poll(2), Linux).
    """
    kind = os.fstat(fd).st_mode
    if not hasattr(select, "poll") or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return
    poll = select.poll()
    poll.register(fd, 0)  # POLLERR and POLLHUP are told unasked

    def wait() -> None:
        with suppress(OSError):  # closed by ourselves: the process is on its way out
            while not poll.poll(LOOK_S * 1000):
                pass
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(gone)

    threading.Thread(target=wait, name="compactd-vanished", daemon=True).start()
