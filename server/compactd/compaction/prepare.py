"""Prepare a compaction in the background, before it is due, so that the turn that needs it does not wait.

A preparation works on a snapshot of the session. It plans and summarises as a compaction at the threshold
would, but it takes no slot and sends no event. Its result is used only if nothing but messages came since,
and few enough of them. They follow the summary word for word. A model that summarises is asked next to the
conversation; if its answer is not used, the journal says what it was billed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import msgspec
from msgspec import Struct

from compactd._runtime.yield_gil import yield_gil
from compactd.compaction.driver import CompactionDriver, add_cost, planner, spent_on, summary_input
from compactd.compaction.summarizer import Summariser, answers_of, read_keys, summariser_of
from compactd.core.budget.budget import compute_budget
from compactd.core.budget.usage_report import estimated_size, scale_of
from compactd.core.cost.price import price
from compactd.core.history.entries import EntryId, Item, with_stub
from compactd.core.history.outline import Outline, OutlineBuilder
from compactd.core.history.projection import projected_tokens
from compactd.core.planning.plan import NotCompacted, strategies_of
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.answers import ModelReply, NoModel, SummaryAnswer, SummaryFailed
from compactd.core.summary.compaction import Draft, summary_item
from compactd.core.summary.input import SummaryInput
from compactd.core.summary.questions import Ask, add_reports
from compactd.protocol.errors import Cancelled, CompactdError
from compactd.protocol.messages import CompactionResult, Strategy, Usage
from compactd.session.cost_decision import cost_target
from compactd.session.memory import settle
from compactd.session.session import Session

REQUEST = CompactRequest(trigger="threshold")
"""The compaction that is prepared: the one that `turn/begin` makes when it is due."""

LEAD_DIVISOR = 10
"""A compaction is prepared at least threshold ÷ this before the threshold."""

LEAD_TURNS = 2
"""A compaction is prepared at least this many turns of the session's mean growth before the threshold. So it
is ready even if the last turn before the threshold grows twice as much as usual."""

MAX_LEADS_SINCE = 2
"""A prepared compaction is used, and not made again, until messages of this many leads came. Beyond that, the
summary would leave out too much."""

_log = logging.getLogger("compactd.preparing")


def lead_of(threshold: int, turn_sizes: Sequence[int]) -> int:
    """Return how many tokens before the threshold a compaction is prepared.

    `turn_sizes` are the sizes of the context at the beginnings of the last turns. Where they fall, the
    session was compacted or undone; such turns do not count. The lead is at most half of the threshold.
    """
    grown = [after - before for before, after in pairwise(turn_sizes) if after > before]
    turns = LEAD_TURNS * sum(grown) // len(grown) if grown else 0
    return min(max(threshold // LEAD_DIVISOR, turns), threshold // 2)


def mark_of(threshold: int, lead: int, compacted_to: int) -> int:
    """Return the size, in tokens, from which on a compaction is prepared.

    It is at least the middle between the size after the last compaction (`compacted_to`; 0 if there was
    none) and the threshold. So a conversation that has just been compacted is not prepared again.
    """
    return max(threshold - lead, (min(compacted_to, threshold) + threshold) // 2)


def is_wanted(session: Session) -> bool:
    """Return whether a compaction should be prepared for this session now. O(compactions).

    That is so if the session reached the mark, if its turns begin with `turn/begin` or in the daemon's own
    loop, and if a compaction at the threshold would not ask the client.
    """
    settings, standing = session.resolved.settings, session.budget_status()
    threshold = standing.threshold
    if settings.prepare != "auto" or not settings.enabled or threshold is None or not session.turn_sizes:
        return False
    if session.is_closed or session.journal is None or session.operation is not None:
        return False
    if session.has_compaction_hook or session.silent_overflow or not session.compacts_at_threshold:
        return False
    if _first_strategy(session) == "provider":
        return False  # the provider is asked when the compaction is due
    if cost_target(session) is not None:
        return False  # the cost decides, which makes smaller compactions at other sizes
    if standing.compared < mark_of(threshold, _lead(session, threshold), _compacted_to(session)):
        return False
    if _may_ask_model(session) and session.asked_ahead == session.state.begun:
        return False
    found = session.preparation
    return not isinstance(found, Preparation) or not found.is_current or found.is_stale


def _lead(session: Session, threshold: int) -> int:
    return lead_of(threshold, session.turn_sizes)


def _compacted_to(session: Session) -> int:
    """Return the size of the context directly after the last compaction, in the model's tokens; 0 if there
    was none. O(compactions)."""
    last = session.state.compactions()[-1:]
    if not last:
        return 0
    scale = scale_of(session.state, session.counter)
    return scale.tokens(last[0].result.tokens_after) + scale.hidden


def _may_ask_model(session: Session) -> bool:
    """Return whether a compaction at the threshold would first ask a model for the summary."""
    return _first_strategy(session) == "summarize"


def _first_strategy(session: Session) -> Strategy:
    """Return the strategy that a compaction at the threshold would try first."""
    settings = session.resolved.settings
    may_ask = session.runs_loop or settings.model is not None
    request = msgspec.structs.replace(REQUEST, may_ask_model=may_ask)
    return strategies_of(settings, request)[0]


class PreparedCompaction(Struct, frozen=True, kw_only=True):
    """A prepared compaction as it is carried out: what to journal, with the sizes that it has now."""

    draft: Draft
    first_kept: EntryId | None
    """The first message of the tail; None if the tail is empty."""
    result: CompactionResult
    """The result for the client, without an id, times and the summary's text."""


class Preparation:
    """The compaction that is prepared, or was prepared, for one session."""

    def __init__(self, session: Session) -> None:
        state = session.state
        self._session, self._state = session, state
        self._epoch, self._fixed = state.epoch, state.fixed
        self._read, self._leaf = len(state.path), state.leaf
        self._shown, self._tokens = len(state.items), state.items_tokens
        self._pins = dict(state.pin_marks)
        self._settings, self._counter = session.resolved.settings, session.counter
        self._lead = _lead(session, session.budget_status().threshold or 0)
        self._draft: Draft | None = None
        self._stays: frozenset[EntryId] = frozenset()
        self._outlining = OutlineBuilder()
        """The outline of the view that the compaction would leave, as of the snapshot."""
        self._usage: Usage | None = None
        """What the model's answers were billed so far; None if nothing, or if it was counted."""
        self._model = ""
        """The name of the model that was asked."""
        self._asking: asyncio.Future[tuple[SummaryAnswer, ...]] | None = None
        self._stopped = threading.Event()
        self._ended = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether the result is still being computed."""
        return not self._ended.is_set()

    @property
    def is_ready(self) -> bool:
        """Whether there is a result. It may have become unusable (`is_current`, `is_stale`)."""
        return self._draft is not None

    @property
    def is_current(self) -> bool:
        """Whether nothing but messages and usage reports came since the snapshot. O(pins)."""
        session, state = self._session, self._session.state
        return (
            state is self._state
            and state.epoch == self._epoch
            and len(state.path) >= self._read
            and (not self._read or state.path[self._read - 1] == self._leaf)
            and state.pin_marks == self._pins
            and session.resolved.settings == self._settings
            and session.counter == self._counter
            and not session.has_compaction_hook
        )

    @property
    def is_stale(self) -> bool:
        """Whether too much came since the snapshot. O(1)."""
        return self._state.items_tokens - self._tokens > MAX_LEADS_SINCE * self._lead

    def discard(self) -> None:
        """Drop the result, and count what it cost. If it is still being computed, stop that at its next step,
        or at once if a model is being asked."""
        self._stopped.set()
        self._draft, self._stays, self._outlining = None, frozenset(), OutlineBuilder()
        if self._asking is not None:
            self._asking.cancel()
        self._count_unused()

    async def wait_ended(self) -> None:
        """Wait until the result is computed, or until that has failed or was stopped."""
        await self._ended.wait()

    async def run(self) -> None:
        """Compute the result. There is none if nothing can be compacted, or if a model fails. Call this
        directly after the snapshot was made. Never raises."""
        session, facts = self._session, self._session.ensure_facts()
        planned = planner(session, REQUEST)
        try:
            plan = await session.host.in_worker(planned)
            if isinstance(plan, NotCompacted) or self._stopped.is_set():
                return
            await read_keys(session, REQUEST)
            if self._stopped.is_set():
                return
            summariser = summariser_of(session, REQUEST)
            given = summary_input(session, plan, facts, summariser, self._check, self._pause)
            stays = frozenset((*plan.pinned, *plan.kept))
            draft = await self._draft_of(given, summariser)
            if draft is None:
                return
            outlining = await session.host.in_worker(partial(_outline_after, given, draft))
            if not self._stopped.is_set() and self.is_current:
                self._draft, self._outlining, self._stays = draft, outlining, stays
        except CompactdError:
            pass  # it was stopped; or the compaction raises this again when it is due, and the client gets it
        except Exception:
            _log.exception("a compaction could not be prepared")
            if session.facts is facts:
                session.drop_facts()  # they may be incomplete
        finally:
            if self._draft is None:
                self._count_unused()
            self._ended.set()
        await session.host.in_worker(partial(settle, facts))

    async def _draft_of(
        self, given: SummaryInput, summariser: Summariser | NoModel | SummaryFailed
    ) -> Draft | None:
        """Return the compaction of `given`; None if it removes no message, or if the model failed that should
        summarise. Its steps are computed in workers. Between them the model is asked."""
        session, driver = self._session, CompactionDriver(given)
        answers: tuple[SummaryAnswer, ...] = ()
        while True:
            step = await session.host.in_worker(partial(driver.step, answers))
            if not isinstance(step, tuple):
                break
            answers = await self._answers_of(step, summariser)
        if not isinstance(step, Draft):
            return None
        if not isinstance(summariser, Summariser):
            return step
        if step.result.strategy != given.plan.strategies[0]:
            return None  # the model failed; it may succeed when the compaction is due
        return msgspec.structs.replace(
            step, result=add_cost(session, step.result, spent_on(session, summariser))
        )

    async def _answers_of(
        self, asks: Sequence[Ask], summariser: Summariser | NoModel | SummaryFailed
    ) -> tuple[SummaryAnswer, ...]:
        """Ask the model, and return its answers. The client gets no event."""
        self._check("summarize", 0.0)
        if isinstance(summariser, Summariser):
            self._session.asked_ahead, self._model = self._session.state.begun, summariser.name
        self._asking = asyncio.ensure_future(answers_of(summariser, asks, self._session, None))
        try:
            answers = await self._asking
        except asyncio.CancelledError:
            self._check("summarize", 0.0)  # it was stopped; otherwise the daemon ends
            raise
        finally:
            self._asking = None
        for answer in answers:
            if isinstance(answer, ModelReply) and answer.usage is not None:
                self._usage = add_reports(self._usage, answer.usage)
        if self._stopped.is_set():
            self._count_unused()
        return answers

    def _count_unused(self) -> None:
        """Write to the journal what the model's answers were billed, because they are not used. Until now,
        that was nowhere."""
        session, usage, self._usage = self._session, self._usage, None
        if usage is None:
            return
        found = session.host.lookup(self._model, None)
        cost = None if found is None else price(usage, found.pricing)
        # The summariser's window is not that of the session's model.
        usage = msgspec.structs.replace(usage, context_window=None)
        with contextlib.suppress(CompactdError):  # the journal may refuse writes
            session.count_usage(usage, None, summary_cost=cost or 0.0, summary_model=self._model)
            session.emit_usage()

    def _check(self, phase: str, fraction: float) -> None:
        if self._stopped.is_set():
            raise Cancelled("The prepared compaction is no longer needed.")

    def _pause(self) -> None:
        self._check("", 0.0)
        yield_gil()

    def take(self) -> PreparedCompaction | None:
        """Return the compaction as it is to be carried out now, with everything that came since the snapshot
        after its tail; None if it cannot be used. O(view)."""
        prepared = self._as_it_is_now()
        if prepared is None:
            self._count_unused()
        self._usage = None  # the result has it
        return prepared

    def _as_it_is_now(self) -> PreparedCompaction | None:
        draft, state = self._draft, self._state
        if draft is None or not self.is_current or self.is_stale:
            return None
        items = state.items
        came = items[self._shown :]
        known = state.kept.snapshot(items, lambda _: (), len(state.path))
        before = self._request_tokens(items, known.outline_of(tuple(items)))
        after = self._tokens_after(draft, items, came)
        if after >= before or not self._fits(after):
            return None
        result, first_kept = draft.result, draft.first_kept
        if first_kept is None and came:
            first_kept = came[0].entry_id
        return PreparedCompaction(
            draft=draft,
            first_kept=first_kept,
            result=msgspec.structs.replace(
                result,
                prepared=True,
                first_kept_entry_id=first_kept,
                kept_messages=result.kept_messages + len(came),
                messages_before=result.messages_before + len(came),
                messages_after=result.messages_after + len(came),
                tokens_before=before,
                tokens_after=after,
                tokens_saved=before - after,
            ),
        )

    def _tokens_after(self, draft: Draft, items: Sequence[Item], came: Sequence[Item]) -> int:
        """Return the tokens of the whole request after the compaction."""
        stubs = {stub.entry_id: stub for stub in draft.stubs}
        stays = [item for item in items[: self._shown] if item.entry_id in self._stays]
        shown = [with_stub(i, stubs[i.entry_id]) if i.entry_id in stubs else i for i in stays]
        for item in came:
            self._outlining.add(item)
        view = (summary_item(draft.summary, draft.summary_tokens), *shown, *came)
        return self._request_tokens(view, self._outlining.outline())

    def _request_tokens(self, view: Sequence[Item], outline: Outline) -> int:
        return sum(self._fixed) + projected_tokens(view, outline, self._counter)

    def _fits(self, after: int) -> bool:
        """Return whether a request of `after` tokens is below the threshold by at least the lead."""
        session = self._session
        size = estimated_size(after, scale_of(session.state, session.counter))
        standing = compute_budget(session.resolved, session.window, size)
        if standing.threshold is None or standing.decision.kind != "fits":
            return False
        return standing.compared <= standing.threshold - self._lead


def _outline_after(given: SummaryInput, draft: Draft) -> OutlineBuilder:
    """Return the outline of the view that the compaction leaves. Run this in a worker."""
    outlining = OutlineBuilder((summary_item(draft.summary, draft.summary_tokens), *given.stays))
    given.release()
    return outlining


async def prepare(session: Session) -> None:
    """Prepare a compaction of this session, and wait until it is computed."""
    session.drop_preparation()
    preparation = Preparation(session)
    session.preparation = preparation
    await preparation.run()


def take_prepared(session: Session, request: CompactRequest) -> PreparedCompaction | None:
    """Return the prepared compaction if it can be used for `request`; otherwise None. If it is computed, the
    session forgets it either way. O(view)."""
    found = _matching(session, request)
    if found is None or found.is_running:
        return None
    session.preparation = None
    return found.take()


def running_for(session: Session, request: CompactRequest) -> Preparation | None:
    """Return the preparation that is still being computed and would fit `request`; otherwise None."""
    found = _matching(session, request)
    return found if found is not None and found.is_running and found.is_current else None


def stop_running(session: Session) -> None:
    """Stop a preparation that is still being computed: a compaction that runs at the same time would wait for
    what it uses. A result stays."""
    found = session.preparation
    if isinstance(found, Preparation) and found.is_running:
        session.drop_preparation()


def _matching(session: Session, request: CompactRequest) -> Preparation | None:
    found = session.preparation
    if not isinstance(found, Preparation):
        return None
    # A session that is over its limit compacts with `force`, which only matters if no cut is valid.
    return found if msgspec.structs.replace(request, force=False) == REQUEST else None
