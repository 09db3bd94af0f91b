"""Drive a compaction: compute its steps in workers, and ask the model between the steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial

import msgspec
from msgspec import UNSET, Struct, UnsetType

from compactd._runtime.yield_gil import yield_gil
from compactd.compaction.provider_summary import STRATEGY, ask_provider, asks_provider, provider_compaction_of
from compactd.compaction.summarizer import Summariser, answers_of, read_while_asking
from compactd.core.budget.budget import in_estimates
from compactd.core.budget.settings import DEFAULT_PROFILE
from compactd.core.budget.usage_report import scale_of
from compactd.core.cost.price import price
from compactd.core.extract.facts import FactCache
from compactd.core.planning.plan import NotCompacted, Plan, plan
from compactd.core.planning.request import CompactRequest, Fixed, Inputs
from compactd.core.summary.answers import NOT_ASKED, ProviderAnswer
from compactd.core.summary.compaction import (
    Ask,
    CompactionOutcome,
    NoModel,
    SummaryAnswer,
    SummaryFailed,
    SummaryInput,
    read_ahead,
)
from compactd.core.summary.compaction import compact as flow
from compactd.core.summary.questions import add_reports
from compactd.protocol.messages import CompactionResult, Usage
from compactd.session.session import Session
from compactd.session.slot import ExclusiveOperation


def planner(session: Session, request: CompactRequest) -> Callable[[], Plan | NotCompacted]:
    """Return a function that plans the compaction. It works on a copy of the session's state, so it can
    run in a worker."""
    return partial(plan, inputs_of(session, request))


def inputs_of(session: Session, request: CompactRequest) -> Inputs:
    """Return a copy of what a plan needs, and what carrying it out needs, of the session's state, with the
    request. O(messages), at the speed of copying memory."""
    state = session.state
    last = state.compactions()[-1:]
    may_ask_model = request.may_ask_model or session.runs_loop or session.resolved.settings.model is not None
    is_repeated = bool(last) and last[0].asked == budget_of(request) and state.leaf == last[0].id
    return Inputs(
        view=state.view(),
        originals=tuple(state.path_items()),
        earlier=state.earlier_summaries(),
        fixed=Fixed(*state.fixed),
        settings=session.resolved.settings,
        standing=in_estimates(session.budget_status(), scale_of(state, session.counter)),
        request=msgspec.structs.replace(
            request,
            is_repeated=is_repeated,
            may_ask_model=may_ask_model,
            unasked="" if may_ask_model else explain_no_model(session, request),
        ),
        counter=session.counter,
        pinned=state.pinned_by_id(),
        known=state.kept.snapshot(state.items, state.path_items, len(state.path)),
        limits=session.facts.limits if session.facts is not None else None,
    )


def explain_no_model(session: Session, request: CompactRequest) -> str:
    """Return the reason to report if the strategy `auto` asks no model, or an empty string if there is
    nothing to report.

    A reason is reported only if the user may expect that a model is asked. That is so if the request names
    `auto`, or if the settings choose the profile of an agent that asks the session's model by default
    (docs/specs.md).
    """
    settings, own = session.resolved.settings, session.state.model.model
    if (request.strategy or settings.strategy) != "auto":
        return ""
    if request.strategy is None and (own is None or settings.profile == DEFAULT_PROFILE):
        return ""
    model = "no model was asked for a summary" if own is None else f"{own} was not asked for a summary"
    return f"{model}: name the model to ask in `model`, or in the setting `compaction.model`"


def budget_of(request: CompactRequest) -> str:
    """Return a text that is the same for two requests with the same trigger, limits and `force`."""
    asked = (
        request.trigger,
        request.keep_recent,
        request.keep_messages,
        request.target_tokens,
        "force" if request.force else None,
    )
    return " ".join("-" if part is None else str(part) for part in asked)


def summary_input(
    session: Session,
    plan: Plan,
    facts: FactCache,
    summariser: Summariser | NoModel | SummaryFailed,
    check: Callable[[str, float], None],
    pause: Callable[[], None] = yield_gil,
) -> SummaryInput:
    """Return what the summary of `plan` is made from. Making it calls `check(phase, fraction)` to report
    progress; `check` raises `Cancelled` to stop it. `facts` keeps the facts of messages between
    compactions. `pause` is called every few milliseconds and lets other threads run; it may raise too."""
    work, path = session.work(), plan.inputs.originals
    return SummaryInput(
        plan=plan,
        facts=facts,
        read_work=lambda: work.after(path),
        working_dir=session.shown_dir,
        summariser_window=summariser.window if isinstance(summariser, Summariser) else None,
        check=check,
        pause=pause,
    )


def drive(given: SummaryInput, own: ProviderAnswer = NOT_ASKED) -> CompactionOutcome:
    """Carry out the plan `given.plan` to its end without a model, and return the outcome. Every question for
    a model gets the answer `NoModel`. `own` is the answer of the provider's own compaction."""
    driver = CompactionDriver(given, own)
    step = driver.step(())
    while isinstance(step, tuple):
        step = driver.step(tuple(NoModel() for _ in step))
    return step


class CompactionDriver:
    """A compaction in progress. Each step computes up to the next questions for a model, or to the end. A
    step may run in any thread."""

    def __init__(self, given: SummaryInput, own: ProviderAnswer = NOT_ASKED) -> None:
        self.own = own
        """The answer of the provider's own compaction. It may be set until the first step."""
        self._given = given
        self._steps: Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], CompactionOutcome] | None = None

    def step(self, answers: tuple[SummaryAnswer, ...]) -> tuple[Ask, ...] | CompactionOutcome:
        """Compute the next step. `answers` are the answers to the questions that the step before returned;
        the first step gets none. Return the next questions, or the outcome if this was the last step."""
        with self._given.facts.lock:
            try:
                if self._steps is not None:
                    return self._steps.send(answers)
                self._steps = flow(self._given, self.own)
                return next(self._steps)
            except StopIteration as end:
                outcome: CompactionOutcome = end.value
                # Free what was computed here in the worker. Otherwise the event loop would free it, all at
                # once.
                self._given.release()
                return outcome

    def read_ahead(self, is_answered: Callable[[], bool]) -> None:
        """Compute the part of the next step that does not depend on the model's answers. Call this while the
        model answers.

        The computation stops when `is_answered` returns true.
        """
        with self._given.facts.lock:
            read_ahead(self._given, is_answered)


async def run_flow(
    session: Session,
    running: ExclusiveOperation,
    given: SummaryInput,
    summariser: Summariser | NoModel | SummaryFailed,
    own_reports: list[Usage],
) -> CompactionOutcome:
    """Carry out the plan `given.plan` to its end, and return the outcome. The steps are computed in workers.
    Between the steps, the event loop waits for the summariser's answers. The usage of the provider's own
    compaction is added to `own_reports`, also if a later step fails."""
    driver = CompactionDriver(given)
    answers: tuple[SummaryAnswer, ...] = ()
    if asks_provider(given.plan):
        running.check(STRATEGY, 0.1)
        found = provider_compaction_of(session, given.plan.inputs.request)
        if isinstance(found, ProviderAnswer):
            driver.own = found
        else:
            own = read_while_asking(ask_provider(session, given.plan, found), session, driver.read_ahead)
            driver.own = await running.run_unless_stopped(own)
            if driver.own.usage is not None:
                own_reports.append(driver.own.usage)
    while True:
        step = await session.host.run_compute(partial(driver.step, answers), session.state.size)
        if not isinstance(step, tuple):
            return step
        running.expect(step[0].max_tokens)
        asking = answers_of(summariser, step, session, running.report_text)
        if isinstance(summariser, Summariser) and not answers:
            asking = read_while_asking(asking, session, driver.read_ahead)
        answers = await running.run_unless_stopped(asking)


def add_cost(session: Session, result: CompactionResult, spent: SummarySpending) -> CompactionResult:
    """Return `result` with the cost of the answers and the name of the model that was asked; unchanged if
    none was asked. The name is left out if the model's answers did not become the summary."""
    if isinstance(result.usage, UnsetType) or spent.model is None:
        return result
    name, cost = spent.model, spent.cost
    return msgspec.structs.replace(
        result,
        model=name if result.strategy in ("summarize", STRATEGY) else UNSET,
        cost=UNSET if cost is None else cost,
    )


class SummarySpending(Struct, frozen=True, kw_only=True):
    """What a model was asked for a summary, whether the summary was used or not."""

    usage: Usage | None = None
    """All its reports as one; None if there is none."""
    model: str | None = None
    cost: float | None = None
    """In US dollars; None if the model's prices are not known."""


def spent_on(
    session: Session, summariser: Summariser | NoModel | SummaryFailed, own: Sequence[Usage] = ()
) -> SummarySpending:
    """Return what models have reported so far. `own` are the reports on the provider's own compaction, which
    the session's model wrote. Each answer is priced by itself. O(answers)."""
    reports = [(session.state.model.model or "", report) for report in own]
    if isinstance(summariser, Summariser):
        reports += [(summariser.name, report) for report in summariser.reports]
    return spending_of(session, reports)


def spending_of(session: Session, reports: Sequence[tuple[str, Usage]]) -> SummarySpending:
    """Return what the answers with these reports took. `reports`: (the model's name, its report).
    O(answers)."""
    if not reports:
        return SummarySpending()
    usage: Usage | None = None
    for _, report in reports:
        usage = add_reports(usage, report)
    return SummarySpending(
        usage=usage, model=reports[-1][0], cost=_sum_of([_price(session, *one) for one in reports])
    )


def _price(session: Session, model: str, report: Usage) -> float | None:
    found = session.host.lookup(model, None)
    return price(report, None if found is None else found.pricing)


def _sum_of(costs: Sequence[float | None]) -> float | None:
    """Return the sum; None if one of the costs is not known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
