"""A session of the daemon that follows a conversation which a framework holds.

Before each model request, the framework's adapter gives the whole history. What is new is appended. If older
messages were changed or removed, the session goes back to the last message that is still the same, and
continues from there on a new branch; the old branch stays in the journal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.client import Client, DaemonGone, Interrupted, Json, RpcError
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.daemon_session import DaemonSession
from compactd.integrations.frameworks.engine import CALL_S
from compactd.integrations.frameworks.history import (
    Encoded,
    History,
    Setup,
    ShownMessage,
    View,
    common_length,
)
from compactd.integrations.frameworks.sending import (
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
    StateResult,
)

T = TypeVar("T")

_SESSION_NOT_FOUND = 1001
_CANNOT_FIT = 1008


class Mirror(DaemonSession):
    """The session of one conversation. Each method takes the mirror's lock: several agents and threads may
    use one conversation, and each gets the view of its own history.

    Methods that return None could not reach the daemon; the engine has warned.
    """

    # --- before and after a model request ---------------------------------------------------------------

    def prepare(self, history: History, setup: Setup) -> View | None:
        """Append what is new, compact if that is due, and return what the next request shall contain.

        O(messages) comparisons; everything else depends on what is new, unless the view changed.
        """
        return self._attempt(lambda client: self._prepared(client, history, setup))

    def send_early(self, history: History, setup: Setup, *, may_wait: bool = True) -> bool:
        """Send a turn's answer and the results of its tools, and begin the next turn, without waiting for the
        daemon: the next `prepare` then only reads the answers. Return whether that was done. In all but the
        simple case, it is left to `prepare`: `setup` changed, the history was edited, somebody uses the
        mirror, there is much to send, or a compaction may be due. `may_wait`: also send it while the daemon
        reads nothing, which may take long; an event loop must not. O(messages) comparisons.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            client = self._engine.running()
            if client is None or not (may_wait or client.has_read_all):
                return False
            return self._sent_early(client, history, setup)
        except DaemonGone:
            return False
        finally:
            self._lock.release()

    @property
    def has_early_answers(self) -> bool:
        """Whether `prepare_at_once` may return a view: a turn was sent early, and the daemon has answered."""
        early = self._early
        return early is not None and early.pending.is_answered

    def let_answers_be_read(self) -> None:
        """If a turn was sent early, let the thread run that reads the answers: it may wait for this one.
        Takes 0.1 ms at most.
        """
        early = self._early
        if early is not None and not early.pending.is_answered:
            time.sleep(0.0001)

    def prepare_at_once(self, history: History, setup: Setup) -> View | None:
        """Return what `prepare` returns, if the turn that was sent early is all that is new in `history`, and
        the answers to it say all that the view depends on. Otherwise return None. Asks nothing and waits for
        nothing, so an event loop may call it. O(messages) comparisons.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            early = self._early
            # After a restart, nothing is answered any more.
            if early is None or not early.pending.is_answered:
                return None
            is_same = setup == self._setup and self._options == self._given
            if not is_same or early.keys != history.keys:
                return None
            self._take_early()
            return self._viewed_at_once(history)
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

    # --- the daemon ------------------------------------------------------------------------------------

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
        if not history.keys:
            return View((), is_whole=True)
        if begun is None:
            (begun,) = client.ask_all([self._beginning()], timeout_s=self._options.compact_s)
        epoch, limit = self._note_begun(begun)
        count = len(history.keys)
        if not self._knows_view(epoch):
            self._items, self._items_cover = self._read_view(client, history), count
            self._epoch = -1 if self._has_pending_calls else epoch
        return self._view(count, epoch, limit)

    def _viewed_at_once(self, history: History) -> View | None:
        """Return the view after the turn that was sent early; None if the daemon must be asked for it."""
        begun = self._begun
        if begun is None or isinstance(begun, RpcError):
            return None
        if not self._knows_view(msgspec.json.decode(begun, type=BeginResult).token_usage.epoch):
            return None
        self._begun = None
        return self._view(len(history.keys), *self._note_begun(begun))

    def _note_begun(self, begun: Raw | RpcError) -> tuple[int, int | None]:
        """Note that a turn has begun. Return the session's epoch, -1 if the request cannot fit the window,
        and the most output tokens that the request may ask for.
        """
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
        return epoch, None if most is UNSET else most

    def _knows_view(self, epoch: int) -> bool:
        """Return whether the view is the whole history, or the last one and what is new."""
        if self._has_pending_calls:
            return False
        return epoch == 1 or (self._items is not None and epoch == self._epoch)

    def _view(self, count: int, epoch: int, limit: int | None) -> View:
        """Return the view of a history of `count` messages, which is known."""
        if epoch == 1 and not self._has_pending_calls:
            return View(range(count), is_whole=True, max_output_tokens=limit)
        assert self._items is not None
        self._items.extend(range(self._items_cover, count))
        self._items_cover = count
        items = tuple(self._items)
        is_whole = items == tuple(range(count))
        return View(items, is_whole=is_whole, max_output_tokens=limit, is_compacted=epoch != 1)

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
