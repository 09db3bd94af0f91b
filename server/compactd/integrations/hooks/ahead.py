"""A process that reads the messages of a session while the agent's model writes the summary of them.

Finding what a summary lost takes a fifth of a second, most of it before the summary matters: imports, the
user's constraints, the state of the work. The hook starts this process at PreCompact. When the session starts
again, the hook sends it the summary through a socket, and gets the answer sooner than it could compute it. If
the process is not ready or does not know the messages, the hook computes the answer itself.

The process ends after one answer, after `MAX_AHEAD_S`, or if its socket is gone.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from compactd.integrations.hooks.hook_state import HookState, HookStateFiles, RetentionShares

if TYPE_CHECKING:
    import socket

    from compactd.integrations.hooks.hook import Options

OPTION: Final = "--ahead"
"""The option with which the hook's command becomes this process."""
MAX_AHEAD_S: Final = 600.0
LOOK_S: Final = 1.0
"""How often the process looks whether its socket is still there."""
MAX_REQUEST_BYTES: Final = 1 << 23


class Request(Struct, frozen=True, array_like=True):
    """What the hook asks: the parameters of `find_lost`."""

    gone_crc: int
    """A checksum of the removed messages, to recognise them."""
    summary: str
    stays: str
    stayed: list[str]
    is_told: bool
    most: int


class Reply(Struct, frozen=True, array_like=True):
    """What was lost, as `Lost` has it."""

    text: str
    kept: RetentionShares | None


def start(data: bytes) -> None:
    """Start the process for the event `data`, and do not wait for it. Do nothing if that is not possible."""
    arguments = sys.orig_argv[1:]
    if sys.platform == "win32" or "hook" not in arguments or OPTION in arguments:
        return  # There are no Unix sockets, or this is not the hook's own process.
    import subprocess

    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, *arguments, OPTION],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        process.returncode = 0  # The process goes on, so nobody waits for its end.


def serve(agent: str, data: bytes, environ: Mapping[str, str]) -> int:
    """Read the session of the event `data`, wait for one request, and answer it. Always return 0."""
    with suppress(OSError, msgspec.MsgspecError):
        _serve(agent, data, environ)
    return 0


def ask(files: HookStateFiles, state: HookState, options: Options, wait_s: float) -> Reply | None:
    """Return the answer of the process for this session; None if there is none within `wait_s` seconds."""
    path = files.socket_path
    if sys.platform == "win32" or not path.exists():
        return None
    import socket

    with suppress(OSError, msgspec.MsgspecError), socket.socket(socket.AF_UNIX) as link:
        crc = _checksum(files.path(".gone"), state.gone_bytes)
        request = Request(crc, state.summary, state.stays, state.stayed, state.is_told, options.most_chars)
        link.settimeout(wait_s)
        link.connect(str(path))
        link.sendall(msgspec.msgpack.encode(request))
        link.shutdown(socket.SHUT_WR)
        return msgspec.msgpack.decode(_received(link, time.monotonic() + wait_s), type=Reply)
    return None


def _checksum(path: Path, size_bytes: int) -> int:
    with path.open("rb") as file:
        return zlib.crc32(file.read(size_bytes))


def _serve(agent: str, data: bytes, environ: Mapping[str, str]) -> None:
    from compactd.integrations.hooks.events import agent_of, event_of
    from compactd.integrations.hooks.hook import MAX_MIRRORED_TOKENS
    from compactd.integrations.hooks.hook_state import files_of, load, read_messages_file
    from compactd.integrations.hooks.lost_facts import GoneMessages, characters, newest_messages

    known = agent_of(agent)
    event = event_of(known, data) if known is not None else None
    if event is None or not event.session_id:
        return
    files = files_of(environ, agent, event.session_id)
    state = load(files)
    held = read_messages_file(files.path(".stretch"), state.stretch_bytes)
    if not held:
        return
    crc = _checksum(files.path(".stretch"), state.stretch_bytes)
    gone = GoneMessages(newest_messages(held, MAX_MIRRORED_TOKENS), state.folder)
    gone.read_ahead()
    request, link = _wait(files.socket_path)
    if request is None or link is None or request.gone_crc != crc:
        return
    with link:
        lost = gone.find_lost(
            request.summary,
            request.stays,
            stayed=request.stayed,
            is_told=request.is_told,
            most=request.most,
            count=characters,
            first=lambda text: None,
        )
        link.sendall(msgspec.msgpack.encode(Reply(lost.text, lost.kept)))


def _wait(path: Path) -> tuple[Request | None, socket.socket | None]:
    """Wait at the socket `path` for one request. Return it, with the connection for the answer."""
    import socket

    path.unlink(missing_ok=True)
    until = time.monotonic() + MAX_AHEAD_S
    with socket.socket(socket.AF_UNIX) as door:
        mask = os.umask(0o177)
        try:
            door.bind(str(path))
        finally:
            os.umask(mask)
        mine = path.stat().st_ino
        door.settimeout(LOOK_S)
        door.listen(1)
        try:
            while time.monotonic() < until and path.stat().st_ino == mine:
                with suppress(TimeoutError):
                    link, _ = door.accept()
                    link.settimeout(LOOK_S)
                    data = _received(link, time.monotonic() + LOOK_S)
                    return msgspec.msgpack.decode(data, type=Request), link
        finally:
            if path.exists() and path.stat().st_ino == mine:
                path.unlink()
    return None, None


def _received(link: socket.socket, until: float) -> bytes:
    """Return all bytes that the other side sends. Raise `OSError` if that takes too long."""
    pieces: list[bytes] = []
    size = 0
    while piece := link.recv(1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_REQUEST_BYTES or time.monotonic() > until:
            raise TimeoutError
    return b"".join(pieces)
