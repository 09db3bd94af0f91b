"""A plan carried out, with no I/O: a generator that asks for summaries and ends with what to journal.

Whoever drives it has the model, the clock, the ids. Each strategy is tried in the plan's order; what it gives
is checked on the whole new request before it counts: smaller, and within the limit. (Rules:
docs/dev/behaviour.md, "A compaction", 3 and 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId, Item, Stub, with_stub
from compactd.core.history.projection import project
from compactd.core.planning.candidates import constraint_tokens
from compactd.core.planning.plan import NotCompacted, Plan, without_room
from compactd.core.summary.answers import Answer as Answer
from compactd.core.summary.answers import Failed as Failed
from compactd.core.summary.answers import NoModel as NoModel
from compactd.core.summary.answers import Reply as Reply
from compactd.core.summary.check import Checked, Guard
from compactd.core.summary.input import Material, layout_of, material_of
from compactd.core.summary.input import Work as Work
from compactd.core.summary.message import before_files
from compactd.core.summary.prompting import Ask as Ask
from compactd.core.summary.prompting import previous_summary, summarise, text_of
from compactd.core.summary.turn_prefix import steps
from compactd.protocol.messages import CompactionResult, Message, Meta, Strategy, Text, Usage

STEPS_DIVISOR = 24
STEPS_LEAST = 32
STEPS_MOST = 400
"""Of the summary's budget, for a split turn's prefix where no model writes it; tokens."""

SUMMARY_ID = "summary"
"""Entry id of a summary that has none yet."""


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
    """What a strategy gave, or why it gave nothing."""

    text: str = ""
    """What a model wrote; the whole text under `extract`; under `truncate`, what goes beside the counts."""
    why: str = ""
    usage: Usage | None = None


Outcome = Draft | Shortened | NotCompacted
Step = Generator[tuple[Ask, ...], tuple[Answer, ...], _Summary]


def _not_yet() -> bool:
    return False


class Ahead:
    """What a summary is checked against and repaired from, which needs no summary to be made."""

    def __init__(self) -> None:
        self._guard: Guard | None = None
        self._material: Material | None = None

    def material(self, work: Work, made: Plan) -> Material:
        """Sorted out at the first call."""
        if self._material is None:
            self._material = material_of(work, made)
        return self._material

    def guard(self, work: Work, made: Plan, material: Material) -> Guard:
        """Made at the first call."""
        if self._guard is None:
            self._guard = Guard(work, made, material)
        return self._guard

    def release(self) -> None:
        """Lets go of it, piece by piece: there is nothing more to check. O(features)."""
        guard, self._guard, self._material = self._guard, None, None
        if guard is not None:
            guard.release()

    def read(self, work: Work, made: Plan, is_answered: Callable[[], bool] = _not_yet) -> None:
        """Does it while a model writes, until `is_answered`: then there is less to do behind its answer.

        O(text) at the first time. Raises what `work.check` raises. Not beside the flow itself.
        """
        for _ in self._steps(work, made):
            work.at("summarize", 0.1)
            if is_answered():
                return

    def _steps(self, work: Work, made: Plan) -> Iterator[None]:
        material = self.material(work, made)
        if work.cache is not None:
            for item in material.gone:
                work.cache.learn(item)
                yield
        if material.files:
            yield
        yield from self.guard(work, made, material).prepare()


def compact(
    work: Work, made: Plan, ahead: Ahead | None = None
) -> Generator[tuple[Ask, ...], tuple[Answer, ...], Outcome]:
    """Carries out `made`: yields questions to be asked at once, takes their answers in the same order, and
    ends with what to journal, or with why nothing is.

    Under `extract` and `truncate` it asks nothing. Raises what `work.check` raises; what was done so far then
    leaves no trace.
    """
    work.at("prepare", 0.0)
    ahead = ahead or Ahead()
    material = ahead.material(work, made)
    if not made.summary_budget:
        return _shortened(work, made, material)
    whys: list[str] = []
    usage: Usage | None = None
    for strategy in made.strategies:
        work.at(strategy, 0.1)
        summary = yield from _by(strategy, work, made, material, ahead)
        usage = summary.usage or usage
        if summary.why:
            whys.append(f"{strategy}: {summary.why}")
            continue
        work.at("check", 0.8)
        checked = _checked(strategy, ahead.guard(work, made, material), summary)
        if checked.why:
            whys.append(f"{strategy}: {checked.why}")
            continue
        view = (_summary_item(work, material, checked.text), *material.stays)
        after = _whole(work, view)
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


def _by(strategy: Strategy, work: Work, made: Plan, material: Material, ahead: Ahead) -> Step:
    match strategy:
        case "summarize":
            return (yield from _summarised(work, made, material))
        case "extract":
            return _extracted(work, made, material, ahead.guard(work, made, material))
        case "truncate":
            count = work.inputs.counter.count
            return _Summary(text=steps(material.prefix, 0, count) if material.prefix else "")


def _checked(strategy: Strategy, guard: Guard, summary: _Summary) -> Checked:
    match strategy:
        case "summarize":
            return guard.of_answer(summary.text)
        case "extract":
            return guard.of_record(summary.text)
        case "truncate":
            return guard.of_counts(summary.text)


def _summarised(work: Work, made: Plan, material: Material) -> Step:
    inputs, rules = work.inputs, work.inputs.settings.rules
    previous = None
    if material.merged is not None:
        previous = previous_summary(text_of(material.merged), rules.lead, rules.end)
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


def _extracted(work: Work, made: Plan, material: Material, guard: Guard) -> _Summary:
    inputs, counter = work.inputs, work.inputs.counter
    rules = inputs.settings.rules
    budget = made.summary_budget
    end = rules.end.format(n=made.messages_removed)
    begun = ""
    if material.prefix:
        most = min(STEPS_MOST, max(STEPS_LEAST, budget // STEPS_DIVISOR))
        begun = steps(material.prefix, most, counter.count)
    around = sum(counter.count(part) + 1 for part in (begun, end) if part)
    found = guard.source.record(budget - around, counter.count, lead=rules.lead, layout=layout_of(work))
    text = before_files(found.text, begun)
    return _Summary(text=f"{text}\n\n{end}" if end else text)


def _shortened(work: Work, made: Plan, material: Material) -> Shortened | NotCompacted:
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
    return fixed.system + fixed.tools + project(view, work.inputs.counter).tokens


def _result(made: Plan, material: Material, strategy: Strategy, after: int, reason: str) -> CompactionResult:
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


def _summary_item(work: Work, material: Material, text: str) -> Item:
    meta = Meta(type="compaction_summary", read_files=material.read, modified_files=material.modified)
    return Item(
        entry_id=SUMMARY_ID,
        body=Message(role="user", content=(Text(text=text),), meta=meta),
        tokens=work.inputs.counter.count(text),
        kind="summary",
    )
