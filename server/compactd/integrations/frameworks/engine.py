"""One daemon for all agents of this process: started when it is needed, started again if it dies, and left
alone for a while if that does not help.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import msgspec

from compactd.client import Client, DaemonGone, Json, RpcError
from compactd.protocol.settings import GivenSettings

if TYPE_CHECKING:
    from compactd.integrations.frameworks.mirror import Mirror

T = TypeVar("T")

CALL_S = 10.0
"""Seconds until a request is given up that neither compacts nor asks a model."""
PAUSE_S = 60.0
"""Seconds in which no request is sent to a daemon that could not be started or did not answer. Otherwise,
each model request of an agent would wait for it.
"""
MAX_SESSIONS = 256
"""The most sessions that are open in one process. The one that was used longest ago is closed; it is opened
again when it is needed.
"""
MAX_ID_CHARS = 200
"""The most characters of a session's id. The daemon takes 256, and a mirror adds some."""
_HURRY_S = 0.5


class CompactdWarning(UserWarning):
    """compactd could not help an agent, which goes on without it."""


@dataclass(frozen=True)
class SessionOptions:
    """How the session of a conversation is opened. The values can be pickled and copied."""

    client: str
    """Name of the framework, which the daemon's list of sessions shows."""
    tested: str = ""
    """The versions of the framework that the adapter was tested with, for the warning if it cannot read
    something.
    """
    context_window: int | None = None
    """The model's window in tokens. None: the daemon looks it up by the model's name."""
    compaction: Mapping[str, Json] | None = None
    """Settings of compactions, as `session/start` takes them."""
    working_dir: str | None = None
    """The folder that the conversation is about. None: the process's current folder."""
    parent_session_id: str | None = None
    """The session of the agent that started this one as a sub-agent."""
    persist: bool = True
    """False: the session is kept in memory, and ends with the process."""
    call_s: float = CALL_S
    """Seconds until another request is given up."""
    compact_s: float = 120.0
    """Seconds until a compaction is given up. The request is then sent with the messages as they are."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for settings that do not exist: the agent's author sees it at once."""
        if not self.compaction:
            return
        given = dict(self.compaction)
        if unknown := sorted(given.keys() - _setting_names()):
            raise ValueError(f"compaction: there is no setting {unknown[0]!r}; docs/settings.md lists them")
        try:
            msgspec.convert(given, GivenSettings)
        except msgspec.ValidationError as error:
            raise ValueError(f"compaction: {error}; docs/settings.md lists the settings") from error


@cache
def _setting_names() -> frozenset[str]:
    return frozenset(each.encode_name for each in msgspec.structs.fields(GivenSettings))


_DAEMON_FAILED = (DaemonGone, TimeoutError, OSError)


class Engine:
    """The daemon of this process. Get it with `engine_of`. May be used from several threads."""

    def __init__(self, command: tuple[str, ...] | None) -> None:
        self._command = command
        self._lock = threading.RLock()
        self._client: Client | None = None
        self._mirrors: OrderedDict[str, Mirror] = OrderedDict()
        self._paused_until = 0.0
        self._warned: set[str] = set()
        self._unfinished: set[Callable[[], None]] = set()
        self._has_answered = False

    def mirror(self, session_id: str, options: SessionOptions) -> Mirror:
        """Return the mirror of the conversation `session_id`, with these `options` from now on. Starts
        nothing. An id that is too long for a session, or has control characters, is shortened.
        """
        from compactd.integrations.frameworks.mirror import Mirror

        session_id = valid_id(session_id)
        with self._lock:
            mirror = self._mirrors.get(session_id)
            if mirror is None:
                mirror = self._mirrors[session_id] = Mirror(self, session_id, options)
            mirror.adopt(options)
            self._mirrors.move_to_end(session_id)
            old = [self._mirrors.popitem(last=False)[1] for _ in range(len(self._mirrors) - MAX_SESSIONS)]
        for each in old:
            each.close()
        return mirror

    def known(self, session_id: str) -> Mirror | None:
        """Return the mirror of a conversation that is followed already, with the options it has."""
        with self._lock:
            return self._mirrors.get(valid_id(session_id))

    def running(self) -> Client | None:
        """Return the daemon's client if it was started. Starts nothing."""
        return None if monotonic() < self._paused_until else self._client

    def attempt(self, work: Callable[[Client], T], tested: str = "") -> T | None:
        """Return the result of `work`, which gets the running daemon's client. If anything in it fails, warn
        and return None: an agent must not fail because of compactd. There is one warning in the process for
        a daemon that fails, and one for each other kind of error.

        `tested`: as in `SessionOptions`.
        """
        if monotonic() < self._paused_until:
            return None
        return self.guard(lambda: self._served(work), tested)

    def guard(self, work: Callable[[], T], tested: str = "") -> T | None:
        """Return the result of `work` like `attempt`, for work of an adapter that may need no daemon."""
        try:
            return work()
        except Exception as error:
            self._note(error, tested)
            return None

    def demand(self, work: Callable[[Client], T]) -> T:
        """Return the result of `work` like `attempt`, but let its errors through: for what a person asked
        for. Raise `DaemonGone`, `RpcError` or `TimeoutError`.
        """
        return self._served(work)

    def start_soon(self) -> None:
        """Start the daemon in the background, so that the first model request does not wait for it."""
        if self._client is None and monotonic() >= self._paused_until:
            threading.Thread(target=self._start_quietly, daemon=True).start()

    def add_unfinished(self, work: Callable[[], None]) -> None:
        """Have this work done before the daemon is stopped, unless `remove_unfinished` says it is done."""
        with self._lock:
            self._unfinished.add(work)

    def remove_unfinished(self, work: Callable[[], None]) -> None:
        """See `add_unfinished`."""
        with self._lock:
            self._unfinished.discard(work)

    def finish(self) -> None:
        """Do the unfinished work now."""
        with self._lock:
            unfinished = tuple(self._unfinished)
        for work in unfinished:
            work()

    def close(self) -> None:
        """Stop the daemon. The next request starts it again. Does nothing if it does not run."""
        self.finish()
        with self._lock:
            client, self._client = self._client, None
            self._mirrors.clear()
        if client is not None:
            client.close(_HURRY_S)

    def abandon(self) -> None:
        """Forget the daemon without stopping it: it belongs to the process that this one was forked from."""
        if self._client is not None:
            self._client.abandon()

    def _served(self, work: Callable[[Client], T]) -> T:
        """Do `work`. If the daemon died too often for the client to start it again, but has answered before,
        do it once more with a new client.
        """
        client = self._started()
        try:
            result = work(client)
        except DaemonGone:
            if not self._has_answered:
                raise
            self._drop(client)
            result = work(self._started())
        self._has_answered = True
        return result

    def _drop(self, client: Client) -> None:
        with self._lock:
            if self._client is not client:
                return
            self._client, self._has_answered = None, False
        client.close(_HURRY_S)

    def _start_quietly(self) -> None:
        # If it fails, the next request tries again and warns.
        with contextlib.suppress(Exception):
            self._started()

    def _started(self) -> Client:
        client = self._client
        if client is None:
            with self._lock:
                client = self._client
                if client is None:
                    client = self._client = Client(self._command, restarts=True, on_event=_ignore)
        return client

    def _note(self, error: Exception, tested: str) -> None:
        try:
            self._warn(error, tested)
        finally:
            # Not before: a thread that finds the daemon paused may end the program without the warning.
            if isinstance(error, _DAEMON_FAILED):
                self._paused_until = monotonic() + PAUSE_S

    def _warn(self, error: Exception, tested: str) -> None:
        is_daemon = isinstance(error, _DAEMON_FAILED)
        kind = "" if is_daemon else type(error).__name__
        if kind in self._warned:
            return
        self._warned.add(kind)
        is_ours = is_daemon or isinstance(error, RpcError)
        what = str(error) if is_ours else f"{type(error).__name__}: {error}"
        text = f"compactd: {what}. The agent goes on with its messages as they are."
        if isinstance(error, DaemonGone):
            text += " `compactd doctor` may say more."
        elif not is_ours and tested:
            text += f" This version of compactd was tested with {tested}."
        warnings.warn(text, CompactdWarning, stacklevel=2)


def _ignore(_event: object) -> None:
    """Events are not needed: answers say all that an adapter shows."""


def checked_level(level: str, levels: Sequence[str]) -> str:
    """Return `level`. Raise `ValueError` if it is none of `levels`: the agent's author sees it at once."""
    if level not in levels:
        raise ValueError(f"reduce must be one of {', '.join(levels)}, not {level!r}")
    return level


def valid_id(session_id: str) -> str:
    """Return a framework's id as a session's: at most 256 characters, none of them a control character. Two
    ids stay two. An id that is valid stays as it is.
    """
    if 0 < len(session_id) <= MAX_ID_CHARS and session_id.isprintable():
        return session_id
    shown = "".join(char if char.isprintable() else " " for char in session_id[: MAX_ID_CHARS // 2])
    return f"{shown}…{blake2b(session_id.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


_engines: dict[tuple[str, ...] | None, Engine] = {}
_engines_lock = threading.Lock()


def engine_of(command: tuple[str, ...] | None = None) -> Engine:
    """Return the engine of this process. `command`: the one that starts the daemon; None: this Python's."""
    with _engines_lock:
        engine = _engines.get(command)
        if engine is None:
            engine = _engines[command] = Engine(command)
        return engine


def close_engines() -> None:
    """Stop the daemons of this process."""
    with _engines_lock:
        unfinished = tuple(_engines.values())
    for engine in unfinished:
        engine.finish()
    with _engines_lock:
        engines = tuple(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.close()


def _forget_parents() -> None:
    """After a fork, in the child: its daemons are the parent's, and locks may be held by threads that are not
    here.
    """
    global _engines_lock
    _engines_lock = threading.Lock()
    for engine in _engines.values():
        engine.abandon()
    _engines.clear()


atexit.register(close_engines)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
