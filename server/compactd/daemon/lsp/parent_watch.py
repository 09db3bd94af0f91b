"""Watches the process that said in `initialize` that it is our parent."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

POLL_S = 2.0
"""Where the system cannot tell by itself. A lost parent nearly always closes our stdin long before."""


def watch_parent(
    pid: int,
    gone: Callable[[], None],
    loop: asyncio.AbstractEventLoop,
    poll_s: float = POLL_S,
    use_pidfd: bool = True,
) -> None:
    """Calls `gone` once, on the loop, when process `pid` has ended; soon, if there is none.

    Linux tells (a pidfd); elsewhere it is asked every `poll_s` seconds. On Windows nothing is watched,
    for signal 0 would end the process there: the end of stdin has to do.
    """
    if pid <= 0 or sys.platform == "win32":
        return
    if use_pidfd and sys.platform == "linux":
        try:
            fd = os.pidfd_open(pid)
        except (ProcessLookupError, OverflowError):
            loop.call_soon(gone)
            return
        except OSError:
            _poll(pid, gone, loop, poll_s)  # a kernel before 5.3, or a sandbox without the call
            return

        def ended() -> None:
            loop.remove_reader(fd)
            os.close(fd)
            gone()

        loop.add_reader(fd, ended)
    else:
        _poll(pid, gone, loop, poll_s)


def _poll(pid: int, gone: Callable[[], None], loop: asyncio.AbstractEventLoop, poll_s: float) -> None:
    if _is_alive(pid):
        loop.call_later(poll_s, _poll, pid, gone, loop, poll_s)
    else:
        loop.call_soon(gone)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
