"""What a compaction works on: the originals, those of them that go, and what stays."""

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
from compactd.core.summary.message import framed
from compactd.core.text.summary_format import LAYOUTS, SECTIONS, Layout
from compactd.core.text.tool_results import text_of_result
from compactd.core.tokens.counting import compact_arguments
from compactd.protocol.messages import Document, Text, ToolCall, ToolResult


class Work(Struct, frozen=True, kw_only=True):
    """What a compaction works on."""

    inputs: Inputs
    originals: tuple[Item, ...]
    """Every message of the path as it was appended, oldest first, compacted or not: nothing wears out."""
    working_dir: str | None = None
    cache: FactCache | None = None
    """Of the session: what is known of its messages already."""
    summariser_window: int | None = None
    """Tokens; none where it is not known."""
    check: Callable[[str, float], None] | None = None
    """Called at each step with its name and the share that is done; may raise, to cancel."""

    def at(self, phase: str, fraction: float) -> None:
        """Tells how far the work is."""
        if self.check is not None:
            self.check(phase, fraction)


class Material(Struct, frozen=True, kw_only=True, dict=True):
    """What the strategies summarise."""

    gone: tuple[Item, ...]
    """Originals that the new view does not show word for word."""
    history: tuple[Item, ...]
    """What a summariser reads of what is older than the tail, without the prefix: originals in their order.
    What stays pinned is among them, as a summary of work needs the request that the work was done for."""
    prefix: tuple[Item, ...]
    stays: tuple[Item, ...]
    """Items of the new view, without the summary."""
    merged: Item | None
    use_of: Callable[[Item], FileUse]
    """What a message says of files."""

    @cached_property
    def files(self) -> FileLedger:
        """The files of what goes, those that an earlier summary names among them, and all that the client
        reported: its tracker is the session's (docs/specs.md, "klaude-code.md", `file_tracker`).
        O(messages)."""
        gone = self.gone if self.merged is None else (self.merged, *self.gone)
        return ledger_of((*map(self.use_of, gone), *map(reported_use, self.stays)))

    @property
    def read(self) -> tuple[str, ...]:
        """Files that were read and not changed."""
        return self.files.read

    @property
    def modified(self) -> tuple[str, ...]:
        """Files that were changed."""
        return self.files.modified


def material_of(work: Work, made: Plan) -> Material:
    view = {item.entry_id: item for item in work.inputs.view.items}
    originals = work.originals or work.inputs.view.items
    whole = {item.entry_id: item for item in originals}
    stubs = {stub.entry_id: stub for stub in made.stubs}
    stays = tuple(
        with_stub(view[entry], stubs[entry]) if entry in stubs else view[entry]
        for entry in (*made.pinned, *made.kept)
    )
    verbatim = {item.entry_id for item in stays if item.kind == "message"}
    # What was appended after the plan was made follows the tail: it neither goes nor is counted. One by one:
    # sets of all of it at once would hold the interpreter, 50 ms for 200,000 messages (2026-11).
    planned = {entry for part in (made.removed, made.pinned, made.kept) for entry in part}
    later = {entry for entry in view if entry not in planned and entry != made.merged}
    gone = tuple(i for i in originals if i.entry_id not in verbatim and i.entry_id not in later)
    merged = None if made.merged is None else view[made.merged]
    prefix = frozenset(made.prefix)
    # Where all that goes is the turn's beginning, what is pinned before it needs no question of its own.
    older = () if prefix.issuperset(made.removed) else takewhile(lambda entry: entry != made.first_kept, view)
    return Material(
        gone=gone,
        history=tuple(whole.get(e, view[e]) for e in older if e in planned and e not in prefix),
        prefix=tuple(whole.get(entry, view[entry]) for entry in made.prefix),
        stays=stays,
        merged=merged,
        use_of=use_of if work.cache is None else work.cache.files,
    )


def layout_of(work: Work) -> Layout:
    """The headings that the profile's prompt asks a model for."""
    return LAYOUTS.get(work.inputs.settings.rules.prompt, SECTIONS)


def framed_by(work: Work, made: Plan, material: Material, body: str) -> str:
    return framed(
        work.inputs.settings.rules,
        body,
        messages=made.messages_removed,
        read=material.read,
        modified=material.modified,
        budget_tokens=made.summary_budget,
        counter=work.inputs.counter,
    )


def request_of(stays: Sequence[Item]) -> Item | None:
    at = newest_request(stays)
    return None if at is None else stays[at]


def texts_of(item: Item) -> Iterator[str]:
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
