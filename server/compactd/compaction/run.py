"""Run the compaction of a session in the background. Send its events, write its journal records, and cancel
it on request. A session has at most one compaction at a time.

A cancelled compaction changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import TypeVar

import msgspec

from compactd.compaction.client_hook import ask_client_hook
from compactd.compaction.driver import (
    SummarySpending,
    add_cost,
    budget_of,
    planner,
    run_flow,
    spent_on,
    summary_input,
)
from compactd.compaction.dry_run import try_compaction
from compactd.compaction.prepare import PreparedCompaction, running_for, stop_running, take_prepared
from compactd.compaction.reread_advice import files_to_reread
from compactd.compaction.summarizer import Summariser, check_model, read_keys, summariser_of
from compactd.core.history.entries import Compacted, CompactionBegun, CompactionEnded, EntryId, Pruned
from compactd.core.history.state import SessionState
from compactd.core.planning.plan import NotCompacted, Plan, expected_result
from compactd.core.planning.prune import Pruning
from compactd.core.planning.prune import prune as choose
from compactd.core.planning.request import CompactRequest, Inputs
from compactd.core.summary.answers import NoModel, SummaryFailed
from compactd.core.summary.compaction import CompactionOutcome, Draft, PruneOnly
from compactd.protocol.errors import Cancelled, CannotFit, CompactdError, StorageFailed
from compactd.protocol.messages import (
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    ErrorInfo,
    PruneEnd,
    Trigger,
    Usage,
)
from compactd.session.memory import release_memory_soon
from compactd.session.session import Session
from compactd.session.slot import ExclusiveOperation, Progress

T = TypeVar("T")


async def compact(
    session: Session,
    request: CompactRequest,
    *,
    dry_run: bool = False,
    plan_only: bool = False,
    progress: Progress | None = None,
) -> CompactionResult:
    """Compact `session`. If nothing was done, the result has `compacted: false` and the reason.

    With `dry_run` or `plan_only` nothing is changed (see `dry_run.try_compaction`). Cancelling the caller
    cancels the compaction. Raises `SessionBusy`, `SessionLocked`, `CannotFit`, `InvalidParams`, `NoProvider`,
    `StorageFailed`.
    """
    if dry_run or plan_only:
        with _adding_sizes(session):
            return _with_decision(session, await try_compaction(session, request, plan_only=plan_only))
    session.require_journal()
    session.require_idle()
    # The plan is for the session as it is now, before the task runs: later requests may come first. A
    # prepared compaction is written before they can change the session.
    running = ExclusiveOperation(session.emit, f"c{session.state.begun + 1}", progress)
    prepared = take_prepared(session, request)
    if prepared is not None:
        work = _commit_prepared(session, running, request, prepared)
    else:
        work = _run(session, running, request, planner(session, request), session.state)
    session.operation = running
    task = asyncio.ensure_future(_freeing_slot(session, running, work))
    try:
        with _adding_sizes(session):
            return await asyncio.shield(task)
    except asyncio.CancelledError:
        running.stop()
        await asyncio.wait((task,))
        # Events have reported the task's outcome; the request itself is answered as cancelled.
        task.exception()
        raise


def _with_decision(session: Session, result: CompactionResult) -> CompactionResult:
    """Add what the next `turn/begin` would do to the result of a dry run, if the cost is considered."""
    if session.resolved.settings.when == "window":
        return result
    return msgspec.structs.replace(result, decision=session.decision)


@contextlib.contextmanager
def _adding_sizes(session: Session) -> Iterator[None]:
    """Run a block. If it raises `CannotFit`, add the size of the request and the window to the error."""
    try:
        yield
    except CannotFit as error:
        standing = session.budget_status()
        error.data.update(used=standing.used, window=standing.window)
        raise


async def _freeing_slot(
    session: Session, running: ExclusiveOperation, work: Coroutine[object, object, T]
) -> T:
    """Return the result of `work`, and free the session's slot when it ends."""
    try:
        return await work
    finally:
        session.operation = None
        running.end()


async def _run(
    session: Session,
    running: ExclusiveOperation,
    request: CompactRequest,
    planned: Callable[[], Plan | NotCompacted],
    state: SessionState,
) -> CompactionResult:
    """Make the plan with `planned`, ask the client's hook, and carry out the plan. Return the result, which
    says so if nothing was compacted. `state` is the session's state from which the plan is made.

    If the same compaction is just being prepared, wait for it instead, and use it if it is still valid."""
    preparing = running_for(session, request)
    if preparing is not None:
        await running.run_unless_stopped(preparing.wait_ended())
        prepared = take_prepared(session, request)
        if prepared is not None:
            return await _commit_prepared(session, running, request, prepared)
    stop_running(session)
    planning = session.host.run_compute(planned, state.size)
    made, _ = await asyncio.gather(planning, read_keys(session, request))
    check_model(session, request)
    if isinstance(made, NotCompacted):
        return expected_result(made, request.trigger)
    plan = await running.run_unless_stopped(ask_client_hook(session, made))
    if isinstance(plan, NotCompacted):
        return expected_result(plan, request.trigger)
    try:
        return await _carry_out(session, running, plan, state)
    finally:
        release_memory_soon(session)


def _commit_prepared(
    session: Session, running: ExclusiveOperation, request: CompactRequest, prepared: PreparedCompaction
) -> Coroutine[object, object, CompactionResult]:
    """Write a prepared compaction to the journal, with its start. Return what is left to do: wait for the
    disk, send the events, and return the result.

    Nothing is awaited between `take_prepared` and the end of this function, so that what was taken is what
    the session is."""
    now, messages, size = session.host.now(), prepared.result.messages_before, prepared.result.tokens_before
    result = msgspec.structs.replace(
        prepared.result,
        compaction_id=running.compaction_id,
        created_at=now,
        reason="; ".join(part for part in (prepared.result.reason, request.by_cost) if part),
    )
    number = session.write(
        CompactionBegun(at=now, compaction_id=running.compaction_id, trigger=request.trigger),
        _entry_of(session, request, prepared.draft, prepared.first_kept, result, session.counter.name),
    )

    async def finish() -> CompactionResult:
        try:
            await session.wait_durable(number)
        finally:
            release_memory_soon(session)
        _emit_start(session, running, request.trigger, messages, size)
        return await _finish(
            session, running, msgspec.structs.replace(result, summary=prepared.draft.summary)
        )

    return finish()


async def _carry_out(
    session: Session, running: ExclusiveOperation, plan: Plan, state: SessionState
) -> CompactionResult:
    """Carry out `plan` on the inputs that it has: send the events, write the journal records, and return the
    result. `state` is the session's state from which the plan was made."""
    request = plan.inputs.request
    # The event loop's clock is monotonic, and a simulation can replace it.
    world, began = session.host, asyncio.get_running_loop().time()
    number = session.write(
        CompactionBegun(at=world.now(), compaction_id=running.compaction_id, trigger=request.trigger)
    )
    # Wait for the disk before the start is sent, so that the journal contains the start even after a kill.
    await session.wait_durable(number)
    _emit_start(session, running, request.trigger, plan.messages_before, plan.tokens_before)
    summariser: Summariser | NoModel | SummaryFailed = NoModel()
    own_reports: list[Usage] = []
    try:
        summariser = summariser_of(session, request)
        given = summary_input(session, plan, session.ensure_facts(), summariser, running.check)
        outcome = await run_flow(session, running, given, summariser, own_reports)
        spent = spent_on(session, summariser, own_reports)
        if not isinstance(outcome, NotCompacted):
            outcome = msgspec.structs.replace(outcome, result=add_cost(session, outcome.result, spent))
        require_stored(session, state)
        result = await _commit(session, running, plan.inputs, outcome, began, spent)
    except BaseException as error:
        session.drop_facts()
        _report_failure(session, running, error, spent_on(session, summariser, own_reports))
        raise
    return await _finish(session, running, result)


def _emit_start(
    session: Session, running: ExclusiveOperation, trigger: Trigger, messages: int, tokens: int
) -> None:
    session.emit(
        CompactionStart(
            compaction_id=running.compaction_id,
            trigger=trigger,
            message_count=messages,
            tokens_before=tokens,
        )
    )


async def _finish(
    session: Session, running: ExclusiveOperation, result: CompactionResult
) -> CompactionResult:
    """Add advice on files to the result of a compaction that is on disk, send the events of its end, and
    return it."""
    # Examine files only now that the result is on disk: if their file system hangs, only the advice is late.
    advice = await files_to_reread(session) if result.compacted else ()
    if advice:
        result = msgspec.structs.replace(result, files_to_reread=advice)
    session.emit(
        CompactionEnd(
            compaction_id=running.compaction_id,
            status="completed" if result.compacted else "skipped",
            result=result,
        )
    )
    session.emit_usage()
    if result.compacted:
        session.host.notice(
            session.id,
            f"Conversation compacted: {result.messages_removed} messages → summary "
            f"({result.tokens_before:,} → {result.tokens_after:,} tokens)",
        )
    return result


def require_stored(session: Session, planned: SessionState) -> None:
    """Raise `StorageFailed` if the session's state is no longer `planned`, the state from which the plan was
    made. The state is replaced if messages cannot be stored and are removed again."""
    if session.state is not planned:
        raise StorageFailed(
            "The compaction stopped and changed nothing: messages that came just before could not be "
            "stored. Send them again first."
        )


async def _commit(
    session: Session,
    running: ExclusiveOperation,
    inputs: Inputs,
    outcome: CompactionOutcome,
    began: float,
    spent: SummarySpending,
) -> CompactionResult:
    """Write `outcome` to the journal. Return the result of the compaction, with its id and its times.
    `inputs` are those of the plan. `began` is the event loop's time at the start. `spent` is what a summary
    took."""
    if isinstance(outcome, NotCompacted):
        session.write(
            CompactionEnded(
                at=session.host.now(),
                compaction_id=running.compaction_id,
                status="skipped",
                reason=outcome.reason,
                summary_usage=spent.usage,
                summary_model=spent.model,
                summary_cost=spent.cost,
            )
        )
        return expected_result(outcome, inputs.request.trigger)
    now, state = session.host.now(), session.state
    result = msgspec.structs.replace(
        outcome.result,
        compaction_id=running.compaction_id,
        created_at=now,
        duration_ms=round(1000 * (asyncio.get_running_loop().time() - began)),
    )
    if isinstance(outcome, PruneOnly):
        await _write_prune(session, outcome, now, inputs.counter.name, running.compaction_id, spent)
        return result
    # If the tail is empty, it begins with the first message that was appended after the plan was made.
    first_kept = outcome.first_kept or state.first_after(inputs.originals[-1].entry_id)
    entry = _entry_of(session, inputs.request, outcome, first_kept, result, inputs.counter.name)
    entry = msgspec.structs.replace(entry, summary_model=spent.model)
    await session.wait_durable(session.write(entry))
    return msgspec.structs.replace(result, summary=outcome.summary)


def _entry_of(
    session: Session,
    request: CompactRequest,
    draft: Draft,
    first_kept: EntryId | None,
    result: CompactionResult,
    estimator: str,
) -> Compacted:
    """Return the journal entry of a compaction. `result` has its id and its times."""
    state = session.state
    # The journal names the strategy that wrote its text. Clients get `provider` (`shown_result`).
    stored = msgspec.structs.replace(result, summary="")
    if draft.provider is not None:
        stored = msgspec.structs.replace(stored, strategy="extract")
    return Compacted(
        id=state.next_id,
        at=result.created_at,
        compaction_id=result.compaction_id or "",
        epoch=state.epoch + 1,
        summary=draft.summary,
        summary_tokens=draft.summary_tokens,
        result=stored,
        parent=state.leaf,
        first_kept=first_kept,
        pinned=draft.pinned,
        stubs=draft.stubs,
        read_files=result.read_files,
        modified_files=result.modified_files,
        asked=budget_of(request),
        estimator=estimator,
        provider=draft.provider,
    )


async def _write_prune(
    session: Session,
    pruning: Pruning | PruneOnly,
    at: float,
    estimator: str,
    compaction_id: str | None = None,
    spent: SummarySpending | None = None,
) -> None:
    """Write a prune to the journal. When this returns, it is on disk."""
    state, spent = session.state, spent or SummarySpending()
    number = session.write(
        Pruned(
            id=state.next_id,
            at=at,
            epoch=state.epoch + 1,
            stubs=pruning.stubs,
            parent=state.leaf,
            tokens_saved=pruning.tokens_saved,
            compaction_id=compaction_id,
            estimator=estimator,
            summary_usage=spent.usage,
            summary_model=spent.model,
            summary_cost=spent.cost,
        )
    )
    await session.wait_durable(number)


def _report_failure(
    session: Session, running: ExclusiveOperation, error: BaseException, spent: SummarySpending
) -> None:
    """Write the end of a compaction that failed or was cancelled to the journal, and send it as an event. So
    each start of a compaction has an end. `spent` is what a summary took."""
    is_cancelled = isinstance(error, Cancelled | asyncio.CancelledError)
    if isinstance(error, CompactdError):
        info = ErrorInfo(code=error.code, message=error.message)
    else:
        info = ErrorInfo(code=-32603, message="the compaction failed; the daemon's log has the cause")
    status = "cancelled" if is_cancelled else "failed"
    # The journal may refuse writes. A start without an end also counts as failed.
    with contextlib.suppress(CompactdError):
        session.write(
            CompactionEnded(
                at=session.host.now(),
                compaction_id=running.compaction_id,
                status=status,
                reason=info.message,
                summary_usage=spent.usage,
                summary_model=spent.model,
                summary_cost=spent.cost,
            )
        )
    session.emit(
        CompactionEnd(
            compaction_id=running.compaction_id,
            status="cancelled" if is_cancelled else "failed",
            error=None if is_cancelled else info,
        )
    )
    session.emit_usage()


async def prune(
    session: Session, *, dry_run: bool = False, only_if: Callable[[Pruning], bool] | None = None
) -> Pruning:
    """Replace old tool output by stubs, if there is enough of it by the settings' rules. Return what was
    replaced. With `dry_run`, replace nothing and return what would be replaced. If `only_if` returns false
    for what would be replaced, replace nothing and return an empty `Pruning`.

    Raises `SessionBusy`, `SessionLocked`, `StorageFailed`.
    """
    session.require_idle()
    planned, items, settings = session.state, session.state.view().items, session.resolved.settings
    counter, pinned = session.counter, session.state.pinned_by_id()
    pruning = await session.host.run_compute(
        lambda: choose(items, settings, counter, pinned), session.state.size
    )
    if not pruning.stubs or dry_run:
        return pruning
    session.require_idle()
    require_stored(session, planned)
    if only_if is not None and not only_if(pruning):
        return Pruning()
    await _write_prune(session, pruning, session.host.now(), counter.name)
    session.emit(PruneEnd(pruned=pruning.results, tokens_saved=pruning.tokens_saved))
    session.emit_usage()
    return pruning
