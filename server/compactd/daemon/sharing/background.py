"""Start a shared daemon in the background, in a process that is nobody's child.

The daemon is a fork of the process that needs it: a second interpreter would take as long to start as the
daemon itself.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path


def start_daemon(log: Path, serve: Callable[[socket.socket], int]) -> socket.socket:
    """Run `serve` in a new process, and return a link to the socket that it gets. The process ends with the
    code that `serve` returns; its standard output and error go to the file `log`. Raises `OSError`.

    Call it while the process has one thread.
    """
    log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if not pid:
            ours.close()
            _leave_parent()
            _keep_only(theirs.fileno(), log_fd)
            if not sys.flags.safe_path:
                del sys.path[0]  # the current folder, or that of the script
            raise SystemExit(serve(theirs))
        theirs.close()
        os.waitpid(pid, 0)  # it has left the daemon to itself
        return ours
    finally:
        os.close(log_fd)


def _leave_parent() -> None:
    """Go on in a child process, in a session of its own: Ctrl-C in this terminal does not end it, nor does
    a client that ends all processes that it started.
    """
    os.setsid()
    if os.fork():
        os._exit(0)


def _keep_only(link: int, log: int) -> None:
    """Close all descriptors but `link`. Standard input is empty then; standard output and error go to `log`,
    which is open, too.
    """
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, to in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, to)
    kept = sorted({0, 1, 2, link, log})
    for first, last in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(first + 1, last)
