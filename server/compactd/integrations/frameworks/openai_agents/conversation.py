"""What this process knows about the conversations of its sessions: their items, and the views that were
handed out.

Objects that users hold have options only; they look the conversation up each time. All functions here block.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any
from uuid import uuid4

from compactd.integrations.frameworks.engine import Engine, SessionOptions, engine_of, valid_id
from compactd.integrations.frameworks.failures import MAX_ATTEMPTS, request_error
from compactd.integrations.frameworks.history import Setup, ShownMessage
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.openai_agents.items import Item, Log, as_sent, fields_of, is_summary
from compactd.integrations.frameworks.openai_agents.store import NOTHING, FileStore, Stored
from compactd.integrations.frameworks.openai_agents.views import shown
from compactd.integrations.frameworks.sending import MAX_EARLY

CLIENT = "openai-agents"
MAX_CONVERSATIONS = 64
"""The most conversations that a process remembers. The one that was used longest ago is forgotten: its views
are then recognised no more, and it is read from its store again.
"""
RECORD_AFTER_S = 1.0
"""Seconds until new items are appended if no request does it: longer than a run takes to its next request."""
_MAX_KNOWN = 4
"""How many views, and how many requests, are recognised: as many agents may use a conversation at once."""


@dataclass(frozen=True)
class Options:
    """What a session or a filter was made with. Can be pickled and copied."""

    session: SessionOptions
    session_id: str | None
    """None: a conversation for each run, in memory only."""
    model: str | None = None
    """`provider/id`. None: as the agent says."""
    command: tuple[str, ...] | None = None
    store: FileStore | None = None
    """Where the conversation's items are, if any process can read them without help."""

    def conversation(self) -> Conversation:
        """Return this process's conversation with the session id; without one, a new conversation."""
        if self.session_id is not None:
            return conversation(valid_id(f"{CLIENT}:{self.session_id}"), self)
        return Conversation(
            f"{CLIENT}:run:{uuid4().hex}", replace(self, session=replace(self.session, persist=False))
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """Items that were handed out or came in, and the whole conversation that they stand for."""

    items: list[Item]
    """As the SDK sends them."""
    places: list[int | None]
    """Where each of them is in `log`; None for those that are not, such as a summary."""
    log: Log

    @staticmethod
    def of(items: list[Item]) -> _Known:
        """Return items that are the whole conversation. O(items and their fields)."""
        return _Known(items, list(range(len(items))), Log.of(items))

    def continued(self, items: list[Item]) -> _Known | None:
        """Return `items` if they begin with the known ones: the rest comes after the known conversation.
        Items that both have are those of `items`. O(items).
        """
        count = len(self.items)
        if items[:count] != self.items:
            return None
        return self._with(items, self.places, self.log)

    def shortened(self, items: list[Item]) -> _Known | None:
        """Return `items` if they begin with the known ones but some of the newest. O(their fields)."""
        same = next(
            (at for at, (one, other) in enumerate(zip(self.items, items, strict=False)) if one != other),
            min(len(self.items), len(items)),
        )
        last = None if same == 0 else self.places[same - 1]
        # What the known items have from there on must be all that the conversation has.
        if last is None or len(self.log.items) - last != len(self.items) - same + 1:
            return None
        return self._with(items, self.places[:same], Log.of(self.log.items[: last + 1]))

    def _with(self, items: list[Item], places: list[int | None], log: Log) -> _Known:
        own = log.items.copy()
        for place, item in zip(places, items, strict=False):
            if place is not None:
                own[place] = item
        whole = Log(own, log.starts, log.keys).extended(items[len(places) :])
        return _Known(items, [*places, *range(len(log.items), len(whole.items))], whole)


@dataclass
class Request:
    """One model request, until it is answered."""

    conversation: Conversation
    mirror: Mirror
    given: list[Item]
    """What the SDK would send."""
    log: Log
    """The whole conversation, this request's new items included."""
    setup: Setup
    agent: str
    sent: list[Item] = field(default_factory=list)
    """What the request contains."""
    max_tokens: int | None = None
    """The most output tokens that it may ask for, if that is known."""
    attempts: int = 1

    def prepare(self) -> bool:
        """Choose the items that the request shall contain. Return False if the daemon cannot help: they are
        then those that the SDK gave.
        """
        view = self.mirror.prepare(
            self.log.history(self.conversation.usage_of(self.mirror, self.log)), self.setup
        )
        if view is None:
            self.sent = self.given
            return False
        self.conversation.note_sent(self.mirror, self.log)
        self.sent = self.log.items if view.is_whole else shown(self.log, view.items)
        return True

    def is_of(self, items: Any) -> bool:
        """Return whether these items were prepared for this request. The SDK may leave out some."""
        if not isinstance(items, list) or not items:
            return False
        own = set(map(id, self.sent))
        return all(id(item) in own for item in items)

    def failed(self, error: Exception) -> list[Item] | None:
        """Report that the provider rejected the request. Return the items to send instead; None: give up."""
        return self.rejected(request_error(error))

    def rejected(self, error: Any) -> list[Item] | None:
        """Like `failed`, for an error in the form of `turn/error`."""
        if self.attempts >= MAX_ATTEMPTS:
            return None
        self.attempts += 1
        told = self.mirror.failed(error)
        if told is None or not told.retry:
            return None
        self.max_tokens = told.max_output_tokens or self.max_tokens
        return list(self.sent) if self.prepare() else None

    def answered(self, usage: dict[str, Any] | None) -> None:
        """Keep the provider's report, for the answer's message."""
        if usage and self.log.keys:
            self.conversation.note_usage(self.mirror, self.log, usage)


class Conversation:
    """A conversation in this process. May be used from several threads."""

    def __init__(self, name: str, options: Options) -> None:
        """`name`: the daemon's name of the session."""
        self.name = name
        self._options = options
        self._lock = threading.RLock()
        self._stored = NOTHING
        self._log = Log.of(())
        self._views: deque[_Known] = deque(maxlen=_MAX_KNOWN)
        self._requests: deque[_Known] = deque(maxlen=_MAX_KNOWN)
        self._first: Hashable = None
        self._sent: list[Hashable] = []
        self._setup: Setup | None = None
        self._usages: dict[str, tuple[int, Hashable, dict[str, Any]]] = {}
        self._others: dict[str, SessionOptions] = {}
        self._tools: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
        self._recording = threading.RLock()
        self._is_recorded = True
        self._timer: threading.Timer | None = None

    @property
    def engine(self) -> Engine:
        """Return the daemon of this process."""
        return engine_of(self._options.command)

    @property
    def mirror(self) -> Mirror:
        """Return the daemon's session, once what was stored is in it."""
        self._settle()
        return self._mirror()

    def _mirror(self) -> Mirror:
        return self.engine.mirror(self.name, self._options.session)

    def adopt(self, options: Options) -> None:
        """Use other options from the next request on: a session was made again, with another window or other
        settings.
        """
        self._options = options

    # --- stored items -----------------------------------------------------------------------------------

    @property
    def stored(self) -> Stored:
        """Return what was last read from the store."""
        return self._stored

    def take(self, stored: Stored) -> Log:
        """Learn what the store has. O(new items)."""
        with self._lock:
            same = len(self._stored.texts)
            if stored.texts[:same] == self._stored.texts:
                if len(stored.texts) > same:
                    self._log = self._log.extended(map(json.loads, stored.texts[same:]))
            else:
                self._log = Log.of(map(json.loads, stored.texts))
            self._stored = stored
            self._first = self._log.keys[0] if self._log.keys else None
            return self._log

    def view(self, stored: Stored) -> list[Item]:
        """Return the compacted view of the stored items. They are new objects."""
        log = self.take(stored)
        if not log.items:
            return []
        fresh = Log([json.loads(text) for text in stored.texts], log.starts, log.keys)
        mirror = self._about_to_prepare()
        view = mirror.prepare(log.history(self.usage_of(mirror, log)), self._setup or self._own_setup())
        if view is None:
            return fresh.items
        self.note_sent(mirror, log)
        kept: Sequence[int | ShownMessage] = range(len(log.keys))
        if view.is_compacted:
            kept = [item for item in view.items if not _is_missing_result(item)]
        places = {id(item): place for place, item in enumerate(log.items)}
        items = shown(log, kept)
        self._views.append(
            _Known([as_sent(item) for item in items], [places.get(id(item)) for item in items], log)
        )
        return shown(fresh, kept)

    def note_stored(self, stored: Stored) -> None:
        """Learn what was stored. If it is a turn's answer and results, send it to the daemon now: the next
        request then waits less. Otherwise, append it to the daemon's session with the next request; if none
        comes at once, in a thread, or at the end of the process.
        """
        known = len(self._stored.texts)
        log = self.take(stored)
        self._record_soon()
        setup = self._setup
        if setup is not None and sum(map(len, stored.texts[known:])) <= MAX_EARLY:
            # Whether it works or not, the next request or the timer does the rest.
            mirror = self._mirror()
            self.engine.guard(lambda: mirror.send_early(log.history(self.usage_of(mirror, log)), setup))

    def _record_soon(self) -> None:
        self.engine.add_unfinished(self._settle)
        with self._lock:
            self._is_recorded = False
            if self._timer is not None and self._timer.is_alive():
                return
            self._timer = threading.Timer(RECORD_AFTER_S, self._settle)
            self._timer.daemon = True
            # If no thread can be started, whatever needs the session records it.
            with contextlib.suppress(RuntimeError):
                self._timer.start()

    def _settle(self) -> None:
        """Append to the daemon's session what was stored."""
        with self._recording:
            if not self._is_recorded:
                self._is_recorded = True
                self.engine.attempt(lambda _: self._record())
        self.engine.remove_unfinished(self._settle)

    def _about_to_prepare(self) -> Mirror:
        """Return the daemon's session, for a `prepare` that appends everything."""
        with self._recording:
            self._is_recorded = True
        return self._mirror()

    def _record(self) -> None:
        """Append what was stored, unless a run has taken the session elsewhere: then the next view does."""
        mirror = self._mirror()
        with self._lock:
            log, sent = self._log, self._sent
        if log.keys and log.keys[: len(sent)] == sent:
            mirror.record(log.history(self.usage_of(mirror, log)), self._setup or self._own_setup())
            self.note_sent(mirror, log)

    def clear(self) -> None:
        """Forget the conversation, and delete the daemon's session, with those that this process began for
        agents used as tools.
        """
        mirrors = [self.mirror, *(self.engine.mirror(*other) for other in self._others.items())]
        with self._lock:
            self._stored, self._log, self._first, self._sent = NOTHING, Log.of(()), None, []
            self._views.clear()
            self._requests.clear()
            self._usages.clear()
            self._others.clear()
        for mirror in mirrors:
            mirror.delete()

    def _own_setup(self) -> Setup:
        return Setup(model=self._options.model)

    # --- requests ---------------------------------------------------------------------------------------

    def request(self, items: list[Item], setup: Setup, agent: str) -> Request:
        """Return the request that the SDK would make with `items`."""
        known = self._known(items)
        self._requests.append(known)
        log = known.log
        with self._lock:
            if self._first is None and log.keys:
                self._first = log.keys[0]
            is_own = not log.keys or log.keys[0] == self._first
            if is_own:
                self._setup = setup
        mirror = self._about_to_prepare() if is_own else self._other(log)
        return Request(self, mirror, items, log, setup, agent)

    def has(self, items: list[Item]) -> bool:
        """Return whether items go on with the last request of this conversation."""
        if not self._requests:
            return False
        last = self._requests[-1].items
        return len(items) > len(last) and items[: len(last)] == last

    def _known(self, items: list[Item]) -> _Known:
        """Return what the items of a request stand for. One that goes on with a view or an earlier request
        costs what is new.
        """
        known = self._recognised(items)
        if known is None and items and is_summary(fields_of(items[0])) and self._options.store is not None:
            # A run that was stored with a view, and goes on in another process.
            self.view(self._options.store.read_all(self._stored))
            known = self._recognised(items)
        return _Known.of(items) if known is None else known

    def _recognised(self, items: list[Item]) -> _Known | None:
        views, requests = list(reversed(self._views)), list(reversed(self._requests))
        attempts = (
            *(known.continued for known in (*requests, *views)),
            *(known.shortened for known in views),
        )
        return next((found for attempt in attempts if (found := attempt(items)) is not None), None)

    def _other(self, log: Log) -> Mirror:
        """Return the session of a conversation that begins otherwise: of an agent that is used as a tool, or
        after a handoff that rewrote the history.
        """
        digest = blake2b(repr(log.keys[0]).encode("utf-8", "replace"), digest_size=6).hexdigest()
        options = replace(self._options.session, parent_session_id=self.name)
        name = f"{self.name}/{digest}"
        with self._lock:
            self._others[name] = options
        return self.engine.mirror(name, options)

    def note_sent(self, mirror: Mirror, log: Log) -> None:
        """Remember what the daemon's session has."""
        if mirror.name == self.name:
            with self._lock:
                self._sent = list(log.keys)

    def note_usage(self, mirror: Mirror, log: Log, usage: dict[str, Any]) -> None:
        """Remember the report on a request that ended with the last message of `log`."""
        with self._lock:
            self._usages[mirror.name] = (len(log.keys), log.keys[-1], usage)

    def usage_of(self, mirror: Mirror, log: Log) -> Any:
        """Return a function from the index of a message to the report on the request that it answers."""
        found = self._usages.get(mirror.name)

        def at(index: int) -> dict[str, Any] | None:
            if found is None or index != found[0] or log.keys[index - 1] != found[1]:
                return None
            return found[2]

        return at

    def note_tools(self, agent: str, tools: Sequence[Any], handoffs: Sequence[Any]) -> None:
        """Remember the tools and handoffs that an agent's request had."""
        self._tools[agent] = (tools, handoffs)

    def tools_of(self, agent: str) -> tuple[Sequence[Any], Sequence[Any]] | None:
        """Return the tools and handoffs of the agent's last request."""
        return self._tools.get(agent)


def _is_missing_result(item: int | ShownMessage) -> bool:
    """Return whether the daemon wrote this, for a call that has no result. The session waits for the real
    one.
    """
    return isinstance(item, ShownMessage) and item.index is None and item.role == "tool"


_conversations: OrderedDict[Hashable, Conversation] = OrderedDict()
_lock = threading.Lock()


def conversation(name: str, options: Options) -> Conversation:
    """Return this process's conversation `name`, with these `options` from now on."""
    key = (options.command, name, options.store)
    with _lock:
        found = _conversations.get(key)
        if found is None:
            found = _conversations[key] = Conversation(name, options)
        found.adopt(options)
        _conversations.move_to_end(key)
        if len(_conversations) > MAX_CONVERSATIONS:
            _conversations.popitem(last=False)
    return found


def _forget_parents() -> None:
    """After a fork, in the child: locks may be held by threads that are not here."""
    global _lock
    _lock = threading.Lock()
    _conversations.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
