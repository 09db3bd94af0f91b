"""The daemon process: connects all parts, and serves its clients."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, TypeVar

from msgspec import Raw, Struct

from compactd import PROTOCOL_VERSION, __version__
from compactd._runtime.interpreter import set_up_interpreter
from compactd._runtime.lazy_imports import BackgroundImporter
from compactd.daemon.logging import log_to_stderr
from compactd.daemon.rpc.connection import Connection
from compactd.daemon.rpc.framing import FRAME_LIMIT_BYTES
from compactd.daemon.rpc.request import Reply, Request
from compactd.daemon.sharing.client import Client
from compactd.daemon.sharing.clients import HOOK, Clients
from compactd.protocol import wire
from compactd.protocol.messages import Event
from compactd.protocol.methods import METHODS, Method

if TYPE_CHECKING:
    from pathlib import Path

    from compactd.compaction.read_ahead import IdleAnalyzer
    from compactd.core.models.observed import Observed
    from compactd.core.models.registry import Lookup
    from compactd.daemon.fleet.forwarder import Forwarder
    from compactd.daemon.handlers.base import Handler
    from compactd.models.access import ModelAccess
    from compactd.models.catalog import Catalogue
    from compactd.models.learned_windows import LearnedWindows
    from compactd.models.providers.provider import Provider
    from compactd.protocol.settings import GivenSettings
    from compactd.session.git.snapshots import GitTrees
    from compactd.session.host import ClientRef
    from compactd.session.loop_limits import LoopLimits
    from compactd.session.manager import Sessions
    from compactd.session.queue import RequestQueue
    from compactd.session.session import Session
    from compactd.storage.settings_reader import ClientSettings, SettingsSources

T = TypeVar("T")

WORKERS = 4
"""The number of worker threads for long work: compactions, reading files, counting."""

SHORT_TOKENS = 100_000
"""The most tokens of work that counts as small, for example a compaction of about 0.1 s. Small work has its
own queue, so it does not wait for larger work.
"""

LOAD_AFTER_S = 0.3
"""Seconds from the first answer until the modules for compactions are loaded. An agent's first requests come
in a row, and would wait for that.
"""

MODELS = tuple(f"compactd.models.{name}" for name in ("access", "providers.factory", "providers.retries"))
"""The modules needed to send requests to models."""

PROVIDER_MODULES = ("openai", "openai_responses", "anthropic", "gemini", "ollama")
"""The provider modules in `models/providers`. Each takes a few tenths of a millisecond to import."""

EMPTY_RESULT = wire.Nothing()

_log = logging.getLogger("compactd.daemon")


class Daemon:
    """One daemon process: its clients, sessions, models and outside settings. Implements the interfaces
    `ClientHost` (`daemon/sharing/clients.py`), `SessionHost` (`session/host.py`) and `HandlerHost`
    (`daemon/handler_host.py`).
    """

    def __init__(self, environ: Mapping[str, str], *, is_shared: bool = False) -> None:
        """`is_shared`: several clients may connect (`daemon/sharing`)."""
        self.methods: Mapping[str, Method] = METHODS
        self._environ = environ
        self._started = monotonic()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="compactd")
        self._turns = (asyncio.Lock(), asyncio.Lock())
        self.modules = BackgroundImporter(self.in_worker)
        self._engine: asyncio.Task[None] | None = None
        self.clients = Clients(self, is_shared=is_shared)
        self.socket: str | None = None
        """The path of the socket at which clients connect, if this daemon is shared."""
        self.on_retire: Callable[[], None] = lambda: None
        """What makes a shared daemon take no further clients."""
        self._outside: SettingsSources | None = None
        self._handlers: dict[str, Handler] | None = None
        self._sessions: Sessions | None = None
        self.fleet: Forwarder | None = None
        """The calls between this daemon and others of the same database, or None if it has no others."""
        self._catalogue: Catalogue | None = None
        self._learned: LearnedWindows | None = None
        self._models: ModelAccess | None = None
        self._loop_limits: LoopLimits | None = None
        self._learner: IdleAnalyzer | None = None

    # --- parts, made at the first need ----------------------------------------------------------------

    @property
    def home(self) -> Path:
        """The data folder, which contains the sessions."""
        from compactd.storage.paths import data_folder

        return data_folder(self._environ)

    @property
    def config(self) -> Path:
        """The folder of the user's settings."""
        from compactd.storage.paths import config_folder

        return config_folder(self._environ)

    @property
    def sessions(self) -> Sessions:
        """The sessions that are open in this process."""
        if self._sessions is None:
            from compactd.session.manager import Sessions
            from compactd.storage.choose import make_store

            self._sessions = Sessions(self, make_store(self._environ, self.home), self._trees)
            calls = self._sessions.store.calls
            if calls is not None:
                from compactd.daemon.fleet.forwarder import Forwarder

                self.fleet = Forwarder(self, calls)
        return self._sessions

    @property
    def catalogue(self) -> Catalogue:
        """The registry of models, with the user's own models."""
        if self._catalogue is None:
            from compactd.models.catalog import Catalogue

            self._catalogue = Catalogue(self.config / "models.toml")
        return self._catalogue

    @property
    def outside(self) -> SettingsSources:
        """The settings that belong to no session: from the environment, from files and from the editor."""
        if self._outside is None:
            from compactd.storage.settings_reader import SettingsSources

            self._outside = SettingsSources(self._environ, self.config)
        return self._outside

    @property
    def learned_windows(self) -> LearnedWindows:
        """The observed windows: what servers said about their models' context windows."""
        if self._learned is None:
            from compactd.models.learned_windows import LearnedWindows

            self._learned = LearnedWindows(self.home, self.now)
        return self._learned

    @property
    def models(self) -> ModelAccess:
        """The access to models: providers and keys."""
        if self._models is None:
            from compactd.models.access import ModelAccess

            self._models = ModelAccess(self._environ, self.config)
        return self._models

    # --- ClientHost -----------------------------------------------------------------------------------

    @property
    def open_sessions(self) -> Mapping[str, Session]:
        """The sessions that are open in this process, by id."""
        return {} if self._sessions is None else self._sessions.open

    def new_client_settings(self) -> ClientSettings:
        """Return the settings of a client that has given none."""
        from compactd.storage.settings_reader import ClientSettings

        return ClientSettings()

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Return the result of a request, or an awaitable of the result.

        A request to a session waits for its turn in the session's queue. Requests that open, close or delete
        the session join the queue in `Sessions`.
        """
        if method.name == "daemon/ping":
            return EMPTY_RESULT
        if self._handlers is None:
            from compactd.daemon.handlers import handlers

            self._handlers, answered = handlers(self), asyncio.Event()
            request.after(answered.set)
            self._engine = asyncio.ensure_future(self._load_engine(answered))
        if self._learner is not None:
            self._learner.note_request(method, getattr(params, "session_id", ""))
        handle = self._handlers[method.name]
        if self.fleet is not None:
            return self._call_in_fleet(self.fleet, handle, method, params, request)
        return self._handle(handle, method, params, request)

    def _call_in_fleet(
        self, fleet: Forwarder, handle: Handler, method: Method, params: Struct, request: Request
    ) -> Reply | Awaitable[Reply]:
        """Do what `call` says if the sessions are in a database."""
        from compactd.session.manager import SessionNotOpen

        work: Callable[[], Reply | Awaitable[Reply]] = partial(self._handle, handle, method, params, request)
        changes = method.scope == "session" and not (method.opens or method.ends or method.read_only)
        session = self.open_sessions.get(getattr(params, "session_id", None) or "")
        if changes and session is not None:
            work = partial(fleet.carry_out, work, session, method, params, request)

        async def explained(reply: Awaitable[Reply]) -> Reply:
            try:
                return await reply
            except SessionNotOpen as error:
                raise await self.sessions.explain(error) from None

        async def refused(error: SessionNotOpen) -> Reply:
            raise await self.sessions.explain(error) from None

        try:
            reply = work()
        except SessionNotOpen as error:
            return refused(error)
        return reply if reply is None or isinstance(reply, Struct | Raw) else explained(reply)

    def _handle(
        self, handle: Handler, method: Method, params: Struct, request: Request
    ) -> Reply | Awaitable[Reply]:
        """Call a handler, or have it wait for its turn in the session's queue."""
        if method.scope == "session" and not (method.opens or method.ends):
            queue = self.sessions.queues.get(getattr(params, "session_id", None) or "")
            if queue is not None and not queue.is_idle and (method.waits or queue.is_in_transition):
                return _handle_in_turn(queue, handle, params, request)
        return handle(params, request)

    async def _load_engine(self, answered: asyncio.Event) -> None:
        """Wait for `answered`, which is set when the first request is answered, and for `LOAD_AFTER_S`. Then
        load the modules that compactions need, and start the read-ahead of new messages.
        """
        await answered.wait()  # importing at the same time would delay the answer by 30 ms (2026-11)
        await asyncio.sleep(LOAD_AFTER_S)
        await self.modules.load(
            "compactd.compaction.run", "compactd.compaction.read_ahead", "compactd.session.work"
        )
        if self._learner is None and self._sessions is not None:
            from compactd.compaction.read_ahead import IdleAnalyzer

            self._learner = IdleAnalyzer(self._sessions.open, self.in_worker)
            for session_id in self._sessions.open:
                # What came before there was a reader counts as appended now.
                self._learner.note_request(METHODS["session/append"], session_id)

    def apply_client_settings(self, client: Client, settings: Raw, *, changed: bool) -> tuple[str, ...]:
        """Apply an editor's settings to the sessions that it opened first, now and later. Return warnings
        about settings that are ignored.

        `changed` is true for `workspace/didChangeConfiguration`, false for `initializationOptions`.
        """
        from compactd.storage.settings_files import from_client
        from compactd.storage.settings_reader import CLIENT_SOURCES

        source = CLIENT_SOURCES[0 if changed else 1]
        given, warnings = from_client(settings, source)
        for warning in warnings:
            _log.warning("%s", warning)
        client.settings.configure(source, given, warnings)
        if given is not None:
            self.refresh_sessions()
        return warnings

    def refresh_sessions(self) -> None:
        """Recompute the settings and the window of every open session, because something outside the sessions
        changed. Send `usage_update` for each session whose token usage changes.
        """
        for session_id in tuple(self.open_sessions):
            self.refresh_session(session_id)

    def refresh_session(self, session_id: str) -> None:
        """Do the same as `refresh_sessions` for one session. Do nothing if it is not open."""
        session = self.open_sessions.get(session_id)
        if session is not None:
            before = session.token_usage()
            session.refresh()
            if session.token_usage() != before:
                session.emit_usage()

    # --- SessionHost ----------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time in Unix seconds."""
        return time()

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Send an event to the session's clients as `agent/event`. Also show a compaction's progress in their
        editors.
        """
        self.clients.emit(session_id, seq, event)
        if self.fleet is not None:
            self.fleet.publish(session_id, event)

    async def ask_client(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct | Raw, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        """Send a request to a client and return its answer. Raises `ClientFailed`."""
        # A hook is not the client's that compacts, but of one that has the session open here.
        if self.fleet is not None and method != HOOK and self.fleet.is_remote(first):
            return await self.fleet.ask(first, session_id, method, params, timeout_s), first
        return await self.clients.ask(session_id, first, method, params, timeout_s)

    async def read_keys(self) -> None:
        """Load the modules for models and read the user's key files, so that `provider` can be called."""
        await self.modules.load(*MODELS, *(f"compactd.models.providers.{name}" for name in PROVIDER_MODULES))
        await self.models.read()

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        """Return the provider that serves a model, and the model's name there. Raises `NoProvider`."""
        from compactd.protocol.errors import NoProvider

        if not model:
            raise NoProvider(
                "This session has no model: set one with `model/set`, or in `session/start`.", model=None
            )
        return self.models.provider(model, base_url, self.catalogue.lookup(model, None, base_url))

    async def ask_server(self, model: str | None, base_url: str | None) -> None:
        """Ask a model server on this machine for the model's window, and store the answer as observed window.
        Do nothing if `model` or `base_url` is missing.
        """
        if not model or not base_url:
            return
        await self.modules.load(*MODELS, "compactd.models.providers.local_servers")
        window = await self.models.stated_window(model, base_url)
        if window is not None:
            found = await self.find_model(model, None, base_url)
            await self.in_worker(lambda: self.learned_windows.learn(found, base_url, window, "server"))

    async def loop_limits(self) -> LoopLimits:
        """Return the user's limits on the agent loop. The first call reads them from the environment and the
        user's settings file.
        """
        if self._loop_limits is None:
            from compactd.session.loop_limits import read_limits
            from compactd.storage.settings_files import USER_FILE

            self._loop_limits = await read_limits(self._environ, self.config / USER_FILE)
        return self._loop_limits

    def note_grown(self, session_id: str) -> None:
        """Read the session's new messages, and prepare its next compaction, while no requests come."""
        if self._learner is not None:
            self._learner.note_grown(session_id)

    def notice(self, session_id: str, text: str) -> None:
        """Show one line in the logs of the session's editors. Other clients get nothing."""
        self.clients.notice(session_id, text)

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    async def run_compute(self, work: Callable[[], T], tokens: int) -> T:
        """Run `work` in a worker thread and return its result. Calls run one after the other, because
        parallel computations slow the event loop down.

        `tokens` is the size of the work. Work of at most `SHORT_TOKENS` has its own queue, so it does not
        wait for larger work.
        """
        async with self._turns[tokens > SHORT_TOKENS]:
            return await self.in_worker(work)

    async def read_settings(self, working_dir: str | None) -> None:
        """Read the settings files for a session whose working directory is `working_dir`."""
        await self.outside.read(working_dir)

    def layers(self, session_id: str, working_dir: str | None) -> tuple[tuple[str, GivenSettings], ...]:
        """Return (source, settings) for each place outside the session that has settings, highest priority
        first. Reads no file: the files' content is that of the last `read_settings`. Of several clients, the
        settings of the one that opened the session first count.
        """
        first = self.clients.first_of(session_id)
        return self.outside.layers(working_dir, None if first is None else first.settings)

    def switch(self, names: Sequence[str]) -> str | None:
        """Return the first of these environment variables that is switched on, or None."""
        from compactd.storage.settings_files import first_switch

        return first_switch(self._environ, names)

    def lookup(self, model: str | None, base_url: str | None) -> Lookup | None:
        """Return what the registry says about a model, or None if `model` is None."""
        return None if model is None else self.catalogue.lookup(model, None, base_url)

    def observed_window(self, found: Lookup, base_url: str | None) -> Observed | None:
        """Return the model's observed window, or None."""
        return self.learned_windows.of(found, base_url)

    def learn(
        self,
        found: Lookup,
        base_url: str | None,
        window: int,
        *,
        requested: int | None,
        sent: int,
        is_own: bool,
    ) -> Observed | None:
        """Store the context window that a provider's rejection named. Return the observed window, or None if
        it was known already. `SessionHost.learn` explains the params."""
        return self.learned_windows.learn(
            found, base_url, window, "rejection", requested=requested, sent=sent, is_own=is_own
        )

    async def find_model(self, model: str, provider: str | None, base_url: str | None) -> Lookup:
        """Return what the registry says about a model. The registry is read in a worker when first needed."""
        catalogue = self.catalogue
        return await self.in_worker(lambda: catalogue.lookup(model, provider, base_url))

    def info(self) -> wire.InfoResult:
        """Return the result of `daemon/info`."""
        from compactd.models.tokenizers.counters import SPECS

        return wire.InfoResult(
            version=__version__,
            protocol_version=PROTOCOL_VERSION,
            pid=os.getpid(),
            uptime_s=round(monotonic() - self._started, 3),
            sessions=len(self._sessions.open) if self._sessions else 0,
            clients=len(self.clients.connected) or 1,
            socket=self.socket,
            paths={"data": str(self.home), "config": str(self.config)},
            encodings=tuple(SPECS),
            platform="tested" if sys.platform in ("linux", "darwin") else "untested",
            warnings=self.warnings(),
        )

    def warnings(self) -> tuple[str, ...]:
        """Return warnings for the user if the data folder is unsafe."""
        from compactd.storage.write_access import exposed_data

        told = exposed_data(self.home)
        return () if told is None else (told,)

    def _trees(self, session_id: str) -> GitTrees:
        """Return the store of a session's snapshots: a folder of git objects below `snapshots` in the data
        folder."""
        from compactd.session.git.snapshots import GitTrees
        from compactd.storage.paths import file_stem

        return GitTrees(self.home / "snapshots" / file_stem(session_id), self._environ.get("PATH"))

    # --- life -----------------------------------------------------------------------------------------

    def connect(
        self, fds: tuple[int, int], frame_limit_bytes: int, flush_s: float | None = None
    ) -> tuple[Connection, Awaitable[int]]:
        """Connect a client on two descriptors (input, output). Return (its connection, what serves it until
        it ends and then gives the exit code for it). `flush_s`: see `Connection`.
        """
        client = self.clients.add()
        connection = Connection(
            client,
            fds,
            frame_limit_bytes=frame_limit_bytes,
            client_gone=lambda: self.clients.on_gone(client),
            flush_s=flush_s,
        )
        client.connect(connection)
        return connection, self._serve(client)

    async def _serve(self, client: Client) -> int:
        has_event_loop = True
        try:
            return await client.connection.run()
        except GeneratorExit:  # the event loop was dropped: nothing can be waited for
            has_event_loop = False
            raise
        finally:
            if self.clients.is_shared and has_event_loop:
                await self.clients.remove(client)
                client.connection.close()

    async def close(self) -> None:
        """Close all sessions, and end what runs in this process."""
        if self._learner is not None:
            await self._learner.stop()
        if self._sessions is not None:
            await self._sessions.close_all()
            await self._sessions.store.close()
        if self._models is not None:
            await self._models.close()


async def serve_alone(daemon: Daemon, fds: tuple[int, int], frame_limit_bytes: int | None = None) -> int:
    """Serve one client, then close the daemon. Return the exit code."""
    try:
        limit_bytes = FRAME_LIMIT_BYTES if frame_limit_bytes is None else frame_limit_bytes
        return await daemon.connect(fds, limit_bytes)[1]
    finally:
        await daemon.close()


async def _handle_in_turn(queue: RequestQueue, handle: Handler, params: Struct, request: Request) -> Reply:
    await queue.wait_turn()
    done = handle(params, request)
    return done if isinstance(done, Struct) else await done


def serve(fds: tuple[int, int], *, frame_limit_bytes: int | None = None) -> int:
    """Run the daemon on two file descriptors (input, output). Return the process's exit code."""
    daemon = set_up(dict(os.environ))
    for warning in daemon.warnings():
        _log.warning("%s", warning)
    return asyncio.run(serve_alone(daemon, fds, frame_limit_bytes))


def set_up(environ: Mapping[str, str], *, is_shared: bool = False) -> Daemon:
    """Prepare this process, and return its daemon."""
    set_up_interpreter()
    log_to_stderr(environ)
    if sys.platform not in ("linux", "darwin"):
        _log.warning("compactd is tested on Linux and macOS only, not on this platform")
    return Daemon(environ, is_shared=is_shared)
