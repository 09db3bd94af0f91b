"""The pygls language server, used without its transport.

This module is imported in a thread when the first LSP message arrives (`editor.py`). pygls receives decoded
messages and returns message bodies. By itself, pygls would handle messages before checking them, send
tracebacks, log message contents, and subscribe to every buffer of the editor; this module prevents that. It
uses only public names of pygls 2.1.
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
from compactd.daemon.rpc.outgoing import AnsweredWithError, ErrorObject, error_object, error_of, shape_data
from compactd.daemon.rpc.request import Request
from compactd.protocol.errors import Detail
from compactd.protocol.messages import NULL

RunCommand = Callable[[str, tuple[Detail, ...], Request], Awaitable[bytes]]
"""A function that runs a command with its arguments for a request, and returns the result as JSON."""

_OWN_PREFIX = b'"lsp-'
"""The prefix of the ids of pygls's own requests, by which their responses are recognised."""

_log = logging.getLogger("compactd.rpc")

# pygls logs whole bodies at every level.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)


class _Message(Struct, frozen=True):
    """A message that pygls sends."""

    id: str | None = None
    method: str | None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _PendingRequest:
    """A request that pygls has received and not yet answered."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self.work: asyncio.Task[object] | None = None


class _Protocol(LanguageServerProtocol):
    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[object, object, types.InitializeResult]:
        """Answer `initialize` as pygls does, but do not ask the editor to send its text documents."""
        result = yield from super().lsp_initialize(params)
        result.capabilities.text_document_sync = None
        return result


class _Server(LanguageServer):
    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """Log the kind of the error, instead of showing it in the editor."""
        _log.info("pygls met %s", type(error).__name__)


class PyglsHost:
    """The wrapper around pygls's `LanguageServer`. Create it in any thread; afterwards use it only on the
    event loop's thread.
    """

    def __init__(
        self, name: str, version: str, commands: Sequence[str], run: RunCommand, send: Callable[[bytes], None]
    ) -> None:
        """`run` runs a command. `send` sends a whole message to the client."""
        self._run = run
        self._send = send
        self._asked: dict[str, _PendingRequest] = {}
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
            self._register_command(command)

    def initialize(self, params: Raw) -> None:
        """Pass the client's `initialize` to pygls. The request is already answered, so pygls's answer is
        dropped.

        If the params do not fit LSP's types, pygls gets params without capabilities instead.
        """
        given = msgspec.json.decode(params)
        for attempt in ({"processId": None, "rootUri": None, "capabilities": {}, **given}, _NO_CLIENT):
            try:
                self._take({"id": "initialize", "method": types.INITIALIZE, "params": attempt})
            except JsonRpcException:
                continue
            return

    def notify(self, method: str, params: Raw) -> None:
        """Pass a notification to pygls. If its params do not fit LSP's types, ignore it."""
        try:
            self._take({"method": method, "params": msgspec.json.decode(params)})
        except JsonRpcException:
            _log.info(
                "the notification %s was ignored: its params do not have the form that LSP defines", method
            )

    async def ask(self, method: str, params: Raw, request: Request) -> Raw:
        """Pass a request to pygls and return its result as JSON. Raises `AnsweredWithError` if pygls answers
        with an error.

        The request gets a new id, because pygls does not accept all ids. Cancelling this call cancels the
        command and waits until the command has ended.
        """
        self._count += 1
        id = f"asked-{self._count}"
        asked = self._asked[id] = _PendingRequest(request)
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
            raise AnsweredWithError(
                ErrorObject(error.code, error.message, shape_data(error.code, {}))
            ) from None
        finally:
            del self._asked[id]

    def take_response(self, response: Envelope) -> bool:
        """Pass a response to pygls. Return false if it does not belong to a request of pygls."""
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
            _log.info(
                "a response of the client was ignored: it came too late, or does not have the form that LSP "
                "defines"
            )
        return True

    async def create_progress(self, timeout_s: float) -> bytes | None:
        """Ask the client to show a progress (`window/workDoneProgress/create`). Return the progress token as
        JSON text, or None if the client refuses or does not answer in time.
        """
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
        """Handle a message body from pygls: the answer to a request, or a message for the client."""
        message = msgspec.json.decode(data, type=_Message)
        if message.method is not None:
            self._send(data)
            return
        asked = self._asked.get(message.id or "")
        if asked is None or asked.answer.done():
            return
        if message.error is UNSET:
            asked.answer.set_result(NULL if message.result is UNSET else message.result)
            return
        error = error_of(message.error)
        if error.data is not UNSET and b'"traceback"' in bytes(error.data):
            # This is a bug. The client gets an error id, and the log gets the details.
            asked.answer.set_exception(RuntimeError(f"pygls: {error.message}"))
        else:
            asked.answer.set_exception(AnsweredWithError(error))

    def close(self) -> None:
        """Do nothing: pygls must not close the connection."""

    # ------------------------------------------------------------------------------------------------

    def _take(self, message: dict[str, object]) -> None:
        protocol = self.server.protocol
        structured = protocol.structure_message({"jsonrpc": "2.0", **message})
        # By its type annotations, `handle_message` does not accept what `structure_message` returns (2.1.1).
        protocol.handle_message(structured)  # pyright: ignore[reportArgumentType]

    def _register_command(self, command: str) -> None:
        @self.server.command(command)
        async def run(ls: LanguageServer, *arguments: Detail) -> Detail:
            asked = self._asked[str(ls.protocol.msg_id)]
            asked.work = asyncio.current_task()
            try:
                result = await self._run(command, arguments, asked.request)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # pygls would not answer a request that is cancelled
                told = error_object(error, command)
                data = None if told.data is UNSET else msgspec.json.decode(told.data)
                raise JsonRpcException(told.message, told.code, data) from None
            value: Detail = msgspec.json.decode(result)
            return value


_NO_CLIENT: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
