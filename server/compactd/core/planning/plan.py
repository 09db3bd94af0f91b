"""Plan a compaction: compute which messages are removed, kept and pinned, and which tool results are
shortened.

A plan is a value. It can be printed, sent (`dry_run`), shown to a hook, and carried out by
`core/summary/compaction.py`. It depends only on its inputs: the same view, settings and request give the same
plan (law 8). All sizes are tokens. (Rules: docs/dev/behaviour.md, "A compaction", 2; docs/specs.md,
"opal.md", "Compaction Algorithm".)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec import UNSET, Struct

from compactd.core.budget.budget import FORCED, Keep, keep_of
from compactd.core.budget.rules import BACK_TO_ANY, Settings
from compactd.core.constraints.constraints import Constraint, lines_under, missing_constraints
from compactd.core.history.entries import EntryId, Stub
from compactd.core.planning.candidates import CutCandidate, CutProblem
from compactd.core.planning.cut_points import move, walk_back
from compactd.core.planning.fit import fit, fit_target
from compactd.core.planning.prune import SHOWS_ALL
from compactd.core.planning.request import CompactRequest as CompactRequest
from compactd.core.planning.request import Fixed as Fixed
from compactd.core.planning.request import Inputs as Inputs
from compactd.core.planning.request import check_budgets
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Floor, Pinned, Strategy, Trigger

FORCED_TAIL = 2
"""The number of messages that a forced compaction keeps if no valid cut exists (docs/specs.md, "opal.md", "1.
Find Cut Point")."""

MIN_PREFIX = 48
"""The beginning of a split turn gets a summary of its own only if the summary's budget exceeds the smallest
summary by at least this many tokens."""

TOO_SHORT = "Not enough messages to compact"
"""The reason for not compacting a conversation that is too short. The exact wording is specified:
docs/specs-evmts-opencode.md, "evmts-32.md", "compaction-algorithm"."""


class NotCompacted(Struct, frozen=True, kw_only=True):
    """The result if nothing is compacted, with the reason in words for a person."""

    reason: str
    tokens: int
    """The tokens of the whole request, which stays unchanged."""
    messages: int
    """The number of messages in the view."""


class Plan(Struct, frozen=True, kw_only=True):
    """A description of what a compaction will do."""

    inputs: Inputs
    """What the plan was made from. It is carried out on exactly these: messages that are appended later
    follow the summary."""
    trigger: Trigger
    strategies: tuple[Strategy, ...]
    """The strategies to try, in this order, until one of them gives a summary."""
    merged: EntryId | None
    """The earlier summary that is merged into the new one; None if there is none."""
    removed: tuple[EntryId, ...]
    """The messages that the summary replaces, in order, without `merged`."""
    pinned: tuple[EntryId, ...]
    """The messages that stay although they are before the cut, in order."""
    pin_reasons: tuple[Pinned, ...]
    """The pinned messages, each with the reason why it stays."""
    kept: tuple[EntryId, ...]
    """The messages of the tail, which stay word for word, in order."""
    prefix: tuple[EntryId, ...]
    """The messages at the beginning of the turn that the cut splits, if they get a summary of their own;
    otherwise empty. They are also in `removed`, except pinned ones."""
    stubs: tuple[Stub, ...]
    """Stubs for tool output of `pinned` and `kept`, including what earlier stubs already shortened, and for
    the newest request if it is condensed."""
    shortened: int
    """How many tool results this compaction shortens."""
    summary_budget: int
    """The most tokens of the summary's text; 0 if there is no summary because only tool results are
    shortened."""
    limit: int | None
    """The most tokens of the whole request after the compaction; None if no window and no target is known."""
    tokens_before: int
    """The tokens of the whole request before the compaction."""
    tokens_expected: int
    """The tokens of the whole request after the compaction, if the summary uses its whole budget."""
    messages_before: int
    floor: Floor
    """The smallest possible request, by part."""
    constraints: tuple[Constraint, ...] = ()
    """The user's constraints that the summary contains word for word."""
    superseded: tuple[Constraint, ...] = ()
    """Constraints of the user that a newer one contradicts. The summary must not list them as constraints."""
    note: str = ""
    """A note for a person: that less is kept than asked for, that pinned messages are removed, or that no
    model is asked. Empty for none."""
    dropped: tuple[Constraint, ...] = ()
    """The user's constraints that will be in no message of the new view: their message is removed and the
    summary has no room for them."""
    condensed: EntryId | None = None
    """The newest request, if it is shown condensed because it is too large for the target; its stub is in
    `stubs`."""
    condensed_note: str = ""
    """A note for a person that the newest request is shown condensed. Empty if it is not. It is also in
    `note`."""
    uncounted: int = 0
    """How many limits in removed messages do not count as constraints, because their message states too
    many."""

    @property
    def is_split(self) -> bool:
        """Whether the cut splits a turn whose beginning gets a summary of its own."""
        return bool(self.prefix)

    @property
    def first_kept(self) -> EntryId | None:
        """The first message of the tail; None if the tail is empty."""
        return self.kept[0] if self.kept else None

    @property
    def messages_removed(self) -> int:
        """The number of messages that leave the view, the earlier summary included."""
        if not self.summary_budget:
            return 0
        return len(self.removed) + (self.merged is not None)

    @property
    def messages_after(self) -> int:
        """The number of messages in the view after the compaction."""
        return self.messages_before - self.messages_removed + bool(self.summary_budget)

    def refuse(self, reason: str) -> NotCompacted:
        """Return the result if this plan is not carried out."""
        return NotCompacted(reason=reason, tokens=self.tokens_before, messages=self.messages_before)


def plan(inputs: Inputs) -> Plan | NotCompacted:
    """Plan a compaction of `inputs.view`, or say why there is nothing to compact.

    Raise `CannotFit` (1008) if system prompt, tools, newest request and the smallest summary exceed the cap
    or `target_tokens`. With a target that a client chose, a large request counts as it is condensed. Raise
    `InvalidParams` if more than one budget is given, or if a budget is below 1. The cost is proportional to
    the part of the view that is not cached yet.
    """
    request = inputs.request
    check_budgets(request)
    case = CutProblem.of(inputs)
    if request.is_repeated:
        return _not_compacted(case, "nothing to compact: nothing was added since the last compaction")
    if request.target_tokens is not None:
        if request.target_tokens >= case.before:
            return _not_compacted(
                case,
                f"nothing to compact: the request takes {case.before:,} tokens,"
                f" the target is {request.target_tokens:,}",
            )
        shape = fit_target(case, request.target_tokens)
        return _make_plan(inputs, case, shape)
    keep = _requested_keep(inputs)
    cut, reason = _cut(inputs, case, keep)
    if cut is None:
        return _not_compacted(case, reason)
    try:
        shape = fit(case, cut)
    except CannotFit:
        if case.is_too_large:
            raise
        return _not_compacted(case, "compacting would not make it smaller: there is no room for a summary")
    if not shape.removed and not shape.stubs:
        return _not_compacted(
            case, reason or "nothing to compact: only the newest request is before the kept turns"
        )
    return _make_plan(inputs, case, shape)


def strategies_of(settings: Settings, request: CompactRequest) -> tuple[Strategy, ...]:
    """Return the strategies to try, in order and each once. `summarize` and `provider` are followed by the
    profile's strategy without a model, and any strategy without a model by `truncate`. `auto` means
    `summarize` if a model may be asked, and otherwise the profile's strategy without a model."""
    without = settings.rules.without_model
    chain: tuple[Strategy, ...]
    match request.strategy or settings.strategy:
        case "summarize":
            chain = ("summarize", without, "truncate")
        case "auto":
            chain = ("summarize", without, "truncate") if request.may_ask_model else (without, "truncate")
        case "provider":
            chain = ("provider", without, "truncate")
        case "extract":
            chain = ("extract", "truncate")
        case "truncate":
            chain = ("truncate",)
    return tuple(dict.fromkeys(chain))


def expected_result(made: Plan | NotCompacted, trigger: Trigger = "manual") -> CompactionResult:
    """Return the result of a `dry_run`: what the plan `made` would do, without an id and a summary."""
    if isinstance(made, NotCompacted):
        return CompactionResult(
            compacted=False,
            reason=made.reason,
            trigger=trigger,
            messages_before=made.messages,
            messages_after=made.messages,
            tokens_before=made.tokens,
            tokens_after=made.tokens,
        )
    return CompactionResult(
        compacted=True,
        reason="; ".join(
            part for part in ("dry run: nothing was changed", made.note, without_room(made)) if part
        ),
        trigger=made.trigger,
        strategy=made.strategies[0],
        messages_before=made.messages_before,
        messages_after=made.messages_after,
        messages_removed=made.messages_removed,
        tokens_before=made.tokens_before,
        tokens_after=made.tokens_expected,
        tokens_saved=made.tokens_before - made.tokens_expected,
        first_kept_entry_id=made.first_kept,
        kept_messages=len(made.kept),
        pinned_entry_ids=made.pinned,
        pinned=made.pin_reasons,
        split_turn=made.is_split,
        pruned_tool_results=made.shortened,
        condensed_request=UNSET if made.condensed is None else made.condensed,
        floor=made.floor,
    )


def _requested_keep(inputs: Inputs) -> Keep:
    """Return how much is to be kept: the budget of the request or, without one, that of the settings."""
    request, standing = inputs.request, inputs.standing
    if request.keep_recent is not None:
        return Keep(tokens=request.keep_recent, source="request")
    if request.keep_messages is not None:
        return Keep(messages=request.keep_messages, source="request")
    return keep_of(
        inputs.settings,
        request.trigger,
        standing.window,
        standing.cap,
        standing.threshold,
    )


def _cut(inputs: Inputs, case: CutProblem, keep: Keep) -> tuple[int | None, str]:
    """Choose the cut, so that the tail contains what `keep` asks for. Return (cut, "") or (None, the reason
    why there is no cut)."""
    rules, outline, end = inputs.settings.rules, case.outline, len(case.items)
    forced = inputs.request.force or inputs.request.trigger in FORCED or case.is_too_large
    count = end - case.start
    if keep.tokens is not None:
        stop = walk_back(outline, keep.tokens, case.start, inclusive=rules.stop_inclusive)
        reason = f"nothing to compact: {_within(case.messages, f'{keep.tokens:,} tokens')}"
    elif keep.messages is not None:
        if rules.too_short and not forced and end <= keep.messages + 1:
            return None, TOO_SHORT
        stop = end - keep.messages if keep.messages < count else None
        reason = f"nothing to compact: {_within(case.messages, _messages(keep.messages))}"
    else:
        stop = end
        reason = "nothing to compact: there is only the newest request"
    if stop is not None:
        moves = rules.moves if keep.tokens is not None else BACK_TO_ANY
        cut = move(outline, stop, case.start, moves)
        if cut is not None:
            return cut, ""
        reason = "nothing to compact: there is no safe cut point before the turns to keep"
    if not forced:
        return None, reason
    cut = move(outline, end - FORCED_TAIL, case.start, BACK_TO_ANY)
    if cut is None and case.is_too_large:
        cut = case.start
    return cut, reason


def _make_plan(inputs: Inputs, case: CutProblem, shape: CutCandidate) -> Plan | NotCompacted:
    """Return the compaction plan for `shape` (which messages are removed, pinned, shortened and kept), or the
    reason why carrying it out would not make the request smaller."""
    ids, target = case.outline.ids, inputs.request.target_tokens
    limits = [limit for limit in (case.limit, target) if limit is not None]
    limit = min(limits) if limits else None
    budget = case.summary_budget(shape, limit, whole=target is not None)
    is_summarised = case.is_summarised(shape)
    if is_summarised and budget < case.least:
        return _not_compacted(
            case,
            f"compacting would not make it smaller: the messages that can be removed have"
            f" {shape.freed_tokens:,} tokens, and the smallest summary has {case.least:,}",
        )
    if not is_summarised:
        budget = 0
    strategies = strategies_of(inputs.settings, inputs.request)
    prefix: tuple[EntryId, ...] = ()
    # Without a model, one summary of everything retains more than two summaries that share the budget.
    whole_record = target is not None and strategies[0] != "summarize"
    if is_summarised and budget >= case.least + MIN_PREFIX and not whole_record:
        prefix = _prefix(inputs, case, shape)
    constraints, dropped, uncounted = case.constraints(shape, budget) if is_summarised else ((), (), 0)
    return Plan(
        inputs=inputs,
        trigger=inputs.request.trigger,
        strategies=strategies,
        merged=None if case.merged is None else ids[0],
        removed=_ids_in(ids, shape.removed),
        pinned=tuple(ids[i] for i in shape.pinned),
        pin_reasons=tuple(Pinned(entry_id=ids[i], reason=case.pin_reason(i)) for i in shape.pinned),
        kept=ids[shape.cut :],
        prefix=prefix,
        stubs=_stubs(case, shape),
        shortened=shape.shortened,
        summary_budget=budget,
        limit=limit,
        tokens_before=case.before,
        tokens_expected=case.fixed + shape.kept_tokens + budget,
        messages_before=len(ids),
        floor=case.floor(),
        constraints=constraints,
        superseded=case.said.superseded,
        note=_note(inputs, case, shape),
        condensed=None if case.condensed is None else case.condensed.entry_id,
        condensed_note=_condensed_note(case),
        dropped=dropped,
        uncounted=uncounted,
    )


def _stubs(case: CutProblem, shape: CutCandidate) -> tuple[Stub, ...]:
    """Return the stubs of the messages that stay, in their order."""
    stubs = dict(shape.stubs)
    if case.condensed is not None and case.outline.request is not None:
        # A stub for tool results of the same message already repeats the condensed text.
        stubs.setdefault(case.outline.request, case.condensed)
    return tuple(stub for _, stub in sorted(stubs.items()))


def _ids_in(ids: tuple[EntryId, ...], runs: Sequence[range]) -> tuple[EntryId, ...]:
    """Return the ids of the messages in these ranges."""
    parts = [ids[run.start : run.stop] for run in runs]
    return parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))


def _prefix(inputs: Inputs, case: CutProblem, shape: CutCandidate) -> tuple[EntryId, ...]:
    """Return the messages at the beginning of the turn that the cut splits, if they are enough for a summary
    of their own; otherwise an empty tuple.

    A turn is split if the kept part does not start with a user message. Its beginning is enough if it has at
    least `split_min_messages` messages, the user message included (docs/specs.md, "opal.md", "2. Detect Split
    Turns").
    """
    outline, cut = case.outline, shape.cut
    if not inputs.settings.rules.splits or cut >= len(outline):
        return ()
    if outline.kind(cut) in ("user", "bash"):
        return ()
    turn = outline.newest("user", case.start, cut)
    if turn is None or cut - turn < inputs.settings.split_min_messages:
        return ()
    return outline.ids[turn:cut]


def without_room(made: Plan, summary: str = "") -> str:
    """Return a note for a person about how many of the user's constraints the new view does not contain;
    empty if it contains all. `summary` is the text of the summary. O(constraints + text)."""
    count = len(missing_constraints(made.dropped, lines_under(summary, lambda _: True))) + made.uncounted
    return f"the summary has no room for {count:,} of the user's constraints" if count else ""


def _note(inputs: Inputs, case: CutProblem, shape: CutCandidate) -> str:
    """Return a note for a person: how the plan deviates from what the request asked for. Empty if it does
    not."""
    parts: list[str] = []
    kept, asked = len(case.items) - shape.cut, inputs.request.keep_messages
    if asked is not None and kept < asked:
        parts.append(f"kept {_messages(kept)} instead of {asked}: more would not fit")
    elif shape.is_reduced:
        parts.append(f"kept {_messages(kept)}: more would not fit")
    if inputs.request.unasked:
        parts.append(inputs.request.unasked)
    if shape.unpinned:
        words = "message" if shape.unpinned == 1 else "messages"
        parts.append(f"{shape.unpinned:,} pinned {words} did not fit and went into the summary")
    if case.condensed is not None:
        parts.append(_condensed_note(case))
    return "; ".join(parts)


def _condensed_note(case: CutProblem) -> str:
    """Return a note for a person that the newest request is shown condensed; empty if it is not."""
    stub, at = case.condensed, case.outline.request
    if stub is None or at is None:
        return ""
    return (
        f"the newest request is shown condensed, in {stub.tokens:,} of {case.whole.tokens(at):,} tokens:"
        f" {SHOWS_ALL.format(stub.entry_id)}"
    )


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _within(count: int, kept: str) -> str:
    """Return, in words, that all `count` messages are within what a compaction keeps."""
    if not count:
        return "there are no messages"
    subject = f"all {count:,} messages are" if count > 1 else f"{_messages(count)} is"
    return f"{subject} within the {kept} to keep"


def _not_compacted(case: CutProblem, reason: str) -> NotCompacted:
    """Return the result for a view that is not compacted."""
    return NotCompacted(reason=reason, tokens=case.before, messages=len(case.items))
