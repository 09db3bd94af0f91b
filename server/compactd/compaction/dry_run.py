"""A dry run: compute what a compaction would do, without changing the session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import msgspec
from msgspec import UnsetType

from compactd.compaction.driver import (
    CompactionDriver,
    add_cost,
    drive,
    inputs_of,
    planner,
    spending_of,
    summary_input,
)
from compactd.compaction.provider_summary import (
    ProviderCompaction,
    asks_provider,
    provider_compaction_of,
    request_tokens,
)
from compactd.compaction.summarizer import Summariser, check_model, read_keys, summariser_of
from compactd.core.budget.usage_report import scale_of
from compactd.core.extract.facts import FactCache
from compactd.core.planning.candidates import CutProblem
from compactd.core.planning.plan import NotCompacted, Plan, expected_result
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.answers import NOT_ASKED
from compactd.core.summary.compaction import Ask, CompactionOutcome, Draft
from compactd.protocol.errors import Cancelled, CannotFit
from compactd.protocol.messages import CompactionResult, Floor, Usage
from compactd.session.cost_decision import size_by_cost
from compactd.session.session import Session


async def try_compaction(
    session: Session, request: CompactRequest, *, plan_only: bool = False
) -> CompactionResult:
    """Return what the compaction would do, without changing anything. The numbers of tokens in the result are
    exact, except for the summary of a model.

    No model is asked. If the real compaction would ask one, the result contains the largest possible size of
    the summary, and the `usage` and `cost` of answers of full length. With `plan_only`, no summary is
    computed: the result contains the largest possible size of the summary, after about a tenth of the time.
    """
    is_cancelled = threading.Event()

    def check(phase: str, fraction: float) -> None:
        if is_cancelled.is_set():
            raise Cancelled("The dry run was cancelled.")

    planned = planner(session, request)
    # While a compaction fills the session's cache, use a separate one. Otherwise the compaction would have to
    # wait for this dry run.
    facts = FactCache(session.shown_dir) if session.operation else session.ensure_facts()
    await read_keys(session, request)
    check_model(session, request)
    summariser = summariser_of(session, request)

    def attempt() -> CompactionOutcome | CompactionResult:
        made = planned()
        if isinstance(made, NotCompacted):
            return made
        if plan_only:
            return expected_result(made)
        given = summary_input(session, made, facts, summariser, check)
        own = provider_compaction_of(session, request) if asks_provider(made) else NOT_ASKED
        if isinstance(own, ProviderCompaction):
            return _priced(session, _with_provider(made, own), own.name)
        if isinstance(summariser, Summariser):
            asks = CompactionDriver(given, own).step(())
            if isinstance(asks, tuple):
                return _priced(
                    session, _with_asks(expected_result(made), asks, session.counter.count), summariser.name
                )
        return drive(given, own)

    try:
        outcome = await session.host.run_compute(attempt, session.state.size)
    except asyncio.CancelledError:
        is_cancelled.set()
        raise
    if isinstance(outcome, NotCompacted):
        return expected_result(outcome, request.trigger)
    if isinstance(outcome, CompactionResult):
        return outcome
    told = outcome.result.reason
    reason = f"dry run: nothing was changed{'; ' if told else ''}{told}"
    summary = outcome.summary if isinstance(outcome, Draft) else ""
    return msgspec.structs.replace(outcome.result, reason=reason, summary=summary)


def _priced(session: Session, result: CompactionResult, model: str) -> CompactionResult:
    """Return `result` with the cost of its usage and the name of the model that would be asked."""
    if isinstance(result.usage, UnsetType):
        return result
    return add_cost(session, result, spending_of(session, [(model, result.usage)]))


def _with_provider(plan: Plan, own: ProviderCompaction) -> CompactionResult:
    """Return the expected result of `plan` with the usage that the provider's own compaction would have."""
    asked = request_tokens(plan, own.provider.shape)
    usage = Usage(input_tokens=asked, output_tokens=plan.summary_budget)
    return msgspec.structs.replace(expected_result(plan), usage=usage)


def _with_asks(
    result: CompactionResult, asks: tuple[Ask, ...], count: Callable[[str], int]
) -> CompactionResult:
    """Return `result` with the usage that the questions `asks` to a model would have. If the transcript is
    sent in parts, `asks` contains only the first questions, so the usage is too low."""
    usage = Usage(
        input_tokens=sum(count(ask.system) + count(ask.prompt) for ask in asks),
        output_tokens=sum(ask.max_tokens for ask in asks),
    )
    return msgspec.structs.replace(result, usage=usage)


async def size_after_compaction(session: Session) -> int | None:
    """Return the expected size of the next request if a compaction comes first, in tokens; None if a
    compaction would not make it smaller. If the cost decides, it is the size to which a compaction by cost
    reduces. Otherwise it is what `session/compact` with `plan_only` says. O(messages), in a worker."""
    chosen = size_by_cost(session)
    used = session.budget_status().used
    if chosen is not None:
        return chosen if chosen < used else None
    planned = planner(session, CompactRequest())
    try:
        made = await session.host.run_compute(planned, session.state.size)
    except CannotFit:
        return None
    if isinstance(made, NotCompacted):
        return None
    saved = scale_of(session.state, session.counter).tokens(made.tokens_before - made.tokens_expected)
    return session.budget_status().used - saved if saved > 0 else None


async def floor_of(session: Session) -> Floor:
    """Return the tokens that no compaction of the current view can remove."""
    inputs = inputs_of(session, CompactRequest())
    return await session.host.run_compute(lambda: CutProblem.of(inputs).floor(), session.state.size)
