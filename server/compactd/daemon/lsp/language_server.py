"""The language server that pygls gives, with its own transport left out.

Imported in a thread, when the first of LSP's messages arrives (`editor.py`). pygls takes whole decoded
messages in and hands bodies out; what of its habits must not reach the wire is stopped here: it reads
before it has checked, tells tracebacks, logs what was said, and wants every buffer of the editor.
Only public names of pygls 2.1 are used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import InvalidStateError

import msgspec
from lsprotocol import types
from msgspec import UNSET, Raw, Struct, UnsetType
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from compactd.daemon.rpc.envelope import Envelope
from compactd.daemon.rpc.outgoing import ErrorObject, Refused, error_object, error_of, shaped
from compactd.daemon.rpc.request import Request
from compactd.protocol.errors import Detail

Run = Callable[[str, tuple[Detail, ...], Request], Awaitable[bytes]]
"""Runs a command with its arguments, for a request; gives back its result as JSON."""

_OWN_PREFIX = b'"lsp-'
"""Of the ids of requests that pygls sends, so that their responses find the way back to it."""

_log = logging.getLogger("compactd.rpc")

# pygls logs whole bodies at every level.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)


class _Message(Struct, frozen=True):
    """What pygls hands out."""

    id: str | None = None
    method: str | None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Asked:
    """A request that pygls was given, until it answers."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self.work: asyncio.Task[object] | None = None


class _Protocol(LanguageServerProtocol):
    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[object, object, types.InitializeResult]:
        """As pygls', but no editor is asked for its text documents."""
        result = yield from super().lsp_initialize(params)
        result.capabilities.text_document_sync = None
        return result


class _Server(LanguageServer):
    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """Into our log, by its kind, and not into a window of the editor."""
        _log.info("pygls met %s", type(error).__name__)


class Host:
    """pygls' `LanguageServer`, fed with our messages. Made in any thread; then for the loop's thread."""

    def __init__(
        self, name: str, version: str, commands: Sequence[str], run: Run, send: Callable[[bytes], None]
    ) -> None:
        """`run` does what a command asks for; `send` takes a whole message to the client."""
        self._run = run
        self._send = send
        self._asked: dict[str, _Asked] = {}
        self._count = 0
        self.server: LanguageServer = _Server(
            name,
            version,
            text_document_sync_kind=types.TextDocumentSyncKind.None_,
            protocol_cls=_Protocol,
            converter_factory=default_converter,
        )
        self.server.protocol.set_writer(self, include_headers=False)
        for command in commands:
            self._offer(command)

    def initialize(self, params: Raw) -> None:
        """Repeats the client's `initialize`, which has its answer already: pygls' own is dropped.

        Where the client's does not fit LSP's types, pygls is told of a client that can do nothing.
        """
        given = msgspec.json.decode(params)
        for attempt in ({"processId": None, "rootUri": None, "capabilities": {}, **given}, _NO_CLIENT):
            try:
                self._take({"id": "initialize", "method": types.INITIALIZE, "params": attempt})
            except JsonRpcException:
                continue
            return

    def tell(self, method: str, params: Raw) -> None:
        """Passes a notification on; one that does not fit LSP's types is ignored."""
        try:
            self._take({"method": method, "params": msgspec.json.decode(params)})
        except JsonRpcException:
            _log.info("%s has params that are not LSP's; it was ignored", method)

    async def ask(self, method: str, params: Raw, request: Request) -> Raw:
        """Passes a request on and gives back its result, as JSON. Raises `Refused` for an error.

        It goes under an id of ours, for the client's may be one that pygls does not know how to take.
        Cancelling this cancels the command behind it, and waits for it.
        """
        self._count += 1
        id = f"asked-{self._count}"
        asked = self._asked[id] = _Asked(request)
        try:
            self._take({"id": id, "method": method, "params": msgspec.json.decode(params)})
            try:
                return await asyncio.shield(asked.answer)
            except asyncio.CancelledError:
                if asked.work is None or asked.answer.done():
                    raise
                asked.work.cancel()
                await asyncio.wait([asked.answer])
                return asked.answer.result()
        except JsonRpcException as error:
            raise Refused(ErrorObject(error.code, error.message, shaped(error.code, {}))) from None
        finally:
            del self._asked[id]

    def settle(self, response: Envelope) -> bool:
        """Hands a response to pygls; false where it is to none of its requests."""
        if response.id is UNSET or not bytes(response.id).startswith(_OWN_PREFIX):
            return False
        message: dict[str, object] = {"id": msgspec.json.decode(response.id)}
        if response.error is not UNSET:
            message["error"] = msgspec.json.decode(response.error)
        elif response.result is not UNSET:
            message["result"] = msgspec.json.decode(response.result)
        try:
            self._take(message)
        except (JsonRpcException, InvalidStateError):
            _log.info("a response was too late, or not LSP's; it was ignored")
        return True

    async def create_progress(self, timeout_s: float) -> bytes | None:
        """Asks the client for a progress; its token as JSON text, or None where it has none to give."""
        self._count += 1
        token = f"compactd-progress-{self._count}"
        protocol = self.server.protocol
        try:
            await asyncio.wait_for(
                protocol.send_request_async(
                    types.WINDOW_WORK_DONE_PROGRESS_CREATE,
                    types.WorkDoneProgressCreateParams(token=token),
                    msg_id=f"lsp-{self._count}",
                ),
                timeout_s,
            )
        except (JsonRpcException, TimeoutError):
            return None
        return msgspec.json.encode(token)

    # --- the writer that pygls is given -------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Takes a body from pygls: the answer to what was asked, or something for the client."""
        message = msgspec.json.decode(data, type=_Message)
        if message.method is not None:
            self._send(data)
            return
        asked = self._asked.get(message.id or "")
        if asked is None or asked.answer.done():
            return
        if message.error is UNSET:
            asked.answer.set_result(Raw(b"null") if message.result is UNSET else message.result)
            return
        error = error_of(message.error)
        if error.data is not UNSET and b'"traceback"' in bytes(error.data):
            # A bug, told as such: with a number for the client and the rest for the log.
            asked.answer.set_exception(RuntimeError(f"pygls: {error.message}"))
        else:
            asked.answer.set_exception(Refused(error))

    def close(self) -> None:
        """The connection is not pygls' to close."""

    # ------------------------------------------------------------------------------------------------

    def _take(self, message: dict[str, object]) -> None:
        protocol = self.server.protocol
        structured = protocol.structure_message({"jsonrpc": "2.0", **message})
        # What one of its functions gives back, the next does not accept by its own types (pygls 2.1.1).
        protocol.handle_message(structured)  # pyright: ignore[reportArgumentType]

    def _offer(self, command: str) -> None:
        @self.server.command(command)
        async def run(ls: LanguageServer, *arguments: Detail) -> Detail:
            asked = self._asked[str(ls.protocol.msg_id)]
            asked.work = asyncio.current_task()
            try:
                result = await self._run(command, arguments, asked.request)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # pygls would lose the answer to one that is cancelled
                told = error_object(error, command)
                data = None if told.data is UNSET else msgspec.json.decode(told.data)
                raise JsonRpcException(told.message, told.code, data) from None
            value: Detail = msgspec.json.decode(result)
            return value


_NO_CLIENT: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
