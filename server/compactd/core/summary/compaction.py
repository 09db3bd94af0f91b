"""Carry out a compaction plan without I/O: a generator that yields questions to a model and returns what to
journal.

The caller that drives the generator has the model, the clock and the ids. The strategies are tried in the
plan's order. A strategy's summary is used only if the whole new request with it is smaller than before and
within the limit. (Rules: docs/dev/behaviour.md, "A compaction", 3 and 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId, Item, Stub, with_stub
from compactd.core.history.projection import project
from compactd.core.planning.candidates import constraint_tokens
from compactd.core.planning.plan import NotCompacted, Plan, without_room
from compactd.core.summary.answers import ModelReply as ModelReply
from compactd.core.summary.answers import NoModel as NoModel
from compactd.core.summary.answers import SummaryAnswer as SummaryAnswer
from compactd.core.summary.answers import SummaryFailed as SummaryFailed
from compactd.core.summary.check import CheckedSummary, SummaryCheck
from compactd.core.summary.input import CompactionWork as CompactionWork
from compactd.core.summary.input import Material, layout_of, material_of
from compactd.core.summary.message import before_files
from compactd.core.summary.questions import Ask as Ask
from compactd.core.summary.questions import item_text, previous_summary, summarise
from compactd.core.summary.turn_prefix import list_steps
from compactd.protocol.messages import CompactionResult, Message, Meta, Strategy, Text, Usage

STEPS_DIVISOR = 24
MIN_STEPS_TOKENS = 32
MAX_STEPS_TOKENS = 400
"""The most tokens for the part of a summary about a split turn's beginning, if no model writes it: budget ÷
`STEPS_DIVISOR`, but at least `MIN_STEPS_TOKENS` and at most `MAX_STEPS_TOKENS`."""

SUMMARY_ID = "summary"
"""A placeholder for the entry id of a summary that is not in the journal yet."""


class Draft(Struct, frozen=True, kw_only=True):
    """A finished compaction that the caller journals. It has no ids and no times yet."""

    summary: str
    """The whole text of the summary message."""
    summary_tokens: int
    first_kept: EntryId | None
    """The first message of the tail. None if the tail is empty; then the tail begins with the first message
    that is appended after the plan was made."""
    pinned: tuple[EntryId, ...]
    stubs: tuple[Stub, ...]
    """Stubs for shortened tool output of messages that stay."""
    result: CompactionResult
    """The result for the client, without the summary's text."""


class PruneOnly(Struct, frozen=True, kw_only=True):
    """The result if no message is removed but tool results are shortened. The caller journals it as a
    prune."""

    stubs: tuple[Stub, ...]
    tokens_saved: int
    result: CompactionResult


class _Summary(Struct, frozen=True, kw_only=True):
    """The result of one strategy before the check: a text, or the reason why there is none."""

    text: str = ""
    """With `summarize`, the text that the model wrote. With `extract`, the whole text of the summary message.
    With `truncate`, the text to add to the numbers of removed messages."""
    why: str = ""
    """Why there is no text; empty if there is one."""
    usage: Usage | None = None
    """The usage that the model's answers reported; None without a report."""


CompactionOutcome = Draft | PruneOnly | NotCompacted
"""The result of a compaction: a summary, shortened tool results, or nothing."""
SummarySteps = Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], _Summary]
"""A generator of questions that returns the summary of one strategy."""


def _not_yet() -> bool:
    return False


class LazyCheck:
    """The part of checking and repairing a summary that does not depend on its text. It can be done ahead,
    while a model writes; otherwise it is done at the first use."""

    def __init__(self) -> None:
        self._guard: SummaryCheck | None = None
        self._material: Material | None = None

    def material(self, work: CompactionWork, made: Plan) -> Material:
        """Return the messages of the compaction, sorted into those that are removed and those that stay.
        Computed at the first call."""
        if self._material is None:
            self._material = material_of(work, made)
        return self._material

    def guard(self, work: CompactionWork, made: Plan, material: Material) -> SummaryCheck:
        """Return the object that checks the summaries of this compaction. Created at the first call."""
        if self._guard is None:
            self._guard = SummaryCheck(work, made, material)
        return self._guard

    def release(self) -> None:
        """Free the messages and the checks, piece by piece. O(features)."""
        guard, self._guard, self._material = self._guard, None, None
        if guard is not None:
            guard.release()

    def read(self, work: CompactionWork, made: Plan, is_answered: Callable[[], bool] = _not_yet) -> None:
        """Do as much of the work as possible until `is_answered` returns true. Less is then left to do after
        the model's answer.

        O(text) at the first call. Raise what `work.check` raises. Must not run at the same time as `compact`.
        """
        for _ in self._steps(work, made):
            work.at("summarize", 0.1)
            if is_answered():
                return

    def _steps(self, work: CompactionWork, made: Plan) -> Iterator[None]:
        """Do what can be done before the model answers: compute the facts of the messages, and prepare the
        checks of the summary. Yield after each step."""
        material = self.material(work, made)
        if work.cache is not None:
            for item in material.gone:
                work.cache.learn(item)
                yield
        if material.files:
            yield
        yield from self.guard(work, made, material).prepare()


def compact(
    work: CompactionWork, made: Plan, ahead: LazyCheck | None = None
) -> Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], CompactionOutcome]:
    """Carry out the plan `made`. Yield questions that may be asked at the same time, take their answers in
    the same order, and return what to journal or why there is nothing to journal.

    With `extract` and `truncate` there are no questions. Raise what `work.check` raises; in that case nothing
    has changed.
    """
    work.at("prepare", 0.0)
    ahead = ahead or LazyCheck()
    material = ahead.material(work, made)
    if not made.summary_budget:
        return _prune_only(work, made, material)
    whys: list[str] = []
    usage: Usage | None = None
    for strategy in made.strategies:
        work.at(strategy, 0.1)
        summary = yield from _run_strategy(strategy, work, made, material, ahead)
        usage = summary.usage or usage
        if summary.why:
            whys.append(f"{strategy}: {summary.why}")
            continue
        work.at("check", 0.8)
        checked = _check_summary(strategy, ahead.guard(work, made, material), summary)
        if checked.why:
            whys.append(f"{strategy}: {checked.why}")
            continue
        view = (_summary_item(work, material, checked.text), *material.stays)
        after = _request_tokens(work, view)
        if not _is_better(made, after):
            whys.append(f"{strategy}: with its summary the request would take {after:,} tokens")
            continue
        work.at("done", 1.0)
        told = (made.note, without_room(made, checked.text), *whys, checked.note)
        reason = "; ".join(part for part in told if part)
        result = _result(made, material, strategy, after, reason)
        return Draft(
            summary=checked.text,
            summary_tokens=view[0].tokens,
            first_kept=made.first_kept,
            pinned=made.pinned,
            stubs=made.stubs,
            result=replace(
                result,
                retention=checked.retention,
                unfounded=checked.unfounded or UNSET,
                remarks=checked.remarks or UNSET,
                usage=UNSET if usage is None else usage,
            ),
        )
    reason = f"compacting would not make it smaller ({'; '.join(whys)})"
    return NotCompacted(reason=reason, tokens=made.tokens_before, messages=made.messages_before)


def _run_strategy(
    strategy: Strategy, work: CompactionWork, made: Plan, material: Material, ahead: LazyCheck
) -> SummarySteps:
    """Write the summary of one strategy and return it. Yield the questions that the strategy asks a model."""
    match strategy:
        case "summarize":
            return (yield from _summarise(work, made, material))
        case "extract":
            return _extract(work, made, material, ahead.guard(work, made, material))
        case "truncate":
            count = work.inputs.counter.count
            return _Summary(text=list_steps(material.prefix, 0, count) if material.prefix else "")


def _check_summary(strategy: Strategy, guard: SummaryCheck, summary: _Summary) -> CheckedSummary:
    """Return the summary of one strategy after the checks that the strategy needs."""
    match strategy:
        case "summarize":
            return guard.check_answer(summary.text)
        case "extract":
            return guard.check_extract(summary.text)
        case "truncate":
            return guard.check_truncated(summary.text)


def _summarise(work: CompactionWork, made: Plan, material: Material) -> SummarySteps:
    """Ask a model for the summary. Yield the questions, and return the summary or why there is none."""
    inputs, rules = work.inputs, work.inputs.settings.rules
    previous = None
    if material.merged is not None:
        previous = previous_summary(item_text(material.merged), rules.lead, rules.end)
    asked = yield from summarise(
        inputs,
        material.history,
        material.prefix,
        previous or None,
        budget_tokens=made.summary_budget - constraint_tokens(made.constraints, inputs.counter),
        window=work.summariser_window,
    )
    if asked.why:
        return _Summary(why=asked.why, usage=asked.usage)
    return _Summary(text=asked.text, usage=asked.usage)


def _extract(work: CompactionWork, made: Plan, material: Material, guard: SummaryCheck) -> _Summary:
    """Write and return the summary without a model: the extract, the beginning of a split turn, and the end
    line."""
    inputs, counter = work.inputs, work.inputs.counter
    rules = inputs.settings.rules
    budget = made.summary_budget
    end = rules.end.format(n=made.messages_removed)
    begun = ""
    if material.prefix:
        most = min(MAX_STEPS_TOKENS, max(MIN_STEPS_TOKENS, budget // STEPS_DIVISOR))
        begun = list_steps(material.prefix, most, counter.count)
    around = sum(counter.count(part) + 1 for part in (begun, end) if part)
    found = guard.source.record(budget - around, counter.count, lead=rules.lead, layout=layout_of(work))
    text = before_files(found.text, begun)
    return _Summary(text=f"{text}\n\n{end}" if end else text)


def _prune_only(work: CompactionWork, made: Plan, material: Material) -> PruneOnly | NotCompacted:
    """Return the result of a plan that removes no message, only shortens tool results."""
    stubs = {stub.entry_id: stub for stub in made.stubs}
    items = work.inputs.view.items
    view = tuple(with_stub(i, stubs[i.entry_id]) if i.entry_id in stubs else i for i in items)
    after = _request_tokens(work, view)
    if not _is_better(made, after):
        return NotCompacted(
            reason="nothing to compact: nothing can be removed",
            tokens=made.tokens_before,
            messages=made.messages_before,
        )
    result = _result(made, material, made.strategies[-1], after, "only tool results were shortened")
    return PruneOnly(stubs=made.stubs, tokens_saved=made.tokens_before - after, result=result)


def _is_better(made: Plan, after: int) -> bool:
    """Return whether a request of `after` tokens is smaller than before and within the limit."""
    return after < made.tokens_before and (made.limit is None or after <= made.limit)


def _request_tokens(work: CompactionWork, view: Sequence[Item]) -> int:
    """Return the tokens of the whole request with this view: system prompt, tools, messages, and what the
    projection adds to make them valid."""
    fixed = work.inputs.fixed
    return fixed.system + fixed.tools + project(view, work.inputs.counter).tokens


def _result(made: Plan, material: Material, strategy: Strategy, after: int, reason: str) -> CompactionResult:
    """Return the result for the client."""
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
        pinned=made.pin_reasons,
        split_turn=made.is_split,
        read_files=material.read,
        modified_files=material.modified,
        pruned_tool_results=made.shortened,
    )


def _summary_item(work: CompactionWork, material: Material, text: str) -> Item:
    """Return the summary as an item of a view."""
    meta = Meta(type="compaction_summary", read_files=material.read, modified_files=material.modified)
    return Item(
        entry_id=SUMMARY_ID,
        body=Message(role="user", content=(Text(text=text),), meta=meta),
        tokens=work.inputs.counter.count(text),
        kind="summary",
    )
