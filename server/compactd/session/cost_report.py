"""The bill of a session, as `session/cost` returns it."""

from __future__ import annotations

from compactd.core.budget.budget import keep_of, summary_budget
from compactd.core.budget.usage_report import scale_of
from compactd.core.cost.price import rounded
from compactd.models.registry_files import PRICES_AS_OF, PRICES_FROM
from compactd.protocol import wire
from compactd.session.cost_decision import cost_target
from compactd.session.session import Session

MAX_SEARCHED = 50
"""How many messages are searched for an answer. A session with answers but without reports has no bill."""


def cost_report(session: Session) -> wire.CostResult:
    """Return what the session cost so far and what its next request will cost. O(requests at the first call +
    cache rebuilds)."""
    bill, remarks = session.bill(), session.ledger.remarks()
    billed = bill.billed
    if not bill.requests and _has_answers(session):
        billed, remarks = None, (*remarks, "No answer has a usage report, so nothing of it is known.")
    return wire.CostResult(
        billed=rounded(billed),
        predicted=rounded(bill.predicted),
        requests=bill.requests,
        by_kind=wire.CostByKind(
            input=rounded(bill.cost_of("input")),
            cache_read=rounded(bill.cost_of("cache_read")),
            cache_write_5m=rounded(bill.cost_of("cache_write_5m")),
            cache_write_1h=rounded(bill.cost_of("cache_write_1h")),
            output=rounded(bill.cost_of("output")),
            summary=rounded(bill.cost_of("summary")),
        ),
        tokens=wire.TokensByKind(
            input=bill.tokens.input,
            cache_read=bill.tokens.cache_read,
            cache_write_5m=bill.tokens.cache_write_5m,
            cache_write_1h=bill.tokens.cache_write_1h,
            output=bill.tokens.output,
            summary=bill.tokens.summary,
        ),
        rebuilds=tuple(
            wire.CacheRebuild(
                entry_id=one.entry_id, cause=one.cause, tokens=one.tokens, cost=rounded(one.cost)
            )
            for one in bill.rebuilds
        ),
        next=wire.NextCost(
            now=rounded(session.predict_cost()), compacted=rounded(_predict_compacted(session))
        ),
        prices=f"{PRICES_FROM}, {PRICES_AS_OF}",
        unknown=remarks,
    )


def size_after_compaction(session: Session) -> int | None:
    """Return the expected size of the next request after a compaction, in tokens; None if a compaction would
    not make it smaller. If the cost decides, it is the size to which a compaction by cost reduces. Otherwise
    it is as large as the settings allow: the newest messages that stay, a summary like the last one or as
    large as it may be, and what no compaction removes. O(messages kept)."""
    state, standing = session.state, session.budget_status()
    settings, scale = session.resolved.settings, scale_of(state, session.counter)
    target = cost_target(session)
    if target is not None:
        return standing.used - scale.tokens(max(0, state.estimated_size - target))
    keep = keep_of(settings, "threshold", standing.window, standing.cap, standing.threshold)
    if keep.tokens is not None:
        tail = min(keep.tokens, state.items_tokens)
    else:
        start = max(0, len(state.items) - (keep.messages or 0))
        tail = sum(item.tokens for item in state.items[start:])
    earlier = state.compactions()[-1:]
    most = summary_budget(settings, standing.summary_window)
    summary = min(earlier[0].summary_tokens or most if earlier else most, state.items_tokens - tail)
    saved = scale.tokens(state.items_tokens - tail - summary)
    return standing.used - saved if saved > 0 else None


def _predict_compacted(session: Session) -> float | None:
    size = size_after_compaction(session)
    if size is None:
        return None
    return session.ledger.predict_compacted(
        session.state.usage_log,
        session.state.model,
        size=size,
        head=session.cached_head,
        at=session.host.now(),
    )


def _has_answers(session: Session) -> bool:
    """Return whether one of the first messages is an assistant's."""
    for item, _ in zip(session.state.originals.values(), range(MAX_SEARCHED), strict=False):
        if item.message.role == "assistant":
            return True
    return False
