"""The steps before and after a model request, for the daemon's agent loop and for agents that run their
own."""

from __future__ import annotations

from functools import partial

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.append import AppendRequest, is_silent_overflow
from compactd.core.planning.request import CompactRequest
from compactd.core.tokens.usage import context_size
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Decision, OverflowDetected, Trigger
from compactd.session.cost_decision import cost_target, pruning_pays, reason_by_cost
from compactd.session.session import AppendOutcome, Session
from compactd.session.slot import Progress

CONTINUE_TEXT = "Continue if you have next steps"
"""The message that tells an agent to continue: OpenCode's text, word for word
(docs/specs-evmts-opencode.md, "opencode.md", "Process Flow")."""


class TurnPreparation(Struct, frozen=True, kw_only=True):
    """What `begin` did before a model request."""

    decision: Decision
    """Whether the request fitted when the turn began, and why."""

    compaction: CompactionResult | None
    """The compaction that was done; None if none was due."""
    pruned: int
    """How many tool results were pruned."""
    max_output_tokens: int | None
    """The highest output limit that the request may have: the free tokens of the window, but not more than
    the model's own limit. None if neither is known."""


def may_change(session: Session) -> bool:
    """Return whether `begin` may prune or compact. If not, it needs none of the modules for that."""
    return (
        session.operation is not None
        or session.resolved.settings.prune
        or session.silent_overflow
        or session.decision.kind in ("due", "over")
    )


async def begin(session: Session, progress: Progress | None = None) -> TurnPreparation:
    """Prepare the next model request: wait for a running compaction, prune, and compact if it is due.

    A compaction that is due but finds nothing to remove is no error, as long as the request is not over the
    cap. Raises `StorageFailed`, and `CannotFit` if the request is over the cap and nothing makes it fit.
    """
    if session.operation is not None:
        await session.operation.wait_ended()
    session.require_journal()
    settings = session.resolved.settings
    pruned, done, decision = 0, None, session.decision
    if settings.prune:
        # Imported only when needed: most sessions begin with nothing to compact.
        from compactd.compaction.run import prune

        pruned = (await prune(session, only_if=partial(pruning_pays, session))).results
    if settings.enabled:
        done = await _compact_if_due(session, progress)
    if session.snapshots is not None:
        await session.snapshots.take(session, "begin")
    session.note_sent_epoch(session.state.epoch)
    session.note_turn_size()
    most = session.budget_status().budget.max_output.value
    return TurnPreparation(decision=decision, compaction=done, pruned=pruned, max_output_tokens=most)


async def _compact_if_due(session: Session, progress: Progress | None) -> CompactionResult | None:
    """Compact if the budget requires it, or if the last answer showed that the window was full. Return the
    result; None if no compaction was due."""
    kind = session.decision.kind
    is_due = kind == "over" or (kind == "due" and session.compacts_at_threshold)
    if not is_due and not session.silent_overflow:
        return None
    from compactd.compaction.run import compact

    trigger: Trigger = "silent_overflow" if session.silent_overflow else "threshold"
    try:
        target = cost_target(session) if kind == "due" and trigger == "threshold" else None
        request = CompactRequest(
            trigger=trigger,
            force=kind == "over",
            target_tokens=target,
            by_cost=reason_by_cost(session) if trigger == "threshold" else "",
        )
        result = await compact(session, request, progress=progress)
    except CannotFit:
        if session.decision.kind == "over":
            raise
        result = CompactionResult(
            compacted=False,
            reason="no compaction makes the conversation smaller: all of it must stay",
            trigger=trigger,
            tokens_before=session.state.estimated_size,
            tokens_after=session.state.estimated_size,
        )
    session.silent_overflow = False
    session.refused_size = None if result.compacted else session.state.estimated_size
    if result.compacted and session.resolved.settings.auto_continue:
        await _append_go_on(session)
    return result


async def _append_go_on(session: Session) -> None:
    """Append a message that tells the agent to continue after an automatic compaction
    (docs/specs-evmts-opencode.md, "opencode.md", "Process Flow", 9)."""
    taken = append_own(session, {"role": "user", "content": CONTINUE_TEXT, "meta": {"synthetic": True}})
    session.emit_appended(taken)
    session.emit_usage()
    await session.wait_durable(taken.commit_id)


def append_own(session: Session, record: dict[str, object]) -> AppendOutcome:
    """Append a message that the daemon itself writes: `record`, in compactd's own format."""
    raw = Raw(msgspec.json.encode(record))
    message = decode_message(raw)
    return session.append(AppendRequest(read=((message, raw),), tokens=(session.count_message(message),)))


def emit_end(
    session: Session, taken: AppendOutcome, stop_reason: str | None, turn_id: str | None = None
) -> bool:
    """Send the event `turn_end` for the turn whose answer is in `taken`. Return whether the answer shows that
    the window was full."""
    session.overflow_attempts = 0
    report = taken.intake.report
    window = session.budget_status().window
    silent = is_silent_overflow(report, stop_reason or taken.intake.stop_reason, window)
    session.emit_turn_end(taken, report.usage if report else None, turn_id)
    if silent:
        session.silent_overflow = True
        requested = context_size(report.usage) if report else None
        session.emit(OverflowDetected(source="usage", limit=window, requested=requested))
    return silent
