"""What a compaction would do, as a value: what goes, what stays, what is pinned, split, shortened.

A plan can be printed, sent (`dry_run`), shown to a hook, and carried out by `compaction.compact`. It is made
of the view alone: the same view, settings and request give the same plan (law 8). Tokens throughout. (Rules:
docs/dev/behaviour.md, "A compaction", 2; docs/specs.md, "opal.md", "Compaction Algorithm".)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from compactd.core.budget.budget import FORCED, Keep, keep_of
from compactd.core.budget.rules import Move, Settings
from compactd.core.constraints.constraints import Constraint, lines_under, missing
from compactd.core.history.entries import EntryId, Stub
from compactd.core.history.message_kinds import Kind
from compactd.core.planning.candidates import Case, Shape
from compactd.core.planning.cut_points import move, walk_back
from compactd.core.planning.fit import fit, fit_target
from compactd.core.planning.request import CompactRequest as CompactRequest
from compactd.core.planning.request import Fixed as Fixed
from compactd.core.planning.request import Inputs as Inputs
from compactd.core.planning.request import check_budgets
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Floor, Pinned, Strategy, Trigger

FORCED_TAIL = 2
"""Messages that a forced compaction leaves where no valid cut exists (docs/specs.md, "opal.md", "1. Find Cut
Point")."""

PREFIX_LEAST = 48
"""Tokens of the summary's budget, above the smallest, that a turn's prefix needs for a summary of its own."""

ANY_KIND: tuple[Kind, ...] = ("user", "bash", "assistant", "system")
BACK_TO_ANY = (Move(direction="back", kinds=ANY_KIND),)

TOO_SHORT = "Not enough messages to compact"
"""Literal: docs/specs-evmts-opencode.md, "evmts-32.md", "compaction-algorithm"."""


class NotCompacted(Struct, frozen=True, kw_only=True):
    """Nothing is to be done, and why: for a person."""

    reason: str
    tokens: int
    """Of the whole request, as it stays."""
    messages: int


class Plan(Struct, frozen=True, kw_only=True):
    """What would happen."""

    trigger: Trigger
    strategies: tuple[Strategy, ...]
    """Tried in this order until one gives a summary."""
    merged: EntryId | None
    """The earlier summary, which the new one takes in."""
    removed: tuple[EntryId, ...]
    """Messages that go into the summary, in order, without `merged`."""
    pinned: tuple[EntryId, ...]
    """Kept although older than the tail, in order."""
    pin_reasons: tuple[Pinned, ...]
    """The same with the reason of each."""
    kept: tuple[EntryId, ...]
    """The verbatim tail, in order."""
    prefix: tuple[EntryId, ...]
    """Beginning of the turn that the cut lands in, if it gets a summary of its own; part of `removed`, but
    for what is pinned."""
    stubs: tuple[Stub, ...]
    """Tool output of `pinned` and `kept` that is shown shortened, earlier stubs included."""
    shortened: int
    """Tool results that this compaction shortens."""
    summary_budget: int
    """Most tokens of the summary's text; 0 where nothing goes and only tool results are shortened."""
    limit: int | None
    """Most tokens of the new request; none where no window is known."""
    tokens_before: int
    tokens_expected: int
    """With a summary that uses all its budget."""
    messages_before: int
    floor: Floor
    constraints: tuple[Constraint, ...] = ()
    """The user's, that the summary holds word for word."""
    superseded: tuple[Constraint, ...] = ()
    """Those that a newer one disagrees with: no longer to be named as constraints."""
    note: str = ""
    """Where less was kept than was asked for, or no model was asked, in words."""
    dropped: tuple[Constraint, ...] = ()
    """The user's, that have no room of their own in the summary and do not stand in what stays."""
    uncounted: int = 0
    """Limits of messages that do not stay which count for nothing: their message has too many."""

    @property
    def is_split(self) -> bool:
        """The beginning of the cut turn gets a summary of its own."""
        return bool(self.prefix)

    @property
    def first_kept(self) -> EntryId | None:
        """First message of the tail; none where the tail is empty."""
        return self.kept[0] if self.kept else None

    @property
    def messages_removed(self) -> int:
        """Messages that leave the view, the earlier summary included."""
        if not self.summary_budget:
            return 0
        return len(self.removed) + (self.merged is not None)

    @property
    def messages_after(self) -> int:
        """Messages of the new view."""
        return self.messages_before - self.messages_removed + bool(self.summary_budget)


def plan(inputs: Inputs) -> Plan | NotCompacted:
    """What a compaction of `inputs.view` would do.

    Raises `CannotFit` (1008) where system prompt, tools, newest request and the smallest summary exceed the
    cap or `target_tokens`; `InvalidParams` for more than one budget, or one below 1. O(what is not
    known of the view).
    """
    request = inputs.request
    check_budgets(request)
    case = Case.of(inputs)
    if request.is_repeated:
        return _not(case, "nothing to compact: nothing was added since the last compaction")
    if request.target_tokens is not None:
        if request.target_tokens >= case.before:
            return _not(
                case,
                f"nothing to compact: the request takes {case.before:,} tokens,"
                f" the target is {request.target_tokens:,}",
            )
        shape = fit_target(case, request.target_tokens)
        return _planned(inputs, case, shape)
    keep = _asked_keep(inputs)
    cut, reason = _cut(inputs, case, keep)
    if cut is None:
        return _not(case, reason)
    try:
        shape = fit(case, cut)
    except CannotFit:
        if case.is_too_large:
            raise
        return _not(case, "compacting would not make it smaller: there is no room for a summary")
    if not shape.removed and not shape.stubs:
        return _not(case, reason or "nothing to compact: only the newest request is before the kept turns")
    return _planned(inputs, case, shape)


def strategies_of(settings: Settings, request: CompactRequest) -> tuple[Strategy, ...]:
    """The strategies to try, in order, each once: summarize › the profile's without a model › truncate."""
    without = settings.rules.without_model
    chain: tuple[Strategy, ...]
    match request.strategy or settings.strategy:
        case "summarize":
            chain = ("summarize", without, "truncate")
        case "auto":
            chain = ("summarize", without, "truncate") if request.may_ask_model else (without, "truncate")
        case "extract":
            chain = ("extract", "truncate")
        case "truncate":
            chain = ("truncate",)
    return tuple(dict.fromkeys(chain))


def expected(made: Plan | NotCompacted, trigger: Trigger = "manual") -> CompactionResult:
    """A plan as the result that `dry_run` answers: what would happen, so no id, no summary."""
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
        floor=made.floor,
    )


def _asked_keep(inputs: Inputs) -> Keep:
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


def _cut(inputs: Inputs, case: Case, keep: Keep) -> tuple[int | None, str]:
    """(cut, "") or (None, why there is none)."""
    rules, outline, end = inputs.settings.rules, case.outline, len(case.items)
    forced = inputs.request.force or inputs.request.trigger in FORCED or case.is_too_large
    count = end - case.start
    if keep.tokens is not None:
        stop = walk_back(outline, keep.tokens, case.start, inclusive=rules.stop_inclusive)
        reason = f"nothing to compact: {_all(case.messages)} within the {keep.tokens:,} tokens to keep"
    elif keep.messages is not None:
        if rules.too_short and not forced and end <= keep.messages + 1:
            return None, TOO_SHORT
        stop = end - keep.messages if keep.messages < count else None
        reason = f"nothing to compact: {_all(case.messages)} within the {_messages(keep.messages)} to keep"
    else:
        stop = end
        reason = "nothing to compact: there is nothing but the newest request"
    if stop is not None:
        moves = rules.moves if keep.tokens is not None else BACK_TO_ANY
        cut = move(outline, stop, case.start, moves)
        if cut is not None:
            return cut, ""
        reason = "nothing to compact: nothing before the kept turns can be cut"
    if not forced:
        return None, reason
    cut = move(outline, end - FORCED_TAIL, case.start, BACK_TO_ANY)
    if cut is None and case.is_too_large:
        cut = case.start
    return cut, reason


def _planned(inputs: Inputs, case: Case, shape: Shape) -> Plan | NotCompacted:
    ids, target = case.outline.ids, inputs.request.target_tokens
    limits = [limit for limit in (case.limit, target) if limit is not None]
    limit = min(limits) if limits else None
    budget = case.summary_budget(shape, limit, whole=target is not None)
    is_summarised = case.is_summarised(shape)
    if is_summarised and budget < case.least:
        return _not(
            case,
            f"compacting would not make it smaller: what can go takes {shape.gone:,} tokens,"
            f" the smallest summary {case.least:,}",
        )
    if not is_summarised:
        budget = 0
    strategies = strategies_of(inputs.settings, inputs.request)
    prefix: tuple[EntryId, ...] = ()
    # Without a model, one record of a target's whole rest retains more than two (measured: 0.3 of linked).
    whole_record = target is not None and strategies[0] != "summarize"
    if is_summarised and budget >= case.least + PREFIX_LEAST and not whole_record:
        prefix = _prefix(inputs, case, shape)
    constraints, dropped, uncounted = case.constraints(shape, budget) if is_summarised else ((), (), 0)
    return Plan(
        trigger=inputs.request.trigger,
        strategies=strategies,
        merged=None if case.merged is None else ids[0],
        removed=_ids_in(ids, shape.removed),
        pinned=tuple(ids[i] for i in shape.pinned),
        pin_reasons=tuple(Pinned(entry_id=ids[i], reason=case.pin_reason(i)) for i in shape.pinned),
        kept=ids[shape.cut :],
        prefix=prefix,
        stubs=tuple(stub for _, stub in sorted(shape.stubs.items())),
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
        dropped=dropped,
        uncounted=uncounted,
    )


def _ids_in(ids: tuple[EntryId, ...], runs: Sequence[range]) -> tuple[EntryId, ...]:
    parts = [ids[run.start : run.stop] for run in runs]
    return parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))


def _prefix(inputs: Inputs, case: Case, shape: Shape) -> tuple[EntryId, ...]:
    """The beginning of the turn that the cut lands in, where it is long enough for a summary of its own.

    docs/specs.md, "opal.md", "2. Detect Split Turns": the kept part does not start with a user message, and
    the prefix, its user message included, has at least `split_min_messages`.
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
    """How many of the user's constraints the new view does not hold, in words; empty where it holds all.
    O(constraints + text)."""
    count = len(missing(made.dropped, lines_under(summary, lambda _: True))) + made.uncounted
    return f"{count:,} of the user's constraints found no room in the summary" if count else ""


def _note(inputs: Inputs, case: Case, shape: Shape) -> str:
    parts: list[str] = []
    kept, asked = len(case.items) - shape.cut, inputs.request.keep_messages
    if asked is not None and kept < asked:
        parts.append(f"kept {_messages(kept)} instead of {asked}: more would not fit")
    elif shape.is_reduced:
        parts.append(f"kept {_messages(kept)}: more would not fit")
    if inputs.request.unasked:
        parts.append(inputs.request.unasked)
    if shape.unpinned:
        parts.append(f"{_messages(shape.unpinned)} pinned beyond what fits went into the summary")
    return "; ".join(parts)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _all(count: int) -> str:
    return (
        f"all {count:,} messages are"
        if count > 1
        else f"{_messages(count)} is"
        if count
        else "nothing is there"
    )


def _not(case: Case, reason: str) -> NotCompacted:
    return NotCompacted(reason=reason, tokens=case.before, messages=len(case.items))
