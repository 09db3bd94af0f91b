"""One client connection on two pipes. Every request gets exactly one answer, whatever it contains.

Messages are handled in the order they came. If a handler returns a result, the result is sent at once. If a
handler returns an awaitable, the awaitable becomes a task; the task's first step runs before the next message
is handled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from compactd.daemon.lsp.editor import Editor
from compactd.daemon.rpc.checked_body import BodyCheck
from compactd.daemon.rpc.dispatch import Dispatcher
from compactd.daemon.rpc.envelope import INVALID_REQUEST, Envelope, read_envelope
from compactd.daemon.rpc.framing import FRAME_LIMIT_BYTES, Fault, Frame, Framer
from compactd.daemon.rpc.outgoing import CancelParams, ErrorObject, MessageSender, error_object, shape_data
from compactd.daemon.rpc.output_closed import watch_output
from compactd.daemon.rpc.reader import PipeReader
from compactd.daemon.rpc.request import Request
from compactd.daemon.rpc.service import Service
from compactd.daemon.rpc.writer import UNSENT_LIMIT_BYTES, PipeWriter

METHOD_NOT_FOUND = -32601

CANCEL_S = 5.0
"""Seconds that cancelled work may take to end. After that, its request is answered anyway."""

DRAIN_S = 60.0
"""Seconds that running work may go on after the client has ended (docs/dev/contract.md, "Transport")."""

SLICE_S = 0.002
"""Seconds for which messages are handled before timers and other callbacks of the event loop get a turn."""

_FLUSH_S = 5.0  # the wait for the client to read, after `exit` or the parent's death: it may not read

Ending = Literal["input", "exit", "broken", "parent"]

_log = logging.getLogger("compactd.rpc")


class Connection:
    """The daemon's transport. Create and use it only on the running event loop's thread."""

    def __init__(
        self,
        service: Service,
        fds: tuple[int, int],
        *,
        frame_limit_bytes: int = FRAME_LIMIT_BYTES,
        drain_s: float = DRAIN_S,
        cancel_s: float = CANCEL_S,
        client_gone: Callable[[], None] | None = None,
        flush_s: float | None = None,
    ) -> None:
        """`client_gone` is called when nobody reads the output any more, or when the parent process that
        `initialize` named has died. It may be called several times, and is not called for the end of the
        input alone. `drain_s` and `cancel_s` are explained at `DRAIN_S` and `CANCEL_S`. `flush_s`: how long
        the end of the connection waits for the client to read the rest; None: as long as it takes.
        """
        self._loop = asyncio.get_running_loop()
        self._on_gone = client_gone
        self._fd_out = fds[1]
        self._is_watched = False
        self._drain_s = drain_s
        self._flush_s = flush_s
        self._methods = service.methods
        self._framer = Framer(frame_limit_bytes)
        self._writer = PipeWriter(fds[1], self._loop, self._on_client_gone)
        self._reader = PipeReader(fds[0], self._framer, self._loop, self._pump)
        self.out = MessageSender(self._writer, self._framer)
        """The messages to the client."""
        self._calls = Dispatcher(service, self.out, self._pause, cancel_s)
        self.editor = Editor(service, self.out, self._calls, self._on_parent_gone)
        """The part of the protocol that only editors use (LSP)."""
        self._acts: dict[str, Callable[[Request, Raw | UnsetType], None]] = {
            "shutdown": self._on_shutdown,
            "exit": self._on_exit,
            "$/cancelRequest": self._on_cancel,
            **self.editor.acts,
        }
        self._ended: asyncio.Future[Ending] = self._loop.create_future()
        self._is_halted = False  # true while a new task must run first, and after the end
        self._is_shut = False

    async def run(self) -> int:
        """Serve until the client ends, and return the process's exit code.

        The exit code is 1 after `exit` without `shutdown`, or if the framing of the input is broken;
        otherwise 0. Running work is cancelled after `drain_s` seconds, or at once after `exit`.
        """
        self._reader.start()
        ending = await self._ended
        self.out.close()
        await self._calls.finish(0.0 if ending == "exit" else self._drain_s)
        await self._flush(_FLUSH_S if ending in ("exit", "parent") else self._flush_s)
        return 1 if ending == "broken" or (ending == "exit" and not self._is_shut) else 0

    def abandon(self) -> None:
        """End the connection now: its client has left."""
        self._on_parent_gone()

    def close(self) -> None:
        """Close the descriptors, once `run` has ended and the connection was one of several. Output that the
        client has not read is lost.
        """
        self._reader.close()
        self._writer.close()

    def watch_client(self) -> None:
        """Start to watch the output: `client_gone` is then called as soon as the client closes it, even if
        nothing is written.
        """
        if not self._is_watched:
            self._is_watched = True
            watch_output(self._fd_out, self._on_client_gone, self._loop, self._ended.done)

    # --- messages, in their order -------------------------------------------------------------------

    def _pump(self) -> None:
        """Handle received messages until none is left, the time slice ends, a new task must run, or too much
        waits for the client. While messages wait, nothing is read.
        """
        reader, writer = self._reader, self._writer
        if self._is_halted:
            return
        until = perf_counter() + SLICE_S
        writer.collect()
        while reader.frames and not self._is_halted and not writer.is_full():
            try:
                self._on_frame(reader.frames.popleft())
            except Exception as error:  # a bug in the transport loses one message, not the connection
                error_object(error, "the transport")
            if perf_counter() > until:
                break
        writer.flush()
        if writer.is_full():
            reader.pause()
            writer.when_below(UNSENT_LIMIT_BYTES, self._pump)
        elif self._is_halted:
            return  # `_resume` goes on, unless the connection has ended
        elif reader.frames:
            reader.pause()
            self._loop.call_soon(self._pump)
        else:
            reader.resume()

    def _pause(self) -> None:
        """Stop handling messages until the first step of the task that was just created has run.

        The event loop runs that step before `_resume`, which goes on with the next message.
        """
        self._is_halted = True
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._is_halted = self._ended.done()
        self._pump()

    def _on_frame(self, frame: Frame | BodyCheck | None) -> None:
        if frame is None:
            self._end("broken" if self._framer.broken else "input")
        else:
            message = frame if isinstance(frame, Fault) else read_envelope(frame)
            if isinstance(message, Fault):
                sizes = {"limit_bytes": message.limit_bytes, "size_bytes": message.size_bytes}
                error = ErrorObject(message.code, message.message, shape_data(message.code, sizes))
                self.out.refuse(message.id, error)
            else:
                self._on_message(message)
        if self.out.is_held and frame is not None:
            self.out.open()

    def _on_message(self, message: Envelope) -> None:
        name = message.method
        if self.out.is_held and name != "initialize":
            self.out.open()
        if name is UNSET:
            if not self.out.take_response(message):
                self.editor.take_response(message)
            return
        request = Request(bytes(message.id) if message.id is not UNSET else None, name, self.out.notify)
        if self._is_shut and request.id is not None and name != "exit":
            self._calls.refuse(
                request, ErrorObject(INVALID_REQUEST, "the daemon is shutting down and accepts only `exit`")
            )
        elif method := self._methods.get(name):
            self._calls.call(method, message.params, request)
        elif act := self._acts.get(name):
            try:
                act(request, message.params)
            except Exception as error:
                self._calls.fail(request, error)
        elif request.id is not None:
            self._calls.refuse(request, ErrorObject(METHOD_NOT_FOUND, f"there is no method {name[:100]!r}"))

    # --- the life cycle -----------------------------------------------------------------------------

    def _on_shutdown(self, request: Request, params: Raw | UnsetType) -> None:
        self._is_shut = True
        self._calls.succeed(request, None)

    def _on_exit(self, request: Request, params: Raw | UnsetType) -> None:
        self._calls.succeed(request, None)
        self._end("exit")

    def _on_cancel(self, request: Request, params: Raw | UnsetType) -> None:
        try:
            id = msgspec.json.decode(b"{}" if params is UNSET else params, type=CancelParams).id
        except msgspec.ValidationError:
            _log.info("a $/cancelRequest without an id was ignored")
        else:
            self._calls.cancel_id(bytes(id))
        self._calls.succeed(request, None)

    def _on_client_gone(self) -> None:
        """End the connection once the messages read so far are handled, because nobody reads the output any
        more.
        """
        if self._on_gone is not None:
            self._on_gone()
        self._reader.frames.append(None)
        self._loop.call_soon(self._pump)

    def _on_parent_gone(self) -> None:
        if self._on_gone is not None:
            self._on_gone()
        self._end("parent")

    def _end(self, ending: Ending) -> None:
        self._is_halted = True
        self._reader.pause()
        if not self._ended.done():
            self._ended.set_result(ending)

    async def _flush(self, timeout_s: float | None) -> None:
        sent = asyncio.Event()
        self._writer.flush()
        self._writer.when_below(0, sent.set)
        try:
            await asyncio.wait_for(sent.wait(), timeout_s)
        except TimeoutError:
            _log.warning(
                "the client did not read the last %d bytes that the daemon sent", self._writer.unsent_bytes
            )
