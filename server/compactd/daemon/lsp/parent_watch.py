"""Watch the parent process that `initialize` named, and report when it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

POLL_S = 2.0
"""Seconds between checks if the system cannot notify. A parent that dies usually closes the daemon's stdin as
well, which ends the daemon sooner."""


def watch_parent(
    pid: int,
    gone: Callable[[], None],
    loop: asyncio.AbstractEventLoop,
    poll_s: float = POLL_S,
    use_pidfd: bool = True,
) -> None:
    """Call `gone` once, on the event loop, when process `pid` has ended, or at once if there is no such
    process.

    Linux notifies through a pidfd. On other systems, or if `use_pidfd` is false, the process is checked every
    `poll_s` seconds with signal 0. On Windows nothing is watched, because signal 0 would end the process; the
    daemon relies on the end of stdin.
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
