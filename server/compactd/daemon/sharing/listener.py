"""A shared daemon: it listens at a socket, and serves every client that connects."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from compactd import __version__
from compactd.daemon.app import Daemon, set_up
from compactd.daemon.rpc.framing import FRAME_LIMIT_BYTES
from compactd.daemon.sharing import hello, places
from compactd.daemon.sharing.attach import connect, user_of
from compactd.storage.locks import LockHeld, take_lock

if TYPE_CHECKING:
    from compactd.storage.locks import Lock

HELLO_S = 30.0
"""Seconds that a connection may take until it sends its first byte."""
FLUSH_S = 10.0
"""Seconds for which the end of a connection waits for its client to read the rest."""
BACKLOG = 512
FILES = 4096
"""The number of open files to ask the system for: a client needs up to four."""

_RETIRE = b'{"jsonrpc":"2.0","id":1,"method":"daemon/retire"}\n'

_log = logging.getLogger("compactd.sharing")


class SocketTaken(places.Unusable):
    """Another daemon listens at the socket."""


class Listener:
    """The socket of a shared daemon, and the connections that came by it."""

    def __init__(self, daemon: Daemon, path: Path, idle_s: float, frame_limit_bytes: int) -> None:
        self._daemon = daemon
        self._path = path
        self._idle_s = idle_s
        self._frame_limit_bytes = frame_limit_bytes
        self._loop = asyncio.get_running_loop()
        self._server: socket.socket | None = None
        self._identity: tuple[int, int] | None = None
        self._lock: Lock | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._is_retired = False
        self._idle: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()

    def listen(self) -> None:
        """Take the socket. Raises `SocketTaken`, and `places.Unusable` if something else is there."""
        path = self._path
        lock = take_lock(path.with_name(f"{path.name}.lock"))
        if isinstance(lock, LockHeld):
            raise SocketTaken(f"another daemon listens at {path} (process {lock.pid})")
        self._lock = lock
        if places.check_socket(path):
            path.unlink()  # left by a daemon that has died: it had the lock
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            server.bind(os.fspath(path))
        except OSError as error:
            raise places.Unusable(f"{path}: {error.strerror}") from None
        finally:
            os.umask(mask)
        found = path.lstat()
        self._identity = (found.st_dev, found.st_ino)
        server.listen(BACKLOG)
        server.setblocking(False)
        self._server = server
        self._daemon.socket = os.fspath(path)
        self._daemon.on_retire = self._retire
        self._loop.add_reader(server.fileno(), self._accept)
        self._note_idle()

    async def run(self) -> None:
        """Serve until nobody needs the daemon any more."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._ended.set)
        await self._ended.wait()
        self._stop_listening()
        for client in tuple(self._daemon.clients.connected):
            client.connection.abandon()
        if self._serving:
            await asyncio.wait(self._serving)
        await self._daemon.close()

    def take(self, link: socket.socket) -> None:
        """Serve the client at the other end of `link`."""
        task = asyncio.ensure_future(self._serve(link))
        self._serving.add(task)
        task.add_done_callback(self._on_served)
        self._note_idle()

    # --- accepting --------------------------------------------------------------------------------------

    def _accept(self) -> None:
        assert self._server is not None
        try:
            link, _ = self._server.accept()
        except BlockingIOError:
            return
        except OSError as error:
            _log.warning("a client could not be accepted: %s", error.strerror)
            # Too many open files: without a pause, the event loop would try again at once, for ever.
            self._loop.remove_reader(self._server.fileno())
            self._loop.call_later(0.2, self._accept_again)
            return
        try:
            uid = user_of(link)
        except OSError:
            uid = -1
        if uid != os.getuid():
            _log.warning("a client of user %d was refused", uid)
            link.close()
            return
        self.take(link)

    def _accept_again(self) -> None:
        if self._server is not None:
            self._loop.add_reader(self._server.fileno(), self._accept)

    async def _serve(self, link: socket.socket) -> None:
        link.setblocking(False)
        try:
            first = await asyncio.wait_for(self._peek(link), HELLO_S)
            if first == hello.FIRST:
                await self._serve_attached(link)
            elif first:
                # The client speaks the protocol on the socket itself.
                fds = (os.dup(link.fileno()), os.dup(link.fileno()))
                await self._serve_on(fds, self._frame_limit_bytes)
        except (OSError, TimeoutError) as error:
            _log.warning("a connection was ended: %s", error)
        finally:
            link.close()

    async def _peek(self, link: socket.socket) -> bytes:
        """Wait for the first byte, and return it without reading it; nothing if there is none."""
        while True:
            ready = asyncio.Event()
            self._loop.add_reader(link.fileno(), ready.set)
            try:
                await ready.wait()
            finally:
                self._loop.remove_reader(link.fileno())
            with suppress(BlockingIOError):
                return link.recv(1, socket.MSG_PEEK)

    async def _serve_attached(self, link: socket.socket) -> None:
        """Serve a client whose descriptors `compactd attach` passes on."""
        asked = hello.read_hello(link)
        if asked is None:
            _log.warning("a wrong line of compactd attach was ignored")
            return
        fds, limit = asked
        if self._is_retired:
            for fd in fds:
                os.close(fd)
            return
        try:
            link.send(hello.line_of(pid=os.getpid(), version=__version__, warnings=self._daemon.warnings()))
        except OSError:  # it has left
            for fd in fds:
                os.close(fd)
            return
        code = await self._serve_on(fds, limit or self._frame_limit_bytes, link)
        with suppress(OSError):
            link.send(hello.line_of(exit=code))

    async def _serve_on(
        self, fds: tuple[int, int], frame_limit_bytes: int, link: socket.socket | None = None
    ) -> int:
        """Serve a client on descriptors (input, output). `link`: its connection ends with this one."""
        for fd in fds:
            os.set_inheritable(fd, False)
            kind = os.fstat(fd).st_mode
            if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
                # So that a client that does not read holds no thread for ever.
                os.set_blocking(fd, False)
        connection, run = self._daemon.connect(fds, frame_limit_bytes, flush_s=FLUSH_S)
        if link is not None:
            self._loop.add_reader(link.fileno(), connection.abandon)
        try:
            return await run
        finally:
            if link is not None:
                self._loop.remove_reader(link.fileno())

    # --- the end ----------------------------------------------------------------------------------------

    def _on_served(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a connection failed", exc_info=error)
        self._note_idle()

    def _note_idle(self) -> None:
        """End the daemon after a while without clients; at once if it is retired."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._serving:
            wait_s = 0.0 if self._is_retired else self._idle_s
            self._idle = self._loop.call_later(wait_s, self._ended.set)

    def _retire(self) -> None:
        self._is_retired = True
        self._stop_listening()
        for client in self._daemon.clients.connected:
            client.connection.editor.log_message(
                3, "A newer compactd has started. This one ends when its last client has left."
            )
        self._note_idle()

    def _stop_listening(self) -> None:
        """Leave the socket to another daemon."""
        server, self._server = self._server, None
        if server is None:
            return
        self._loop.remove_reader(server.fileno())
        with suppress(OSError):
            found = self._path.lstat()
            if (found.st_dev, found.st_ino) == self._identity:
                self._path.unlink()
        server.close()
        if self._lock is not None:
            with suppress(OSError):
                self._lock.release(remove=True)


def retire_others(environ: Mapping[str, str]) -> None:
    """Ask the daemons of other versions on the same data folder to end when their clients have left. Remove
    the sockets of those that have died.
    """
    for path in places.other_sockets(environ):
        try:
            link = connect(path)
            if link is None:
                path.unlink()
                continue
            link.settimeout(1.0)
            link.sendall(_RETIRE)
            link.recv(1)
            link.close()
        except (OSError, places.Unusable) as error:
            _log.warning("the daemon at %s could not be told that a newer one runs: %s", path, error)


def listen(
    path: Path | None, *, idle_s: float, frame_limit_bytes: int | None, first: socket.socket | None = None
) -> int:
    """Run a shared daemon. Return the process's exit code. `first`: a link to the client for which it was
    started in the background.
    """
    environ = dict(os.environ)
    # It stays when the folder in which it was started is removed.
    sys.path[:] = [os.fspath(Path(entry).absolute()) for entry in sys.path]
    os.chdir("/")
    _raise_file_limit()
    daemon = set_up(environ, is_shared=True)
    limit_bytes = FRAME_LIMIT_BYTES if frame_limit_bytes is None else frame_limit_bytes
    try:
        if path is None:
            path = places.socket_path(environ)
            places.make_folder(path.parent)
        return asyncio.run(_listen(daemon, environ, path, idle_s, limit_bytes, first))
    except places.Unusable as error:
        sys.stderr.write(f"compactd serve: {error}\n")
        return 1


async def _listen(
    daemon: Daemon,
    environ: Mapping[str, str],
    path: Path,
    idle_s: float,
    frame_limit_bytes: int,
    first: socket.socket | None,
) -> int:
    listener = Listener(daemon, path, idle_s, frame_limit_bytes)
    try:
        listener.listen()
    except SocketTaken:
        if first is None:
            raise
        return 0  # two clients started a daemon at the same time: the other one serves both
    if first is not None:
        with suppress(OSError):
            os.ftruncate(sys.stderr.fileno(), 0)  # the log of the daemon before
        listener.take(first)
    else:
        sys.stderr.write(f"compactd serve: listening at {path}\n")
    if path == places.socket_path(environ):
        asyncio.get_running_loop().run_in_executor(None, retire_others, environ)
    await listener.run()
    return 0


def _raise_file_limit() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
