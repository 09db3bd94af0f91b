"""One open conversation: its entries, journal, settings, token counts and events.

A method that changes the session changes its state in memory at once and queues records for the journal,
without waiting. It returns the number of the last record; `wait_durable(commit_id)` waits until that record
is on disk. So requests take effect in the order in which they came, and a request is answered only when its
effect is on disk.

At most one compaction runs per session (`session/slot.py`, `compaction/run.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.core.budget.budget import BudgetStatus, RequestSize, Window, compute_budget
from compactd.core.budget.settings import Resolved
from compactd.core.budget.untrusted import resolve
from compactd.core.budget.usage_report import context_usage, scale_of, size_of, token_usage, window_of
from compactd.core.cost.ledger import Ledger
from compactd.core.cost.lifetime import Lifetime
from compactd.core.cost.price import rounded
from compactd.core.history.append import AppendPlan, AppendRequest, plan_append
from compactd.core.history.entries import (
    Appended,
    Entry,
    EntryId,
    ModelSet,
    Part,
    PinSet,
    SettingsSet,
    UsageReported,
)
from compactd.core.history.projection import Pending
from compactd.core.history.state import SessionState, replay
from compactd.core.models.lookup import Lookup
from compactd.core.models.observed import Observed, counting_window, observation_of
from compactd.core.tokens.counting import Counter, message_tokens, system_tokens, tool_tokens
from compactd.formats.files.journal_messages import decoder_of
from compactd.models.tokenizers.counters import counter_for, is_loaded
from compactd.protocol.errors import Detail, InvalidParams, SessionBusy, SessionLocked, SessionNotFound
from compactd.protocol.messages import (
    NULL,
    Change,
    Decision,
    Event,
    Message,
    MessageAppended,
    Owner,
    SessionChanged,
    SessionClosed,
    TokenUsage,
    Tool,
    TurnEnd,
    Usage,
    UsageCost,
    UsageUpdate,
)
from compactd.protocol.settings import GivenSettings, IgnoredSetting
from compactd.session.cost_decision import decide_by_cost
from compactd.session.host import AgentGate, AgentStatus, ClientRef, SessionHost
from compactd.session.ledger import SessionLedger
from compactd.session.queue import RequestQueue
from compactd.session.recount import RecountCache
from compactd.storage.protocols import Journal, RecordsLost
from compactd.storage.settings_files import overlay

if TYPE_CHECKING:
    from compactd.core.extract.facts import FactCache
    from compactd.formats.messages.sent_request import SentRequest
    from compactd.protocol.wire import DiffResult
    from compactd.session.shown_view import ShownView
    from compactd.session.slot import ExclusiveOperation
    from compactd.session.work import SessionWork

MAX_TURN_SIZES = 9
"""How many sizes of the context at the beginnings of turns are remembered."""

UNSETTABLE_FIELDS = ("system_prompt", "tools", "title")
"""What `Session.configure` can remove from a session with `unset`, besides settings."""

INLINE_BYTES = 48 * 1024
"""The most bytes of messages whose tokens are counted on the event loop (< 5 ms at 12 MB/s). A worker counts
more bytes than that."""


class Expected(Struct, frozen=True, kw_only=True):
    """What the request that was handed out last is expected to cost."""

    messages: int
    """How many messages the session had then."""
    cost: float | None
    """In US dollars; None if the model's prices are not known."""


class AppendOutcome(Struct, frozen=True, kw_only=True):
    """The result of an append."""

    intake: AppendPlan
    commit_id: int
    """The number of the last new journal record, for `Session.wait_durable`."""

    @property
    def appended(self) -> tuple[tuple[EntryId, Message], ...]:
        """The new messages with their entry ids, oldest first."""
        ids = (entry.id for entry in self.intake.entries if isinstance(entry, Appended))
        return tuple(zip(ids, self.intake.messages, strict=True))

    @property
    def answer_id(self) -> EntryId | None:
        """The entry id of the last new assistant message, or None."""
        return next((i for i, message in reversed(self.appended) if message.role == "assistant"), None)


class FollowerStatus(Protocol):
    """The part of `session/follower.py` that a session needs. A follower reads the session's journal while
    another process writes it.
    """

    @property
    def is_compacting(self) -> bool:
        """True if the process that writes the session has begun a compaction and the journal does not show
        its end.
        """
        ...

    turn_id: str | None
    """The prompt that the process that writes the session is answering, if it said so."""

    @property
    def status(self) -> AgentStatus | None:
        """What the agent loop of the process that writes the session is doing, if it said so."""
        ...

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply the next entries, which the follower read before, and send the events about them."""
        ...

    def send_on(self, event: Event) -> None:
        """Send an event of the process that writes the session, which its journal does not show."""
        ...

    def is_owned_now(self) -> bool:
        """Return true if a process has the session open for writing now. Checks the session's lock."""
        ...

    async def read_to(self, count: int) -> None:
        """Read on until the session has `count` records here, too."""
        ...

    async def stop(self) -> None:
        """Stop reading."""
        ...


class BackgroundCompaction(Protocol):
    """The part of `compaction/prepare.py` that a session needs: a compaction that is prepared before it is
    due."""

    @property
    def is_current(self) -> bool:
        """False if more than messages and usage reports came since it was begun. Then it must not be used."""
        ...

    def discard(self) -> None:
        """Drop the result. If it is still being computed, stop that."""
        ...


class SnapshotTaker(Protocol):
    """The part of `session/snapshots.py` that a session needs: snapshots of the files in the work tree."""

    async def take(self, session: Session, moment: Literal["begin", "end"]) -> None:
        """Take a snapshot of the files at the beginning or end of a turn (`moment`), and wait until it is on
        disk. Never raises.
        """
        ...

    async def difference(self, session: Session, first: EntryId | None, last: EntryId | None) -> DiffResult:
        """Return the files that changed from the start of the turn of `first`, a message of the user, to the
        end of the turn of `last`. Raises `InvalidParams` for an entry that is not a message of the user.
        """
        ...

    async def forget(self, *, for_good: bool = False) -> None:
        """Delete the snapshots. With `for_good`, take no further ones."""
        ...


class Session:
    """One conversation that is open in this process."""

    def __init__(
        self,
        world: SessionHost,
        session_id: str,
        journal: Journal | None,
        entries: Sequence[Entry] = (),
        *,
        persistent: bool = True,
    ) -> None:
        self.host = world
        self.id = session_id
        self.journal = journal
        """The journal to write. None if this process has opened the session only to read and follow it."""
        self.owner: Owner = "none" if journal is None else "this"
        """Which process has the session open for writing, as far as this process knows: `this`, `other` or
        `none`."""
        self.following: FollowerStatus | None = None
        """The follower of the journal that another process writes, or None if this process writes the
        session."""
        self.is_forwarded = False
        """True if requests that change the session are carried out by the process that writes it."""
        self.entries: list[Entry] = list(entries)
        """All entries of the journal. An entry's index is the `seq` of its record."""
        self.writer: dict[str, Detail] = {}
        """Facts about the process that had the session open for writing when this process opened it, as in
        `SessionLocked.data`. Empty if nothing is known about it."""
        self.state: SessionState = replay(self.entries, decoder_of(self.entries))
        self.pending = Pending(self.state.path_items())
        self.event_seq = 0
        self.last_sent_epoch = self.state.epoch
        """The epoch of the newest context that the client has or knows. A usage report that names no epoch is
        taken as a report about this context."""
        self.awaits_answer = False
        """True if the client was given a context and has not yet appended the model's answer."""
        self.last_sent: dict[str, tuple[SentRequest, SentRequest | None]] = {}
        """By format, the newest request that was handed out since this process opened the session, and the
        newest before it that was another one. Only `prompt_cache.prepare_request` sets it."""
        self.marks_system = False
        """Whether the newest of these requests marks its system prompt for the provider's prompt cache. Only
        `prompt_cache.prepare_request` sets it."""
        self.cache_lifetime: tuple[int, Lifetime] | None = None
        """For how long the newest request was marked for Anthropic's cache, and how many requests had been
        answered before. Only `prompt_cache.choose_session_lifetime` sets it."""
        self.first_change: Part | None = None
        """The first part of the newest of these requests that differs from the one before, other than by
        added messages; None if there is none, or if the newest was already answered."""
        self.ledger = SessionLedger(world.lookup)
        self._expected: Expected | None = None
        self.refused_summaries: set[str] = set()
        """The compactions whose provider's own summary the provider has refused since this process opened the
        session."""
        self.operation: ExclusiveOperation | None = None
        self.preparation: BackgroundCompaction | None = None
        """The compaction that is prepared before it is due, or None. `drop_preparation` forgets it."""
        self.asked_ahead: int | None = None
        """How many compactions were begun when a model was last asked for a summary ahead of time; None if
        none was. Between two compactions, a model is asked ahead of time at most once."""
        self.turn_sizes: list[int] = []
        """The tokens of the context at the beginnings of the last turns in this process, oldest first. Empty
        if no turn has begun with `turn/begin` or in the daemon's own loop."""
        self.facts: FactCache | None = None
        """The cache of facts that were found in the messages, for the next compaction. Only `ensure_facts`
        and `drop_facts` set it."""
        self._work: SessionWork | None = None
        self._shown_view: ShownView | None = None
        self.reducing = asyncio.Lock()
        """Held while tool outputs are reduced, because only one thread at a time may use `shown_view`."""
        self.has_compaction_hook = False
        """True if a client of the session has a compaction hook: the daemon asks it before each compaction
        (`session/compacting`)."""
        self.prompters: dict[str, ClientRef] = {}
        """By the turn id of a prompt that is queued or answered, the client that sent it, or the one that
        took it over."""
        self.agent_loop: AgentGate | None = None
        """The agent loop; None until a client sends a prompt."""
        self.overflow_attempts = 0
        """The number of model requests that were rejected since the last answer was appended."""
        self.silent_overflow = False
        """True if the last usage report says that the window was full. The next turn then compacts first."""
        self.queue = RequestQueue()
        """The order of the requests to this session. `Sessions` sets it to the queue in which the request
        that opens the session has waited."""
        self.touched_at = world.now()
        self.persistent = persistent
        """False if the session is kept only in memory."""
        self.is_reopened = False
        """True if this process has opened the session again: this object is closed, another one is open."""
        self.replaced_by: Session | None = None
        """The object that is open instead of this one."""
        self.is_closed = False
        self._is_silent = False
        """True once `session_closed` was sent."""
        self.is_borrowed = False
        """True if an editor's command opened the session and will close it when the command ends."""
        self.snapshots: SnapshotTaker | None = None
        opened = self.state.opened
        self.working_dir = opened.working_dir if opened else None
        """The folder that a client named, or None. Its settings file and its work tree are used for this
        session."""
        self.imported_dir = opened.imported_dir if opened else None
        self.is_imported = opened is not None and opened.is_imported
        self.resolved: Resolved
        self.ignored: tuple[IgnoredSetting, ...] = ()
        """Settings from untrusted sources that are ignored because they are out of bounds for the model."""
        self._standing: BudgetStatus | None = None
        self.refused_size: int | None = None
        """The estimated size of the request at which a compaction by cost last found nothing to remove."""
        self.lookup: Lookup | None
        self.learned: Observed | None = None
        """The observed window of the model, or None."""
        self.counter: Counter
        self.counted: RecountCache | None = None
        """The token counts by the new model's tokenizer, between a model switch and the next `refresh`;
        otherwise None."""
        self.refresh()

    # --- settings -------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Recompute settings, window, token counter and the token counts of the messages, after the model, a
        setting or something outside the session changed. O(1), or O(messages) if the token counter changes.
        """
        model = self.state.model
        self.lookup = self.host.lookup(model.model, model.base_url)
        self._update_window()
        self.counter = counter = self.counter_of(self.lookup)
        counted, self.counted = self.counted, None
        if counted is None or counted.counter != counter:
            counted = RecountCache(counter, self.state.originals.values())
        self.state.recount(counter.name, counted.next)
        counted.forget()
        self._standing = None
        self._review_preparation()

    def resolve_under(self, window: Window) -> tuple[Resolved, tuple[IgnoredSetting, ...]]:
        """Return (the settings that this session would have with a model of this window, the settings that
        would be ignored). O(settings).
        """
        given = tuple(
            (f"session/{layer}", msgspec.json.decode(self.state.given[layer], type=GivenSettings))
            for layer in ("configure", "start")
            if layer in self.state.given
        )
        named = ("session/start", GivenSettings(context_window=self.state.model.context_window))
        layers = (*given, named, *self.host.layers(self.id, self.working_dir))
        resolved, ignored = resolve(layers, window, runs_loop=self.runs_loop)
        rules = resolved.settings.rules
        for name, switches in (("enabled", rules.auto_off), ("prune", rules.prune_off)):
            if (by := self.host.switch(switches)) is not None:
                off = msgspec.structs.replace(resolved.settings, **{name: False})
                sources = {**resolved.sources, name: by}
                resolved = msgspec.structs.replace(resolved, settings=off, sources=sources)
        return resolved, ignored

    def _update_window(self) -> None:
        """Recompute the model's limits, and the settings that depend on them."""
        self.window = self._window()
        self.resolved, self.ignored = self.resolve_under(self.window)
        self._standing = None

    def counter_of(self, found: Lookup | None) -> Counter:
        """Return the token counter that this session's settings select for the model `found`."""
        settings = self.resolved.settings
        estimator = settings.rules.chars4 if settings.estimator == "chars4" else settings.estimator
        return counter_for(estimator, found.tokenizer if found else None, found.model if found else None)

    @property
    def sighting(self) -> Observed | None:
        """The window that a doubtful rejection named, or None. It counts in this session only."""
        found, seen = self.lookup, self.state.sighting
        if found is None or seen is None or seen.limit is None:
            return None
        base_url = self.state.model.base_url
        return observation_of(found, base_url, seen.limit, "sighting", seen.at, requested=seen.requested)

    def forget_sighting(self) -> int | None:
        """Stop using the window of `sighting`, and return the number of the new record, for `wait_durable`.

        Do nothing and return None if there is no sighting, or if this process only reads the session.
        """
        seen = self.state.sighting
        if seen is None or self.journal is None:
            return None
        return self.write(msgspec.structs.replace(seen, at=self.host.now(), doubtful=False))

    def _window(self) -> Window:
        base_url = self.state.model.base_url
        self.learned = None if self.lookup is None else self.host.observed_window(self.lookup, base_url)
        learned = counting_window(self.learned, self.sighting, self.state.last_prompt_tokens)
        return window_of(self.state, self.lookup, learned)

    @property
    def shown_dir(self) -> str | None:
        """The folder to which paths in summaries are relative, or None."""
        return self.working_dir or self.imported_dir

    @property
    def compacts_at_threshold(self) -> bool:
        """True if reaching the threshold starts a compaction. In a sub-agent's session, a profile can switch
        this off."""
        opened = self.state.opened
        is_sub_agent = opened is not None and opened.parent_session_id is not None
        return self.resolved.settings.rules.sub_agents_compact or not is_sub_agent

    @property
    def runs_loop(self) -> bool:
        """True if a client has ever sent this session a prompt, so that the daemon's agent loop asks the
        session's model.
        """
        return self.state.prompts > 0

    # --- numbers --------------------------------------------------------------------------------------

    @property
    def size(self) -> RequestSize:
        """The size of the next request, in tokens."""
        return size_of(self.state, scale_of(self.state, self.counter))

    def budget_status(self) -> BudgetStatus:
        """Return the current state of the token budget: size, cap, threshold and decision. O(1)."""
        if self._standing is None:
            self._standing = compute_budget(self.resolved, self.window, self.size)
        return self._standing

    @property
    def decision(self) -> Decision:
        """The decision about the next request: it fits, a compaction is due, or it is over the cap."""
        return decide_by_cost(self, self.budget_status().decision)

    def token_usage(self) -> TokenUsage:
        """Return the token usage that clients show. O(1), or O(requests) at the first call."""
        usage, bill = token_usage(self.state, self.budget_status()), self.bill()
        kind = self.decision.kind
        if usage.decision != kind:
            usage = msgspec.structs.replace(usage, decision=kind)
        if not bill.requests and not bill.tokens.summary:
            return usage
        return msgspec.structs.replace(
            usage, cost=UsageCost(billed=rounded(bill.billed), last=rounded(bill.last_cost))
        )

    def bill(self) -> Ledger:
        """Return what the requests so far cost. O(1), or O(requests) at the first call."""
        return self.ledger.follow(self.state.usage_log)

    @property
    def cached_head(self) -> int:
        """The tokens at the beginning of a request that stay in the provider's cache if the messages change:
        the tools, and the system prompt if it can be marked or needs no mark. 0 if only a mark of the system
        prompt keeps them there, and the newest request has none."""
        system, tools = self.state.fixed
        rules = self.ledger.prices_of(self.state.model.model, self.state.model.base_url).rules
        if rules is not None and rules.head_needs_mark and not self.marks_system:
            return 0
        is_marked = self.runs_loop or rules is None or not rules.needs_marks
        return scale_of(self.state, self.counter).tokens(tools + (system if is_marked else 0))

    def predict_cost(self, size: int | None = None) -> float | None:
        """Return what the next request will cost, in US dollars, if it has `size` tokens (None: as many as it
        has now). None if the model's prices are not known. O(1)."""
        return rounded(
            self.ledger.predict(
                self.state.usage_log,
                self.state.model,
                size=self.budget_status().used if size is None else size,
                head=self.cached_head,
                epoch=self.state.epoch,
                at=self.host.now(),
            )
        )

    def predict_compacted(self, size: int) -> float | None:
        """Return what the next request will cost, in US dollars, if a compaction leaves `size` tokens of it.
        None if the model's prices are not known. O(1)."""
        return rounded(
            self.ledger.predict_compacted(
                self.state.usage_log,
                self.state.model,
                size=size,
                head=self.cached_head,
                at=self.host.now(),
            )
        )

    def note_turn_size(self) -> None:
        """Note the tokens of the context as the size at the beginning of a turn."""
        self.turn_sizes.append(self.budget_status().used)
        del self.turn_sizes[:-MAX_TURN_SIZES]

    def count_message(self, message: Message) -> int:
        """Return the number of tokens of one message, by this session's token counter. O(message)."""
        return message_tokens(message, self.counter)

    def counts_in_worker(self, size_bytes: int) -> bool:
        """Return true if a worker must count the tokens of messages of this size (bytes), because counting
        them on the event loop would delay other sessions.
        """
        name = self.counter.name
        return size_bytes > INLINE_BYTES or (name.endswith("_base") and not is_loaded(name))

    # --- writing --------------------------------------------------------------------------------------

    def require_journal(self) -> Journal:
        """Return the journal to write. Raises `SessionLocked` if the session is open in this process only to
        be read, and `SessionNotFound` if another client has closed it while the request waited for its turn.
        """
        if self.is_closed:
            raise SessionNotFound(
                "This session was closed before the request could be handled: call session/start with its "
                "session_id first.",
                session_id=self.id,
                exists=self.persistent,
            )
        if self.journal is None:
            is_owned = self.following is not None and self.following.is_owned_now()
            raise SessionLocked(
                "Another process has this session open for writing. Read it here, or end that process "
                "and start the session again."
                if is_owned
                else "This session is open here only for reading, and no process writes it now. Call "
                "session/start again to take it over.",
                **{"session_id": self.id, **(self.writer if is_owned else {})},
            )
        return self.journal

    def require_idle(self) -> None:
        """Raise `SessionBusy` if a compaction, a redaction or another caller's prompt is running.

        A running prompt does not count for a caller that is itself a step of that prompt.
        """
        if self.agent_loop is not None and self.agent_loop.blocks_caller():
            raise SessionBusy(
                "A prompt of this session is being answered. Wait for its `agent_end` event, or stop it with "
                "agent/abort.",
                holder="prompt",
                turn_id=self.agent_loop.turn_id,
            )
        if self.operation is not None:
            raise self.operation.refusal()

    def write(self, *entries: Entry, messages: Sequence[Message] = ()) -> int:
        """Apply `entries` to the state and queue them for the journal. Return the number of the last record,
        for `wait_durable`.

        `messages` are the decoded messages of the `Appended` entries, in order.
        """
        journal = self.require_journal()
        try:
            number = journal.append([msgspec.json.encode(entry) for entry in entries])
        except RecordsLost as lost:
            self._drop_lost_records(lost)
            raise
        decoded, ran_loop = iter(messages), self.runs_loop
        for entry in entries:
            self.entries.append(entry)
            self.state.apply(entry, next(decoded, None) if isinstance(entry, Appended) else None)
        self.touched_at = self.host.now()
        self._standing = None
        if self.runs_loop != ran_loop:
            # From now on the session's own model writes summaries, and untrusted settings must not make
            # them more frequent.
            self._update_window()
        self._review_preparation()
        return number

    async def wait_durable(self, commit_id: int) -> None:
        """Wait until the record with this number is on disk. If it could not be stored, rebuild the state
        without the lost entries and raise `RecordsLost`.
        """
        journal = self.require_journal()
        try:
            await journal.durable(commit_id)
        except RecordsLost as lost:
            self._drop_lost_records(lost)
            raise

    def _drop_lost_records(self, lost: RecordsLost) -> None:
        if self.journal is None:
            return
        if lost.is_broken:
            first: int | None = lost.lost_from
        else:
            first = self.journal.resume()
        if first is None or first >= len(self.entries):
            return
        del self.entries[first:]
        self.reload()

    def follow(self, entries: Sequence[Entry]) -> None:
        """Apply entries that another process has appended to the journal. Call `refresh` afterwards.
        O(entries).
        """
        for entry in entries:
            self.entries.append(entry)
            self.state.apply(entry)
            if isinstance(entry, Appended):
                self.pending.add(self.state.originals[entry.id].message)
        self._standing = None

    def reload(self) -> None:
        """Rebuild the state from `self.entries`, after some of them were lost, or replaced by the process
        that writes the session.
        """
        self.state = replay(self.entries, decoder_of(self.entries))
        self.drop_facts()  # the ids of their messages may be used again for other messages
        self.pending = Pending(self.state.path_items())
        self.last_sent_epoch = min(self.last_sent_epoch, self.state.epoch)
        self.refresh()

    def ensure_facts(self) -> FactCache:
        """Return the cache of facts. It is created at the first call."""
        if self.facts is None:
            from compactd.core.extract.facts import FactCache

            self.facts = FactCache(self.shown_dir)
        return self.facts

    def drop_facts(self) -> FactCache | None:
        """Forget all facts, the state of the work and what the view shows. Return the cache of facts, which a
        worker may still be using."""
        self._work = None
        self.drop_shown_view()
        facts, self.facts = self.facts, None
        return facts

    def shown_view(self) -> ShownView:
        """Return what the view shows of tool outputs, as far as it was read. It is created at the first call.
        Only the holder of `reducing` may read on."""
        if self._shown_view is None:
            from compactd.session.shown_view import ShownView

            self._shown_view = ShownView()
        return self._shown_view

    def drop_shown_view(self) -> None:
        """Forget what the view shows. A worker may still be using it."""
        self._shown_view = None

    def drop_preparation(self) -> None:
        """Forget the compaction that is prepared, and stop its computation."""
        found, self.preparation = self.preparation, None
        if found is not None:
            found.discard()

    def _review_preparation(self) -> None:
        """Forget the prepared compaction if something else than messages and usage reports came since it was
        begun."""
        if self.preparation is not None and not self.preparation.is_current:
            self.drop_preparation()

    def work(self) -> SessionWork:
        """Return what the messages say about the state of the work. It is created at the first call."""
        if self._work is None:
            from compactd.session.work import SessionWork

            self._work = SessionWork()
        return self._work

    def release(self) -> None:
        """Free the memory of this closed session. Call this in a worker, so that other sessions need not
        wait.
        """
        self.entries.clear()
        self.state.release()
        if self.facts is not None:
            self.facts.release()

    # --- events ---------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Send `event` to the session's clients with this session's next sequence number. After
        `session_closed`, nothing is sent: a stopped prompt may still be ending while the session is opened
        again.
        """
        if self.replaced_by is not None:
            self.replaced_by.emit(event)  # of a prompt that is still ending
            return
        if self._is_silent:
            return
        self._is_silent = isinstance(event, SessionClosed)
        self.event_seq += 1
        self.host.emit(self.id, self.event_seq, event)

    def emit_usage(self) -> None:
        """Send the current token usage as `usage_update`."""
        usage = self.token_usage()
        self.emit(UsageUpdate(usage=usage, context_window=usage.context_window))

    def emit_turn_end(
        self, taken: AppendOutcome | None, usage: Usage | None, turn_id: str | None = None
    ) -> None:
        """Send `turn_end`, with the model's answer that `taken` has appended, or without an answer if `taken`
        is None.
        """
        answer = None if taken is None else taken.intake.answer
        self.emit(
            TurnEnd(
                message=NULL if answer is None else answer,
                usage=usage,
                context_usage=context_usage(self.budget_status()),
                turn_id=turn_id,
                entry_id=None if taken is None else taken.answer_id,
            )
        )

    def emit_appended(
        self, taken: AppendOutcome, *, client: ClientRef | None = None, turn_id: str | None = None
    ) -> None:
        """Send one `message_appended` event for each new message. `client`: who wrote it; None for the
        daemon.
        """
        turn = UNSET if turn_id is None else turn_id
        name = None if client is None else client.name_in(self.id)
        for entry_id, message in taken.appended:
            self.emit(MessageAppended(entry_id=entry_id, role=message.role, client=name, turn_id=turn))

    def emit_changed(self, what: Change, *entry_ids: EntryId) -> None:
        """Send `session_changed`: something other than a message changed."""
        self.emit(SessionChanged(what=what, entry_ids=entry_ids))

    # --- appending ------------------------------------------------------------------------------------

    def append(self, new: AppendRequest) -> AppendOutcome:
        """Append the messages in `new`, and the usage reports that came with them. O(new messages), however
        long the history is.

        Raises `InvalidParams` if a message id belongs to an earlier, different message, or if `new` names an
        epoch that the session never had. Then nothing is appended.
        """
        journal = self.require_journal()
        intake = plan_append(
            self.state,
            new,
            at=self.host.now(),
            estimator=self.counter.name,
            handed_epoch=self.last_sent_epoch,
        )
        if intake.report is not None:
            intake = self._judged(intake)
        number = self.write(*intake.entries, messages=intake.messages) if intake.entries else journal.last
        for message in intake.messages:
            self.pending.add(message)
        if intake.answer is not None:
            self.overflow_attempts, self.awaits_answer = 0, False
            self._catch_up()
        if intake.report is not None:
            if self._window() != self.window:
                self._update_window()
            self._standing = None
        if intake.entries:
            self.host.note_grown(self.id)
        return AppendOutcome(intake=intake, commit_id=number)

    def _judged(self, intake: AppendPlan) -> AppendPlan:
        """Return `intake` with what its usage report was predicted to cost and why it built its cache again.
        If it has several reports, it is a transcript, and nothing was predicted. O(new messages)."""
        report = intake.report
        if report is None or sum(isinstance(entry, UsageReported) for entry in intake.entries) != 1:
            return intake
        first_change, self.first_change = self.first_change, None
        predicted = self._predicted(intake, report) if report.is_base else None
        judged = msgspec.structs.replace(report, predicted=predicted, first_change=first_change)
        judged = self.ledger.with_judgement(judged, self.state.usage_log, self.state.model)
        entries = tuple(judged if entry is report else entry for entry in intake.entries)
        return msgspec.structs.replace(intake, entries=entries, report=judged)

    def _predicted(self, intake: AppendPlan, report: UsageReported) -> float | None:
        """Return what the request of `report` was predicted to cost when it was handed out. If messages came
        since, or if it was not handed out, predict it from the state before its answer."""
        expected, self._expected = self._expected, None
        if expected is not None and expected.messages == len(self.state.originals):
            return expected.cost
        if report.epoch != self.state.epoch:
            return None
        before = 0
        for entry in intake.entries:
            if entry is report or (isinstance(entry, Appended) and entry.id == report.entry_id):
                break
            before += entry.tokens[0] if isinstance(entry, Appended) else 0
        return self.predict_cost(
            self.budget_status().used + scale_of(self.state, self.counter).tokens(before)
        )

    def count_usage(
        self,
        usage: Usage,
        epoch: int | None,
        *,
        summary_cost: float | None = None,
        summary_model: str | None = None,
    ) -> int:
        """Record the usage report of a failed model request, or of a summary that was prepared and not used.
        The report adds to the cost, but the current size is not computed from it.

        `epoch` is the epoch of the request's context; None means the context that the client got last.
        `summary_cost` is the cost of an unused summary in US dollars, which `summary_model` wrote; None for
        another request. Returns the number of the new record, for `wait_durable`.
        """
        report = UsageReported(
            at=self.host.now(),
            usage=usage,
            epoch=self.last_sent_epoch if epoch is None else epoch,
            is_base=False,
            summary_cost=summary_cost,
            model=summary_model,
        )
        return self.write(report)

    # --- other changes --------------------------------------------------------------------------------

    def configure(
        self,
        layer: str,
        *,
        compaction: GivenSettings | None = None,
        system_prompt: str | None = None,
        tools: tuple[tuple[Tool, Raw], ...] | None = None,
        title: str | None = None,
        unset: Sequence[str] = (),
    ) -> int | None:
        """Change the session's settings, system prompt, tools or title: those arguments that are not None.

        `layer` is `start` or `configure`, the place that gave the settings; `configure` has priority. The
        values in `compaction` replace the layer's earlier values one by one. First, what `unset` names is
        removed: settings in both layers, or one of `UNSETTABLE_FIELDS`.

        If there are messages, another system prompt or tool list begins a new epoch, because a usage report
        of an earlier request does not predict the size of the next request. Returns the number of the last
        new record, for `wait_durable`, or None if there was nothing to change.
        """
        if "system_prompt" in unset and system_prompt is None:
            system_prompt = ""
        if "tools" in unset and tools is None:
            tools = ()
        if "title" in unset and title is None:
            title = ""
        forgotten = self._unset(unset)
        if compaction is None and system_prompt is None and tools is None and title is None:
            return forgotten
        before, sources = self.state.given.get(layer, NULL), None
        if tools is not None:
            sources = tuple(source for _, source in tools)
        is_other = system_prompt is not None and system_prompt != (self.state.system_prompt or "")
        is_other = is_other or (sources is not None and sources != self.state.tools)
        number = self.write(
            SettingsSet(
                at=self.host.now(),
                layer=layer,
                compaction=NULL if compaction is None else overlay(before, compaction),
                system_prompt=system_prompt,
                tools=sources,
                title=title,
                epoch=self.state.epoch + 1 if is_other and self.state.originals else None,
            )
        )
        self._catch_up()
        self.refresh()
        return self._count_fixed() or number

    def _unset(self, names: Sequence[str]) -> int | None:
        """Remove these settings from both layers of this session. Return the number of the last new record,
        for `wait_durable`, or None if there was nothing to remove.
        """
        if not names:
            return None
        entries: list[Entry] = []
        at, model = self.host.now(), self.state.model
        for layer, given in self.state.given.items():
            left = overlay(given, GivenSettings(), without=names)
            if left != given:
                entries.append(SettingsSet(at=at, layer=layer, compaction=left))
        if "context_window" in names and model.context_window is not None:
            entries.append(msgspec.structs.replace(model, at=at, context_window=None, epoch=self.state.epoch))
        if not entries:
            return None
        number = self.write(*entries)
        self.refresh()
        return self._count_fixed() or number

    def note_sent_epoch(self, epoch: int) -> None:
        """Note that the client gets a context of this epoch for its next model request."""
        self.last_sent_epoch, self.awaits_answer = epoch, True
        self._expected = Expected(messages=len(self.state.originals), cost=self.predict_cost())

    def _catch_up(self) -> None:
        """Set `last_sent_epoch` to the current epoch, if the client has the current view and does not wait
        for the model's answer to an earlier context.

        So a system prompt or tool list that the client has set counts as known to the client. Many clients
        never ask for a context.
        """
        if not self.awaits_answer and self.last_sent_epoch >= self.state.view_epoch:
            self.last_sent_epoch = self.state.epoch

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that a request offers to the model."""
        return tuple(msgspec.json.decode(raw, type=Tool) for raw in self.state.tools)

    def _count_fixed(self) -> int | None:
        """Count the tokens of the system prompt and the tools, and record the counts if they changed. Return
        the number of the new record, for `wait_durable`, or None.
        """
        fixed = (
            system_tokens(self.state.system_prompt, self.counter),
            sum(tool_tokens(tool, self.counter) for tool in self.tools()),
        )
        if fixed == self.state.fixed:
            return None
        return self.write(SettingsSet(at=self.host.now(), fixed_tokens=fixed))

    def set_model(self, model: str | None, base_url: str | None, context_window: int | None) -> int:
        """Switch the session to another model, and return the number of the last new record, for
        `wait_durable`.

        The epoch rises, unless the session had no model and no messages.
        """
        is_first = self.state.model.model is None and not self.state.originals
        epoch = self.state.epoch if is_first else self.state.epoch + 1
        at = self.host.now()
        number = self.write(
            ModelSet(at=at, model=model, base_url=base_url, context_window=context_window, epoch=epoch)
        )
        self.refresh()
        return self._count_fixed() or number

    def pin(self, entry_ids: Sequence[EntryId], pinned: bool) -> int:
        """Pin messages, or unpin them if `pinned` is false. Return the number of the new record, for
        `wait_durable`. Raises `InvalidParams` for an id that is not a message of this session.
        """
        for index, entry_id in enumerate(entry_ids):
            if entry_id not in self.state.originals:
                raise InvalidParams(
                    f"{entry_id!r} is not a message of this session; session/history lists them",
                    f"$.entry_ids[{index}]",
                )
        return self.write(PinSet(at=self.host.now(), entry_ids=tuple(entry_ids), pinned=pinned))


def changes_in(entry: SettingsSet) -> tuple[Change, ...]:
    """Return what the entry changed: one `session_changed` event is due for each of these values. Empty if
    the entry only records token counts.
    """
    is_setting = entry.compaction != NULL or entry.system_prompt is not None or entry.snapshots is not None
    changed: tuple[tuple[Change, bool], ...] = (
        ("settings", is_setting),
        ("tools", entry.tools is not None),
        ("title", entry.title is not None),
    )
    return tuple(what for what, is_changed in changed if is_changed)
