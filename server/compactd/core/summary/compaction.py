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

from compactd.core.history.entries import EntryId, Item, ProviderSummary, Stub
from compactd.core.history.projection import project
from compactd.core.history.view import item_of_summary
from compactd.core.planning.candidates import constraint_tokens
from compactd.core.planning.plan import NotCompacted, Plan, expected_result, without_room
from compactd.core.summary.answers import NOT_ASKED, ProviderAnswer
from compactd.core.summary.answers import ModelReply as ModelReply
from compactd.core.summary.answers import NoModel as NoModel
from compactd.core.summary.answers import SummaryAnswer as SummaryAnswer
from compactd.core.summary.answers import SummaryFailed as SummaryFailed
from compactd.core.summary.check import CheckedSummary, SummaryCheck
from compactd.core.summary.input import SummaryInput as SummaryInput
from compactd.core.summary.message import before_files
from compactd.core.summary.questions import Ask as Ask
from compactd.core.summary.questions import SummarySteps, WrittenSummary, previous_summary, summarise
from compactd.core.summary.turn_prefix import list_steps
from compactd.core.text.message_text import join_text_blocks
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
    provider: ProviderSummary | None = None
    """The provider's own summary of the same messages, if it was asked for one."""


class PruneOnly(Struct, frozen=True, kw_only=True):
    """The result if no message is removed but tool results or the newest request are shortened. The caller
    journals it as a prune."""

    stubs: tuple[Stub, ...]
    tokens_saved: int
    result: CompactionResult


CompactionOutcome = Draft | PruneOnly | NotCompacted
"""The result of a compaction: a summary, shortened tool results, or nothing."""


def read_ahead(given: SummaryInput, is_answered: Callable[[], bool]) -> None:
    """Compute what the check and the repair of a model's summary will need, until `is_answered` returns true.
    Less is then left to do after the model's answer.

    O(text) at the first call. Raise what `given.check` raises. Must not run at the same time as `compact`.
    """
    for _ in _parts_to_check(given):
        given.at(given.plan.strategies[0], 0.1)
        if is_answered():
            return


def _parts_to_check(given: SummaryInput) -> Iterator[object]:
    """Compute, one after the other, the parts of `given` that do not depend on the model's answer, and yield
    each."""
    for item in given.gone:
        yield given.facts.learn(item)
    yield given.files
    given.search.prepare_lines()
    yield given.search
    yield given.texts
    yield given.source


def compact(
    given: SummaryInput, own: ProviderAnswer = NOT_ASKED
) -> Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], CompactionOutcome]:
    """Carry out the plan `given.plan`. Yield questions that may be asked at the same time, take their answers
    in the same order, and return what to journal or why there is nothing to journal.

    `own` is what the provider answered, if the plan's first strategy is `provider`.

    With `extract` and `truncate` there are no questions. Raise what `given.check` raises; in that case
    nothing has changed.
    """
    plan = given.plan
    given.at("prepare", 0.0)
    if not plan.summary_budget:
        return _prune_only(given)
    whys: list[str] = []
    usage: Usage | None = None
    check = SummaryCheck(given)
    for strategy in plan.strategies:
        given.at(strategy, 0.1)
        summary = yield from _run_strategy(strategy, given, own)
        usage = summary.usage or usage
        if summary.why:
            whys.append(f"{strategy}: {summary.why}")
            continue
        given.at("check", 0.8)
        checked = _check_summary(strategy, check, summary)
        if checked.why:
            whys.append(f"{strategy}: {checked.why}")
            continue
        provider = own.summary if strategy == "provider" else None
        view = (_summary_of(given, checked.text, provider), *given.stays)
        after = _request_tokens(plan, view)
        if not _is_better(plan, after):
            whys.append(f"{strategy}: with its summary the request would take {after:,} tokens")
            continue
        given.at("done", 1.0)
        told = (plan.note, without_room(plan, checked.text), *whys, checked.note, own.note)
        reason = "; ".join(part for part in told if part)
        result = _result(given, strategy, after, reason)
        return Draft(
            summary=checked.text,
            summary_tokens=given.count(checked.text),
            first_kept=plan.first_kept,
            pinned=plan.pinned,
            stubs=plan.stubs,
            provider=provider,
            result=replace(
                result,
                retention=checked.retention,
                unfounded=checked.unfounded or UNSET,
                remarks=checked.remarks or UNSET,
                usage=UNSET if usage is None else usage,
            ),
        )
    return plan.refuse(f"compacting would not make it smaller ({'; '.join(whys)})")


def _run_strategy(strategy: Strategy, given: SummaryInput, own: ProviderAnswer) -> SummarySteps:
    """Write the summary of one strategy and return it. Yield the questions that the strategy asks a model."""
    match strategy:
        case "summarize":
            return (yield from _summarise(given))
        case "provider":
            if own.summary is None:
                return WrittenSummary(why=own.why, usage=own.usage)
            # The extract is for other models, and for requests that may not contain the provider's summary.
            return WrittenSummary(text=_extract(given), usage=own.usage)
        case "extract":
            return WrittenSummary(text=_extract(given))
        case "truncate":
            return WrittenSummary(text=list_steps(given.prefix, 0, given.count) if given.prefix else "")


def _check_summary(strategy: Strategy, check: SummaryCheck, summary: WrittenSummary) -> CheckedSummary:
    """Return the summary of one strategy after the checks that the strategy needs."""
    match strategy:
        case "summarize":
            return check.check_answer(summary.text)
        case "extract" | "provider":
            return check.check_extract(summary.text)
        case "truncate":
            return check.check_truncated(summary.text)


def _summarise(given: SummaryInput) -> SummarySteps:
    """Ask a model for the summary. Yield the questions, and return the summary or why there is none."""
    plan, inputs, rules = given.plan, given.plan.inputs, given.plan.inputs.settings.rules
    previous = None
    if given.merged is not None:
        previous = previous_summary(join_text_blocks(given.merged.message.content), rules.lead, rules.end)
    return (
        yield from summarise(
            inputs,
            given.history,
            given.prefix,
            previous or None,
            budget_tokens=plan.summary_budget - constraint_tokens(plan.constraints, given.count),
            window=given.summariser_window,
        )
    )


def _extract(given: SummaryInput) -> str:
    """Write and return the summary without a model: the extract, the beginning of a split turn, and the end
    line."""
    plan, count, rules = given.plan, given.count, given.plan.inputs.settings.rules
    budget = plan.summary_budget
    end = rules.end.format(n=plan.messages_removed)
    begun = ""
    if given.prefix:
        most = min(MAX_STEPS_TOKENS, max(MIN_STEPS_TOKENS, budget // STEPS_DIVISOR))
        begun = list_steps(given.prefix, most, count)
    around = sum(count(part) + 1 for part in (begun, end) if part)
    found = given.source.record(budget - around, count, lead=rules.lead, layout=given.layout)
    text = before_files(found, begun)
    return f"{text}\n\n{end}" if end else text


def _prune_only(given: SummaryInput) -> PruneOnly | NotCompacted:
    """Return the result of a plan that removes no message, only shortens tool results or the newest
    request."""
    plan = given.plan
    after = _request_tokens(plan, given.stays if given.merged is None else (given.merged, *given.stays))
    if not _is_better(plan, after):
        return plan.refuse("nothing to compact: nothing can be removed")
    told = "only tool results were shortened" if plan.shortened else ""
    reason = "; ".join(part for part in (told, plan.condensed_note) if part)
    result = _result(given, plan.strategies[-1], after, reason)
    return PruneOnly(stubs=plan.stubs, tokens_saved=plan.tokens_before - after, result=result)


def _is_better(plan: Plan, after: int) -> bool:
    """Return whether a request of `after` tokens is smaller than before and within the limit."""
    return after < plan.tokens_before and (plan.limit is None or after <= plan.limit)


def _request_tokens(plan: Plan, view: Sequence[Item]) -> int:
    """Return the tokens of the whole request with this view: system prompt, tools, messages, and what the
    projection adds to make them valid."""
    fixed = plan.inputs.fixed
    return fixed.system + fixed.tools + project(view, plan.inputs.counter).tokens


def _result(given: SummaryInput, strategy: Strategy, after: int, reason: str) -> CompactionResult:
    """Return the result for the client: what the plan expected, with what it came to."""
    return replace(
        expected_result(given.plan),
        reason="; ".join(part for part in (reason, given.plan.inputs.request.by_cost) if part),
        strategy=strategy,
        tokens_after=after,
        tokens_saved=given.plan.tokens_before - after,
        read_files=given.files.read,
        modified_files=given.files.modified,
        floor=UNSET,
    )


def _summary_of(given: SummaryInput, text: str, provider: ProviderSummary | None) -> Item:
    """Return the summary of `given` as an item of a view, with the provider's own if there is one."""
    files = given.files
    return summary_item(text, given.count(text), files.read, files.modified, provider)


def summary_item(
    text: str,
    tokens: int,
    read_files: tuple[str, ...] = (),
    modified_files: tuple[str, ...] = (),
    provider: ProviderSummary | None = None,
) -> Item:
    """Return a summary that is not in the journal yet as an item of a view."""
    meta = Meta(type="compaction_summary", read_files=read_files, modified_files=modified_files)
    message = Message(role="user", content=(Text(text=text),), meta=meta)
    return item_of_summary(SUMMARY_ID, message, tokens, provider)
