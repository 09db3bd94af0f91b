"""Collect what the summary of a compaction is made from (`SummaryInput`): the plan, the messages that it
removes and keeps, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import takewhile

from msgspec import Struct, field

from compactd.core.constraints.constraints import Constraints
from compactd.core.extract.conversation import conversation_order
from compactd.core.extract.earlier import earlier_summaries
from compactd.core.extract.extract import ExtractSource, learn_facts
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Item, with_stub
from compactd.core.history.message_kinds import newest_request
from compactd.core.planning.plan import Plan
from compactd.core.summary.message import files_within
from compactd.core.summary.retention import FactSearch
from compactd.core.text.summary_format import LAYOUTS, NATURE, SECTIONS, Layout, file_tags
from compactd.core.text.tool_results import text_of_result
from compactd.core.tokens.counting import compact_arguments
from compactd.core.work.file_operations import FileLedger, ledger_of, reported_use
from compactd.core.work.state import WorkReader, WorkState
from compactd.protocol.messages import Document, Text, ToolCall, ToolResult


class SummaryInput(Struct, frozen=True, kw_only=True, dict=True):
    """What a compaction's summary is made from and checked against.

    Each part is computed at its first use, and then kept until `release`. So parts can be computed ahead,
    while a model writes.
    """

    plan: Plan
    facts: FactCache = field(default_factory=FactCache)
    """The session's cache of facts about its messages."""
    read_work: Callable[[], WorkState] | None = None
    """A function that returns the state of the work after the plan's messages; None to derive it from
    them."""
    working_dir: str | None = None
    """The session's working folder; None if the client named none."""
    summariser_window: int | None = None
    """The context window of the model that summarises, in tokens; None if it is not known."""
    check: Callable[[str, float], None] | None = None
    """A function that is called at each step, with the step's name and the share of the work that is done. It
    may raise an exception to cancel the compaction."""
    pause: Callable[[], None] | None = None
    """A function that is called every few milliseconds in a loop that would otherwise keep other threads from
    running."""

    def at(self, phase: str, fraction: float) -> None:
        """Report the step `phase` and the share of the work that is done. Raise what `check` raises."""
        if self.check is not None:
            self.check(phase, fraction)

    @property
    def count(self) -> Callable[[str], int]:
        """A function that returns the tokens of a text."""
        return self.plan.inputs.counter.count

    @cached_property
    def stays(self) -> tuple[Item, ...]:
        """The items of the new view, without the new summary. O(messages)."""
        plan = self.plan
        stubs = {stub.entry_id: stub for stub in plan.stubs}
        stays = {*plan.pinned, *plan.kept}
        return tuple(
            with_stub(item, stubs[item.entry_id]) if item.entry_id in stubs else item
            for item in plan.inputs.view.items
            if item.entry_id in stays
        )

    @cached_property
    def gone(self) -> tuple[Item, ...]:
        """The removed messages: originals that the new view does not show word for word. O(messages)."""
        verbatim = {item.entry_id for item in self.stays if item.kind == "message"}
        return tuple(item for item in self.plan.inputs.originals if item.entry_id not in verbatim)

    @cached_property
    def history(self) -> tuple[Item, ...]:
        """The messages that a summariser reads: those before the tail, without the prefix, as originals in
        order. Pinned messages are included, because a summary of work needs the request that the work was
        done for. O(messages)."""
        plan, prefix = self.plan, frozenset(self.plan.prefix)
        if prefix.issuperset(plan.removed):
            # If only the turn's beginning is removed, the pinned messages before it need no summary.
            return ()
        older = takewhile(lambda item: item.entry_id != plan.first_kept, plan.inputs.view.items)
        ids = {i.entry_id for i in older if i.entry_id != plan.merged and i.entry_id not in prefix}
        return tuple(item for item in plan.inputs.originals if item.entry_id in ids)

    @cached_property
    def prefix(self) -> tuple[Item, ...]:
        """The beginning of the split turn, which gets a summary of its own; empty if no turn is split."""
        prefix = frozenset(self.plan.prefix)
        return tuple(item for item in self.plan.inputs.originals if item.entry_id in prefix) if prefix else ()

    @property
    def merged(self) -> Item | None:
        """The earlier summary that is merged into the new one; None if there is none."""
        return None if self.plan.merged is None else self.plan.inputs.view.items[0]

    @cached_property
    def earlier(self) -> tuple[Item, ...]:
        """The removed summaries of messages that are not in the conversation: those with which it begins. Any
        other summary says nothing new, because its originals are there. O(summaries)."""
        inputs, stays = self.plan.inputs, {item.entry_id for item in self.stays}
        found = (*inputs.earlier, *earlier_summaries(inputs.originals))
        return tuple(item for item in found if item.entry_id not in stays)

    @cached_property
    def files(self) -> FileLedger:
        """The files that the removed messages use, that an earlier summary lists, and that the client
        reported with any message. The client's reports count for the whole session (docs/specs.md,
        "klaude-code.md", `file_tracker`). O(messages)."""
        gone = self.gone if self.merged is None else (self.merged, *self.gone)
        return ledger_of((*map(self.facts.files, gone), *map(reported_use, self.stays)))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of all originals, removed ones and those that stay."""
        return tuple([text for item in (*self.gone, *self.stays) for text in item_texts(item)])

    @cached_property
    def search(self) -> FactSearch:
        """The facts of the removed messages, looked up in those that stay. O(features of the removed messages
        + length of those that stay)."""
        # Compute the facts in the order of the conversation, so that the names in them do not depend on
        # whether the search or the extract is made first.
        learn_facts(conversation_order(self.gone, self.stays), self.facts, self.working_dir)
        stays = tuple(text for item in self.stays for text in item_texts(item))
        return FactSearch(self.gone, stays, cache=self.facts, demands=self.demands)

    @cached_property
    def source(self) -> ExtractSource:
        """The scored conversation that extracts are written from. O(features)."""
        _ = self.search  # first, because writing an extract may empty a full cache of facts
        at = newest_request(self.stays)
        return ExtractSource(
            self.gone,
            self.stays,
            request=None if at is None else self.stays[at],
            budget_tokens=self.plan.summary_budget,
            working_dir=self.working_dir,
            cache=self.facts,
            demands=self.demands,
            work=self.work,
            earlier=self.earlier,
            pause=self.pause,
        )

    @cached_property
    def work(self) -> WorkState:
        """The state of the work after the plan's messages. O(text of the messages that were not read
        before)."""
        if self.read_work is not None:
            return self.read_work()
        reader = WorkReader()
        for item in self.plan.inputs.originals:
            reader.add(item)
        return reader.state()

    @cached_property
    def demands(self) -> Constraints:
        """The user's constraints that the summary contains, and those that no longer apply."""
        return Constraints(self.plan.constraints, self.plan.superseded)

    @property
    def layout(self) -> Layout:
        """The headings that the profile's prompt asks a model to use."""
        return LAYOUTS.get(self.plan.inputs.settings.rules.prompt, SECTIONS)

    def frame(self, body: str, *, nature: bool = True) -> str:
        """Return the whole summary message: `body` with the lead, the file lists and the profile's end line
        around it. If the lists do not fit into what `body` leaves of the budget, they contain the newest
        files and a count of the others. With `nature`, a note follows the lead: it tells the model that the
        message is a record, not a request. O(text + files)."""
        rules, count = self.plan.inputs.settings.rules, self.count
        lead = f"{rules.lead}\n{NATURE}" if nature else rules.lead
        end = rules.end.format(n=self.plan.messages_removed)
        around = "\n\n".join(part for part in (lead, body, end) if part)
        room = self.plan.summary_budget - count(around) - 1
        tags = file_tags(files_within(self.files.read, self.files.modified, room, count))
        return "\n\n".join(part for part in (lead, body, tags, end) if part)

    def release(self) -> None:
        """Free everything that was computed. O(features)."""
        vars(self).clear()


def item_texts(item: Item) -> Iterator[str]:
    """Yield the texts of a message: its text blocks, documents, tool calls with their arguments, and tool
    results."""
    for block in item.message.content:
        match block:
            case Text(text=text):
                yield text
            case Document(text=str() as text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield f"{name} {compact_arguments(arguments)}"
            case ToolResult():
                yield text_of_result(block)
            case _:
                pass
