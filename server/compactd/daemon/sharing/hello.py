"""What `compactd attach` and a shared daemon say to each other before the protocol begins.

The program sends one line, with the descriptors of its standard input and output. The daemon answers with one
line, then serves the client on these descriptors: its bytes go through no other process. A line at the end
says with which code the program shall exit. A client that speaks the protocol on the socket itself sends no
such line: its first byte is not `FIRST`.
"""

from __future__ import annotations

import json
import os
import socket
from typing import BinaryIO

FIRST = b"\0"
"""The first byte of the program's line."""
_LINE_BYTES = 4096
_FDS = 2


def send_hello(link: socket.socket, fds: tuple[int, int], frame_limit_bytes: int | None) -> None:
    """Send the program's line. Raises `OSError`."""
    line = FIRST + json.dumps({"frame_limit": frame_limit_bytes}).encode() + b"\n"
    socket.send_fds(link, [line], list(fds))


def read_hello(link: socket.socket) -> tuple[tuple[int, int], int | None] | None:
    """Return (the descriptors of the client's input and output, its frame limit in bytes or None); None if
    the line is wrong. The socket must have bytes to read.
    """
    data, fds, _, _ = socket.recv_fds(link, _LINE_BYTES, _FDS)
    given = _decoded(data.removeprefix(FIRST))
    if len(fds) != _FDS or given is None:
        for fd in fds:
            os.close(fd)
        return None
    limit = given.get("frame_limit")
    return (fds[0], fds[1]), limit if isinstance(limit, int) else None


def line_of(**values: object) -> bytes:
    """Return a line of the daemon."""
    return json.dumps(values).encode() + b"\n"


def read_line(lines: BinaryIO) -> dict[str, object] | None:
    """Wait for a line of the daemon, and return it; None if the daemon has ended. Raises `OSError`."""
    line = lines.readline(_LINE_BYTES)
    return _decoded(line) if line else None


def _decoded(line: bytes) -> dict[str, object] | None:
    try:
        given = json.loads(line)
    except ValueError:
        return None
    return given if isinstance(given, dict) else None
