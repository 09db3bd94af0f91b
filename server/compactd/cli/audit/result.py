"""Everything that `compactd audit` knows about one session, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from compactd.cli.audit.bill import AuditedRebuild, Bill, CauseSum, CompactionSize
from compactd.cli.audit.losses import Loss
from compactd.cli.audit.reductions import ReductionEstimate, estimate_fields
from compactd.cli.audit.replay import ASSUMPTIONS, NoReplay, Replay
from compactd.cli.audit.trail import MAIN
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.reductions import Reductions, reduction_fields

Json = dict[str, object]


class Audit(Struct, frozen=True, kw_only=True):
    """The audit of one session."""

    bill: Bill
    policy: Replay | NoReplay
    losses: tuple[Loss, ...] = ()
    """What the compactions of the conversation with the user lost, oldest first."""
    reduction: ReductionEstimate | None = None
    """What reducing the tool outputs would have saved; None if the messages cannot be read."""
    reduced: Reductions = msgspec.field(default_factory=Reductions)
    """What reductions of this session saved, or would have saved, if compactd stores the session."""
    notes: tuple[str, ...] = ()
    """Sentences about what could not be read."""

    def loss_of(self, number: int) -> Loss | None:
        """Return what the compaction with this number lost; None if that is not known."""
        return self.losses[number - 1] if number <= len(self.losses) else None


def numbered_compactions(bill: Bill) -> list[tuple[CompactionSize, int | None]]:
    """Return the compactions and prunes with their number in the conversation with the user; None for prunes
    and for compactions of sub-agents."""
    found: list[tuple[CompactionSize, int | None]] = []
    number = 0
    for size in bill.compactions:
        is_main = size.boundary.kind == "compaction" and size.boundary.chain == MAIN
        number += is_main
        found.append((size, number if is_main else None))
    return found


def audit_fields(audit: Audit, prices: PriceList) -> Json:
    """Return the audit for `--json`."""
    bill = audit.bill
    return {
        **bill_fields(bill),
        "chains": [
            {
                "chain": one.chain or None,
                "requests": one.requests,
                "rebuilds": one.rebuilds,
                "rebuilt_tokens": one.rebuilt_tokens,
            }
            for one in bill.chains
        ],
        "rebuilds": [_rebuild_fields(one) for one in bill.rebuilds],
        "compactions": [
            _compaction_fields(size, None if number is None else audit.loss_of(number))
            for size, number in numbered_compactions(bill)
        ],
        "policy": policy_fields(audit.policy),
        "reductions": reduction_fields(audit.reduced),
        "reduction_estimate": None if audit.reduction is None else estimate_fields(audit.reduction),
        "unknown": list(bill.unknown),
        "prices": {"source": prices.source, "as_of": prices.as_of},
        "notes": list(audit.notes),
    }


def bill_fields(bill: Bill) -> Json:
    """Return the sums of a session for `--json`."""
    total = bill.total
    is_reported = total.cache_write_is_reported
    tokens, costs = bill.tokens, bill.costs
    is_priced = bill.is_priced
    return {
        "agent": bill.agent,
        "session_id": bill.session_id,
        "project": bill.project or None,
        "models": list(bill.models),
        "first_at": total.first_at or None,
        "last_at": total.last_at or None,
        "requests": total.requests,
        "tokens": {
            "input": tokens.input,
            "cache_read": tokens.cache_read,
            "cache_write_5m": tokens.cache_write_5m if is_reported else None,
            "cache_write_1h": tokens.cache_write_1h if is_reported else None,
            "output": tokens.output,
            "summary": tokens.summary,
            "total": total.total,
        },
        "costs_usd": {
            "input": costs.input if is_priced else None,
            "cache_read": costs.cache_read if is_priced else None,
            "cache_write_5m": costs.cache_write_5m if is_priced and is_reported else None,
            "cache_write_1h": costs.cache_write_1h if is_priced and is_reported else None,
            "output": costs.output if is_priced else None,
            "summary": costs.summary if is_priced else None,
            "total": total.cost_usd,
        },
        "reported_cost_usd": total.reported_usd if total.cost_reports else None,
        "unpriced": [{"model": model, "tokens": count} for model, count in bill.unpriced],
        "cached_share": total.cached_share,
        "output_is_too_low": bill.has_low_output,
        "rebuilt_tokens": bill.rebuilt_tokens,
        "rebuilt_cost_usd": bill.rebuilt_usd,
        "rewritten_share": bill.rewritten_share,
        "by_cause": cause_fields(bill.causes),
    }


def cause_fields(causes: Iterable[CauseSum]) -> list[Json]:
    """Return the sums by cause for `--json`."""
    return [
        {"cause": one.cause, "rebuilds": one.rebuilds, "tokens": one.tokens, "cost_usd": one.cost_usd}
        for one in causes
    ]


def _rebuild_fields(one: AuditedRebuild) -> Json:
    return {
        "at": one.at,
        "line": one.line,
        "entry_id": one.entry_id,
        "chain": one.chain or None,
        "model": one.model,
        "cause": one.cause,
        "has_expired": one.has_expired or one.cause == "expired",
        "seen": list(one.seen),
        "gap_s": one.gap_s,
        "tokens": one.tokens,
        "cost_usd": one.cost_usd,
    }


def _compaction_fields(size: CompactionSize, loss: Loss | None) -> Json:
    boundary = size.boundary
    return {
        "kind": boundary.kind,
        "chain": boundary.chain or None,
        "trigger": boundary.trigger or None,
        "at": boundary.at,
        "line": boundary.line,
        "tokens_before": size.tokens_before,
        "tokens_after": size.tokens_after,
        "lost": None
        if loss is None
        else {
            "messages": loss.messages,
            "constraints": list(loss.constraints),
            "constraints_before": loss.constraints_before,
            "tasks": list(loss.tasks),
            "tasks_before": loss.tasks_before,
            "facts": loss.facts_lost,
            "facts_used_again": loss.facts_used_again,
            "files_read_again": loss.files_read_again,
        },
    }


def loss_sums(losses: Sequence[Loss]) -> Json:
    """Return what several compactions lost together, for `--json`."""
    return {
        "constraints": sum(len(one.constraints) for one in losses),
        "constraints_before": sum(one.constraints_before for one in losses),
        "tasks": sum(len(one.tasks) for one in losses),
        "tasks_before": sum(one.tasks_before for one in losses),
        "facts": sum(one.facts_lost for one in losses),
        "facts_used_again": sum(one.facts_used_again for one in losses),
        "files_read_again": sum(one.files_read_again for one in losses),
    }


def policy_fields(policy: Replay | NoReplay) -> Json:
    """Return an estimate for `--json`."""
    if isinstance(policy, NoReplay):
        return {"estimate_usd": None, "reason": policy.reason}
    return {
        "estimate_usd": policy.estimate_usd,
        "recorded_usd": policy.recorded_usd,
        "requests": policy.requests,
        "compactions": policy.compactions,
        "recorded_compactions": policy.recorded_compactions,
        "side_requests": policy.side_requests,
        "assumptions": ASSUMPTIONS,
    }
