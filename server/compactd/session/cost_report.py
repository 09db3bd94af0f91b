"""The bill of a session, as `session/cost` returns it."""

from __future__ import annotations

from compactd.core.cost.price import rounded
from compactd.models.registry_files import PRICES_AS_OF, PRICES_FROM
from compactd.protocol import wire
from compactd.session.session import Session

MAX_SEARCHED = 50
"""How many messages are searched for an answer. A session with answers but without reports has no bill."""


def cost_report(session: Session, compacted_size: int | None) -> wire.CostResult:
    """Return what the session cost so far and what its next request will cost. `compacted_size`: how many
    tokens that request has if a compaction comes first; None if a compaction would not make it smaller.
    O(requests at the first call + cache rebuilds)."""
    bill, remarks = session.bill(), session.ledger.remarks()
    billed = bill.billed
    if not bill.requests and _has_answers(session):
        billed, remarks = None, (*remarks, "No answer has a usage report, so nothing of it is known.")
    now = session.predict_cost()
    if now is None and (session.state.model.model or "") not in bill.unpriced:
        remarks = (*remarks, _why_unpredicted(session.state.model.model))
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
            now=now,
            compacted=None if compacted_size is None else session.predict_compacted(compacted_size),
        ),
        prices=f"{PRICES_FROM}, {PRICES_AS_OF}",
        unknown=remarks,
    )


def _why_unpredicted(model: str | None) -> str:
    if model is None:
        return "What the next request costs is not known, because no model is named."
    return f"What the next request costs is not known: compactd's registry lists no price of {model}."


def _has_answers(session: Session) -> bool:
    """Return whether one of the first messages is an assistant's."""
    for item, _ in zip(session.state.originals.values(), range(MAX_SEARCHED), strict=False):
        if item.message.role == "assistant":
            return True
    return False
