"""A plan carried out, with no I/O: a generator that asks for summaries and ends with what to journal.

Whoever drives it has the model, the clock, the ids. Each strategy is tried in the plan's order; what it gives
is checked on the whole new request before it counts: smaller, and within the limit. (Rules: behaviour.md,
"A compaction", 3 and 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from compactd.core.answers import Answer as Answer
from compactd.core.answers import Failed as Failed
from compactd.core.answers import NoModel as NoModel
from compactd.core.answers import Reply as Reply
from compactd.core.asked import Inputs
from compactd.core.asks import Ask as Ask
from compactd.core.asks import previous_summary, summarise, text_of
from compactd.core.clip import text_of_result
from compactd.core.cuts import newest_request
from compactd.core.entries import EntryId, Item, Stub, with_stub
from compactd.core.extract import extract
from compactd.core.fileops import files_of
from compactd.core.plan import NotCompacted, Plan
from compactd.core.projection import project
from compactd.core.record import LAYOUTS, SECTIONS, Layout
from compactd.core.retention import FactSearch, supplement
from compactd.core.steps import steps
from compactd.core.summary import before_files, framed, truncated, under_context
from compactd.core.tokens import compact_arguments
from compactd.core.units import FactCache
from compactd.messages import (
    CompactionResult,
    Message,
    Meta,
    Retention,
    Strategy,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

SUPPLEMENT_DIVISOR = 4
"""Of the summary's budget, for facts that a model's summary lost."""

STEPS_DIVISOR = 24
STEPS_LEAST = 32
STEPS_MOST = 400
"""Of the summary's budget, for a split turn's prefix where no model writes it; tokens."""

SUMMARY_ID = "summary"
"""Entry id of a summary that has none yet."""


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


class Draft(Struct, frozen=True, kw_only=True):
    """A compaction as it will be journalled, but for ids and times."""

    summary: str
    """The whole text of the summary message."""
    summary_tokens: int
    first_kept: EntryId | None
    """None where the tail is empty: then the first message that arrives later, or arrived meanwhile."""
    pinned: tuple[EntryId, ...]
    stubs: tuple[Stub, ...]
    result: CompactionResult
    """Without the summary's text."""


class Shortened(Struct, frozen=True, kw_only=True):
    """Nothing could go, but tool results were shortened: to be journalled as a prune."""

    stubs: tuple[Stub, ...]
    tokens_saved: int
    result: CompactionResult


class _Summary(Struct, frozen=True, kw_only=True):
    """What a strategy gave: the whole text, or why there is none."""

    text: str = ""
    body: str | None = None
    """What a model wrote of it."""
    why: str = ""
    usage: Usage | None = None


class _Material(Struct, frozen=True, kw_only=True):
    """What the strategies summarise."""

    gone: tuple[Item, ...]
    """Originals that the new view does not show word for word."""
    history: tuple[Item, ...]
    """Originals of what this compaction removes, without the prefix."""
    prefix: tuple[Item, ...]
    stays: tuple[Item, ...]
    """Items of the new view, without the summary."""
    merged: Item | None
    read: tuple[str, ...]
    modified: tuple[str, ...]


Outcome = Draft | Shortened | NotCompacted
Step = Generator[tuple[Ask, ...], tuple[Answer, ...], _Summary]


def compact(work: Work, made: Plan) -> Generator[tuple[Ask, ...], tuple[Answer, ...], Outcome]:
    """Carries out `made`: yields questions to be asked at once, takes their answers in the same order, and
    ends with what to journal, or with why nothing is.

    Under `extract` and `truncate` it asks nothing. Raises what `work.check` raises; what was done so far then
    leaves no trace.
    """
    work.at("prepare", 0.0)
    material = _material(work, made)
    if not made.summary_budget:
        return _shortened(work, made, material)
    whys: list[str] = []
    usage: Usage | None = None
    for strategy in made.strategies:
        work.at(strategy, 0.1)
        summary = yield from _by(strategy, work, made, material)
        usage = summary.usage or usage
        if summary.why:
            whys.append(f"{strategy}: {summary.why}")
            continue
        work.at("check", 0.8)
        text, kept_facts = _with_lost_facts(work, made, material, summary)
        view = (_summary_item(work, material, text), *material.stays)
        after = _whole(work, view)
        if not _is_better(made, after):
            whys.append(f"{strategy}: with its summary the request would take {after:,} tokens")
            continue
        work.at("done", 1.0)
        result = _result(made, material, strategy, after, "; ".join([made.note, *whys]).strip("; "))
        return Draft(
            summary=text,
            summary_tokens=view[0].tokens,
            first_kept=made.first_kept,
            pinned=made.pinned,
            stubs=made.stubs,
            result=replace(result, retention=kept_facts, usage=UNSET if usage is None else usage),
        )
    reason = f"compacting would not make it smaller ({'; '.join(whys)})"
    return NotCompacted(reason=reason, tokens=made.tokens_before, messages=made.messages_before)


def read_ahead(work: Work, made: Plan) -> None:
    """Learns the facts of what goes, while a model writes its summary: then there is less to do behind it.

    O(text) at the first time, nothing later. Raises what `work.check` raises. Not beside the flow itself.
    """
    if work.cache is None:
        return
    for item in _material(work, made).gone:
        work.at("summarize", 0.5)
        work.cache.learn(item)


def _by(strategy: Strategy, work: Work, made: Plan, material: _Material) -> Step:
    match strategy:
        case "summarize":
            return (yield from _summarised(work, made, material))
        case "extract":
            return _extracted(work, made, material)
        case "truncate":
            return _truncated(work, made, material)


def _summarised(work: Work, made: Plan, material: _Material) -> Step:
    inputs, rules = work.inputs, work.inputs.settings.rules
    previous = None
    if material.merged is not None:
        previous = previous_summary(text_of(material.merged), rules.lead, rules.end)
    asked = yield from summarise(
        inputs,
        material.history,
        material.prefix,
        previous or None,
        budget_tokens=made.summary_budget,
        window=work.summariser_window,
    )
    if asked.why:
        return _Summary(why=asked.why, usage=asked.usage)
    text = _framed(work, made, material, asked.text)
    return _Summary(text=text, body=asked.text, usage=asked.usage)


def _extracted(work: Work, made: Plan, material: _Material) -> _Summary:
    inputs, counter = work.inputs, work.inputs.counter
    rules = inputs.settings.rules
    budget = made.summary_budget
    end = rules.end.format(n=made.messages_removed)
    begun = ""
    if material.prefix:
        most = min(STEPS_MOST, max(STEPS_LEAST, budget // STEPS_DIVISOR))
        begun = steps(material.prefix, most, counter.count)
    around = sum(counter.count(part) + 1 for part in (begun, end) if part)
    found = extract(
        material.gone,
        material.stays,
        request=_request_of(material.stays),
        budget_tokens=budget - around,
        count=counter.count,
        working_dir=work.working_dir,
        cache=work.cache,
        lead=rules.lead,
        layout=_layout(work),
    )
    text = before_files(found.text, begun)
    return _Summary(text=f"{text}\n\n{end}" if end else text)


def _truncated(work: Work, made: Plan, material: _Material) -> _Summary:
    inputs = work.inputs
    extra = steps(material.prefix, 0, inputs.counter.count) if material.prefix else ""
    return _Summary(
        text=truncated(
            inputs.settings.rules,
            material.gone,
            messages=made.messages_removed,
            extra=extra,
            read=material.read,
            modified=material.modified,
            budget_tokens=made.summary_budget,
            counter=inputs.counter,
        )
    )


def _layout(work: Work) -> Layout:
    """The headings that the profile's prompt asks a model for."""
    return LAYOUTS.get(work.inputs.settings.rules.prompt, SECTIONS)


def _framed(work: Work, made: Plan, material: _Material, body: str) -> str:
    return framed(
        work.inputs.settings.rules,
        body,
        messages=made.messages_removed,
        read=material.read,
        modified=material.modified,
        budget_tokens=made.summary_budget,
        counter=work.inputs.counter,
    )


def _material(work: Work, made: Plan) -> _Material:
    view = {item.entry_id: item for item in work.inputs.view.items}
    originals = work.originals or work.inputs.view.items
    whole = {item.entry_id: item for item in originals}
    stubs = {stub.entry_id: stub for stub in made.stubs}
    stays = tuple(
        with_stub(view[entry], stubs[entry]) if entry in stubs else view[entry]
        for entry in (*made.pinned, *made.kept)
    )
    verbatim = {item.entry_id for item in stays if item.kind == "message"}
    # What was appended after the plan was made follows the tail: it neither goes nor is counted.
    later = view.keys() - {made.merged, *made.removed, *made.pinned, *made.kept}
    gone = tuple(i for i in originals if i.entry_id not in verbatim and i.entry_id not in later)
    merged = None if made.merged is None else view[made.merged]
    prefix = frozenset(made.prefix)
    read, modified = files_of(gone if merged is None else (merged, *gone))
    return _Material(
        gone=gone,
        history=tuple(whole.get(entry, view[entry]) for entry in made.removed if entry not in prefix),
        prefix=tuple(whole.get(entry, view[entry]) for entry in made.prefix),
        stays=stays,
        merged=merged,
        read=read,
        modified=modified,
    )


def _with_lost_facts(work: Work, made: Plan, material: _Material, summary: _Summary) -> tuple[str, Retention]:
    """The summary's text and what it retains; what a model's summary lost of the facts that were used again
    is added to it, as far as the budget goes."""
    counter = work.inputs.counter
    stays = tuple(text for item in material.stays for text in _texts(item))
    search = FactSearch(material.gone, stays, cache=work.cache)
    found = search.with_summary(summary.text)
    if summary.body is None or not found.lost:
        return summary.text, found
    room = made.summary_budget - counter.count(summary.text)
    lines = supplement(found.lost, min(room, made.summary_budget // SUPPLEMENT_DIVISOR), counter.count)
    if not lines:
        return summary.text, found
    text = _framed(work, made, material, under_context(summary.body, lines, _layout(work).context))
    return text, search.with_summary(text)


def _shortened(work: Work, made: Plan, material: _Material) -> Shortened | NotCompacted:
    stubs = {stub.entry_id: stub for stub in made.stubs}
    items = work.inputs.view.items
    view = tuple(with_stub(i, stubs[i.entry_id]) if i.entry_id in stubs else i for i in items)
    after = _whole(work, view)
    if not _is_better(made, after):
        return NotCompacted(
            reason="nothing to compact: there is nothing that could go",
            tokens=made.tokens_before,
            messages=made.messages_before,
        )
    result = _result(made, material, made.strategies[-1], after, "only tool results were shortened")
    return Shortened(stubs=made.stubs, tokens_saved=made.tokens_before - after, result=result)


def _is_better(made: Plan, after: int) -> bool:
    return after < made.tokens_before and (made.limit is None or after <= made.limit)


def _whole(work: Work, view: Sequence[Item]) -> int:
    """Tokens of the whole request that this view makes: system prompt, tools, messages, repairs."""
    fixed = work.inputs.fixed
    return fixed.system + fixed.tools + project(view, work.inputs.counter.count).tokens


def _result(made: Plan, material: _Material, strategy: Strategy, after: int, reason: str) -> CompactionResult:
    return CompactionResult(
        compacted=True,
        reason=reason,
        trigger=made.trigger,
        strategy=strategy,
        messages_before=made.messages_before,
        messages_after=made.messages_after,
        messages_removed=made.messages_removed,
        tokens_before=made.tokens_before,
        tokens_after=after,
        tokens_saved=made.tokens_before - after,
        first_kept_entry_id=made.first_kept,
        kept_messages=len(made.kept),
        pinned_entry_ids=made.pinned,
        split_turn=made.is_split,
        read_files=material.read,
        modified_files=material.modified,
        pruned_tool_results=made.shortened,
    )


def _summary_item(work: Work, material: _Material, text: str) -> Item:
    meta = Meta(type="compaction_summary", read_files=material.read, modified_files=material.modified)
    return Item(
        entry_id=SUMMARY_ID,
        body=Message(role="user", content=(Text(text=text),), meta=meta),
        tokens=work.inputs.counter.count(text),
        kind="summary",
    )


def _request_of(stays: Sequence[Item]) -> Item | None:
    at = newest_request(stays)
    return None if at is None else stays[at]


def _texts(item: Item) -> Iterator[str]:
    for block in item.message.content:
        match block:
            case Text(text=text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield f"{name} {compact_arguments(arguments)}"
            case ToolResult():
                yield text_of_result(block)
            case _:
                pass
