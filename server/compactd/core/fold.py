"""The fold from a journal's entries to what the session is now.

`Fold.apply` takes one entry in the cost of that entry (a compaction, undo or branch rebuilds the view:
linear in the path). Folding a journal entry by entry gives the values that its writer had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Raw

from compactd.core.entries import (
    NULL,
    Appended,
    Branched,
    Compacted,
    CompactionBegun,
    CompactionEnded,
    Entry,
    EntryId,
    Item,
    ModelSet,
    Opened,
    PinSet,
    Pruned,
    Redone,
    SettingsSet,
    Stub,
    Undone,
    UsageReported,
    View,
    summary_message,
    with_stub,
)
from compactd.core.pieces import clear, release
from compactd.core.titles import title_of
from compactd.core.usage import context_size
from compactd.messages import Message

Step = Compacted | Pruned
"""What `undo` takes back and `redo` puts in force again."""


class Billing:
    """Sums over all usage reports of a session. Tokens; they decide nothing."""

    def __init__(self) -> None:
        self.prompt = 0
        self.completion = 0
        self.cache_read = 0
        self.cache_write = 0
        self.reasoning = 0


class Fold:
    """What a session is after its entries so far: view, epoch, pins, settings, usage."""

    def __init__(self, decode: Callable[[Raw], Message]) -> None:
        self._decode = decode
        self.opened: Opened | None = None
        self.originals: dict[EntryId, Item] = {}
        """Every message ever appended, by its entry, in the order of the journal."""
        self.times: dict[EntryId, float] = {}
        """When each message was appended."""
        self.clients: dict[str, EntryId] = {}
        """The client's message ids."""
        self.steps: dict[EntryId, Step] = {}
        self.estimators: dict[EntryId, str] = {}
        """The estimator that counted each message."""
        self.timeline: list[Appended | Compacted | Pruned | CompactionBegun] = []
        """What `session/history` tells, oldest first."""
        self.begun = 0
        """Compactions that were started, whatever came of them."""
        self.done: set[str] = set()
        """Compactions that were committed, by their id."""
        self.ended: dict[str, CompactionEnded] = {}
        """Compactions that came to nothing, by their id."""
        self._parents: dict[EntryId, EntryId | None] = {}
        self.path: list[EntryId] = []
        """Entries with an id from the root to the leaf."""
        self._has_branches = False
        self._in_force: list[EntryId] = []
        self._undone: list[EntryId] = []
        self.pinned: set[EntryId] = set()
        self.model = ModelSet(at=0.0, model=None)
        self.system_prompt: str | None = None
        self.tools: tuple[Raw, ...] = ()
        self.title: str | None = None
        self.given: dict[str, Raw] = {}
        """The client's `compaction` object of each layer, `start` and `configure`."""
        self.fixed = (0, 0)
        """Estimates of (system prompt, tools)."""
        self.epoch = 1
        self.billing = Billing()
        self.last_report: UsageReported | None = None
        self.base: int | None = None
        """The last report's input, cache included, while it is of this epoch."""
        self.trailing = 0
        """Estimate of what came after that report."""
        self.items: list[Item] = []
        self.tail_from = 0
        self.items_tokens = 0
        self._first_title: str | None = None
        self._view: View | None = None
        self._recount: Callable[[Message], int] | None = None

    # --- reading --------------------------------------------------------------------------------------

    @property
    def leaf(self) -> EntryId | None:
        """The entry that the next one follows."""
        return self.path[-1] if self.path else None

    @property
    def next_id(self) -> EntryId:
        """The id that the next message, compaction or prune takes."""
        return f"e{len(self._parents) + 1}"

    @property
    def shown_title(self) -> str | None:
        """The title that was set, else the first one a user's message gives."""
        return self.title or self._first_title

    @property
    def last_prompt_tokens(self) -> int:
        """Input of the last report of this epoch, cache included; 0 where there is none."""
        return self.base or 0

    @property
    def estimated(self) -> int:
        """Estimate of the whole request: system prompt, tools, messages. Without repairs."""
        return self.items_tokens + self.fixed[0] + self.fixed[1]

    @property
    def size(self) -> int:
        """Current context size: base + trailing, or the estimate of everything where there is no report."""
        return self.estimated if self.base is None else max(0, self.base + self.trailing)

    def view(self) -> View:
        """The messages of the next request. Cached until an entry changes it."""
        if self._view is None:
            self._view = View(
                items=tuple(self.items), tail_from=self.tail_from, tokens=self.items_tokens, epoch=self.epoch
            )
        return self._view

    def last_step(self) -> Step | None:
        """The compaction or prune that `undo` would take back."""
        return self.steps[self._in_force[-1]] if self._in_force else None

    def last_undone(self) -> Step | None:
        """The compaction or prune that `redo` would put in force again."""
        return self.steps[self._undone[-1]] if self._undone else None

    def first_after(self, entry_id: EntryId | None) -> EntryId | None:
        """The first message on the path after the entry, the first of all after None; None if none came."""
        start = 0 if entry_id is None else self.path.index(entry_id) + 1
        return next((i for i in self.path[start:] if i in self.originals), None)

    def behind(self, compaction_id: str) -> tuple[EntryId, ...] | None:
        """The messages that a compaction's summary stands for, or a prune shortened; None if unknown."""
        step = next((s for s in self.steps.values() if s.compaction_id == compaction_id), None)
        if step is None:
            return None
        if isinstance(step, Pruned):
            return tuple(stub.entry_id for stub in step.stubs)
        line = self._line_to(step.id)
        end = line.index(step.first_kept) if step.first_kept in line else len(line) - 1
        return tuple(i for i in line[:end] if i in self.originals and i not in step.pinned)

    def _line_to(self, entry_id: EntryId) -> list[EntryId]:
        """The entries from the root to this one."""
        path: list[EntryId] = []
        at: EntryId | None = entry_id
        while at is not None:
            path.append(at)
            at = self._parents[at]
        path.reverse()
        return path

    def steps_in_force(self) -> tuple[Step, ...]:
        """Compactions and prunes in force, oldest first."""
        return tuple(self.steps[i] for i in self._in_force)

    def came_to_nothing(self, compaction_id: str) -> bool:
        """True for a compaction that was begun and never done: it failed, was cancelled, or the daemon died.

        One that still runs looks the same: the session knows which that is.
        """
        return compaction_id not in self.done

    def compactions(self) -> tuple[Compacted, ...]:
        """The compactions in force, oldest first."""
        steps = (self.steps[i] for i in self._in_force)
        return tuple(step for step in steps if isinstance(step, Compacted))

    def path_items(self) -> list[Item]:
        """The original messages of the current branch, oldest first, compacted or not. O(path)."""
        return [self.originals[i] for i in self.path if i in self.originals]

    # --- folding --------------------------------------------------------------------------------------

    def apply(self, entry: Entry, message: Message | None = None) -> None:
        """Takes `entry` in. `message` is the decoded message of an `Appended`, where the caller has it."""
        match entry:
            case Appended():
                self._append(entry, self._decode(entry.message) if message is None else message)
            case UsageReported():
                self._report(entry)
            case Compacted() | Pruned():
                self._step(entry)
            case Undone():
                self._in_force.remove(entry.target)
                self._undone.append(entry.target)
                self._changed(entry.epoch)
            case Redone():
                self._undone.remove(entry.target)
                self._in_force.append(entry.target)
                self._changed(entry.epoch)
            case Branched():
                self._branch(entry)
            case ModelSet():
                self.model = entry
                if entry.epoch != self.epoch:
                    self._forget_base(entry.epoch)
            case SettingsSet():
                self._set(entry)
            case PinSet():
                (self.pinned.update if entry.pinned else self.pinned.difference_update)(entry.entry_ids)
            case CompactionBegun():
                self.begun += 1
                self.timeline.append(entry)
            case CompactionEnded():
                self.ended[entry.compaction_id] = entry
            case Opened():
                self.opened = entry

    def release(self) -> None:
        """Lets go of everything, piece by piece: the session is closed."""
        release(self.items)
        release(self.timeline)
        self._view = None
        clear(self.originals)

    def recount(self, estimator: str, count: Callable[[Message], int]) -> None:
        """Counts again what another estimator than `estimator` counted: after a change of model or settings.

        O(messages counted by another estimator). The view's epoch stays: only the estimates are other ones.
        """
        foreign = [i for i, name in self.estimators.items() if name != estimator]
        for entry_id in foreign:
            item = self.originals[entry_id]
            self.originals[entry_id] = msgspec.structs.replace(item, tokens=count(item.message))
            self.estimators[entry_id] = estimator
        self._recount = count
        if foreign:
            self._rebuild()

    def _append(self, entry: Appended, message: Message) -> None:
        entry_id, tokens, meta = entry.id, entry.tokens[0], message.meta
        item = Item(
            entry_id=entry_id,
            message=message,
            tokens=tokens,
            source=entry.message,
            read=entry.read,
            modified=entry.modified,
        )
        self.originals[entry_id] = item
        self.times[entry_id] = entry.at
        self.estimators[entry_id] = entry.tokens[1]
        self.timeline.append(entry)
        if entry.client_id is not None:
            self.clients[entry.client_id] = entry_id
        self._grow(entry_id, entry.parent)
        if meta is not None and meta.pinned:
            self.pinned.add(entry_id)
        if self._first_title is None:
            self._first_title = title_of(message)
        self.items.append(item)
        self.items_tokens += tokens
        self.trailing += tokens
        self._view = None

    def _grow(self, entry_id: EntryId, parent: EntryId | None) -> None:
        self._parents[entry_id] = parent
        self.path.append(entry_id)

    def _report(self, entry: UsageReported) -> None:
        usage, billing = entry.usage, self.billing
        billing.prompt += context_size(usage)
        billing.completion += usage.output_tokens
        billing.cache_read += usage.cache_read_tokens
        billing.cache_write += usage.cache_write_tokens
        billing.reasoning += usage.reasoning_tokens
        if not entry.is_base or entry.epoch != self.epoch:
            return
        self.last_report = entry
        self.base = context_size(usage)
        self.trailing = max(0, usage.output_tokens - usage.reasoning_tokens) if entry.reported_output else 0
        if entry.entry_id is None:
            return
        for item in reversed(self.items):
            if item.entry_id == entry.entry_id:
                if not entry.reported_output:
                    self.trailing += item.tokens
                break
            self.trailing += item.tokens

    def _step(self, entry: Step) -> None:
        self.steps[entry.id] = entry
        if entry.compaction_id is not None:
            self.done.add(entry.compaction_id)
        self.timeline.append(entry)
        self._grow(entry.id, entry.parent)
        self._in_force.append(entry.id)
        self._undone.clear()
        self._changed(entry.epoch)

    def _branch(self, entry: Branched) -> None:
        self._has_branches = True
        self.path = self._line_to(entry.entry_id)
        here = set(self.path)
        self._in_force = [i for i in self._in_force if i in here]
        self._undone = [i for i in self._undone if i in here]
        self._changed(entry.epoch)

    def _set(self, entry: SettingsSet) -> None:
        if entry.compaction != NULL:
            self.given[entry.layer] = entry.compaction
        if entry.system_prompt is not None:
            self.system_prompt = entry.system_prompt
        if entry.tools is not None:
            self.tools = entry.tools
        if entry.title is not None:
            self.title = entry.title
        if entry.fixed_tokens is not None:
            # behaviour.md, Tokens: a changed system prompt or tool list adds its estimated difference.
            self.trailing += sum(entry.fixed_tokens) - sum(self.fixed)
            self.fixed = entry.fixed_tokens

    def _forget_base(self, epoch: int) -> None:
        self.epoch = epoch
        self.base = None
        self.trailing = 0
        self._view = None

    def _changed(self, epoch: int) -> None:
        self._forget_base(epoch)
        self._rebuild()

    def _rebuild(self) -> None:
        stubs: dict[EntryId, Stub] = {}
        last: Compacted | None = None
        for step_id in self._in_force:
            step = self.steps[step_id]
            stubs.update((stub.entry_id, stub) for stub in step.stubs)
            if isinstance(step, Compacted):
                last = step
        items: list[Item] = []
        start = 0
        if last is not None:
            message = summary_message(last)
            tokens = last.summary_tokens if self._recount is None else self._recount(message)
            items.append(Item(entry_id=last.id, message=message, tokens=tokens, kind="summary"))
            items.extend(self._shown(i, stubs) for i in last.pinned)
            start = self.path.index(last.id if last.first_kept is None else last.first_kept)
        self.tail_from = len(items)
        items.extend(self._shown(i, stubs) for i in self.path[start:] if i in self.originals)
        self.items = items
        self.items_tokens = sum(item.tokens for item in items)
        self._view = None

    def _shown(self, entry_id: EntryId, stubs: dict[EntryId, Stub]) -> Item:
        item = self.originals[entry_id]
        stub = stubs.get(entry_id)
        if stub is None:
            return item
        shown = with_stub(item, stub)
        if self._recount is not None:
            shown = msgspec.structs.replace(shown, tokens=self._recount(shown.message))
        return shown


def fold(entries: Iterable[Entry], decode: Callable[[Raw], Message]) -> Fold:
    """The fold of `entries` from scratch, oldest first."""
    state = Fold(decode)
    for entry in entries:
        state.apply(entry)
    return state
