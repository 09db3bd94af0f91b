"""The numbers of an audit as texts, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from msgspec import Struct

from compactd.cli.audit.bill import AuditedRebuild, Bill, CompactionSize
from compactd.cli.audit.losses import Loss
from compactd.cli.audit.not_told import name_list
from compactd.cli.audit.replay import NoReplay, Replay
from compactd.cli.audit.trail import AFTER_A_PROMPT
from compactd.cli.framework.page import plural
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.table import cost_text
from compactd.core.cost.ledger import Cause

CAUSE_TEXTS: dict[Cause, str] = {
    "compaction": "compaction",
    "prune": "prune",
    "model": "other model",
    "system": "system prompt",
    "tools": "tools",
    "messages": "rewind",
    "expired": "expired",
    "unknown": "unknown",
}
"""Cause -> its name in texts."""
MIN_DIFFERENCE_USD = 0.01
"""If the rows and the total differ by less, nothing is said."""
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


class KindRow(Struct, frozen=True):
    """A row of the bill."""

    kind: str
    tokens: str
    cost: str
    share: str
    """The share of the cost by the price list; empty if it is not known."""


def kind_rows(bill: Bill) -> list[KindRow]:
    """Return the bill by kind, the sum last. Kinds without tokens are left out."""
    tokens, costs, total = bill.tokens, bill.costs, bill.total
    # Only Claude Code's files say how long the cache lasts.
    written = "cache write 5 min" if bill.agent == "claude-code" else "cache write"
    kinds = (
        ("input", tokens.input, costs.input),
        ("cache read", tokens.cache_read, costs.cache_read),
        (
            written,
            tokens.cache_write_5m,
            costs.cache_write_5m,
        ),
        ("cache write 1 h", tokens.cache_write_1h, costs.cache_write_1h),
        ("output (too low)" if bill.has_low_output else "output", tokens.output, costs.output),
        ("summaries", tokens.summary, costs.summary),
    )
    rows = [
        KindRow(
            kind,
            f"{count:,}",
            dollars(cost) + ("" if bill.is_priced else "+") if costs.total else "unknown",
            f"{100 * cost / costs.total:.0f} %" if bill.is_priced and costs.total else "",
        )
        for kind, count, cost in kinds
        if count
    ]
    return [*rows, KindRow("total", f"{total.total:,}", cost_text(total), "")]


def price_notes(bill: Bill, prices: PriceList) -> list[str]:
    """Return sentences about where the costs come from."""
    total, told = bill.total, []
    if bill.costs.total:
        told.append(f"Cost at list prices: compactd's registry ({prices.source}), {prices.as_of}.")
    if total.cost_reports:
        told.append(f"* The session file reports ${total.reported_usd:,.2f} of the total itself.")
        if bill.costs.total and abs(bill.costs.total - (total.cost_usd or 0.0)) >= MIN_DIFFERENCE_USD:
            told.append("The rows are at list prices, so they do not add up to the total.")
    if bill.unpriced:
        names = name_list([name for name, _ in bill.unpriced])
        told.append(f"+ No price is known for {total.unpriced_tokens:,} tokens of {names}.")
    return told


def dollars(amount: float | None) -> str:
    """Return an amount: `$1.23`, `<$0.01`, `unknown`."""
    if amount is None:
        return "unknown"
    return "<$0.01" if 0 < amount < 0.005 else f"${amount:,.2f}"


def share_text(share: float | None) -> str:
    """Return a share: `53 %`, `unknown`."""
    return "unknown" if share is None else f"{100 * share:.0f} %"


def time_text(at: float | None, zone: tzinfo | None, *, is_short: bool = False) -> str:
    """Return a time to the minute; `no time` if it is not known."""
    if at is None:
        return "no time"
    try:
        return datetime.fromtimestamp(at, zone).strftime("%m-%d %H:%M" if is_short else "%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "no time"


def gap_text(gap_s: float | None) -> str:
    """Return a time span: `5 s`, `12 min`, `2.2 h`, `3 d`."""
    if gap_s is None:
        return "-"
    if gap_s < 2 * _MINUTE_S:
        return f"{gap_s:.0f} s"
    if gap_s < 2 * _HOUR_S:
        return f"{gap_s / _MINUTE_S:.0f} min"
    return f"{gap_s / _HOUR_S:.1f} h" if gap_s < 2 * _DAY_S else f"{gap_s / _DAY_S:.0f} d"


def cause_text(rebuild: AuditedRebuild) -> str:
    """Return the cause of a rebuild, and in brackets: whether its cache had expired too, or, if the cause is
    unknown, what else the file shows before it."""
    text = CAUSE_TEXTS[rebuild.cause]
    if rebuild.cause == "unknown" and rebuild.seen:
        return f"{text} ({', '.join(rebuild.seen)})"
    return f"{text} (expired too)" if rebuild.has_expired and rebuild.cause != "expired" else text


def chain_text(agent: str, chain: str) -> str:
    """Return what to say after a cause about the conversation; empty for the one with the user."""
    if not chain:
        return ""
    return f", {chain}" if agent == "aider" else ", sub-agent"


def after_prompts_text(rebuilds: Sequence[AuditedRebuild]) -> str:
    """Return how many rebuilds of unknown cause came right after a prompt, as a sentence; empty if none
    did."""
    unknown = [one for one in rebuilds if one.cause == "unknown"]
    after = sum(AFTER_A_PROMPT in one.seen for one in unknown)
    if not after:
        return ""
    if len(unknown) == 1:
        return "The unknown one is the first request after a prompt."
    if after == len(unknown):
        return f"All {after:,} unknown ones are the first request after a prompt."
    verb = "is" if after == 1 else "are"
    return f"{after:,} of the {len(unknown):,} unknown ones {verb} the first request after a prompt."


def size_text(size: CompactionSize) -> str:
    """Return the sizes of the context around a compaction."""
    before = "unknown" if size.tokens_before is None else f"{size.tokens_before:,}"
    after = "unknown" if size.tokens_after is None else f"{size.tokens_after:,}"
    return f"{before} → {after} tokens"


def losses_text(losses: Sequence[Loss]) -> str:
    """Return what compactions lost together, as one line."""
    told, unspoken = [], []
    constraints = sum(one.constraints_before for one in losses)
    tasks = sum(one.tasks_before for one in losses)
    facts = sum(one.facts_used_again for one in losses)
    if constraints:
        unspoken.append(
            f"{sum(len(one.constraints) for one in losses):,} of {plural(constraints, 'constraint')}"
        )
    if tasks:
        unspoken.append(f"{sum(len(one.tasks) for one in losses):,} of {plural(tasks, 'open task')}")
    if unspoken:
        told.append(f"the context no longer has the words of {' and '.join(unspoken)}")
    if facts:
        lost = sum(one.facts_lost for one in losses)
        told.append(
            f"of {plural(facts, 'fact')} that the agent used again later,"
            f" {lost:,} {'was' if lost == 1 else 'were'} no longer in its context"
        )
    if files := sum(one.files_read_again for one in losses):
        told.append(f"{plural(files, 'file')} read again")
    return "; ".join(told) or "nothing that was needed later is missing"


def policy_text(policy: Replay | NoReplay) -> str:
    """Return what compactd's policy would have cost, as one sentence."""
    if isinstance(policy, NoReplay):
        return f"unknown: {policy.reason[0].lower()}{policy.reason[1:]}"
    covered = plural(policy.requests, "request")
    if policy.side_requests:
        covered += f" (without {policy.side_requests:,} of sub-agents)"
    if policy.is_same:
        return f"no difference for {covered}: neither the agent nor the policy compacts"
    return (
        f"about {dollars(policy.estimate_usd)} instead of {dollars(policy.recorded_usd)} for {covered},"
        f" with {plural(policy.compactions, 'compaction')} instead of {policy.recorded_compactions:,}"
        " (estimate)"
    )


def rebuild_text(bill: Bill) -> str:
    """Return all rebuilds as one line."""
    if not bill.rebuilds:
        return "no rebuild of the cache"
    share = bill.rewritten_share
    of = "" if share is None else f", {share_text(share)} of all tokens written to the cache"
    together = "of" if len(bill.rebuilds) == 1 else "of the cache, together"
    return f"{plural(len(bill.rebuilds), 'rebuild')} {together} {bill.rebuilt_tokens:,} tokens{of}"
