"""The state of a session, folded from its journal's entries.

`SessionState.apply` adds one entry in O(entry); a compaction, undo or branch rebuilds the view in O(path).
Folding a journal entry by entry gives the values that the process which wrote it had (law 9).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from compactd.core.cost.lifetime import Pauses
from compactd.core.cost.rhythm import Rhythm
from compactd.core.history.active_steps import ActiveSteps, ViewStep, line_to
from compactd.core.history.calibration import Calibrator
from compactd.core.history.entries import (
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
    Queued,
    Redacted,
    Redone,
    Reduced,
    ReductionObserved,
    Rejected,
    SettingsSet,
    Snapshot,
    Undone,
    Unqueued,
    UsageReported,
    View,
    summary_message,
)
from compactd.core.history.lazy_message import Decode, LazyMessage
from compactd.core.history.outputs import ReducedOutputs
from compactd.core.history.titles import says_little, title_of
from compactd.core.history.usage_log import UsageLog
from compactd.core.history.view import CountMessage, Recount, build_view, entry_index, tokens_behind
from compactd.core.history.view_cache import ViewCache
from compactd.core.tokens.usage import Billing, context_size, sent_size
from compactd.protocol.messages import NULL, Message

MAX_TITLE_MESSAGES = 50
"""How many messages may follow a greeting before the search for a better title ends."""


class SessionState:
    """The state of a session after its entries so far: view, epoch, pins, settings, usage."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self.opened: Opened | None = None
        self.originals: dict[EntryId, Item] = {}
        """Every message ever appended, by its entry id, in the order of the journal."""
        self.times: dict[EntryId, float] = {}
        """When each message was appended, by entry id."""
        self.outputs = ReducedOutputs(decode)
        """The tool outputs that were reduced. They are no messages."""
        self.clients: dict[str, EntryId] = {}
        """The entry id for each message id that a client gave."""
        self.in_force = ActiveSteps()
        """The compactions and prunes, and which of them are in force (not undone, on the current branch)."""
        self.steps = self.in_force.known
        """Every compaction and prune, by its entry id."""
        self._estimators: dict[EntryId, str] = {}
        """The estimator that counted each message."""
        self._counted_by: set[str] = set()  # all estimators in `_estimators`
        self._step_estimators: dict[EntryId, str] = {}
        """The estimator that counted the summary and the stubs of each compaction or prune."""
        self._newest_estimator = ""
        """The estimator of the message that was appended last. Older compaction records do not name their
        own."""
        self._counting: tuple[str, CountMessage] | None = None
        """The estimator that the session uses now; None means that the journal's own counts are shown."""
        self.timeline: list[Appended | Compacted | Pruned | CompactionBegun] = []
        """The entries that `session/history` lists, oldest first."""
        self.begun = 0
        """How many compactions were started, whatever their outcome."""
        self.done: set[str] = set()
        """The ids of compactions that were committed. A compaction that still runs is not."""
        self.ended: dict[str, CompactionEnded] = {}
        """Compactions that ended without a result, by their id."""
        self._parents: dict[EntryId, EntryId | None] = {}
        self.path: list[EntryId] = []
        """The ids of the entries from the root to the leaf."""
        self.pin_marks: dict[EntryId, bool] = {}
        """For each message that `session/pin` named, whether it was last pinned or unpinned. For other
        messages, their `meta` decides (`pins.py`)."""
        self.model = ModelSet(at=0.0, model=None)
        self.prompts = 0
        """How many prompts the daemon's own loop has been given."""
        self.queued: dict[str, Raw] = {}
        """The prompts that wait, by turn, oldest first."""
        self.redacted: set[EntryId] = set()
        """Messages whose contents were replaced by a mark."""
        self.takes_snapshots = False
        self.snapshots: list[Snapshot] = []
        """The snapshots, oldest first. A redaction drops the earlier ones, because they may contain the
        secret too."""
        self.rejected: Rejected | None = None
        """The last refusal of a request as too large by the current model."""
        self.sighting: Rejected | None = None
        """The last doubtful refusal by the current model, if no other refusal named a window after it."""
        self.system_prompt: str | None = None
        self.tools: tuple[Raw, ...] = ()
        self.title: str | None = None
        self.given: dict[str, Raw] = {}
        """The client's `compaction` object of each layer, `start` and `configure`."""
        self.fixed = (0, 0)
        """The estimated tokens of (system prompt, tools)."""
        self.epoch = 1
        self.view_epoch = 1
        """The epoch at which the view's messages last changed other than by an append, or the model last
        changed."""
        self.billing = Billing()
        self.usage_log = UsageLog()
        self.unused_summary_cost = 0.0
        """What models' summaries cost that were not used, in US dollars."""
        self.rhythm = Rhythm()
        self.pauses = Pauses()
        self.last_report: UsageReported | None = None
        self.reported_window: int | None = None
        self.base: int | None = None
        """The input of the last usage report, cache included; None if no report has come since the view or
        the model last changed."""
        self.trailing = 0
        """The tokens of everything after the last reported request, its answer included."""
        self.calibrator = Calibrator()
        self.items: list[Item] = []
        self.tail_from = self.items_tokens = 0
        self.kept = ViewCache()
        """The cache of what the next plan of this view can reuse."""
        self._first_title: str | None = None
        self._seeks_title = True
        self._view: View | None = None

    @property
    def leaf(self) -> EntryId | None:
        """The entry that the next entry follows; None if there is none."""
        return self.path[-1] if self.path else None

    @property
    def next_id(self) -> EntryId:
        """The id of the next message, compaction, prune or reduced output."""
        return f"e{len(self._parents) + len(self.outputs.entries) + 1}"

    @property
    def shown_title(self) -> str | None:
        """The title that was set; otherwise the first one in a user's message that says something."""
        return self.title or self._first_title

    @property
    def last_prompt_tokens(self) -> int:
        """The input of the last report of this epoch, cache included; 0 if there is none."""
        return self.base or 0

    @property
    def estimated_size(self) -> int:
        """The estimate of the whole request: system prompt, tools and messages, without repairs."""
        return self.items_tokens + self.fixed[0] + self.fixed[1]

    @property
    def size(self) -> int:
        """The current context size: base + trailing; without a report, the estimate of the whole request."""
        if self.base is None:
            return self.estimated_size
        if self.trailing >= 0:
            return self.base + self.trailing
        return size_without(self.base, -self.trailing, self.estimated_size)

    def estimated_after(self, marker: Undone | Redone) -> int:
        """Return the value that `estimated_size` would have if `marker` were applied. O(path)."""
        items, _ = self._show(self.in_force.steps_after(marker))
        return sum([item.tokens for item in items]) + sum(self.fixed)

    def view(self) -> View:
        """Return the view, which has the messages of the next request. It is cached until an entry changes
        it."""
        if self._view is None:
            items, start = tuple(self.items), self.tail_from
            self._view = View(items=items, tail_from=start, tokens=self.items_tokens, epoch=self.epoch)
        return self._view

    def has_entry(self, entry_id: EntryId) -> bool:
        """Return whether a message, compaction or prune with this id exists on any branch."""
        return entry_id in self._parents

    def first_after(self, entry_id: EntryId) -> EntryId | None:
        """Return the first message on the path after the entry; None if there is no such message."""
        start = entry_index(self.path, entry_id) + 1
        return next((i for i in self.path[start:] if i in self.originals), None)

    def messages_behind(self, compaction_id: str) -> tuple[EntryId, ...] | None:
        """Return the messages that a compaction summarised or a prune shortened; None if no compaction or
        prune has this id."""
        step = next((s for s in self.steps.values() if s.compaction_id == compaction_id), None)
        if step is None:
            return None
        if isinstance(step, Pruned):
            return tuple(stub.entry_id for stub in step.stubs)
        line = line_to(self._parents, step.id)
        end = line.index(step.first_kept) if step.first_kept in line else len(line) - 1
        return tuple(i for i in line[:end] if i in self.originals and i not in step.pinned)

    def pinned_by_id(self) -> frozenset[EntryId]:
        """Return the messages that `session/pin` pinned and did not unpin."""
        return frozenset(entry_id for entry_id, is_on in self.pin_marks.items() if is_on)

    def compactions(self) -> tuple[Compacted, ...]:
        """Return the compactions that are in force (not undone, on the current branch), oldest first."""
        return tuple(step for step in self.in_force.steps if isinstance(step, Compacted))

    def earlier_summaries(self) -> tuple[Item, ...]:
        """Return the summaries in force that no message precedes: those with which an imported file began.
        O(compactions)."""
        first = next((i for i in self.path if i in self.originals), None)
        before = frozenset(self.path[: self.path.index(first)] if first is not None else self.path)
        return tuple(
            Item(entry_id=step.id, body=summary_message(step), tokens=step.summary_tokens, kind="summary")
            for step in self.compactions()
            if step.id in before
        )

    def path_items(self, start: int = 0) -> list[Item]:
        """Return the original messages of the path from index `start` on, compacted or not. O(path from
        there)."""
        if start == 0 and len(self.path) == len(self._parents):  # there are no branches
            return list(self.originals.values())
        return [self.originals[i] for i in self.path[start:] if i in self.originals]

    def path_items_after(self, entry_id: EntryId | None) -> list[Item] | None:
        """Return the original messages of the path after this entry, or None if the entry is not on the path.
        O(entries after it)."""
        found: list[Item] = []
        for at in reversed(self.path):
            if at == entry_id:
                return found[::-1]
            item = self.originals.get(at)
            if item is not None:
                found.append(item)
        return found[::-1] if entry_id is None else None

    def apply(self, entry: Entry, message: Message | None = None) -> None:
        """Apply `entry` to the state. `message` is the decoded message of an `Appended`, if the caller has
        it. Otherwise it is decoded on first use, so errors in it may appear late."""
        match entry:
            case Appended():
                self._append(entry, message)
            case UsageReported():
                self._report(entry)
            case Compacted() | Pruned():
                self._step(entry)
            case Undone():
                self.in_force.undo(entry.target)
                self.usage_log.note("messages", entry.epoch)
                self._change_view(entry.epoch)
            case Redone():
                self.in_force.redo(entry.target)
                self.usage_log.note("messages", entry.epoch)
                self._change_view(entry.epoch)
            case Branched():
                self._branch(entry)
            case Queued():
                self.prompts += 1
                self.queued[entry.turn_id] = entry.message
            case Unqueued():
                self.queued.pop(entry.turn_id, None)
            case Rejected():
                self.rejected = entry
                if entry.limit is not None:
                    self.sighting = entry if entry.doubtful else None
            case ModelSet():
                self.usage_log.note_model(self.model, entry)
                self.model, self.rejected, self.reported_window = entry, None, None
                self.sighting = None
                self.rhythm.note_model()
                self.pauses.note_change()
                if entry.epoch != self.epoch:
                    self._forget_base(entry.epoch)
            case SettingsSet():
                self._set(entry)
            case PinSet():
                self.pin_marks.update(dict.fromkeys(entry.entry_ids, entry.pinned))
            case CompactionBegun():
                self.begun += 1
                self.timeline.append(entry)
            case CompactionEnded():
                self.ended[entry.compaction_id] = entry
                self.usage_log.add_ended(entry)
                self.unused_summary_cost += entry.summary_cost or 0.0
            case Redacted():
                self.redacted.update(entry.entry_ids)
                self.snapshots.clear()
                self.usage_log.note("messages", entry.epoch)
                self._forget_base(entry.epoch)
            case Snapshot():
                self.snapshots.append(entry)
            case Reduced():
                self.outputs.add(entry)
            case ReductionObserved():
                self.outputs.note_observed(entry)
            case Opened():
                self.opened = entry

    def release(self) -> None:
        """Free everything when the session is closed."""
        self.items.clear()
        self.timeline.clear()
        self._view, self.kept = None, ViewCache()
        self.originals.clear()
        self.outputs.release()

    def replace_item(self, at: int, item: Item) -> None:
        """Replace the view's message at index `at`, and its original, by `item`, which must be equal."""
        self.items[at] = self.originals[item.entry_id] = item
        self._view = None

    def recount(self, estimator: str, count: CountMessage) -> None:
        """Count again, with `count`, every message, summary and stub that another estimator than `estimator`
        counted. This is needed after a change of model or settings. O(messages counted by another estimator).
        The epoch stays. A replay of the journal gives the same estimates."""
        others = self._counted_by - {estimator}
        foreign = [i for i, name in self._estimators.items() if name in others] if others else []
        for entry_id in foreign:
            item = self.originals[entry_id]
            self.originals[entry_id] = msgspec.structs.replace(item, tokens=count(item.message))
            self._estimators[entry_id] = estimator
        self._counted_by = {estimator}
        is_replayed, self._counting = self._counting is None, (estimator, count)
        if foreign or (is_replayed and self._foreign_steps(estimator)):
            report, items = self.last_report, self.items
            self._rebuild()
            if self.base is not None and report and report.entry_id:
                (_, was), (answer, came) = (tokens_behind(i, report.entry_id) for i in (items, self.items))
                self.trailing += came - was + self.calibrator.recount(answer)

    def _foreign_steps(self, estimator: str, steps: Iterable[ViewStep] | None = None) -> frozenset[EntryId]:
        """Return which of `steps` (by default those in force) have summaries and stubs that another estimator
        than `estimator` counted."""
        steps, found = self.in_force.steps if steps is None else steps, self._step_estimators
        return frozenset(step.id for step in steps if found[step.id] != estimator)

    def _append(self, entry: Appended, message: Message | None) -> None:
        entry_id, tokens, source = entry.id, entry.tokens[0], entry.message
        item = Item(
            entry_id=entry_id,
            body=LazyMessage(source, self._decode, message),
            tokens=tokens,
            source=source,
            read=entry.read,
            modified=entry.modified,
            model=self.model.model,
        )
        self.originals[entry_id] = item
        self.times[entry_id] = entry.at
        self._estimators[entry_id] = self._newest_estimator = entry.tokens[1]
        self._counted_by.add(entry.tokens[1])
        self.timeline.append(entry)
        if entry.client_id is not None:
            self.clients[entry.client_id] = entry_id
        self._parents[entry_id] = self.outputs.before(entry.parent)
        self.outputs.note_appended(entry, self.path)
        self.path.append(entry_id)
        if self._seeks_title:
            self._seek_title(item)
        self.items.append(item)
        self.kept.take_in(self.items)
        self.items_tokens += tokens
        self.trailing += tokens
        self.calibrator.note_counted(entry.tokens[1], entry_id)
        self._view = None

    def _report(self, entry: UsageReported) -> None:
        usage = entry.usage
        self.billing.add(usage)
        if entry.summary_cost is None:
            self.usage_log.add(entry, self.model)
        else:
            self.unused_summary_cost += entry.summary_cost
            self.usage_log.add_summary(usage, entry.model, entry.summary_cost or None)
        self.reported_window = usage.context_window or self.reported_window
        size = context_size(usage)
        if size and not entry.is_side and entry.summary_cost is None:
            self.pauses.note_request(entry.at, size - usage.cache_read_tokens)
        if not entry.is_base or entry.epoch != self.epoch:
            return
        last, self.last_report = self.last_report, entry
        sent = None if self.base is None or last is None else sent_size(last.usage)
        before = (sent, self.trailing)
        self.base = context_size(usage)
        self.rhythm.note_request(self.base, entry.at)
        self.trailing = max(0, usage.output_tokens - usage.reasoning_tokens) if entry.reported_output else 0
        if entry.entry_id is None:
            self.calibrator.forget()
            return
        answer, came = tokens_behind(self.items, entry.entry_id)
        self.trailing += came if entry.reported_output else came + (answer or 0)
        self.calibrator.note_report(
            entry, self.model.model, before, answer, self.trailing, self.estimated_size
        )

    def _step(self, entry: ViewStep) -> None:
        self.in_force.add(entry)
        self.usage_log.add_step(entry)
        self._step_estimators[entry.id] = entry.estimator or self._newest_estimator
        if entry.compaction_id is not None:
            self.done.add(entry.compaction_id)
        self.timeline.append(entry)
        self._parents[entry.id] = self.outputs.before(entry.parent)
        self.path.append(entry.id)
        is_prune = isinstance(entry, Pruned)
        self._change_view(entry.epoch, is_prune=is_prune)

    def _branch(self, entry: Branched) -> None:
        self.path = line_to(self._parents, entry.entry_id)
        self.in_force.branch(self.path)
        self.usage_log.note("messages", entry.epoch)
        self.kept = ViewCache()
        self._change_view(entry.epoch)

    def _set(self, entry: SettingsSet) -> None:
        if entry.compaction != NULL:
            self.given[entry.layer] = entry.compaction
        epoch = self.epoch if entry.epoch is None else entry.epoch
        if entry.system_prompt is not None and entry.system_prompt != (self.system_prompt or ""):
            self.usage_log.note("system", epoch)
        if entry.tools is not None and entry.tools != self.tools:
            self.usage_log.note("tools", epoch)
        if entry.system_prompt is not None:
            self.system_prompt = entry.system_prompt
        if entry.tools is not None:
            self.tools = entry.tools
        if entry.title is not None:
            self.title = entry.title
        if entry.snapshots is not None:
            self.takes_snapshots = entry.snapshots
        if entry.epoch is not None:
            self.epoch, self._view = entry.epoch, None
        if entry.fixed_tokens is not None:
            # A changed system prompt or tool list adds the difference of the estimates to the trailing size
            # (docs/dev/behaviour.md, "Tokens").
            self.trailing += sum(entry.fixed_tokens) - sum(self.fixed)
            self.fixed = entry.fixed_tokens

    def _forget_base(self, epoch: int) -> None:
        self.epoch = self.view_epoch = epoch
        self.base, self.trailing = None, 0
        self.calibrator.forget()
        self.outputs.note_view_changed()
        self._view = None

    def _change_view(self, epoch: int, *, is_prune: bool = False) -> None:
        self._forget_base(epoch)
        self._rebuild()
        self.pauses.note_change()
        if is_prune:
            self.rhythm.note_prune()
        else:
            self.rhythm.note_change(self.estimated_size)

    def _rebuild(self) -> None:
        self.items, self.tail_from = self._show(self.in_force.steps)
        self.items_tokens = sum([item.tokens for item in self.items])
        self._view, self.kept = None, ViewCache(self.kept.said)

    def _show(self, steps: tuple[ViewStep, ...]) -> tuple[list[Item], int]:
        now = self._counting
        recount = None if now is None else Recount(self._foreign_steps(now[0], steps), now[1])
        return build_view(steps, self.path, self.originals, recount)

    def _seek_title(self, item: Item) -> None:
        """Use the item's message for the title, if no earlier message gave one that says something."""
        found = title_of(item.message)
        if found is None:
            return
        says_more = not says_little(found)
        if self._first_title is None or says_more:
            self._first_title = found
        # The search ends, because it decodes every message.
        self._seeks_title = not says_more and len(self.items) < MAX_TITLE_MESSAGES


def size_without(size: int, removed: int, left: int) -> int:
    """Return the size that remains when `removed` tokens are removed from a reported `size` and an estimated
    `left` tokens stay.

    `removed` is an estimate and may exceed the reported size. So at most the same share is subtracted from
    the size as from the estimate, and the size stays above 0 while anything is left.
    """
    return size - min(removed, size * removed // max(1, removed + left))


def replay(entries: Iterable[Entry], decode: Decode) -> SessionState:
    """Return the state after `entries`, oldest first. Decode only the messages that give the title, pins and
    stubs. Raise what `decode` raises."""
    state = SessionState(decode)
    for entry in entries:
        state.apply(entry)
    return state
