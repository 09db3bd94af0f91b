"""One conversation: its entries, its one writer, its numbers, its events.

Methods that change something apply it to memory and to the journal's pending list at once, without
waiting, and give back a number; `durable(number)` waits until the disk has it. So requests of a session
take effect in the order they came, and an answer leaves when what it says is safe.

`compaction/run.py` runs the one compaction that a session can have at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.core.budget.budget import Size, Standing, Window, stand
from compactd.core.budget.settings import Resolved
from compactd.core.budget.untrusted import resolve
from compactd.core.budget.usage_report import context_usage, scale_of, size_of, token_usage, window_of
from compactd.core.history.append import Intake, New, take
from compactd.core.history.entries import (
    NULL,
    Appended,
    Entry,
    EntryId,
    ModelSet,
    PinSet,
    SettingsSet,
    UsageReported,
)
from compactd.core.history.projection import Pending
from compactd.core.history.state import Fold, fold
from compactd.core.models.lookup import Lookup
from compactd.core.models.observed import Observed, held, observation_of
from compactd.core.text.slices import release
from compactd.core.tokens.counting import Counter, message_tokens, system_tokens, tool_tokens
from compactd.formats.files.journal import decoder_of
from compactd.models.tokenizers.counters import counter_for, is_loaded
from compactd.protocol.errors import Detail, InvalidParams, SessionBusy, SessionLocked
from compactd.protocol.messages import (
    Change,
    Decision,
    Event,
    Message,
    MessageAppended,
    Owner,
    SessionChanged,
    TokenUsage,
    Tool,
    TurnEnd,
    Usage,
    UsageUpdate,
)
from compactd.protocol.settings import GivenSettings, IgnoredSetting
from compactd.session.host import AgentGate, World
from compactd.session.queue import InOrder
from compactd.session.recount import Recounting
from compactd.storage.protocols import Journal, RecordsLost
from compactd.storage.settings_files import overlay

if TYPE_CHECKING:
    from compactd.core.extract.facts import FactCache
    from compactd.session.git.difference import Difference
    from compactd.session.slot import Running

T = TypeVar("T")

OWN = ("system_prompt", "tools", "title")
"""What a session can lose besides settings."""

INLINE_BYTES = 48 * 1024
"""Messages up to this size are counted where they arrive (< 5 ms at 12 MB/s); larger ones in a worker."""


class Taken(Struct, frozen=True, kw_only=True):
    """What came of an append."""

    intake: Intake
    number: int
    """To wait for."""

    @property
    def appended(self) -> tuple[tuple[EntryId, Message], ...]:
        """The new messages by their entries, oldest first."""
        ids = (entry.id for entry in self.intake.entries if isinstance(entry, Appended))
        return tuple(zip(ids, self.intake.messages, strict=True))

    @property
    def answer_id(self) -> EntryId | None:
        """The entry of the last new assistant message."""
        return next((i for i, message in reversed(self.appended) if message.role == "assistant"), None)


class Following(Protocol):
    """How this process follows a session that another one writes."""

    @property
    def is_compacting(self) -> bool:
        """The writer is compacting, as far as its journal says."""
        ...

    def is_owned_now(self) -> bool:
        """True while a process writes the session. Looks at its lock."""
        ...


class SnapshotTaker(Protocol):
    """Keeps the files of a session's work tree."""

    async def take(self, session: Session, moment: Literal["begin", "end"]) -> None:
        """Keeps the files as they are now; durable when it returns. Never fails."""
        ...

    async def difference(self, session: Session, first: EntryId | None, last: EntryId | None) -> Difference:
        """What changed between two of the user's messages. Raises `InvalidParams` for other entries."""
        ...

    async def forget(self, *, for_good: bool = False) -> None:
        """Removes what is kept; `for_good`: nothing is kept any more."""
        ...


class Session:
    """One conversation that is open in this process."""

    def __init__(
        self,
        world: World,
        session_id: str,
        journal: Journal | None,
        entries: Sequence[Entry] = (),
        *,
        persistent: bool = True,
    ) -> None:
        self.world = world
        self.id = session_id
        self.journal = journal
        """None if the session was opened to read and to follow only."""
        self.owner: Owner = "none" if journal is None else "this"
        """Who has the session open for writing, as far as it is known."""
        self.following: Following | None = None
        """What reads along while there is no journal."""
        self.entries: list[Entry] = list(entries)
        """As they stand in the journal: the index is the record's number."""
        self.writer: dict[str, Detail] = {}
        """The process that had the lock when this was opened, as `SessionLocked` says it."""
        self.fold: Fold = fold(self.entries, decoder_of(self.entries))
        self.pending = Pending(self.fold.path_items())
        self.seq = 0
        self.handed_epoch = self.fold.epoch
        """The epoch of the context that the client was given last."""
        self.awaits_answer = False
        """The client was given a context, and no answer has come since."""
        self.running: Running | None = None
        self.facts: FactCache | None = None
        """What compactions found out about the messages."""
        self.has_hook = False
        """The client is asked before each compaction."""
        self.client: str | None = None
        """The name of the client that opened the session here."""
        self.prompters: dict[str, str] = {}
        """The name of the client that sent each prompt which came here."""
        self.agent: AgentGate | None = None
        """The loop, once the client gave a prompt."""
        self.recoveries = 0
        """Rejected requests since the last answer that was taken in."""
        self.silent_overflow = False
        """The last report says the window was full: the next turn begins with a compaction."""
        self.queue = InOrder()
        self.touched_at = world.now()
        self.persistent = persistent
        """False: kept in memory alone."""
        self.is_closed = False
        self.is_borrowed = False
        """An editor's command opened it for itself, and closes it when it is done."""
        self.snapshots: SnapshotTaker | None = None
        opened = self.fold.opened
        self.working_dir = opened.working_dir if opened else None
        """The folder that a client named: its settings, snapshots and files are this session's."""
        self.imported_dir = opened.imported_dir if opened else None
        self.is_imported = opened is not None and opened.is_imported
        self.resolved: Resolved
        self.ignored: tuple[IgnoredSetting, ...] = ()
        """Settings of an untrusted source that this session's model makes too large or too small."""
        self._standing: Standing | None = None
        self.lookup: Lookup | None
        self.learned: Observed | None = None
        """The window that the model's server taught this machine."""
        self.counter: Counter
        self.counted: Recounting | None = None
        """The messages as the counter that comes next counts them, where they were counted before it came."""
        self.refresh()

    # --- settings -------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Works out settings, window and counter anew. O(1), but where another estimator is to count."""
        model = self.fold.model
        self.lookup = self.world.lookup(model.model, model.base_url)
        self._look_at_window()
        self.counter = counter = self.counter_of(self.lookup)
        counted, self.counted = self.counted, None
        if counted is None or counted.counter != counter:
            counted = Recounting(counter, self.fold.originals.values())
        self.fold.recount(counter.name, counted.next)
        counted.forget()
        self._standing = None

    def resolved_under(self, window: Window) -> tuple[Resolved, tuple[IgnoredSetting, ...]]:
        """(the settings as they are with a model of these limits, what of them is ignored). O(settings)."""
        given = tuple(
            (f"session/{layer}", msgspec.json.decode(self.fold.given[layer], type=GivenSettings))
            for layer in ("configure", "start")
            if layer in self.fold.given
        )
        named = ("session/start", GivenSettings(context_window=self.fold.model.context_window))
        layers = (*given, named, *self.world.layers(self.working_dir))
        resolved, ignored = resolve(layers, window, runs_loop=self.runs_loop)
        rules = resolved.settings.rules
        for name, switches in (("enabled", rules.auto_off), ("prune", rules.prune_off)):
            if (by := self.world.switch(switches)) is not None:
                off = msgspec.structs.replace(resolved.settings, **{name: False})
                sources = {**resolved.sources, name: by}
                resolved = msgspec.structs.replace(resolved, settings=off, sources=sources)
        return resolved, ignored

    def _look_at_window(self) -> None:
        """Works out the model's limits anew, and the settings, some of which are taken only within them."""
        self.window = self._window()
        self.resolved, self.ignored = self.resolved_under(self.window)
        self._standing = None

    def counter_of(self, found: Lookup | None) -> Counter:
        """The counter for a model, under this session's settings."""
        settings = self.resolved.settings
        estimator = settings.rules.chars4 if settings.estimator == "chars4" else settings.estimator
        return counter_for(estimator, found.tokenizer if found else None, found.model if found else None)

    @property
    def sighting(self) -> Observed | None:
        """The window that a doubtful rejection named, or None. It counts in this session only."""
        found, seen = self.lookup, self.fold.sighting
        if found is None or seen is None or seen.limit is None:
            return None
        base_url = self.fold.model.base_url
        return observation_of(found, base_url, seen.limit, "sighting", seen.at, requested=seen.requested)

    def forget_sighting(self) -> int | None:
        """Stop counting the doubtful rejection, and return the number to wait for. Do nothing and return None
        if there is none, or if this process only reads the session.
        """
        seen = self.fold.sighting
        if seen is None or self.journal is None:
            return None
        return self.write(msgspec.structs.replace(seen, at=self.world.now(), doubtful=False))

    def _window(self) -> Window:
        base_url = self.fold.model.base_url
        self.learned = None if self.lookup is None else self.world.observed(self.lookup, base_url)
        learned = held(self.learned, self.sighting, self.fold.last_prompt_tokens)
        return window_of(self.fold, self.lookup, learned)

    @property
    def shown_dir(self) -> str | None:
        """The folder that paths in summaries are shown below."""
        return self.working_dir or self.imported_dir

    @property
    def runs_loop(self) -> bool:
        """The daemon itself asks this session's model: its client wanted it to, by a prompt."""
        return self.fold.prompts > 0

    # --- numbers --------------------------------------------------------------------------------------

    @property
    def size(self) -> Size:
        """How large the next request is."""
        return size_of(self.fold, scale_of(self.fold, self.counter))

    def standing(self) -> Standing:
        """The budget equation as it stands. O(1)."""
        if self._standing is None:
            self._standing = stand(self.resolved, self.window, self.size)
        return self._standing

    @property
    def decision(self) -> Decision:
        """Whether the next request fits."""
        return self.standing().decision

    def token_usage(self) -> TokenUsage:
        """What clients show. O(1)."""
        return token_usage(self.fold, self.standing())

    def count_message(self, message: Message) -> int:
        """Tokens of one message in this session's estimator. O(message)."""
        return message_tokens(message, self.counter)

    def counts_in_worker(self, size_bytes: int) -> bool:
        """True where counting this much would hold up the other sessions."""
        name = self.counter.name
        return size_bytes > INLINE_BYTES or (name.endswith("_base") and not is_loaded(name))

    # --- writing --------------------------------------------------------------------------------------

    def writable(self) -> Journal:
        """The journal; raises `SessionLocked` if the session is open here to be read only."""
        if self.journal is None:
            is_owned = self.following is not None and self.following.is_owned_now()
            raise SessionLocked(
                "Another process has this session open for writing. Read it here, or end that process "
                "and start the session again."
                if is_owned
                else "This session is open here to be read only, and no process writes it now. Call "
                "session/start again to take it over.",
                **{"session_id": self.id, **(self.writer if is_owned else {})},
            )
        return self.journal

    def free(self) -> None:
        """Raises `SessionBusy` while a compaction or redaction runs, or a prompt of which this is no step."""
        if self.agent is not None and self.agent.holds_others():
            raise SessionBusy(
                "A prompt of this session is being answered. Wait for its agent_end, or abort it.",
                holder="prompt",
                turn_id=self.agent.turn_id,
            )
        if self.running is not None:
            raise self.running.refusal()

    def write(self, *entries: Entry, messages: Sequence[Message] = ()) -> int:
        """Applies `entries` and puts them on the journal's list; gives back the number to wait for.

        `messages`: the decoded messages of those that are `Appended`, in order.
        """
        journal = self.writable()
        try:
            number = journal.append([msgspec.json.encode(entry) for entry in entries])
        except RecordsLost as lost:
            self._take_back(lost)
            raise
        decoded, ran_loop = iter(messages), self.runs_loop
        for entry in entries:
            self.entries.append(entry)
            self.fold.apply(entry, next(decoded, None) if isinstance(entry, Appended) else None)
        self.touched_at = self.world.now()
        self._standing = None
        if self.runs_loop != ran_loop:
            # From here on the session's own model is asked for summaries, which an untrusted file may not
            # make more frequent.
            self._look_at_window()
        return number

    async def durable(self, number: int) -> None:
        """Waits until the journal has what `write` gave this number; takes back what it could not keep."""
        journal = self.writable()
        try:
            await journal.durable(number)
        except RecordsLost as lost:
            self._take_back(lost)
            raise

    def _take_back(self, lost: RecordsLost) -> None:
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
        """Takes in what the owner appended; `refresh` has to follow. O(entries)."""
        for entry in entries:
            self.entries.append(entry)
            self.fold.apply(entry)
            if isinstance(entry, Appended):
                self.pending.add(self.fold.originals[entry.id].message)
        self._standing = None

    def reload(self) -> None:
        """Folds `entries` again, after some were taken back or came from the owner."""
        self.fold = fold(self.entries, decoder_of(self.entries))
        self.facts = None  # of messages whose ids others may get
        self.pending = Pending(self.fold.path_items())
        self.handed_epoch = min(self.handed_epoch, self.fold.epoch)
        self.refresh()

    def release(self) -> None:
        """Lets go of a closed session, piece by piece; from a worker, so that no other session waits."""
        release(self.entries)
        self.fold.release()
        if self.facts is not None:
            self.facts.release()

    # --- events ---------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Sends `event` with this session's next number."""
        self.seq += 1
        self.world.emit(self.id, self.seq, event)

    def tell_usage(self) -> None:
        """Sends the gauge's numbers."""
        usage = self.token_usage()
        self.emit(UsageUpdate(usage=usage, context_window=usage.context_window))

    def tell_turn_end(self, taken: Taken | None, usage: Usage | None, turn_id: str | None = None) -> None:
        """Sends that the model's answer was taken in, or with `taken` None that there is none."""
        answer = None if taken is None else taken.intake.answer
        self.emit(
            TurnEnd(
                message=NULL if answer is None else answer,
                usage=usage,
                context_usage=context_usage(self.standing()),
                turn_id=turn_id,
                entry_id=None if taken is None else taken.answer_id,
            )
        )

    def tell_appended(self, taken: Taken, *, client: str | None = None, turn_id: str | None = None) -> None:
        """Sends which messages came into the session."""
        turn = UNSET if turn_id is None else turn_id
        for entry_id, message in taken.appended:
            self.emit(MessageAppended(entry_id=entry_id, role=message.role, client=client, turn_id=turn))

    def tell_changed(self, what: Change, *entry_ids: EntryId) -> None:
        """Sends that something changed that is no message."""
        self.emit(SessionChanged(what=what, entry_ids=entry_ids))

    # --- appending ------------------------------------------------------------------------------------

    def append(self, new: New) -> Taken:
        """Takes `new` in. O(new messages), whatever the history.

        Raises `InvalidParams` for an id that names another message, or an epoch that was never handed out;
        then nothing was appended.
        """
        journal = self.writable()
        intake = take(
            self.fold, new, at=self.world.now(), estimator=self.counter.name, handed_epoch=self.handed_epoch
        )
        number = self.write(*intake.entries, messages=intake.messages) if intake.entries else journal.last
        for message in intake.messages:
            self.pending.add(message)
        if intake.answer is not None:
            self.recoveries, self.awaits_answer = 0, False
            self._catch_up()
        if intake.report is not None:
            if self._window() != self.window:
                self._look_at_window()
            self._standing = None
        return Taken(intake=intake, number=number)

    def bill(self, usage: Usage, epoch: int | None) -> int:
        """Takes the report of a failed request in: billed, never the current size. Number to wait for."""
        report = UsageReported(
            at=self.world.now(),
            usage=usage,
            epoch=self.handed_epoch if epoch is None else epoch,
            is_base=False,
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
        """Sets what is given; `compaction` goes over the layer's earlier values one by one. Before that it
        forgets what `unset` names: settings in either layer, and what `OWN` lists.

        Another system prompt or tool list is a new epoch, once there are messages: a report of a request that
        was made before says nothing of the next one's size. Gives back the number to wait for, or None if
        nothing was given.
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
        before, sources = self.fold.given.get(layer, NULL), None
        if tools is not None:
            sources = tuple(source for _, source in tools)
        is_other = system_prompt is not None and system_prompt != (self.fold.system_prompt or "")
        is_other = is_other or (sources is not None and sources != self.fold.tools)
        number = self.write(
            SettingsSet(
                at=self.world.now(),
                layer=layer,
                compaction=NULL if compaction is None else overlay(before, compaction),
                system_prompt=system_prompt,
                tools=sources,
                title=title,
                epoch=self.fold.epoch + 1 if is_other and self.fold.originals else None,
            )
        )
        self._catch_up()
        self.refresh()
        return self._count_fixed() or number

    def _unset(self, names: Sequence[str]) -> int | None:
        """Forgets these settings in both layers of this session. The number to wait for; None for none."""
        if not names:
            return None
        entries: list[Entry] = []
        at, model = self.world.now(), self.fold.model
        for layer, given in self.fold.given.items():
            left = overlay(given, GivenSettings(), without=names)
            if left != given:
                entries.append(SettingsSet(at=at, layer=layer, compaction=left))
        if "context_window" in names and model.context_window is not None:
            entries.append(msgspec.structs.replace(model, at=at, context_window=None, epoch=self.fold.epoch))
        if not entries:
            return None
        number = self.write(*entries)
        self.refresh()
        return self._count_fixed() or number

    def hand_out(self, epoch: int) -> None:
        """The client is given a context of this epoch, to make a request of."""
        self.handed_epoch, self.awaits_answer = epoch, True

    def _catch_up(self) -> None:
        """Hands out another system prompt or tool list to the client that set it, unless it still waits for
        the answer to a request that was made before. Many clients never ask for a context."""
        if not self.awaits_answer and self.handed_epoch >= self.fold.view_epoch:
            self.handed_epoch = self.fold.epoch

    def tools(self) -> tuple[Tool, ...]:
        """The tools offered to the model."""
        return tuple(msgspec.json.decode(raw, type=Tool) for raw in self.fold.tools)

    def _count_fixed(self) -> int | None:
        """Counts system prompt and tools, after a change of theirs or of the estimator."""
        fixed = (
            system_tokens(self.fold.system_prompt, self.counter),
            sum(tool_tokens(tool, self.counter) for tool in self.tools()),
        )
        if fixed == self.fold.fixed:
            return None
        return self.write(SettingsSet(at=self.world.now(), fixed_tokens=fixed))

    def set_model(self, model: str | None, base_url: str | None, context_window: int | None) -> int:
        """Puts the session on another model; the epoch rises if it had one, or has messages. Number to wait
        for."""
        is_first = self.fold.model.model is None and not self.fold.originals
        epoch = self.fold.epoch if is_first else self.fold.epoch + 1
        at = self.world.now()
        number = self.write(
            ModelSet(at=at, model=model, base_url=base_url, context_window=context_window, epoch=epoch)
        )
        self.refresh()
        return self._count_fixed() or number

    def pin(self, entry_ids: Sequence[EntryId], pinned: bool) -> int:
        """Pins messages, or lets them go; raises `InvalidParams` for an id that is no message here."""
        for index, entry_id in enumerate(entry_ids):
            if entry_id not in self.fold.originals:
                raise InvalidParams(
                    f"{entry_id!r} is no message of this session; session/history lists them",
                    f"$.entry_ids[{index}]",
                )
        return self.write(PinSet(at=self.world.now(), entry_ids=tuple(entry_ids), pinned=pinned))


def changes_in(entry: SettingsSet) -> tuple[Change, ...]:
    """What a change of settings is called in `session_changed`; nothing for what was only counted anew."""
    is_setting = entry.compaction != NULL or entry.system_prompt is not None or entry.snapshots is not None
    changed: tuple[tuple[Change, bool], ...] = (
        ("settings", is_setting),
        ("tools", entry.tools is not None),
        ("title", entry.title is not None),
    )
    return tuple(what for what, is_changed in changed if is_changed)
