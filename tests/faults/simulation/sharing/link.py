"""One client's connection without pipes: it stands for `Connection`, with the real dispatcher and sender.

A program reads whenever it wants. What it has not read counts `WEIGHT` times its size, so that a program that
reads slowly is behind after a few events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import UNSET

from compactd.daemon.lsp.progress import CompactionEvent
from compactd.daemon.rpc.connection import CANCEL_S, DRAIN_S
from compactd.daemon.rpc.dispatch import Dispatcher
from compactd.daemon.rpc.envelope import Envelope, read_envelope
from compactd.daemon.rpc.framing import Framer
from compactd.daemon.rpc.outgoing import CancelParams, MessageSender
from compactd.daemon.rpc.request import Request
from compactd.daemon.rpc.writer import UNSENT_LIMIT_BYTES
from compactd.daemon.sharing.client import Client

WEIGHT = 2048

Ending = Literal["input", "exit", "parent"]


class Pipe:
    """The output to a program. It stands for `PipeWriter`."""

    def __init__(self, on_body: Callable[[bytes], None]) -> None:
        """`on_body` is called for each message at the moment at which the daemon writes it."""
        self._on_body = on_body
        self._pieces: list[bytes] = []
        self.unread: deque[bytes] = deque()
        self._size = 0
        self.is_broken = False
        """Whether nobody will ever read what is written from now on."""

    @property
    def unsent_bytes(self) -> int:
        """See `PipeWriter.unsent_bytes`."""
        return self._size * WEIGHT

    def write(self, data: bytes) -> None:
        """See `PipeWriter.write`."""
        if self.is_broken:
            return
        self._pieces.append(data)
        if data == b"\n":
            body = b"".join(self._pieces)
            self._pieces.clear()
            self.unread.append(body)
            self._size += len(body)
            self._on_body(body)

    def read(self, most: int) -> list[bytes]:
        """Read at most so many messages."""
        bodies = [self.unread.popleft() for _ in range(min(most, len(self.unread)))]
        self._size -= sum(map(len, bodies))
        return bodies

    def cut(self) -> None:
        """The program is dead."""
        self.is_broken = True
        self.unread.clear()
        self._size = 0


class Screen:
    """What an editor would show. It stands for `Editor`."""

    def log_message(self, kind: int, text: str) -> None:
        """See `Editor.log_message`."""

    def show_compaction(self, session_id: str, event: CompactionEvent) -> None:
        """See `Editor.show_compaction`."""


class Link:
    """A connection of one program with the daemon."""

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        on_request: Callable[[Link, Envelope], None],
        on_body: Callable[[Link, bytes], None],
    ) -> None:
        """`on_request` is called before the daemon handles a message of the program, `on_body` when the
        daemon writes one."""
        self.name = name
        """The name of the program, and which of its connections this is."""
        self._loop = loop
        self._on_request = on_request
        self.pipe = Pipe(lambda body: on_body(self, body))
        framer = Framer()
        framer.lines = True
        self.out = MessageSender(self.pipe, framer)  # type: ignore[arg-type]
        self.out.open()
        self.editor = Screen()
        self.client: Client
        self._calls: Dispatcher
        self._on_gone: Callable[[], None]
        self._inbox: deque[bytes | Ending] = deque()
        self._is_halted = False
        self._is_watched = False
        self._ended: asyncio.Future[Ending] = loop.create_future()
        self.closed_at: float | None = None
        """When the daemon noticed that the program has left."""

    def connect(self, client: Client, on_gone: Callable[[], None]) -> None:
        """Set the daemon's object for this connection, and what to call when nobody reads any more."""
        self.client = client
        self._on_gone = on_gone
        self._calls = Dispatcher(client, self.out, self._pause, CANCEL_S)

    @property
    def is_open(self) -> bool:
        """Whether the daemon can still ask the program something, as far as it knows."""
        return self.closed_at is None

    # --- the daemon's side: what it uses of `Connection` ------------------------------------------------

    async def run(self) -> int:
        """See `Connection.run`."""
        ending = await self._ended
        self.out.close()
        await self._calls.finish(0.0 if ending == "exit" else DRAIN_S)
        return 0

    def watch_client(self) -> None:
        """See `Connection.watch_client`."""
        self._is_watched = True
        if self.pipe.is_broken:
            self._on_gone()

    def abandon(self) -> None:
        """See `Connection.abandon`."""
        self._note_end()
        self._on_gone()
        self._end("parent")

    def close(self) -> None:
        """See `Connection.close`."""
        self.pipe.cut()

    # --- the program's side -----------------------------------------------------------------------------

    def send(self, body: bytes) -> None:
        """Send the daemon a message."""
        self._inbox.append(body)
        self._loop.call_soon(self._pump)

    def read(self, most: int) -> list[bytes]:
        """Read at most so many messages of the daemon."""
        bodies = self.pipe.read(most)
        self._loop.call_soon(self._pump)
        return bodies

    def leave(self, ending: Ending) -> None:
        """End the input after what was sent, or send `exit`."""
        self._inbox.append(ending)
        self._loop.call_soon(self._pump)

    def kill(self, noticed_after_s: float) -> None:
        """The program dies. The daemon notices it after some seconds: at once if it watches the output."""
        self._inbox.clear()
        self.pipe.cut()
        if self._is_watched:
            self._note_end()
            self._on_gone()
        self._loop.call_later(noticed_after_s, self.abandon)

    # --- in between -------------------------------------------------------------------------------------

    def _note_end(self) -> None:
        if self.closed_at is None:
            self.closed_at = self._loop.time()

    def _end(self, ending: Ending) -> None:
        self._is_halted = True
        if not self._ended.done():
            # The sender is closed when `run` goes on.
            self._ended.set_result(ending)

    def _pause(self) -> None:
        self._is_halted = True
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._is_halted = self._ended.done()
        self._pump()

    def _pump(self) -> None:
        """Handle messages, as `Connection._pump` does."""
        while self._inbox and not self._is_halted and self.pipe.unsent_bytes <= UNSENT_LIMIT_BYTES:
            body = self._inbox.popleft()
            if isinstance(body, str):
                self._note_end()
                self._end(body)
                return
            message = read_envelope(body)
            assert isinstance(message, Envelope)
            self._on_request(self, message)
            name = message.method
            if name is UNSET:
                self.out.take_response(message)
            elif name == "$/cancelRequest":
                params = msgspec.json.decode(bytes(message.params), type=CancelParams)  # type: ignore[arg-type]
                self._calls.cancel_id(bytes(params.id))
            else:
                assert message.id is not UNSET
                request = Request(bytes(message.id), name, self.out.notify)
                self._calls.call(self.client.methods[name], message.params, request)
