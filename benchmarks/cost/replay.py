"""Replays a recorded session under a policy: the messages come one by one, and each answer of the agent is a
request. Compactions are the engine's own (`extract`, in process).

The rule for losses: if an answer uses a fact (`facts.py`) that an earlier message had and that the context no
longer contains, the agent reads it again first. It repeats the newest call whose result had the fact, in an
extra request. The repeated result stays in the context until the next compaction, with all its facts, so each
fact is paid once until it is dropped again.

A replay may also reduce tool outputs when they enter the context (`Entrance`). Then the rule holds for what
was left out, too: the agent expands the whole original.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec
from msgspec import Raw, Struct

from benchmarks.cost.bill import Sent
from benchmarks.cost.facts import Fact, Facts
from benchmarks.retention.ours import message_of, text_of
from benchmarks.retention.records import SUMMARY, Call, Record
from compactd.compaction.driver import drive
from compactd.core.budget.budget import RequestSize, Window, compute_budget
from compactd.core.budget.settings import merge
from compactd.core.cost.rhythm import Rhythm
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Appended, Compacted
from compactd.core.history.state import SessionState
from compactd.core.planning.plan import CompactRequest, Fixed, Inputs, plan
from compactd.core.summary.compaction import Draft
from compactd.core.summary.input import SummaryInput
from compactd.core.tokens.counting import message_tokens
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult

HEAD_TOKENS = 15_000
"""System prompt and tools. Recordings do not show them; Claude Code's have 15,000 to 20,000 tokens (usage of
the first requests of the shared recordings, 2026-11)."""
CALL_TOKENS = 100
"""The output of an extra request: one call."""
OWN_TAIL_TOKENS = 20_000
"""What pi keeps word for word at a compaction of its own (its setting `keepRecentTokens`)."""

COUNTER = counter_for("auto", "o200k_base", "openai/gpt-4o")


class Moment(Struct, frozen=True, kw_only=True):
    """What a policy knows before a request. Sizes are tokens."""

    size: int
    head: int
    newest_request: int
    """The newest message of the user."""
    rhythm: Rhythm
    gap_s: float | None
    grown: int
    """How much came since the last compaction."""


class Policy(Protocol):
    """Decides when to compact."""

    name: str

    @property
    def is_own(self) -> bool:
        """Whether the agent's own recorded compactions are used, and no others."""
        ...

    def target(self, moment: Moment) -> int | None:
        """Return to how many tokens to compact before this request; None if not."""
        ...


class Entrance(Protocol):
    """Decides what the context shows of a tool output."""

    def show(self, entry_id: str, output: Record, call: Call | None) -> str:
        """Return the text to show of an output that enters the context as the entry `entry_id`."""
        ...

    def begin_again(self, outputs: Iterable[tuple[str, Record, Call | None]]) -> None:
        """Take the outputs that the context shows after a compaction, as it shows them."""
        ...


class Removal(Struct, frozen=True, array_like=True):
    """What one compaction removed, and what was read again because of it."""

    before: int
    after: int
    reread: int
    rereads: int


class Outcome(Struct, frozen=True):
    """A replayed session."""

    sent: tuple[Sent, ...]
    removals: tuple[Removal, ...]


def replay(
    name: str, records: Sequence[Record], facts: Facts, policy: Policy, entrance: Entrance | None = None
) -> Outcome:
    """Return the requests of a session under a policy. O(messages), plus the compactions. Without `entrance`,
    the context shows all tool outputs whole."""
    running = _Replay(name, facts, policy, entrance)
    for record in records:
        running.take(record)
    running.settle()
    return Outcome(tuple(running.sent), tuple(running.removals))


class _Replay:
    def __init__(self, name: str, facts: Facts, policy: Policy, entrance: Entrance | None) -> None:
        self.is_pi = name.startswith("pi-")
        self.facts, self.policy, self.entrance = facts, policy, entrance
        self.sent: list[Sent] = []
        self.removals: list[Removal] = []
        self.rhythm = Rhythm()
        self.state = SessionState(decode_message)
        self.state.fixed = (HEAD_TOKENS, 0)
        self.cache = FactCache()
        self.settings = merge([])
        self.records: dict[str, Record] = {}
        """The record of each entry."""
        self.calls: dict[str, Call] = {}
        self.shown_records: dict[str, Record] = {}
        """The record of each entry as the context shows it."""
        self.facts_of: dict[str, frozenset[Fact]] = {}
        """The facts of each entry."""
        self.shown_facts: dict[str, frozenset[Fact]] = {}
        """The facts that the context shows of each entry."""
        self.known: dict[Fact, str] = {}
        """The newest message that has each fact."""
        self.shown: set[Fact] = set()
        """The facts in the context."""
        self.loose = ""
        """Texts of the context that are no whole messages: summaries and shortened messages."""
        self.carried: dict[str, int] = {}
        """The messages that were read again and are in the context, and their tokens."""
        self.last_size = HEAD_TOKENS
        self.unchanged = 0
        self.last_carried = 0
        self.last_time: float | None = None
        self.newest_time: float | None = None
        self.newest_request = 0
        self.reread = self.rereads = 0
        self.after_compaction = HEAD_TOKENS
        self.own: tuple[int, int] = (0, 0)

    def take(self, record: Record) -> None:
        if record.role == "system":
            return
        if record.kind == SUMMARY:
            if self.policy.is_own:
                self._compact_as_recorded(record)
            return
        if record.role == "assistant":
            self._request(record)
            return
        self.newest_time = record.time or self.newest_time
        entry = self._append(record)
        if record.role == "user" and not record.kind:
            self.newest_request = self.state.originals[entry].tokens

    def _append(self, record: Record, *, is_whole: bool = False) -> str:
        entry_id = self.state.next_id
        shown = record
        if self.entrance is not None and record.role == "tool" and not is_whole:
            text = self.entrance.show(entry_id, record, self.calls.get(record.call_id))
            shown = record if text == record.text else msgspec.structs.replace(record, text=text)
        message = message_of(shown)
        tokens = message_tokens(message, COUNTER)
        source = Raw(encode_message(message))
        self.state.apply(
            Appended(
                id=entry_id,
                at=record.time or 0.0,
                tokens=(tokens, COUNTER.name),
                message=source,
                parent=self.state.leaf,
            ),
            message,
        )
        self.records[entry_id], self.shown_records[entry_id] = record, shown
        self.calls.update((call.call_id, call) for call in record.calls)
        found = self.facts_of[entry_id] = self.facts.of(record)
        self.shown_facts[entry_id] = found if shown is record else self.facts.of(shown)
        self.known.update(dict.fromkeys(found, entry_id))
        self.shown |= self.shown_facts[entry_id]
        return entry_id

    def _request(self, record: Record) -> None:
        gap = None
        if self.last_time is not None and self.newest_time is not None:
            gap = max(0.0, self.newest_time - self.last_time)
        compacted, summary_output = self.own
        self.own = (0, 0)
        size = self.state.estimated_size
        moment = Moment(
            size=size,
            head=HEAD_TOKENS,
            newest_request=self.newest_request,
            rhythm=self.rhythm,
            gap_s=gap,
            grown=size - self.after_compaction,
        )
        target = self.policy.target(moment)
        if target is not None and self._compact(target):
            compacted = size
        uses = [fact for fact in self.facts.of(record) if fact in self.known]
        lost = [fact for fact in uses if fact not in self.shown and not self.facts.is_in(fact, self.loose)]
        sources = sorted({self.known[fact] for fact in lost}, key=_number, reverse=True)
        missing = set(lost)
        for source in sources:
            if missing.isdisjoint(self.facts_of[source]):
                continue
            missing -= self.facts_of[source]
            self._send(gap, CALL_TOKENS, compacted=compacted, summary_output=summary_output, is_reread=True)
            gap, compacted, summary_output = (None if gap is None else 0.0), 0, 0
            self._read_again(source)
        entry = self.state.next_id
        self._send(
            gap,
            message_tokens(message_of(record), COUNTER),
            compacted=compacted,
            summary_output=summary_output,
            uses=len(uses),
            lost=len(lost),
        )
        self._append(record)
        self.rhythm.note_request(self.state.estimated_size - self.state.originals[entry].tokens)
        self.last_time = record.time or self.newest_time or self.last_time
        self.newest_time = self.last_time

    def _send(self, gap: float | None, output: int, **more: int | bool) -> None:
        size = self.state.estimated_size
        carried = sum(self.carried.values())
        self.sent.append(
            Sent(
                size=size,
                unchanged=self.unchanged,
                output=output,
                gap_s=gap,
                carried=carried,
                new_carried=max(0, carried - self.last_carried),
                **more,
            )
        )
        self.unchanged, self.last_carried = size, carried

    def _read_again(self, source: str) -> None:
        """Append a call and its result, with what the message `source` had."""
        record = self.records[source]
        number = len(self.records)
        is_call = record.role == "tool" and self.shown_records[source] is record
        known = self.calls.get(record.call_id) if is_call else None
        name = known.name if known is not None else "session_expand"
        given = known.arguments if known is not None else {"entry_id": source}
        call = Call(f"again_{number}", name, given)
        text = record.text if record.role == "tool" else record.rendered
        asked = Record(at=0, role="assistant", calls=(call,), time=record.time)
        got = Record(at=0, role="tool", text=text, call_id=call.call_id, tool=name, time=record.time)
        for part in (asked, got):
            entry_id = self._append(part, is_whole=True)
            tokens = self.state.originals[entry_id].tokens
            self.carried[entry_id] = tokens
            self.reread += tokens
        self.rereads += 1
        # The facts of the source count as known from the new message, which may have fewer of them.
        self.shown |= self.facts_of[source]

    def _compact(self, target: int) -> bool:
        size = self.state.estimated_size
        draft = None
        while draft is None and target < size:
            draft, target = self._draft(target), target * 5 // 4
        if draft is None:
            return False
        entry_id = self.state.next_id
        self._apply(
            Compacted(
                id=entry_id,
                at=0.0,
                compaction_id=entry_id,
                epoch=self.state.epoch + 1,
                summary=draft.summary,
                summary_tokens=draft.summary_tokens,
                result=msgspec.structs.replace(draft.result, summary=""),
                parent=self.state.leaf,
                first_kept=draft.first_kept,
                pinned=draft.pinned,
                stubs=draft.stubs,
                read_files=draft.result.read_files,
                modified_files=draft.result.modified_files,
                estimator=COUNTER.name,
            )
        )
        return True

    def _draft(self, target: int) -> Draft | None:
        state = self.state
        size = state.estimated_size
        inputs = Inputs(
            view=state.view(),
            originals=tuple(state.path_items()),
            fixed=Fixed(*state.fixed),
            settings=self.settings.settings,
            standing=compute_budget(
                self.settings,
                Window(window=1_000_000, confidence="fact", source="registry"),
                RequestSize(estimated=size),
            ),
            request=CompactRequest(trigger="threshold", target_tokens=target, strategy="extract", force=True),
            counter=COUNTER,
            known=state.kept.snapshot(state.items, state.path_items, len(state.path)),
        )
        try:
            made = plan(inputs)
        except CannotFit:
            return None
        if not hasattr(made, "strategies"):
            return None
        outcome = drive(SummaryInput(plan=made, facts=self.cache))
        return outcome if isinstance(outcome, Draft) else None

    def _compact_as_recorded(self, record: Record) -> None:
        """Replace the context by the summary that the agent's own compaction made."""
        state = self.state
        size, kept, first = state.estimated_size, 0, None
        if self.is_pi:
            for item in reversed(state.items):
                kept += item.tokens
                if kept > OWN_TAIL_TOKENS:
                    break
                if item.message.role != "tool":
                    first = item.entry_id
        entry_id = state.next_id
        tokens = COUNTER.count(record.text)
        self.own = (self.own[0] or size, tokens)
        self._apply(
            Compacted(
                id=entry_id,
                at=0.0,
                compaction_id=entry_id,
                epoch=state.epoch + 1,
                summary=record.text,
                summary_tokens=tokens,
                result=CompactionResult(compacted=True, trigger="threshold"),
                parent=state.leaf,
                first_kept=first,
                estimator=COUNTER.name,
            )
        )

    def _apply(self, entry: Compacted) -> None:
        before = self.state.estimated_size
        self.state.apply(entry)
        items = self.state.items
        whole = [item for item in items if item.kind == "message" and item.entry_id in self.facts_of]
        loose = [item for item in items if item not in whole]
        self.loose = text_of([item.message for item in loose])
        self.shown = set(self.facts.of_text(self.loose)).union(
            *(self.shown_facts[item.entry_id] for item in whole)
        )
        if self.entrance is not None:
            shown = [(item.entry_id, self.shown_records[item.entry_id]) for item in whole]
            self.entrance.begin_again(
                (entry_id, record, self.calls.get(record.call_id))
                for entry_id, record in shown
                if record.role == "tool"
            )
        self.carried = {i.entry_id: i.tokens for i in whole if i.entry_id in self.carried}
        self.unchanged = HEAD_TOKENS
        self.last_carried = 0
        self.after_compaction = self.state.estimated_size
        self.settle()
        self.removals.append(Removal(before, self.after_compaction, 0, 0))
        self.rhythm.note_change(self.after_compaction)

    def settle(self) -> None:
        """Add what was read again since the last compaction to that one."""
        if self.removals:
            last = self.removals[-1]
            self.removals[-1] = msgspec.structs.replace(last, reread=self.reread, rereads=self.rereads)
        self.reread = self.rereads = 0


def _number(entry_id: str) -> int:
    return int(entry_id[1:])
