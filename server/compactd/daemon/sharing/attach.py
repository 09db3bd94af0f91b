"""`compactd attach`: serve the client on standard input and output by the shared daemon, which is started if
it does not run.

The daemon gets the descriptors and reads and writes them itself. This process only waits for the end, so that
its client sees a program that ends when its daemon ends.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from compactd.daemon.sharing import hello, places

TRY_S = 15.0
"""Seconds for which joining or starting the daemon is tried."""
_RETRY_S = 0.03
DAEMON_FD = 3
"""The descriptor on which a daemon that was started for this client gets its hello."""


class NotAttached(Exception):
    """There is no shared daemon, and none could be started. The message says why."""


def attach(
    fds: tuple[int, int],
    environ: Mapping[str, str],
    *,
    path: Path | None,
    frame_limit_bytes: int | None,
    may_start: bool,
) -> int:
    """Have the client on `fds` (input, output) served until it leaves. Return its exit code. `path`: the
    daemon's socket, by default that of the user's data folder. Raises `NotAttached` before anything was read.
    """
    if not places.is_supported():
        raise NotAttached("this system has no sockets of the needed kind")
    try:
        if path is None:
            path = places.socket_path(environ)
            if may_start:
                places.make_folder(path.parent)
        lines, pid = _join(path, environ, fds, frame_limit_bytes, may_start)
    except places.Unusable as error:
        raise NotAttached(str(error)) from None
    # If the daemon ends, nobody has the client's pipes open any more, and the client notices it.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in fds:
        os.dup2(null, fd)
    try:
        end = hello.read_line(lines)
    except OSError:
        end = None
    code = None if end is None else end.get("exit")
    if isinstance(code, int):
        return code
    sys.stderr.write(f"compactd attach: the shared daemon (process {pid}) has ended unexpectedly\n")
    return 1


def _join(
    path: Path,
    environ: Mapping[str, str],
    fds: tuple[int, int],
    frame_limit_bytes: int | None,
    may_start: bool,
) -> tuple[BinaryIO, object]:
    """Return (the lines of a daemon that serves the client, the daemon's process id)."""
    until = time.monotonic() + TRY_S
    started = 0
    while True:
        link = connect(path)
        if link is None:
            if not may_start:
                raise NotAttached(f"no daemon listens at {path}. Start one with `compactd serve --listen`")
            link, started = _start(path, environ)
        lines = link.makefile("rb")
        try:
            hello.send_hello(link, fds, frame_limit_bytes)
            line = hello.read_line(lines)
        except OSError:
            line = None
        if line is not None:
            if started:
                os.waitpid(started, 0)  # it has left the daemon to itself
            for warning in _texts(line.get("warnings")):
                sys.stderr.write(f"compactd: {warning}\n")
            return lines, line.get("pid")
        # It was just ending, or another process has started one at the same time.
        lines.close()
        link.close()
        if time.monotonic() > until:
            raise NotAttached(f"the shared daemon does not start{_end_of_log(path) if started else ''}")
        time.sleep(_RETRY_S)


def connect(path: Path) -> socket.socket | None:
    """Return a connection to the daemon at `path`, which belongs to this user; None if none listens there.
    Raises `places.Unusable`.
    """
    if not places.check_socket(path):
        return None
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(os.fspath(path))
    except (ConnectionRefusedError, FileNotFoundError, BlockingIOError):
        link.close()
        return None
    except OSError as error:
        link.close()
        raise places.Unusable(f"{path}: {error.strerror}") from None
    if user_of(link) != os.getuid():
        link.close()
        raise places.Unusable(f"the daemon at {path} is another user's")
    return link


def user_of(link: socket.socket) -> int:
    """Return the user id of the process at the other end. Raises `OSError`."""
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return int(uid)
    # LOCAL_PEERCRED of macOS: struct xucred begins with a version and the user id (unix(4)).
    _, uid = struct.unpack("2I", link.getsockopt(0, 1, 76)[:8])
    return int(uid)


def log_path(path: Path) -> Path:
    """Return the path of the log of a daemon that was started in the background."""
    return path.with_name(f"{path.name}.log")


def _start(path: Path, environ: Mapping[str, str]) -> tuple[socket.socket, int]:
    """Start a daemon that listens at `path`. Return (a link to it, the process that starts it). It ends if
    another one listens there.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    log = os.open(log_path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    # `-m` alone would import modules from the current folder.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "compactd", "serve", "--listen"]
    command += ["--socket", os.fspath(path), "--client-fd", str(DAEMON_FD)]
    # The descriptors that are passed on must not be among those that they are moved to.
    spare = os.dup(theirs.fileno())
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
        (os.POSIX_SPAWN_DUP2, spare if theirs.fileno() == DAEMON_FD else theirs.fileno(), DAEMON_FD),
    ]
    try:
        # In a session of its own, so that Ctrl-C in this terminal does not end it.
        pid = os.posix_spawn(sys.executable, command, dict(environ), file_actions=actions, setsid=True)
    except (OSError, NotImplementedError) as error:
        raise places.Unusable(f"{sys.executable} cannot be started: {error}") from None
    finally:
        theirs.close()
        for fd in (log, null, spare):
            os.close(fd)
    return ours, pid


def _texts(given: object) -> list[str]:
    return [text for text in given if isinstance(text, str)] if isinstance(given, list) else []


def _end_of_log(path: Path) -> str:
    try:
        last = log_path(path).read_text("utf-8", "replace").strip().splitlines()[-1:]
    except OSError:
        return ""
    return f": {last[0]}" if last else ""
