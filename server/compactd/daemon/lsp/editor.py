"""The LSP part of the connection: `initialize`, configuration, commands, progress and trace.

This module handles `initialize` and configuration itself, at once and in order, because a session that is
started next depends on them. It passes everything else to pygls (`language_server.py`), which is imported in
a thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import decode

from compactd import PROTOCOL_VERSION, __version__
from compactd.daemon.lsp.parent_watch import watch_parent
from compactd.daemon.lsp.progress import CompactionEvent, CompactionProgressDisplay
from compactd.daemon.lsp.workspace import folders_of, is_below, with_targets
from compactd.daemon.rpc.dispatch import Dispatcher
from compactd.daemon.rpc.empty_list import is_empty_list
from compactd.daemon.rpc.envelope import INVALID_REQUEST, Envelope
from compactd.daemon.rpc.outgoing import ClientError, ErrorObject, MessageSender, error_object
from compactd.daemon.rpc.params import invalid_params, is_token
from compactd.daemon.rpc.request import Request
from compactd.daemon.rpc.service import Service
from compactd.protocol.errors import CompactdError, Detail, InvalidParams, SessionLocked, SessionNotFound
from compactd.protocol.messages import encode
from compactd.protocol.wire import ListResult, SessionInfo

if TYPE_CHECKING:
    from compactd.daemon.lsp.language_server import PyglsHost, RunCommand
    from compactd.protocol.methods import Method

SERVER_NAME = "compactd"

COMMANDS: Mapping[str, str] = {
    "compactd.compact": "session/compact",
    "compactd.undo": "session/undo",
    "compactd.state": "agent/state",
    "compactd.sessions": "session/list",
}
"""The commands of `workspace/executeCommand`, and the method that each one calls."""

_WARNING = 2  # LSP's `MessageType.Warning`

_PROGRESS_CREATE_S = 1.0  # an editor that answers later gets no progress; the compaction goes on

_ASK_S = 60.0
"""Seconds that the user has to choose a session."""

_MAX_OFFERED = 5
"""The most sessions that are offered to the user."""

_MAKING = threading.Lock()
"""Held while pygls is set up: lsprotocol cannot do that in two threads at once (2025.0, seen 2026-11)."""

_log = logging.getLogger("compactd.rpc")


class _InitializeParams(Struct, frozen=True):
    process_id: Raw | UnsetType = field(name="processId", default=UNSET)
    options: Raw | UnsetType = field(name="initializationOptions", default=UNSET)
    capabilities: Raw | UnsetType = UNSET


class _Window(Struct, frozen=True):
    work_done_progress: bool | None = field(name="workDoneProgress", default=None)


class _Capabilities(Struct, frozen=True):
    window: _Window | None = None


class _ConfigurationParams(Struct, frozen=True):
    settings: Raw | UnsetType = UNSET


class _CommandParams(Struct, frozen=True):
    command: str
    arguments: tuple[Raw, ...] | None = None
    token: Raw | UnsetType = field(name="workDoneToken", default=UNSET)


class _TokenParams(Struct, frozen=True):
    token: Raw


class _MessageParams(Struct, frozen=True):
    """Params of `window/logMessage` and `window/showMessage`."""

    type: int
    message: str


class _Action(Struct, frozen=True):
    title: str


class _ShowMessageRequest(Struct, frozen=True):
    type: int
    message: str
    actions: tuple[_Action, ...]


class Editor:
    """The LSP part of the connection: it handles an editor's messages. Use it only on the event loop's
    thread.
    """

    def __init__(
        self, service: Service, out: MessageSender, calls: Dispatcher, parent_gone: Callable[[], None]
    ) -> None:
        self._service = service
        self._out = out
        self._calls = calls
        self._parent_gone = parent_gone
        self._is_initialised = False
        self._shows_progress = False
        self._initialize: Raw | None = None
        self._loading: asyncio.Task[PyglsHost] | None = None
        self._told: list[tuple[str, Raw]] = []  # notifications that wait until pygls is imported
        self._host: PyglsHost | None = None
        self._folders: tuple[str, ...] = ()
        """The folders of the editor's workspace."""
        self._in_use: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By session id, a lock for each session that a command works on."""
        self._showing = CompactionProgressDisplay(self._create_progress, out.notify)
        self.acts: Mapping[str, Callable[[Request, Raw | UnsetType], None]] = {
            "initialize": self._on_initialize,
            "initialized": self._on_notification,
            "$/setTrace": self._on_notification,
            "workspace/didChangeConfiguration": self._on_configuration,
            "workspace/executeCommand": self._on_command,
            "window/workDoneProgress/cancel": self._on_progress_cancel,
        }
        """By the name of an LSP message, the function that handles it."""

    def log_message(self, type: int, text: str) -> None:
        """Send `window/logMessage` (`type`: 1 error, 2 warning, 3 info, 4 log), if the client has sent
        `initialize`.
        """
        if self._is_initialised:
            self._out.notify("window/logMessage", _MessageParams(type, text))

    def _show_warnings(self, texts: Sequence[str]) -> None:
        """Show warnings about ignored settings with `window/showMessage`, if the client has sent
        `initialize`.
        """
        if self._is_initialised and texts:
            self._out.notify(
                "window/showMessage", _MessageParams(_WARNING, f"{SERVER_NAME}: {'; '.join(texts)}")
            )

    def show_compaction(self, session_id: str, event: CompactionEvent) -> None:
        """Show a compaction's progress, if the client supports progress."""
        if self._shows_progress:
            self._showing.handle_event(session_id, event)

    def take_response(self, response: Envelope) -> None:
        """Pass a response to pygls, if pygls sent the request. Otherwise ignore it."""
        if self._host is None or not self._host.take_response(response):
            _log.info("a response of the client was ignored: its id belongs to no open request of the daemon")

    # --- initialize and configuration: handled here, at once ----------------------------------------

    def _on_initialize(self, request: Request, raw: Raw | UnsetType) -> None:
        if request.id is None:
            return
        if self._is_initialised:
            self._calls.refuse(
                request, ErrorObject(INVALID_REQUEST, "`initialize` may be sent only once per connection")
            )
            return
        raw = Raw(b"{}") if raw is UNSET else raw
        try:
            params = msgspec.json.decode(raw, type=_InitializeParams)
        except msgspec.ValidationError as error:
            self._calls.fail(request, InvalidParams(str(error), "$"))
            return
        self._is_initialised = True
        self._calls.succeed(request, Raw(encode(self._initialize_result())))
        self._initialize = raw
        if self._host is not None:
            self._host.initialize(raw)
        self._shows_progress = _shows_progress(params.capabilities)
        self._folders = folders_of(raw)
        if params.process_id is not UNSET and (pid := bytes(params.process_id)).isdigit():
            watch_parent(int(pid), self._parent_gone, asyncio.get_running_loop())
        self._load()
        self._configure(params.options, changed=False)

    def _initialize_result(self) -> dict[str, object]:
        return {
            "capabilities": {
                "executeCommandProvider": {"commands": list(COMMANDS), "workDoneProgress": True},
                "experimental": {
                    "compactd": {
                        "protocol_version": PROTOCOL_VERSION,
                        "methods": sorted(self._service.methods),
                    }
                },
            },
            "serverInfo": {"name": SERVER_NAME, "version": __version__},
        }

    def _on_configuration(self, request: Request, raw: Raw | UnsetType) -> None:
        try:
            params = msgspec.json.decode(Raw(b"{}") if raw is UNSET else raw, type=_ConfigurationParams)
        except msgspec.ValidationError:
            _log.warning("workspace/didChangeConfiguration was ignored: its params are not an object")
        else:
            self._configure(params.settings, changed=True)
        self._calls.succeed(request, None)

    def _configure(self, raw: Raw | UnsetType, *, changed: bool) -> None:
        try:
            settings = _settings_of(raw)
        except msgspec.ValidationError:
            _log.warning("the editor's settings for compactd were ignored: they are not an object")
            self._show_warnings(("the settings for compactd are ignored: they must be an object",))
            return
        if settings is None:
            return
        try:
            self._show_warnings(self._service.configure(settings, changed=changed))
        except CompactdError as error:
            # A mistake in the settings must not keep the editor from starting. Report it.
            self.log_message(1, f"the settings for compactd were not applied: {error.message}")
            _log.warning("the editor's settings for compactd were not applied: error %d", error.code)

    # --- everything else: passed to pygls -----------------------------------------------------------

    def _on_notification(self, request: Request, raw: Raw | UnsetType) -> None:
        raw = Raw(b"{}") if raw is UNSET else raw
        if self._host is not None:
            self._host.notify(request.name, raw)
        elif not self._load().done():  # done without a host: pygls could not be imported
            self._told.append((request.name, raw))
        self._calls.succeed(request, None)

    def _on_progress_cancel(self, request: Request, raw: Raw | UnsetType) -> None:
        try:
            token = msgspec.json.decode(b"{}" if raw is UNSET else raw, type=_TokenParams).token
        except msgspec.ValidationError:
            _log.info("a window/workDoneProgress/cancel without a token was ignored")
        else:
            if self._calls.cancel_token(bytes(token)):
                self._calls.succeed(request, None)
                return
        self._on_notification(request, raw)

    def _on_command(self, request: Request, raw: Raw | UnsetType) -> None:
        raw = Raw(b"{}") if raw is UNSET else raw
        try:
            params = msgspec.json.decode(raw, type=_CommandParams)
        except msgspec.ValidationError as error:
            self._calls.fail(request, invalid_params(error))
            return
        method = COMMANDS.get(params.command)
        if method is None:
            self._calls.fail(
                request, InvalidParams(f"there is no command {params.command[:100]!r}", "$.command")
            )
            return
        request.title = method
        if params.token is not UNSET and is_token(params.token):
            request.token = bytes(params.token)
        self._calls.start(request, self._command(raw, request))

    async def _command(self, raw: Raw, request: Request) -> Raw:
        host = await asyncio.shield(self._load())
        return await host.ask("workspace/executeCommand", raw, request)

    async def _create_progress(self) -> bytes | None:
        host = await asyncio.shield(self._load())
        return await host.create_progress(_PROGRESS_CREATE_S)

    async def _run(self, command: str, arguments: tuple[Detail, ...], request: Request) -> bytes:
        """Run a command that pygls received: call the command's method with the first argument as params.
        Return the result as JSON.
        """
        name = COMMANDS[command]
        params = arguments[0] if arguments and arguments[0] is not None else {}
        if params == []:  # Lua's and PHP's empty table
            params = {}
        if not isinstance(params, dict):
            raise InvalidParams("Expected `object`", "$.arguments[0]")
        method = self._service.methods[name]
        takes_session = "session_id" in method.params.__struct_encode_fields__
        named = params.get("session_id")
        try:
            # Check the params before asking the user or showing progress.
            is_named = not takes_session or named is not None
            self._calls.check(name, Raw(encode(params if is_named else {**params, "session_id": "any"})))
            if not is_named:
                named = await self._default_session(method, request)
                params = {**params, "session_id": named}
            if request.token is None and self._shows_progress and method.long_running:
                request.token = await self._create_progress()
                self._calls.listen(request)
            if not takes_session:
                return await self._calls.invoke(name, Raw(encode(params)), request)
            return await self._on_session(method, str(named), Raw(encode(params)), request)
        except InvalidParams as error:
            path = str(error.data.pop("path", "$")).removeprefix("$")
            message = error.message.partition(" - at `")[0]
            raise InvalidParams(message, f"$.arguments[0]{path}", **error.data) from None

    async def _on_session(self, method: Method, session_id: str, raw: Raw, request: Request) -> bytes:
        """Call a method on a session and return its result as JSON.

        If the session is stored but not open, open it for this call and close it afterwards, because an
        editor without a compactd extension cannot open it.
        """
        lock = self._in_use.setdefault(session_id, asyncio.Lock())
        if method.read_only:
            with suppress(SessionNotFound):
                return await self._calls.invoke(method.name, raw, request)
        async with lock:
            try:
                return await self._calls.invoke(method.name, raw, request)
            except SessionNotFound as error:
                if not error.data.get("exists"):
                    raise SessionNotFound(
                        f"no session has the id {session_id!r}; the command `compactd.sessions` lists all "
                        "sessions",
                        **error.data,
                    ) from None
            opened = Raw(encode({"session_id": session_id, "read_only": method.read_only}))
            await self._calls.invoke("session/start", opened, request)
            try:
                return await self._calls.invoke(method.name, raw, request)
            finally:
                closed = Raw(encode({"session_id": session_id}))
                with suppress(SessionNotFound):
                    await self._calls.invoke("session/close", closed, request)

    async def _default_session(self, method: Method, request: Request) -> str:
        """Return the session that a command without `session_id` means.

        That is a session of the workspace: the one that this process changed last, or else the newest. If the
        workspace has no session, the user is asked. Raises `SessionNotFound` if there is no session or the
        user picks none, and `SessionLocked` if other processes have all sessions open.
        """
        newest = self._service.newest_session()
        if not self._folders and newest is not None:
            return newest
        rows = await self._list_sessions(request)
        folders = await asyncio.to_thread(with_targets, self._folders)
        # A session that this client opened without a folder belongs to it.
        mine = [row for row in rows if row.session_id == newest and row.working_dir is None]
        ours = [row for row in rows if is_below(folders, row.working_dir)]
        first = [row for row in ours if row.session_id == newest]
        if found := (*first, *mine, *ours):
            return found[0].session_id
        if not rows:
            raise SessionNotFound(
                "there is no session yet: start one with `session/start`",
                session_id=None,
                exists=False,
            )
        if method.read_only and not self._folders:
            return rows[0].session_id
        return await self._pick_session(method, rows, request)

    async def _pick_session(self, method: Method, rows: tuple[SessionInfo, ...], request: Request) -> str:
        """Ask the user to pick one of the sessions `rows`, and return its id. Raises as
        `_default_session`."""
        offered = [row for row in rows if method.read_only or not await self._is_elsewhere(row, request)]
        if not offered:
            raise SessionLocked(
                "Every session is open for writing in another process. End the process that has the session "
                "you want open, and name that session in `session_id`.",
                session_id=rows[0].session_id,
            )
        titles = {f"{row.title or 'untitled'} ({row.session_id})": row for row in offered[:_MAX_OFFERED]}
        if self._is_initialised:
            verb = "Look at" if method.read_only else "Compact" if method.long_running else "Change"
            question = _ShowMessageRequest(
                3,
                f"This workspace has no session. {verb} a session of another folder?",
                tuple(_Action(title) for title in titles),
            )
            # If the client cannot ask or the user does not answer, no session is picked.
            with suppress(ClientError, TimeoutError, ConnectionError, msgspec.MsgspecError):
                answer = await self._out.request("window/showMessageRequest", question, _ASK_S)
                picked = decode(answer, type=_Action | None)
                if picked is not None and (row := titles.get(picked.title)) is not None:
                    return row.session_id
        raise SessionNotFound(
            "this workspace has no session: name a session of another folder in `session_id`; the command "
            "`compactd.sessions` lists all sessions",
            session_id=None,
            exists=True,
        )

    async def _is_elsewhere(self, row: SessionInfo, request: Request) -> bool:
        """Return true if the session is open, but not in this process."""
        if not row.open:
            return False
        try:
            await self._calls.invoke("agent/state", Raw(encode({"session_id": row.session_id})), request)
        except SessionNotFound:
            return True
        return False

    async def _list_sessions(self, request: Request) -> tuple[SessionInfo, ...]:
        listed = await self._calls.invoke("session/list", Raw(b"{}"), request)
        return decode(listed, type=ListResult).sessions

    def _load(self) -> asyncio.Task[PyglsHost]:
        if self._loading is None:
            self._loading = asyncio.create_task(self._import_host())
            self._loading.add_done_callback(_log_failure)
        return self._loading

    async def _import_host(self) -> PyglsHost:
        known = self._initialize
        host = await _in_thread(lambda: _make_host(self._run, self._out.send_body, known))
        if known is None and self._initialize is not None:
            host.initialize(self._initialize)
        self._host = host
        for name, raw in self._told:
            host.notify(name, raw)
        self._told.clear()
        return host


def _in_thread(work: Callable[[], PyglsHost]) -> asyncio.Future[PyglsHost]:
    """Run `work` in a new daemon thread, and return a future of its result. (An executor would delay the
    process's exit.)
    """
    done: Future[PyglsHost] = Future()
    done.set_running_or_notify_cancel()  # a caller that is cancelled does not cancel the work

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, name="compactd-pygls", daemon=True).start()
    return asyncio.wrap_future(done)


def _make_host(run: RunCommand, send: Callable[[bytes], None], initialize: Raw | None) -> PyglsHost:
    from compactd.daemon.lsp.language_server import PyglsHost

    with _MAKING:
        host = PyglsHost(SERVER_NAME, __version__, tuple(COMMANDS), run, send)
        if initialize is not None:
            host.initialize(initialize)
    return host


def _log_failure(loading: asyncio.Task[PyglsHost]) -> None:
    if not loading.cancelled() and (error := loading.exception()) is not None:
        error_object(error, "the import of pygls")


def _shows_progress(raw: Raw | UnsetType) -> bool:
    try:
        capabilities = msgspec.json.decode(b"{}" if raw is UNSET else raw, type=_Capabilities)
    except msgspec.ValidationError:
        return False
    return capabilities.window is not None and capabilities.window.work_done_progress is True


def _settings_of(raw: Raw | UnsetType) -> Raw | None:
    """Return the member `compactd` of the settings object, or the object itself if it has no such member.
    Return None for no settings. Raises `ValidationError` if `raw` is not an object.
    """
    if raw is UNSET or is_empty_list(raw):
        return None
    members = msgspec.json.decode(raw, type=dict[str, Raw] | None)
    own = raw if members is None else members.get(SERVER_NAME, raw)
    return None if bytes(own) == b"null" or is_empty_list(own) else own
