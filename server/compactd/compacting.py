"""The one compaction of a session: in the background, told about, without a trace where it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic

import msgspec
from msgspec import UNSET, UnsetType

from compactd.collector import without_collector
from compactd.core.asked import CompactRequest, Fixed, Inputs
from compactd.core.budget import in_estimates
from compactd.core.case import Case
from compactd.core.compaction import Answer, Ask, Draft, Failed, NoModel, Shortened, Work, read_ahead
from compactd.core.compaction import compact as flow
from compactd.core.cost import price
from compactd.core.entries import Compacted, CompactionBegun, CompactionEnded, Pruned
from compactd.core.gauge import scale_of
from compactd.core.plan import NotCompacted, Plan, expected, plan
from compactd.core.prune import Pruning
from compactd.core.prune import prune as choose
from compactd.core.units import FactCache
from compactd.errors import Cancelled, CompactdError
from compactd.hook import Skip, heard
from compactd.messages import (
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    ErrorInfo,
    Floor,
    PruneEnd,
)
from compactd.running import Progress, Running
from compactd.session import Session
from compactd.summarising import Summariser, answers_of, reading_beside, summariser_of

Outcome = Draft | Shortened | NotCompacted


async def compact(
    session: Session, request: CompactRequest, *, dry_run: bool = False, progress: Progress | None = None
) -> CompactionResult:
    """Compacts `session` as asked; a result with `compacted: false` says why nothing was done.

    Cancelling the caller cancels the compaction. Raises `SessionBusy`, `SessionLocked`, `CannotFit`,
    `InvalidParams`, `StorageFailed`.
    """
    if dry_run:
        return await _tried(session, request)
    session.writable()
    session.free()
    running = Running(session, f"c{session.fold.begun + 1}", progress)
    session.running = running
    task = asyncio.ensure_future(_run(session, running, request))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        running.stop()
        await asyncio.wait((task,))
        # Its outcome was told by events; the request itself is answered as cancelled.
        task.exception()
        raise


async def _tried(session: Session, request: CompactRequest) -> CompactionResult:
    """What the compaction would do, to the token, without a trace. A model is not asked."""
    is_cancelled = threading.Event()

    def check(phase: str, fraction: float) -> None:
        if is_cancelled.is_set():
            raise Cancelled("The dry run was cancelled.")

    planned = _planner(session, request)
    # Facts of its own: another compaction may be filling the session's in its thread.
    work = _work(session, request, check, FactCache())

    def attempt() -> Outcome:
        made = planned()
        return made if isinstance(made, NotCompacted) else _drive(work, made)

    try:
        outcome = await session.world.in_worker(attempt)
    except asyncio.CancelledError:
        is_cancelled.set()
        raise
    if isinstance(outcome, NotCompacted):
        return expected(outcome, request.trigger)
    told = outcome.result.reason
    reason = f"dry run: nothing was changed{'; ' if told else ''}{told}"
    summary = outcome.summary if isinstance(outcome, Draft) else ""
    return msgspec.structs.replace(outcome.result, reason=reason, summary=summary)


async def floor_of(session: Session) -> Floor:
    """What no compaction of the present view can remove."""
    inputs = _inputs(session, CompactRequest())
    return await session.world.in_worker(lambda: Case.of(inputs).floor())


def _planner(session: Session, request: CompactRequest) -> Callable[[], Plan | NotCompacted]:
    inputs = _inputs(session, request)
    return lambda: plan(inputs)


def _inputs(session: Session, request: CompactRequest) -> Inputs:
    state = session.fold
    last = state.compactions()[-1:]
    is_repeated = bool(last) and last[0].asked == _budget(request) and state.leaf == last[0].id
    return Inputs(
        view=state.view(),
        fixed=Fixed(*state.fixed),
        settings=session.resolved.settings,
        standing=in_estimates(session.standing(), scale_of(state, session.counter)),
        request=msgspec.structs.replace(
            request,
            is_repeated=is_repeated,
            may_ask_model=request.may_ask_model
            or session.runs_loop
            or session.resolved.settings.model is not None,
        ),
        counter=session.counter,
        pinned=state.pinned_by_id(),
    )


def _budget(request: CompactRequest) -> str:
    """What tells one request's budget from another's."""
    asked = (
        request.trigger,
        request.keep_recent,
        request.keep_messages,
        request.target_tokens,
        "force" if request.force else None,
    )
    return " ".join("-" if part is None else str(part) for part in asked)


async def _run(session: Session, running: Running, request: CompactRequest) -> CompactionResult:
    try:
        # What comes after this is in no plan, and follows the summary.
        leaf = session.fold.leaf
        made = await session.world.in_worker(_planner(session, request))
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
        return await _carried_out(session, running, wanted, made, leaf)
    finally:
        session.running = None
        running.end()


async def _carried_out(
    session: Session, running: Running, request: CompactRequest, made: Plan, leaf: str | None
) -> CompactionResult:
    world, began = session.world, monotonic()
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
        if session.facts is None:
            session.facts = FactCache()
        summariser = summariser_of(session, request)
        work = _work(session, request, running.check, session.facts)
        if isinstance(summariser, Summariser):
            work = msgspec.structs.replace(work, summariser_window=summariser.window)
        outcome = await _asked(session, running, work, made, summariser)
        if isinstance(summariser, Summariser) and not isinstance(outcome, NotCompacted):
            outcome = msgspec.structs.replace(outcome, result=_priced(session, outcome.result, summariser))
        result = await _committed(session, running, request, outcome, began, leaf)
    except BaseException as error:
        session.facts = None  # a worker may still be reading into it
        _tell_failure(session, running, error)
        raise
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


def _work(
    session: Session, request: CompactRequest, check: Callable[[str, float], None], facts: FactCache
) -> Work:
    return Work(
        inputs=_inputs(session, request),
        originals=tuple(session.fold.path_items()),
        working_dir=session.working_dir,
        cache=facts,
        check=check,
    )


def _drive(work: Work, made: Plan) -> Outcome:
    """Runs the flow to its end with nobody to ask."""
    flowing = _Flowing(work, made)
    step = flowing.step(())
    while isinstance(step, tuple):
        step = flowing.step(tuple(NoModel() for _ in step))
    return step


class _Flowing:
    """A flow on its way, from question to question; each step in whatever thread."""

    def __init__(self, work: Work, made: Plan) -> None:
        self._steps = flow(work, made)
        self._is_begun = False

    def step(self, answers: tuple[Answer, ...]) -> tuple[Ask, ...] | Outcome:
        """The next questions, or what came of it all."""
        with without_collector():
            try:
                if self._is_begun:
                    return self._steps.send(answers)
                self._is_begun = True
                return next(self._steps)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome


async def _asked(
    session: Session, running: Running, work: Work, made: Plan, summariser: Summariser | NoModel | Failed
) -> Outcome:
    """Runs the flow to its end: our own steps in a worker, the summariser's answers awaited here."""
    flowing = _Flowing(work, made)
    answers: tuple[Answer, ...] = ()
    while True:
        step = await session.world.in_worker(partial(flowing.step, answers))
        if not isinstance(step, tuple):
            return step
        asking = answers_of(summariser, step, session, running.tell_text)
        if isinstance(summariser, Summariser) and not answers:
            asking = reading_beside(asking, session, lambda: read_ahead(work, made))
        answers = await running.unless_stopped(asking)


def _priced(session: Session, result: CompactionResult, summariser: Summariser) -> CompactionResult:
    """`result` with who was asked and what that cost; a summary of ours names no model."""
    if isinstance(result.usage, UnsetType):
        return result
    found = session.world.lookup(summariser.name, None)
    cost = price(result.usage, found.pricing) if found is not None and found.pricing is not None else None
    return msgspec.structs.replace(
        result,
        model=summariser.name if result.strategy == "summarize" else UNSET,
        cost=UNSET if cost is None else cost,
    )


async def _committed(
    session: Session,
    running: Running,
    request: CompactRequest,
    outcome: Outcome,
    began: float,
    leaf: str | None,
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
        duration_ms=round(1000 * (monotonic() - began)),
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
            asked=_budget(request),
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
    items, settings = session.fold.view().items, session.resolved.settings
    counter, pinned = session.counter, session.fold.pinned_by_id()
    pruning = await session.world.in_worker(lambda: choose(items, settings, counter, pinned))
    if not pruning.stubs or dry_run:
        return pruning
    session.free()
    state = session.fold
    number = session.write(
        Pruned(
            id=state.next_id,
            at=session.world.now(),
            epoch=state.epoch + 1,
            stubs=pruning.stubs,
            parent=state.leaf,
            tokens_saved=pruning.tokens_saved,
        )
    )
    await session.durable(number)
    session.emit(PruneEnd(pruned=pruning.results, tokens_saved=pruning.tokens_saved))
    session.tell_usage()
    return pruning
