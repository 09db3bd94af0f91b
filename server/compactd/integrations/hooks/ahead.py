"""A process that reads the messages of a session while the agent's model writes the summary of them.

Finding what a summary lost takes a fifth of a second, most of it before the summary matters: imports, the
user's constraints, the state of the work. The hook starts this process at PreCompact, and sends it the
summary through a socket when an event contains it. When the session starts again, the hook asks for the
answer, which it gets sooner than it could compute it. If the process is not ready or does not know the
messages, the hook computes the answer itself.

The process ends after one answer, after `MAX_AHEAD_S`, or if its socket is gone.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.integrations.hooks.hook_state import HookState, HookStateFiles, RetentionShares

if TYPE_CHECKING:
    import socket

    from compactd.integrations.hooks.hook import Options
    from compactd.integrations.hooks.lost_facts import GoneMessages

OPTION: Final = "--ahead"
"""The option with which the hook's command becomes this process."""
MAX_AHEAD_S: Final = 300.0
TELL_S: Final = 0.02
LOOK_S: Final = 1.0
"""How often the process looks whether its socket is still there."""
MAX_REQUEST_BYTES: Final = 1 << 23


class Request(Struct, frozen=True, array_like=True):
    """What the hook asks: the parameters of `find_lost`."""

    gone_crc: int | None
    """A checksum of the removed messages, to recognise them. None if the answer is not needed yet: the
    process then expects that the agent keeps what it usually keeps.
    """
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
    read, write = os.pipe()
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    try:
        # `subprocess` would take longer to import than the process takes to start.
        os.posix_spawn(
            sys.executable,
            [sys.executable, *arguments, OPTION],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), *nothing],
            setsid=True,
        )
        os.close(read)
        read = -1
        os.write(write, data)
    except (OSError, NotImplementedError):
        pass
    finally:
        for fd in (read, write):
            if fd >= 0:
                os.close(fd)


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


def tell(files: HookStateFiles, summary: str, options: Options) -> None:
    """Tell the process for this session the summary. Do not wait for anything."""
    path = files.socket_path
    if sys.platform == "win32" or not summary or not path.exists():
        return
    import socket

    with suppress(OSError), socket.socket(socket.AF_UNIX) as link:
        link.settimeout(TELL_S)
        link.connect(str(path))
        link.sendall(msgspec.msgpack.encode(Request(None, summary, "", [], True, options.most_chars)))


def _checksum(path: Path, size_bytes: int) -> int:
    with path.open("rb") as file:
        return zlib.crc32(file.read(size_bytes))


def _serve(agent: str, data: bytes, environ: Mapping[str, str]) -> None:
    from compactd.integrations.hooks.events import agent_of, event_of
    from compactd.integrations.hooks.hook import MAX_MIRRORED_TOKENS
    from compactd.integrations.hooks.hook_state import files_of, load, read_messages_file
    from compactd.integrations.hooks.lost_facts import GoneMessages, newest_messages
    from compactd.integrations.hooks.mirror import kept_text, newest_answer

    known = agent_of(agent)
    event = event_of(known, data) if known is not None else None
    if event is None or not event.session_id:
        return
    files = files_of(environ, agent, event.session_id)
    if files.folder.is_absolute():
        os.chdir(os.sep)  # A process that stays must not keep the agent's folder busy.
    state = load(files)
    held = read_messages_file(files.path(".stretch"), state.stretch_bytes)
    if not held:
        return
    crc = _checksum(files.path(".stretch"), state.stretch_bytes)
    gone = GoneMessages(newest_messages(held, MAX_MIRRORED_TOKENS), state.folder)
    gone.read_ahead()
    is_auto = state.mark is not None and state.mark.trigger == "auto"
    expected: tuple[Request, Reply] | None = None

    def is_wanted() -> bool:
        return state.mark is not None and load(files).mark is not None

    for request, link in _requests(files.socket_path, is_wanted):
        if request.gone_crc is None:
            stays, stayed = kept_text(newest_answer(held, is_auto=is_auto))
            request = replace(request, gone_crc=crc, stays=stays, stayed=stayed)
            expected = request, _reply(gone, request)
        elif request.gone_crc == crc:
            reply = expected[1] if expected is not None and expected[0] == request else _reply(gone, request)
            link.sendall(msgspec.msgpack.encode(reply))
            return
        else:
            return


def _reply(gone: GoneMessages, request: Request) -> Reply:
    from compactd.integrations.hooks.lost_facts import characters

    lost = gone.find_lost(
        request.summary,
        request.stays,
        stayed=request.stayed,
        is_told=request.is_told,
        most=request.most,
        count=characters,
        first=lambda text: None,
    )
    return Reply(lost.text, lost.kept)


def _requests(path: Path, is_wanted: Callable[[], bool]) -> Iterator[tuple[Request, socket.socket]]:
    """Yield each request that comes to the socket `path`, with its connection, until it takes too long or the
    socket is gone. `is_wanted` says whether the compaction is still being made when the socket is there:
    after that, the hook removes the socket if the compaction failed.
    """
    import socket

    # A hook that finds the socket connects at once, so it gets its name when it listens. The path stays
    # as long.
    unready = path.with_name(f"{path.name[:-1]}~")
    for each in (unready, path):
        each.unlink(missing_ok=True)
    until = time.monotonic() + MAX_AHEAD_S
    with socket.socket(socket.AF_UNIX) as door:
        mask = os.umask(0o177)
        try:
            door.bind(str(unready))
        finally:
            os.umask(mask)
        mine = unready.stat().st_ino
        door.settimeout(LOOK_S)
        door.listen(2)
        unready.rename(path)
        try:
            if not is_wanted():
                return
            while time.monotonic() < until and path.stat().st_ino == mine:
                try:
                    link, _ = door.accept()
                except TimeoutError:
                    continue
                with link:
                    link.settimeout(LOOK_S)
                    data = _received(link, time.monotonic() + LOOK_S)
                    yield msgspec.msgpack.decode(data, type=Request), link
        finally:
            if path.exists() and path.stat().st_ino == mine:
                path.unlink()


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
