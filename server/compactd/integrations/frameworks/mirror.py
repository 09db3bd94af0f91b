"""A session of the daemon that follows a conversation which a framework holds.

Before each model request, the framework's adapter gives the whole history. What is new is appended. If older
messages were changed or removed, the session goes back to the last message that is still the same, and
continues from there on a new branch; the old branch stays in the journal.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.client import Client, DaemonGone, Interrupted, Json, RpcError
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import CALL_S, SessionOptions, valid_id
from compactd.integrations.frameworks.history import (
    Encoded,
    History,
    Setup,
    ShownMessage,
    View,
    common_length,
)
from compactd.integrations.frameworks.sending import (
    Appended,
    AppendMethod,
    NewMessage,
    SentEarly,
    append_request,
    early_bytes,
    is_early,
    new_messages,
)
from compactd.protocol.messages import CompactionResult
from compactd.protocol.wire import (
    BeginResult,
    ErrorResult,
    ReduceResult,
    RequestError,
    StartResult,
    StateResult,
)

if TYPE_CHECKING:
    from compactd.integrations.frameworks.engine import Engine

T = TypeVar("T")

MAX_BATCH = 4_000_000
"""Bytes of messages in one request. A long history comes in several."""

_SESSION_NOT_FOUND = 1001
_CANNOT_FIT = 1008


class Mirror:
    """The session of one conversation. Each method takes the mirror's lock: several agents and threads may
    use one conversation, and each gets the view of its own history.

    Methods that return None could not reach the daemon; the engine has warned.
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

    # --- before and after a model request ---------------------------------------------------------------

    def prepare(self, history: History, setup: Setup) -> View | None:
        """Append what is new, compact if that is due, and return what the next request shall contain.

        O(messages) comparisons; everything else depends on what is new, unless the view changed.
        """
        return self._attempt(lambda client: self._prepared(client, history, setup))

    def send_early(self, history: History, setup: Setup) -> bool:
        """Send a turn's answer and the results of its tools, and begin the next turn, without waiting for the
        daemon: the next `prepare` then only reads the answers. Return whether that was done. In all but the
        simple case, it is left to `prepare`: `setup` changed, the history was edited, somebody uses the
        mirror, there is much to send, or a compaction may be due. O(messages) comparisons.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            client = self._engine.running()
            return client is not None and self._sent_early(client, history, setup)
        except DaemonGone:
            return False
        finally:
            self._lock.release()

    def record(self, history: History, setup: Setup | None = None) -> bool | None:
        """Append what is new. Return True. For the end of a run: the answer is then in the session."""

        def synced(client: Client) -> bool:
            self._synced(client, history, setup or self._setup or Setup())
            return True

        return self._attempt(synced)

    def compact(
        self, history: History, setup: Setup, instructions: str | None = None
    ) -> CompactionResult | None:
        """Append what is new, and compact now, whether that is due or not. `prepare` then gives the new view.

        `instructions`: what the summary should pay special attention to.
        """

        def compacted(client: Client) -> CompactionResult:
            self._synced(client, history, setup)
            return client.session_compact(
                session_id=self._opened(client),
                instructions=instructions or UNSET,
                force=True,
                timeout_s=self._options.compact_s,
            )

        return self._attempt(compacted)

    def failed(self, error: RequestError) -> ErrorResult | None:
        """Report a failed request. If the result has `retry`, call `prepare` and send the request again."""
        session = self._session
        if session is None:
            return None
        return self._attempt(
            lambda client: client.turn_error(
                session_id=session, error=error, timeout_s=self._options.compact_s
            )
        )

    # --- tool outputs and the past ----------------------------------------------------------------------

    def reduce(
        self,
        name: str,
        arguments: Mapping[str, Json],
        content: str,
        *,
        call_id: str | None = None,
        is_error: bool = False,
        level: str | None = None,
        observe: bool = False,
    ) -> ReduceResult | None:
        """Return a shorter text for a tool's output, as `session/reduce` does."""
        return self._attempt(
            lambda client: client.ask(
                "session/reduce",
                {
                    "session_id": self._opened(client),
                    "name": name,
                    "arguments": arguments,
                    "content": content,
                    "call_id": call_id,
                    "is_error": is_error,
                    "level": level,
                    "observe": observe,
                },
                ReduceResult,
                timeout_s=self._options.call_s,
            )
        )

    def recall(self, query: str, entry_ids: Sequence[str] = (), start: int = 0) -> str:
        """Return what was said earlier, as a text for the model: the messages `entry_ids`, from the character
        `start` on, or those that `query` finds.
        """
        text = self._attempt(
            lambda client: recall.answer(client, self._opened(client), query, entry_ids, start)
        )
        return recall.UNREACHABLE if text is None else text

    def state(self) -> StateResult:
        """Return how full the context is, what was billed, and the compactions. Raise the errors of
        `Client.call`.
        """
        return self._demand(
            lambda client: client.agent_state(session_id=self._opened(client), timeout_s=self._options.call_s)
        )

    def undo(self, *, force: bool = False) -> None:
        """Undo the last compaction or prune: the next request has the messages again. Raise `RpcError` if
        there is none, or if the messages would not fit the window; `force` undoes it anyway, and the next
        request compacts again.
        """

        def undone(client: Client) -> None:
            self._early_bytes = 0
            client.session_undo(session_id=self._opened(client), force=force, timeout_s=self._options.call_s)

        self._demand(undone)

    def close(self) -> None:
        """Close the session at the daemon. It is opened again when it is needed."""
        with self._lock:
            session = self._session
            self._wait_for_early()
            self._forget()
        if session is None:
            return

        def closed(client: Client) -> None:
            with _session_may_be_gone():
                client.session_close(session_id=session, timeout_s=self._options.call_s)

        self._engine.attempt(closed)

    def delete(self) -> None:
        """Delete the session and its journal. Later calls begin a new one."""
        with self._lock:
            names = {self.name, self._session or self.name}
            self._wait_for_early()
            self._forget()

        def deleted(client: Client) -> None:
            for name in names:
                with _session_may_be_gone():
                    client.session_delete(session_id=name, timeout_s=CALL_S)

        self._engine.attempt(deleted)

    # --- the session ------------------------------------------------------------------------------------

    def _attempt(self, work: Callable[[Client], T]) -> T | None:
        return self._engine.attempt(lambda client: self._locked(client, work), self._options.tested)

    def _demand(self, work: Callable[[Client], T]) -> T:
        return self._engine.demand(lambda client: self._locked(client, work))

    def _locked(self, client: Client, work: Callable[[Client], T]) -> T:
        """Do `work` under the lock. If the daemon died or lost the session, open it again and do it once
        more.
        """
        with self._lock:
            self._forget_if_restarted(client)
            try:
                self._take_early()
                result = work(client)
                if not self._forget_if_restarted(client):
                    return result
            except (RpcError, Interrupted) as error:
                if isinstance(error, RpcError) and error.code != _SESSION_NOT_FOUND:
                    raise
                self._forget()
            except Exception:
                # What the daemon has is not known any more.
                self._forget()
                raise
            finally:
                self._begun = None
            return work(client)

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

    # --- the history ------------------------------------------------------------------------------------

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

    # --- what is sent early -----------------------------------------------------------------------------

    def _sent_early(self, client: Client, history: History, setup: Setup) -> bool:
        same = len(self._keys)
        is_ready = self._is_begun and self._early is None and self._daemon == client.pid
        if not (is_ready and self._may_be_early) or setup != self._setup or self._options != self._given:
            return False
        if not 0 < same < len(history.keys) or common_length(self._keys, history.keys) < same:
            return False
        messages = new_messages(Encoded.of(history, same, self._ids[-1]))
        # A message that the session has is on a branch that was left.
        if messages[0][0] in self._entries or not is_early(messages, self._early_bytes):
            return False
        requests = [append_request(self._session, "turn/end", messages), self._beginning()]
        self._early = SentEarly(client.send_all(requests), messages, list(history.keys))
        return True

    def _take_early(self) -> None:
        """Read the answers to what was sent early, and note what the session has now. The answer to
        `turn/begin` holds until something else is asked of the session.
        """
        early, self._early = self._early, None
        if early is None:
            return
        answered, begun = early.pending.wait(self._options.compact_s)
        if isinstance(answered, RpcError):
            # Whatever the reason: find out what the session has, and append the rest.
            self._forget()
            return
        self._note_appended(early.messages, answered)
        self._is_begun = False
        self._keys = early.keys
        self._ids = [*self._ids, *(id_ for id_, *_ in early.messages)]
        self._begun = begun

    def _wait_for_early(self) -> None:
        """Wait until what was sent early is in the session, whatever the daemon says."""
        with contextlib.suppress(DaemonGone, TimeoutError):
            self._take_early()

    # --- the view ---------------------------------------------------------------------------------------

    def _prepared(self, client: Client, history: History, setup: Setup) -> View:
        begun = self._synced(client, history, setup, begins=True)
        count = len(history.keys)
        if count == 0:
            return View((), is_whole=True)
        if begun is None:
            (begun,) = client.ask_all([self._beginning()], timeout_s=self._options.compact_s)
        most: int | UnsetType = UNSET
        if isinstance(begun, RpcError):
            if begun.code != _CANNOT_FIT:
                raise begun
            epoch, self._early_bytes = -1, 0
        else:
            told = msgspec.json.decode(begun, type=BeginResult)
            epoch, most = told.token_usage.epoch, told.max_output_tokens
            self._early_bytes = early_bytes(told.token_usage)
        self._is_begun = True
        limit = None if most is UNSET else most
        if epoch == 1 and not self._has_pending_calls:
            return View(range(count), is_whole=True, max_output_tokens=limit)
        if self._items is None or epoch != self._epoch or self._has_pending_calls:
            self._items = self._read_view(client, history)
            self._epoch = -1 if self._has_pending_calls else epoch
        else:
            self._items.extend(range(self._items_cover, count))
        self._items_cover = count
        items = tuple(self._items)
        is_whole = items == tuple(range(count))
        return View(items, is_whole=is_whole, max_output_tokens=limit, is_compacted=epoch != 1)

    def _beginning(self) -> tuple[str, dict[str, object]]:
        return "turn/begin", {"session_id": self._session}

    def _read_view(self, client: Client, history: History) -> list[int | ShownMessage]:
        """Ask for the view. O(its text)."""
        context = client.session_context(session_id=self._opened(client), timeout_s=self._options.call_s)
        places = {id_: index for index, id_ in enumerate(self._ids)}
        items: list[int | ShownMessage] = []
        for raw in context.messages:
            shown = msgspec.json.decode(raw, type=_ContextMessage)
            index = places.get(shown.id or "")
            if index is not None and bytes(shown.content) == msgspec.json.encode(
                history.encode(index)["content"]
            ):
                items.append(index)
                continue
            is_summary = shown.meta is not None and shown.meta.type == "compaction_summary"
            items.append(ShownMessage(shown.role, shown.content, index, is_summary))
        return items


@contextlib.contextmanager
def _session_may_be_gone() -> Iterator[None]:
    """Ignore the error that the daemon has no such session."""
    try:
        yield
    except RpcError as error:
        if error.code != _SESSION_NOT_FOUND:
            raise


class _Meta(Struct, frozen=True):
    type: str | None = None


class _ContextMessage(Struct, frozen=True):
    role: str
    content: Raw
    id: str | None = None
    meta: _Meta | None = None


class _Identified(Struct, frozen=True):
    id: str | None = None


class _HistoryEntry(Struct, frozen=True):
    entry_id: str
    in_context: bool = False
    message: _Identified | UnsetType = UNSET


class _HistoryPage(Struct, frozen=True):
    entries: list[_HistoryEntry]
