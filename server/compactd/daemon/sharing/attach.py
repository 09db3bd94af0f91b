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
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

from compactd.daemon.sharing import hello, places
from compactd.daemon.sharing.background import start_daemon

TRY_S = 15.0
"""Seconds for which joining or starting the daemon is tried."""
_RETRY_S = 0.03

Serve = Callable[[Path, socket.socket], int]
"""Runs a daemon that listens at a path, and serves its first client on a socket. Returns its exit code. It
ends at once if another one listens there."""


class NotAttached(Exception):
    """There is no shared daemon, and none could be started. The message says why."""


def attach(
    fds: tuple[int, int],
    environ: Mapping[str, str],
    *,
    path: Path | None,
    frame_limit_bytes: int | None,
    serve: Serve | None,
) -> int:
    """Have the client on `fds` (input, output) served until it leaves. Return its exit code. `path`: the
    daemon's socket, by default that of the user's data folder. `serve`: starts a daemon if none listens
    there; in its process, this function does not return. Raises `NotAttached` before anything was read.
    """
    if not places.is_supported():
        raise NotAttached("this system has no sockets of the needed kind")
    try:
        if path is None:
            path = places.socket_path(environ)
            if serve is not None:
                places.make_folder(path.parent)
        lines, pid = _join(path, fds, frame_limit_bytes, serve)
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
    path: Path, fds: tuple[int, int], frame_limit_bytes: int | None, serve: Serve | None
) -> tuple[BinaryIO, object]:
    """Return (the lines of a daemon that serves the client, the daemon's process id)."""
    until = time.monotonic() + TRY_S
    is_started = False
    while True:
        link = connect(path)
        if link is None:
            if serve is None:
                raise NotAttached(f"no daemon listens at {path}. Start one with `compactd serve --listen`")
            try:
                link, is_started = start_daemon(log_path(path), partial(serve, path)), True
            except OSError as error:
                raise NotAttached(f"no daemon can be started: {error}") from None
        lines = link.makefile("rb")
        try:
            hello.send_hello(link, fds, frame_limit_bytes)
            line = hello.read_line(lines)
        except OSError:
            line = None
        if line is not None:
            for warning in _texts(line.get("warnings")):
                sys.stderr.write(f"compactd: {warning}\n")
            return lines, line.get("pid")
        # It was just ending, or another process has started one at the same time.
        lines.close()
        link.close()
        if time.monotonic() > until:
            raise NotAttached(f"the shared daemon does not start{_end_of_log(path) if is_started else ''}")
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


def _texts(given: object) -> list[str]:
    return [text for text in given if isinstance(text, str)] if isinstance(given, list) else []


def _end_of_log(path: Path) -> str:
    try:
        last = log_path(path).read_text("utf-8", "replace").strip().splitlines()[-1:]
    except OSError:
        return ""
    return f": {last[0]}" if last else ""
