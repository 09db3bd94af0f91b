"""Collect what a compaction works with: its inputs (`CompactionWork`), and the messages sorted into those
that are removed and those that stay (`Material`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile

from msgspec import Struct

from compactd.core.extract.facts import FactCache
from compactd.core.extract.file_operations import FileLedger, FileUse, ledger_of, reported_use, use_of
from compactd.core.history.entries import Item, with_stub
from compactd.core.history.message_kinds import newest_request
from compactd.core.planning.plan import Plan
from compactd.core.planning.request import Inputs
from compactd.core.summary.message import frame_body
from compactd.core.text.summary_format import LAYOUTS, SECTIONS, Layout
from compactd.core.text.tool_results import text_of_result
from compactd.core.tokens.counting import compact_arguments
from compactd.protocol.messages import Document, Text, ToolCall, ToolResult


class CompactionWork(Struct, frozen=True, kw_only=True):
    """Everything except the plan that is needed to carry the plan out."""

    inputs: Inputs
    originals: tuple[Item, ...]
    """Every message of the session's current branch as it was appended, oldest first, compacted or not.
    Summaries are made from these, so that repeated compactions lose nothing."""
    working_dir: str | None = None
    """The session's working folder; None if the client named none."""
    cache: FactCache | None = None
    """The session's cache of facts about its messages."""
    summariser_window: int | None = None
    """The context window of the model that summarises, in tokens; None if it is not known."""
    check: Callable[[str, float], None] | None = None
    """A function that is called at each step, with the step's name and the share of the work that is done. It
    may raise an exception to cancel the compaction."""

    def at(self, phase: str, fraction: float) -> None:
        """Report the step `phase` and the share of the work that is done. Raise what `check` raises."""
        if self.check is not None:
            self.check(phase, fraction)


class Material(Struct, frozen=True, kw_only=True, dict=True):
    """The messages of a compaction: those that are removed, and those that stay."""

    gone: tuple[Item, ...]
    """The removed messages: originals that the new view does not show word for word."""
    history: tuple[Item, ...]
    """The messages that a summariser reads: those before the tail, without the prefix, as originals in order.
    Pinned messages are included, because a summary of work needs the request that the work was done for."""
    prefix: tuple[Item, ...]
    """The beginning of the split turn, which gets a summary of its own; empty if no turn is split."""
    stays: tuple[Item, ...]
    """The items of the new view, without the new summary."""
    merged: Item | None
    """The earlier summary that is merged into the new one; None if there is none."""
    use_of: Callable[[Item], FileUse]
    """A function that finds which files a message reads and modifies."""

    @cached_property
    def files(self) -> FileLedger:
        """The files that the removed messages use, that an earlier summary lists, and that the client
        reported with any message. The client's reports count for the whole session (docs/specs.md,
        "klaude-code.md", `file_tracker`). O(messages)."""
        gone = self.gone if self.merged is None else (self.merged, *self.gone)
        return ledger_of((*map(self.use_of, gone), *map(reported_use, self.stays)))

    @property
    def read(self) -> tuple[str, ...]:
        """The files of `files` that were read but not changed."""
        return self.files.read

    @property
    def modified(self) -> tuple[str, ...]:
        """The files of `files` that were changed."""
        return self.files.modified


def material_of(work: CompactionWork, made: Plan) -> Material:
    """Return the messages of `work`, divided into those that the plan `made` removes and those that stay.
    O(messages)."""
    view = {item.entry_id: item for item in work.inputs.view.items}
    originals = work.originals or work.inputs.view.items
    whole = {item.entry_id: item for item in originals}
    stubs = {stub.entry_id: stub for stub in made.stubs}
    stays = tuple(
        with_stub(view[entry], stubs[entry]) if entry in stubs else view[entry]
        for entry in (*made.pinned, *made.kept)
    )
    verbatim = {item.entry_id for item in stays if item.kind == "message"}
    # Messages that were appended after the plan was made follow the tail. They are not removed, and this
    # compaction does not count them. The sets are built entry by entry, because one set operation for all
    # entries would hold the interpreter lock (50 ms for 200,000 messages, 2026-11).
    planned = {entry for part in (made.removed, made.pinned, made.kept) for entry in part}
    later = {entry for entry in view if entry not in planned and entry != made.merged}
    gone = tuple(i for i in originals if i.entry_id not in verbatim and i.entry_id not in later)
    merged = None if made.merged is None else view[made.merged]
    prefix = frozenset(made.prefix)
    # If only the turn's beginning is removed, the pinned messages before it need no summary.
    older = () if prefix.issuperset(made.removed) else takewhile(lambda entry: entry != made.first_kept, view)
    return Material(
        gone=gone,
        history=tuple(whole.get(e, view[e]) for e in older if e in planned and e not in prefix),
        prefix=tuple(whole.get(entry, view[entry]) for entry in made.prefix),
        stays=stays,
        merged=merged,
        use_of=use_of if work.cache is None else work.cache.files,
    )


def layout_of(work: CompactionWork) -> Layout:
    """Return the headings that the profile's prompt asks a model to use."""
    return LAYOUTS.get(work.inputs.settings.rules.prompt, SECTIONS)


def frame_summary(work: CompactionWork, made: Plan, material: Material, body: str) -> str:
    """Return the whole summary message: `body` with the lead, the file lists and the end line around it.
    O(text + files)."""
    return frame_body(
        work.inputs.settings.rules,
        body,
        messages=made.messages_removed,
        read=material.read,
        modified=material.modified,
        budget_tokens=made.summary_budget,
        counter=work.inputs.counter,
    )


def request_of(stays: Sequence[Item]) -> Item | None:
    """Return the newest request among the messages that stay; None if there is none."""
    at = newest_request(stays)
    return None if at is None else stays[at]


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
