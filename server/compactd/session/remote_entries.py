"""Entries of a session that another process has written: apply them, and tell the session's clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

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
    PinSet,
    Pruned,
    Queued,
    SettingsSet,
)
from compactd.protocol.messages import (
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    ErrorInfo,
    MessageAppended,
    MessageQueued,
    ModelChanged,
    PruneEnd,
    ToolResult,
)
from compactd.session.session import Session, changes_in


class RemoteEntries:
    """Applies to `session` what other processes have written, and sends the events about it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open_compaction: CompactionBegun | None = None
        self._find_open_compaction()

    @property
    def is_compacting(self) -> bool:
        """True if a compaction has begun whose end is not among the entries."""
        return self._open_compaction is not None

    def append(self, entries: Sequence[Entry]) -> None:
        """Apply new entries, and send the events about them. O(entries)."""
        session = self._session
        for entry in entries:
            model = session.state.model.model
            # Send the event before applying the entry: it contains the context's size before the compaction.
            self._emit_entry(entry)
            session.follow((entry,))
            if isinstance(entry, ModelSet) and entry.model not in (None, model):
                session.refresh()
                window = session.budget_status().window
                session.emit(ModelChanged(model=entry.model or "", context_window=window))
            self._emit_changed(entry)
        self._emit_queued(entries)
        session.refresh()

    def replace(self, first: int, entries: Sequence[Entry]) -> None:
        """Handle a rewritten journal: a message was redacted, or the process that writes the session took
        back entries that it could not store.

        `entries` replace all entries from number `first` on. Events are sent only about entries that
        were not known before.
        """
        session, before = self._session, self._session.entries
        after = [*before[:first], *entries]
        known = count_same(before, after)
        session.entries[:] = after[:known]
        session.reload()
        self._find_open_compaction()
        self.append(after[known:])

    def _emit_entry(self, entry: Entry) -> None:
        """Send an event if the entry says that a compaction has started, or has ended without a result. Call
        this before the entry is applied, because the event contains the earlier sizes.
        """
        session, state = self._session, self._session.state
        begun = self._open_compaction
        self._note_compaction(entry)
        match entry:
            case CompactionBegun():
                session.emit(
                    CompactionStart(
                        compaction_id=entry.compaction_id,
                        trigger=entry.trigger,
                        message_count=len(state.items),
                        tokens_before=state.estimated_size,
                    )
                )
            case CompactionEnded(compaction_id=compaction_id, status=status, reason=reason):
                session.emit(_compaction_end(begun, compaction_id, status, reason))
            case _:
                pass

    def _emit_changed(self, entry: Entry) -> None:
        """Send the events about what an entry changed. Call this after the entry was applied."""
        session, state = self._session, self._session.state
        match entry:
            case Appended(id=entry_id):
                role = state.originals[entry_id].message.role
                session.emit(MessageAppended(entry_id=entry_id, role=role))
            case Compacted(compaction_id=compaction_id, summary=summary):
                done = msgspec.structs.replace(entry.shown_result, summary=summary)
                session.emit(CompactionEnd(compaction_id=compaction_id, status="completed", result=done))
            case Pruned(compaction_id=str() as compaction_id):
                # A compaction that only shortened messages. The journal has no other record of it.
                done = CompactionResult(
                    compacted=True,
                    compaction_id=compaction_id,
                    tokens_after=state.estimated_size,
                    tokens_before=state.estimated_size + entry.tokens_saved,
                    tokens_saved=entry.tokens_saved,
                    messages_before=len(state.items),
                    messages_after=len(state.items),
                    pruned_tool_results=_results_in(entry, state.originals),
                    created_at=entry.at,
                )
                session.emit(CompactionEnd(compaction_id=compaction_id, status="completed", result=done))
            case Pruned():
                session.emit(
                    PruneEnd(pruned=_results_in(entry, state.originals), tokens_saved=entry.tokens_saved)
                )
            case PinSet(entry_ids=entry_ids):
                session.emit_changed("pin", *entry_ids)
            case Branched(entry_id=entry_id):
                session.emit_changed("branch", entry_id)
            case SettingsSet():
                for what in changes_in(entry):
                    session.emit_changed(what)
            case _:
                pass

    def _emit_queued(self, entries: Sequence[Entry]) -> None:
        """Send an event for each of these entries that queued a prompt, if the prompt is still queued."""
        for entry in entries:
            if isinstance(entry, Queued) and entry.turn_id in self._session.state.queued:
                self._session.emit(MessageQueued(turn_id=entry.turn_id))

    def _find_open_compaction(self) -> None:
        self._open_compaction = None
        for entry in self._session.entries:
            self._note_compaction(entry)

    def _note_compaction(self, entry: Entry) -> None:
        match entry:
            case CompactionBegun():
                self._open_compaction = entry
            case CompactionEnded() | Compacted() | Pruned(compaction_id=str()):
                self._open_compaction = None
            case _:
                pass


def count_same(before: Sequence[Entry], after: Sequence[Entry]) -> int:
    """Return how many entries both have at the beginning. An entry that was only redacted is the same."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (old, new) in pairs if _key(old) != _key(new)), min(len(before), len(after)))


def _compaction_end(
    begun: CompactionBegun | None, compaction_id: str, status: str, reason: str
) -> CompactionEnd:
    """Return the end event of a compaction that changed nothing."""
    trigger = "manual" if begun is None else begun.trigger
    match status:
        case "skipped":
            result = CompactionResult(compacted=False, trigger=trigger, reason=reason)
            return CompactionEnd(compaction_id=compaction_id, status="skipped", result=result)
        case "cancelled":
            return CompactionEnd(compaction_id=compaction_id, status="cancelled")
        case _:
            error = ErrorInfo(code=-32603, message=reason)
            return CompactionEnd(compaction_id=compaction_id, status="failed", error=error)


def _results_in(pruned: Pruned, originals: Mapping[EntryId, Item]) -> int:
    """Return how many tool results a prune shortens. A condensed request is not counted."""
    blocks = (
        originals[stub.entry_id].message.content[at]
        for stub in pruned.stubs
        if stub.entry_id in originals
        for at, _ in stub.texts
    )
    return sum(isinstance(block, ToolResult) for block in blocks)


def _key(entry: Entry) -> tuple[type[Entry], float, object]:
    """Return a value that identifies an entry, and that a redaction of the entry's text does not change."""
    return type(entry), entry.at, getattr(entry, "id", None)
