"""Decide by its cost whether a session's next `turn/begin` compacts (setting `when`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from compactd.core.cost.cache_rules import cache_rules
from compactd.core.cost.policy import (
    KEPT_TOKENS,
    PolicyDecision,
    Situation,
    decide,
    prune_pays,
    target_of,
    unpriced,
)
from compactd.core.cost.price import Rates, rates_of
from compactd.core.history.message_kinds import is_request
from compactd.protocol.messages import Decision

if TYPE_CHECKING:
    from compactd.core.planning.prune import Pruning
    from compactd.session.session import Session

MAX_LEFT_SHARE = 0.8
"""A compaction by cost leaves at most this share of the request."""
SUMMARY_OUTPUT_TOKENS = 2_000
"""The expected output of a model that writes a summary, in tokens."""
MAX_SEARCHED_MESSAGES = 2_000
"""The newest request is looked for in this many messages; an older one counts as short."""


def decide_by_cost(session: Session, decision: Decision) -> Decision:
    """Return `decision`, which the window makes, with what the cost says added. If the cost says so, a
    compaction is due although the window has room. With `when: "window"`, return it unchanged. O(1), plus a
    search for the newest request if a compaction may be due.
    """
    if session.resolved.settings.when == "window" or not session.resolved.settings.enabled:
        return decision
    found = _policy(session)
    is_due = found.compact and decision.kind == "fits"
    return replace(
        decision,
        kind="due" if is_due else decision.kind,
        reason=found.reason,
        payback_turns=found.payback_turns,
        cold=found.cold,
    )


def reason_by_cost(session: Session) -> str:
    """Return why a compaction is due by cost; empty if none is, or if the window decides. O(1), as
    `decide_by_cost`."""
    if session.budget_status().decision.kind != "fits":
        return ""
    decision = session.decision
    return f"by cost, although the window has room: {decision.reason}" if decision.kind == "due" else ""


def cost_target(session: Session) -> int | None:
    """Return to how many estimated tokens a compaction by cost reduces the next request. Return None if the
    window decides, if the settings say how much to keep, or if this is nearly the size of the request, as in
    a small window. O(messages since the newest request)."""
    settings = session.resolved.settings
    if settings.when == "window" or isinstance(_rates(session), str):
        return None
    if settings.keep_recent_tokens is not None or settings.keep_messages is not None:
        return None
    target = target_of(sum(session.state.fixed), newest_request_tokens(session))
    return target if target <= MAX_LEFT_SHARE * session.state.estimated_size else None


def size_by_cost(session: Session) -> int | None:
    """Return the size of the next request after a compaction by cost, in the model's tokens; None if
    `cost_target` is None. O(messages since the newest request)."""
    target = cost_target(session)
    if target is None:
        return None
    return _fixed_tokens(session) + round(session.size.slope * (target - sum(session.state.fixed)))


def _fixed_tokens(session: Session) -> int:
    """Return what no compaction removes, in the model's tokens: system prompt, tools, and what only usage
    reports show."""
    return round(session.size.slope * sum(session.state.fixed)) + session.budget_status().hidden


def pruning_pays(session: Session, pruning: Pruning) -> bool:
    """Return whether a prune pays back what writing the rest of the context to the cache again costs; true if
    the window decides. O(messages)."""
    if session.resolved.settings.when == "window" or not pruning.stubs:
        return True
    rates = _rates(session)
    if isinstance(rates, str):
        return True
    first, behind = pruning.stubs[0].entry_id, 0
    for item in reversed(session.state.items):
        behind += item.tokens
        if item.entry_id == first:
            break
    return prune_pays(
        saved=pruning.tokens_saved,
        behind=behind - pruning.tokens_saved,
        requests=session.state.rhythm.requests,
        is_cold=is_cold(session) is True,
        rates=rates,
    )


def newest_request_tokens(session: Session) -> int:
    """Return the estimated tokens of the newest message in which the user asks something, 0 if it is not
    among the newest messages. O(messages after it)."""
    for item in reversed(session.state.items[-MAX_SEARCHED_MESSAGES:]):
        if is_request(item.message):
            return item.tokens
    return 0


def _policy(session: Session) -> PolicyDecision:
    rates = _rates(session)
    if isinstance(rates, str):
        return unpriced(rates)
    state, status, rhythm = session.state, session.budget_status(), session.state.rhythm
    summary_cost = _summary_cost(session, status.used)
    if summary_cost is None:
        return unpriced("the prices of the model that writes summaries are not known")
    if rhythm.last_at is not None and session.host.now() < rhythm.last_at:
        return unpriced("the clock has gone back since the last request")
    slope = session.size.slope
    fixed = _fixed_tokens(session)
    head = min(fixed, session.cached_head + status.hidden)
    left = sum(state.fixed) if rhythm.left is None else rhythm.left
    if session.refused_size is not None:
        left = max(left, session.refused_size)

    cold = is_cold(session)

    def situation(kept: int) -> Situation:
        after = fixed + round(slope * kept)
        return Situation(
            context=status.used,
            after=after,
            head=head,
            growth=rhythm.growth(),
            requests=rhythm.requests,
            grown=round(slope * (state.estimated_size - left)),
            is_cold=cold,
            saves_next=_saved_on_next(session, after) if cold else None,
            summary_cost=summary_cost,
        )

    settings = session.resolved.settings
    if settings.keep_recent_tokens is not None or settings.keep_messages is not None:
        # What a compaction leaves is up to the user. The last one shows how much that is.
        expected = (settings.keep_recent_tokens or 0) + KEPT_TOKENS
        return decide(situation(max(expected, (rhythm.left or 0) - sum(state.fixed))), rates)
    found = decide(situation(KEPT_TOKENS), rates)
    if not found.compact:
        return found
    return decide(situation(target_of(0, newest_request_tokens(session))), rates)


def _rates(session: Session) -> Rates | str:
    """Return the prices of the next request, or why they are not known: the end of a sentence."""
    found = session.lookup
    if found is None:
        return "the session names no model"
    if found.pricing is None:
        return f"the prices of {found.model} are not known"
    if cache_rules(found.provider, found.model) is None:
        return f"the rules of the prompt cache of {found.model} are not known"
    rates = rates_of(found.pricing, session.budget_status().used)
    if rates.cache_read <= 0:
        return "the model's prices are zero"
    # The policy knows one price of writes. In this session, it is this one.
    return replace(rates, cache_write_5m=rates.cache_write_1h) if session.ledger.lasts_an_hour else rates


def _saved_on_next(session: Session, after: int) -> float | None:
    """Return what a compaction to `after` tokens saves on the next request, in US dollars, as `session/cost`
    predicts it. O(1)."""
    now, compacted = session.predict_cost(), session.predict_compacted(after)
    return None if now is None or compacted is None else now - compacted


def is_cold(session: Session) -> bool | None:
    """Return whether the provider's cache has expired since the last request; None if that is not known."""
    rhythm, found = session.state.rhythm, session.lookup
    if rhythm.is_other_model:
        return True
    rules = None if found is None else cache_rules(found.provider, found.model)
    gap = rhythm.gap_s(session.host.now())
    if rules is None or gap is None:
        return None
    lifetime_s = session.bill().lifetime_s or rules.lifetime_s
    return None if lifetime_s is None else gap > lifetime_s


def _summary_cost(session: Session, context: int) -> float | None:
    """Return what a model's summary costs at most, in US dollars; 0 if no model writes it, None if its prices
    are not known."""
    settings = session.resolved.settings
    if settings.strategy in ("extract", "truncate") or settings.max_cost == 0:
        return 0.0
    own_model = session.state.model.model if session.runs_loop else None
    name = own_model if settings.strategy == "provider" else settings.model or own_model
    if name is None:
        return 0.0
    own = name == session.state.model.model
    found = session.host.lookup(name, session.state.model.base_url if own else None)
    if found is None or found.pricing is None:
        return None
    rates = rates_of(found.pricing, context)
    return context * rates.input + SUMMARY_OUTPUT_TOKENS * rates.output
