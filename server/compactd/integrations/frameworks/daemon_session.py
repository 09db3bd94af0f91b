"""The daemon's session of a conversation: what it has, and how its branch is made to say something else."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.client import Client, RpcError
from compactd.integrations.frameworks.engine import SessionOptions, valid_id
from compactd.integrations.frameworks.history import Encoded, History, Setup, ShownMessage, common_length
from compactd.integrations.frameworks.sending import (
    Appended,
    AppendMethod,
    NewMessage,
    SentEarly,
    append_request,
    new_messages,
)
from compactd.protocol.wire import StartResult

if TYPE_CHECKING:
    from compactd.integrations.frameworks.engine import Engine

MAX_BATCH = 4_000_000
"""Bytes of messages in one request. A long history comes in several."""


class DaemonSession:
    """The session of one conversation, and what is known of it. Its methods are for `Mirror`, which holds the
    lock while it calls them.
    """

    _early: SentEarly | None
    _begun: Raw | RpcError | None
    """The answer to the `turn/begin` that was sent early, until something else is asked of the session."""

    def __init__(self, engine: Engine, name: str, options: SessionOptions) -> None:
        """`name`: the framework's id of the conversation. Nothing is opened yet."""
        self.name = name
        self._engine = engine
        self._options = self._given = options
        self._lock = threading.RLock()
        self._may_be_early = True
        self._forget()

    def adopt(self, options: SessionOptions) -> None:
        """Use other options from the next request on: an agent was made again, with another window or other
        settings.
        """
        self._options = options

    # --- opening it -------------------------------------------------------------------------------------

    def _forget_if_restarted(self, client: Client) -> bool:
        """Forget what the session has, if another daemon opened it. The client opens it again without a word,
        and a session in memory is then empty. Return whether that was so.
        """
        if self._daemon in (None, client.pid):
            return False
        self._forget()
        return True

    def _forget(self) -> None:
        self._daemon: int | None = None
        self._session: str | None = None
        self._setup: Setup | None = None
        self._keys: list[Hashable] = []
        self._ids: list[str] = []
        self._entries: dict[str, str] = {}
        self._leaf: str | None = None
        self._has_pending_calls = False
        self._is_begun = False
        self._early = self._begun = None
        self._early_bytes = 0
        self._epoch = -1
        self._items: list[int | ShownMessage] | None = None
        self._items_cover = 0

    def _opened(self, client: Client) -> str:
        if self._session is None:
            self._open(client, self.name, Setup())
        assert self._session is not None
        return self._session

    def _open(self, client: Client, session_id: str, setup: Setup) -> None:
        options = self._options
        self._given = options
        about: dict[str, object] = {
            "context_window": setup.context_window or options.context_window,
            "system_prompt": setup.system_prompt or None,
            "tools": list(setup.tools()) or None,
            "model": setup.model,
            "working_dir": options.working_dir or os.getcwd(),  # noqa: PTH109 - a text for the wire
            "compaction": options.compaction,
            "durability": "os",
            "parent_session_id": options.parent_session_id and valid_id(options.parent_session_id),
            "client": {"name": options.client, "version": "1"},
        }
        given = {"session_id": session_id, "persist": options.persist, **about}
        started = client.ask("session/start", given, StartResult, timeout_s=self._options.call_s)
        if started.read_only:
            # Another process has the session. A copy in memory serves this one.
            client.session_close(session_id=session_id, timeout_s=self._options.call_s)
            started = client.ask(
                "session/start", {"persist": False, **about}, StartResult, timeout_s=self._options.call_s
            )
        self._forget()
        self._daemon = client.pid
        self._session, self._setup = started.session_id, setup
        client.session_unsubscribe(session_id=started.session_id, timeout_s=options.call_s)
        self._give_window(client, started, setup)
        if started.resumed:
            self._read_entries(client)

    def _give_window(self, client: Client, started: StartResult, setup: Setup) -> None:
        if started.context_window is None and setup.fallback_window:
            given = {"session_id": self._session, "context_window": setup.fallback_window}
            client.ask("session/start", given, StartResult, timeout_s=self._options.call_s)

    def _read_entries(self, client: Client) -> None:
        """Learn which messages a stored session has. O(its messages)."""
        raw = client.ask("session/history", {"session_id": self._session}, Raw)
        for entry in msgspec.json.decode(raw, type=_HistoryPage).entries:
            if entry.message is UNSET or entry.message.id is None:
                continue
            self._entries[entry.message.id] = entry.entry_id
            if entry.in_context:
                self._leaf = entry.message.id

    def _configure(self, client: Client, setup: Setup) -> None:
        """Give the session what changed of `setup` and of the options."""
        old, options, before = self._setup, self._options, self._given
        if setup == old and options == before:
            return
        assert old is not None
        # In a daemon that was started again, this makes a session of the name.
        given: dict[str, object] = {"session_id": self._session, "persist": before.persist}
        if setup.model and setup.model != old.model:
            given["model"] = setup.model
        window = setup.context_window or options.context_window
        if window and (window != (old.context_window or before.context_window) or "model" in given):
            given["context_window"] = window
        if setup.system_prompt != old.system_prompt:
            given["system_prompt"] = setup.system_prompt
        if setup.tools_key != old.tools_key:
            given["tools"] = list(setup.tools())
        if options.compaction and options.compaction != before.compaction:
            given["compaction"] = options.compaction
        self._begun = None
        started = client.ask("session/start", given, StartResult, timeout_s=self._options.call_s)
        self._give_window(client, started, setup)
        self._setup, self._given = setup, options

    # --- what it says -----------------------------------------------------------------------------------

    def _synced(
        self, client: Client, history: History, setup: Setup, *, begins: bool = False
    ) -> Raw | RpcError | None:
        """Make the session's branch say what `history` says.

        `begins`: send `turn/begin` with the last new messages, and return the answer. If nothing is new,
        return the answer to the one that was sent early; None if there is none.
        """
        if self._session is None:
            self._open(client, self.name, setup)
        self._configure(client, setup)
        same = common_length(self._keys, history.keys)
        if same == len(history.keys) == len(self._keys):
            return self._begun
        if self._begun is not None and same < len(self._keys):
            # The requests of this agent are not what it stores: each turn would be sent twice.
            self._may_be_early = False
        new = Encoded.of(history, same, self._ids[same - 1] if same else "")
        ids = [*self._ids[:same], *new.ids]
        begun = None
        if ids:
            self._choose_session(client, ids[0], setup)
            stored = self._stored(ids)
            if stored == 0:
                new = new.with_believable_usages()
            elif self._leaf != ids[stored - 1]:
                # What follows on another branch was billed there.
                new = new.without_usages()
            self._go_to(client, ids)
            begun = self._append(client, new.from_index(stored), begins)
        self._keys, self._ids = list(history.keys), ids
        return begun

    def _choose_session(self, client: Client, first_id: str, setup: Setup) -> None:
        """Have a session open that is empty or begins with the message `first_id`."""
        for name in (self.name, f"{self.name}:{first_id[:8]}"):
            if not self._entries or first_id in self._entries:
                return
            if name != self._session:
                client.session_close(session_id=self._opened(client), timeout_s=self._options.call_s)
                self._open(client, name, setup)

    def _stored(self, ids: Sequence[str]) -> int:
        """Return how many of `ids` the session has. An id stands for all messages before it, too."""
        count = len(ids)
        while count > 0 and ids[count - 1] not in self._entries:
            count -= 1
        return count

    def _go_to(self, client: Client, ids: Sequence[str]) -> None:
        """Go back to the last of `ids` that the session has, unless it is there already."""
        stored = self._stored(ids)
        if stored == 0 or self._leaf == ids[stored - 1]:
            return
        entry_id = self._entries[ids[stored - 1]]
        client.session_branch(
            session_id=self._opened(client), entry_id=entry_id, timeout_s=self._options.call_s
        )
        self._leaf = ids[stored - 1]
        self._items, self._is_begun, self._has_pending_calls = None, False, False

    def _append(self, client: Client, new: Encoded, begins: bool) -> Raw | RpcError | None:
        """Append messages. Return the answer to `turn/begin`, sent with the last of them if `begins`."""
        messages = new_messages(new)
        begun = None
        if self._is_begun and messages and messages[0][2] == "assistant":
            # The answer to the last request, and the results of its tools.
            stop = 1
            while stop < len(messages) and messages[stop][2] == "tool":
                stop += 1
            begun = self._send(client, "turn/end", messages[:stop], begins and stop == len(messages))
            messages = messages[stop:]
        while messages:
            size, stop = 0, 0
            while stop < len(messages) and size < MAX_BATCH:
                size += len(messages[stop][1])
                stop += 1
            begun = self._send(client, "session/append", messages[:stop], begins and stop == len(messages))
            messages = messages[stop:]
        return begun

    def _send(
        self, client: Client, method: AppendMethod, messages: Sequence[NewMessage], begins: bool
    ) -> Raw | RpcError | None:
        request = append_request(self._session, method, messages)
        # Both at once: 0.2 ms less than one after the other.
        requests = [request, self._beginning()] if begins else [request]
        answered, *begun = client.ask_all(requests, timeout_s=self._options.compact_s)
        if isinstance(answered, RpcError):
            raise answered
        self._note_appended(messages, answered)
        if method == "turn/end":
            self._is_begun = False
        return begun[0] if begun else None

    def _note_appended(self, messages: Sequence[NewMessage], answered: Raw) -> None:
        result = msgspec.json.decode(answered, type=Appended)
        for (id_, *_), entry_id in zip(messages, result.entry_ids, strict=True):
            self._entries[id_] = entry_id
        self._leaf = messages[-1][0]
        self._has_pending_calls = bool(result.pending_calls)
        self._early_bytes = 0

    def _beginning(self) -> tuple[str, dict[str, object]]:
        return "turn/begin", {"session_id": self._session}


class _Identified(Struct, frozen=True):
    id: str | None = None


class _HistoryEntry(Struct, frozen=True):
    entry_id: str
    in_context: bool = False
    message: _Identified | UnsetType = UNSET


class _HistoryPage(Struct, frozen=True):
    entries: list[_HistoryEntry]
