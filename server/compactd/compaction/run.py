"""The one compaction of a session: in the background, told about, without a trace where it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import msgspec

from compactd.compaction.client_hook import Skip, heard
from compactd.compaction.driver import Outcome, asked, budget_of, planner, priced, work_of
from compactd.compaction.dry_run import tried
from compactd.compaction.reread_advice import files_to_reread
from compactd.compaction.summarizer import Summariser, check_model, read_keys, summariser_of
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Compacted, CompactionBegun, CompactionEnded, Pruned
from compactd.core.history.state import Fold
from compactd.core.planning.plan import NotCompacted, Plan, expected
from compactd.core.planning.prune import Pruning
from compactd.core.planning.prune import prune as choose
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.compaction import Shortened
from compactd.protocol.errors import Cancelled, CannotFit, CompactdError, StorageFailed
from compactd.protocol.messages import CompactionEnd, CompactionResult, CompactionStart, ErrorInfo, PruneEnd
from compactd.session.memory import rest_soon
from compactd.session.session import Session
from compactd.session.slot import Progress, Running


async def compact(
    session: Session,
    request: CompactRequest,
    *,
    dry_run: bool = False,
    plan_only: bool = False,
    progress: Progress | None = None,
) -> CompactionResult:
    """Compacts `session` as asked; a result with `compacted: false` says why nothing was done.

    `dry_run` or `plan_only`: nothing is written. Cancelling the caller cancels the compaction. Raises
    `SessionBusy`, `SessionLocked`, `CannotFit`, `InvalidParams`, `NoProvider`, `StorageFailed`.
    """
    if dry_run or plan_only:
        with _sizes_told(session):
            return await tried(session, request, plan_only=plan_only)
    session.writable()
    session.free()
    running = Running(session.emit, f"c{session.fold.begun + 1}", progress)
    session.running = running
    task = asyncio.ensure_future(_run(session, running, request))
    try:
        with _sizes_told(session):
            return await asyncio.shield(task)
    except asyncio.CancelledError:
        running.stop()
        await asyncio.wait((task,))
        # Its outcome was told by events; the request itself is answered as cancelled.
        task.exception()
        raise


@contextlib.contextmanager
def _sizes_told(session: Session) -> Iterator[None]:
    """Adds the size of the request, and the window, to what `CannotFit` says."""
    try:
        yield
    except CannotFit as error:
        standing = session.standing()
        error.data.update(used=standing.used, window=standing.window)
        raise


async def _run(session: Session, running: Running, request: CompactRequest) -> CompactionResult:
    try:
        # What comes after this is in no plan, and follows the summary.
        state, leaf = session.fold, session.fold.leaf
        planned = session.world.in_turn(planner(session, request), session.fold.size)
        made, _ = await asyncio.gather(planned, read_keys(session, request))
        check_model(session, request)
        if isinstance(made, NotCompacted):
            return expected(made, request.trigger)
        wanted = await running.unless_stopped(heard(session, request, made))
        if isinstance(wanted, Skip):
            told = NotCompacted(
                reason="the client did not want it (session/compacting)",
                tokens=made.tokens_before,
                messages=made.messages_before,
            )
            return expected(told, request.trigger)
        try:
            return await _carried_out(session, running, wanted, made, state, leaf)
        finally:
            rest_soon(session)
    finally:
        session.running = None
        running.end()


async def _carried_out(
    session: Session,
    running: Running,
    request: CompactRequest,
    made: Plan,
    state: Fold,
    leaf: str | None,
) -> CompactionResult:
    # The loop's own clock, monotonic too: a simulation has another.
    world, began = session.world, asyncio.get_running_loop().time()
    number = session.write(
        CompactionBegun(at=world.now(), compaction_id=running.compaction_id, trigger=request.trigger)
    )
    # Told only when it is journalled: who saw a start finds it in the history after a kill.
    await session.durable(number)
    session.emit(
        CompactionStart(
            compaction_id=running.compaction_id,
            trigger=request.trigger,
            message_count=made.messages_before,
            tokens_before=made.tokens_before,
        )
    )
    try:
        still_stored(session, state)
        if session.facts is None:
            session.facts = FactCache(session.shown_dir)
        summariser = summariser_of(session, request)
        work = work_of(session, request, running.check, session.facts)
        if isinstance(summariser, Summariser):
            work = msgspec.structs.replace(work, summariser_window=summariser.window)
        outcome = await asked(session, running, work, made, summariser)
        if isinstance(summariser, Summariser) and not isinstance(outcome, NotCompacted):
            outcome = msgspec.structs.replace(outcome, result=priced(session, outcome.result, summariser))
        still_stored(session, state)
        result = await _committed(session, running, request, outcome, began, leaf, work.inputs.counter.name)
    except BaseException as error:
        session.facts = None  # a worker may still be reading into it
        _tell_failure(session, running, error)
        raise
    # When it is on the disk already: a file system that hangs holds up an advice, and nothing else.
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
    session.tell_usage()
    if result.compacted:
        world.notice(
            f"Conversation compacted: {result.messages_removed} messages → summary "
            f"({result.tokens_before:,} → {result.tokens_after:,} tokens)"
        )
    return result


def still_stored(session: Session, planned: Fold) -> None:
    """Raises `StorageFailed` where messages that the plan is about were taken back: the disk refused them."""
    if session.fold is not planned:
        raise StorageFailed(
            "Given up, and nothing was changed: messages that came just before could not be stored. "
            "Send them again first."
        )


async def _committed(
    session: Session,
    running: Running,
    request: CompactRequest,
    outcome: Outcome,
    began: float,
    leaf: str | None,
    estimator: str,
) -> CompactionResult:
    """Journals `outcome` and gives it back with ids and times."""
    if isinstance(outcome, NotCompacted):
        session.write(
            CompactionEnded(
                at=session.world.now(),
                compaction_id=running.compaction_id,
                status="skipped",
                reason=outcome.reason,
            )
        )
        return expected(outcome, request.trigger)
    now, state = session.world.now(), session.fold
    result = msgspec.structs.replace(
        outcome.result,
        compaction_id=running.compaction_id,
        created_at=now,
        duration_ms=round(1000 * (asyncio.get_running_loop().time() - began)),
    )
    if isinstance(outcome, Shortened):
        number = session.write(
            Pruned(
                id=state.next_id,
                at=now,
                epoch=state.epoch + 1,
                stubs=outcome.stubs,
                parent=state.leaf,
                tokens_saved=outcome.tokens_saved,
                compaction_id=running.compaction_id,
                estimator=estimator,
            )
        )
        await session.durable(number)
        return result
    first_kept = outcome.first_kept or state.first_after(leaf)
    number = session.write(
        Compacted(
            id=state.next_id,
            at=now,
            compaction_id=running.compaction_id,
            epoch=state.epoch + 1,
            summary=outcome.summary,
            summary_tokens=outcome.summary_tokens,
            result=msgspec.structs.replace(result, summary=""),
            parent=state.leaf,
            first_kept=first_kept,
            pinned=outcome.pinned,
            stubs=outcome.stubs,
            read_files=result.read_files,
            modified_files=result.modified_files,
            asked=budget_of(request),
            estimator=estimator,
        )
    )
    await session.durable(number)
    return msgspec.structs.replace(result, summary=outcome.summary)


def _tell_failure(session: Session, running: Running, error: BaseException) -> None:
    """Every start has its end, whatever happened."""
    is_cancelled = isinstance(error, Cancelled | asyncio.CancelledError)
    if isinstance(error, CompactdError):
        info = ErrorInfo(code=error.code, message=error.message)
    else:
        info = ErrorInfo(code=-32603, message="the compaction failed; the log has its cause")
    status = "cancelled" if is_cancelled else "failed"
    # Where the journal takes nothing any more: a start without an end is told as failed, too.
    with contextlib.suppress(CompactdError):
        session.write(
            CompactionEnded(
                at=session.world.now(),
                compaction_id=running.compaction_id,
                status=status,
                reason=info.message,
            )
        )
    session.emit(
        CompactionEnd(
            compaction_id=running.compaction_id,
            status="cancelled" if is_cancelled else "failed",
            error=None if is_cancelled else info,
        )
    )
    session.tell_usage()


async def prune(session: Session, *, dry_run: bool = False) -> Pruning:
    """Shows old tool output as stubs, where the settings find enough of it; with `dry_run` only says which.

    Raises `SessionBusy`, `SessionLocked`, `StorageFailed`.
    """
    session.free()
    planned, items, settings = session.fold, session.fold.view().items, session.resolved.settings
    counter, pinned = session.counter, session.fold.pinned_by_id()
    pruning = await session.world.in_turn(lambda: choose(items, settings, counter, pinned), session.fold.size)
    if not pruning.stubs or dry_run:
        return pruning
    session.free()
    still_stored(session, planned)
    state = session.fold
    number = session.write(
        Pruned(
            id=state.next_id,
            at=session.world.now(),
            epoch=state.epoch + 1,
            stubs=pruning.stubs,
            parent=state.leaf,
            tokens_saved=pruning.tokens_saved,
            estimator=counter.name,
        )
    )
    await session.durable(number)
    session.emit(PruneEnd(pruned=pruning.results, tokens_saved=pruning.tokens_saved))
    session.tell_usage()
    return pruning
