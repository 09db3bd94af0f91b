"""Recover from a failed model request: classify it, learn from it, and make the next request fit.

After an overflow, the session is compacted at once, and less than usual is kept. After each further rejection
in the same turn, a strictly smaller request is sent, until three smaller requests were rejected. If a lower
output limit alone makes the request fit, nothing is compacted. (Rules: docs/dev/behaviour.md, "Overflow".)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from compactd.core.budget.rules import Rules
from compactd.core.history.append import Report
from compactd.core.history.entries import Rejected
from compactd.core.planning.request import CompactRequest
from compactd.core.tokens.usage import context_size
from compactd.formats.messages.provider_summary import is_refused_summary
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Floor, OverflowDetected
from compactd.protocol.wire import ErrorResult
from compactd.session.provider_summary import refuse_summary
from compactd.session.session import Session
from compactd.session.slot import Progress

if TYPE_CHECKING:
    from compactd.core.overflow.classify import Verdict

ATTEMPTS = 3
"""How many smaller requests are tried in one turn. After one more rejection, `recover` gives up."""

MAX_RETRY_SHARE = 0.75
"""The maximum size of the next request after a repeated rejection, as a share of the rejected request's
size."""

MARGIN = 0.9
"""The target size of the next request, as a share of the provider's limit. It is below 1 because compactd and
the provider count tokens differently."""


class FailedRequest(Struct, frozen=True, kw_only=True):
    """What a client reports about a model request that failed."""

    status: int | None = None
    """The HTTP status."""
    code: str | None = None
    """The provider's error code."""
    text: str = ""
    """The error's body or message, as received."""
    provider: str | None = None
    """The provider's name."""
    report: Report | None = None
    """The provider's usage report, if it gave one."""
    epoch: int | None = None
    """The epoch of the view that was sent."""
    window: int | None = None
    """The model's context window in tokens, if the client knows it."""
    stop_reason: str | None = None
    """The provider's word for why the answer ended, if there was an answer."""


def verdict_of(failed: FailedRequest, session: Session | None, rules: Rules | None = None) -> Verdict:
    """Return what kind of failure this is, by its text, the request's size and the model's window. O(text).

    `rules` are the rules of a profile, by default of the session's profile.
    """
    from compactd.core.overflow.classify import FailureReport, classify

    report = failed.report[0] if failed.report else None
    used = context_size(report) if report else None
    provider, window = failed.provider, failed.window
    if session is not None:
        standing = session.budget_status()
        rules = rules or session.resolved.settings.rules
        used = used or standing.used
        window = window or standing.cap
        provider = provider or (session.lookup.provider if session.lookup else None)
    return classify(
        FailureReport(
            status=failed.status,
            code=failed.code,
            text=failed.text,
            provider=provider,
            used=used,
            output=report.output_tokens if report else None,
            window=window,
            stop_reason=failed.stop_reason,
            bodiless_is_overflow=rules is not None and rules.bodiless_is_overflow,
        )
    )


async def recover(session: Session, failed: FailedRequest, progress: Progress | None = None) -> ErrorResult:
    """Return whether a failed model request can be sent again, and why. If the request was too long, first
    compact the session, or name a lower output limit with which the request fits.

    If a compaction is already running, wait for it first. If `recover` itself starts one, that compaction
    reports to `progress`.

    If nothing helps, the result has `retry: false` and the reason. Raises only `SessionLocked` and
    `StorageFailed`.
    """
    if session.operation is not None:
        await session.operation.wait_ended()
    session.require_journal()
    if failed.report is not None:
        session.count_usage(failed.report[0], failed.epoch)
    verdict = await session.host.in_worker(lambda: verdict_of(failed, session))
    if is_refused_summary(failed.status, failed.code, failed.text) and refuse_summary(session):
        return ErrorResult(overflow=False, kind=verdict.kind, retry=True, reason=_REFUSED_SUMMARY)
    if verdict.fix == "lower_output":
        return _lower_output(session, verdict)
    if verdict.fix != "compact":
        reason = _REASONS.get(verdict.fix, _REASONS["none"])
        return ErrorResult(overflow=verdict.overflow, kind=verdict.kind, retry=False, reason=reason)
    return await _shrink_request(session, verdict, progress)


_REASONS = {
    "retry_later": "This is not an overflow: wait, then send the same request again.",
    "truncate_item": "One item of the request is too large for the provider: send it smaller.",
    "none": "This is not an overflow; a smaller conversation would fail in the same way.",
}
"""What the client should do if neither a compaction nor a lower output limit helps, by `Verdict.fix`."""


_REFUSED_SUMMARY = (
    "The provider does not take its own summary back: send the request again, which now contains compactd's."
)


def _lower_output(session: Session, verdict: Verdict) -> ErrorResult:
    """Return the result that names the output limit with which the request fits; `retry: false` if that limit
    is unknown."""
    answer = partial(ErrorResult, overflow=verdict.overflow, kind=verdict.kind)
    standing = session.budget_status()
    most = verdict.limit
    if verdict.overflow:
        whole = verdict.limit or standing.window
        most = None if whole is None else whole - (verdict.input or standing.used)
    if most is None:
        return answer(retry=False, reason="The requested output is too large: lower max_tokens.")
    return answer(
        retry=True,
        reason=f"The requested output is too large: send the request again with max_tokens {max(1, most):,}.",
        max_output_tokens=max(1, most),
    )


async def _shrink_request(session: Session, verdict: Verdict, progress: Progress | None) -> ErrorResult:
    """Compact the session so that the next request is smaller than the rejected one. Return whether the
    client should send the next request, with the reason."""
    from compactd.compaction.dry_run import floor_of
    from compactd.compaction.run import compact

    answer = partial(ErrorResult, overflow=verdict.overflow, kind=verdict.kind)
    await _learn(session, verdict)
    session.emit(
        OverflowDetected(source=verdict.evidence or "error", limit=verdict.limit, requested=verdict.requested)
    )
    if not session.resolved.settings.enabled:
        return answer(retry=False, reason="Compaction is disabled for this session.")
    session.overflow_attempts += 1
    if session.overflow_attempts > ATTEMPTS:
        floor = await floor_of(session)
        return answer(
            retry=False,
            reason=f"the request cannot fit: {ATTEMPTS} smaller requests were rejected too. Shorten the "
            "newest request, offer fewer tools, or choose a model with a larger window.",
            floor=floor,
        )
    sent = session.state.estimated_size
    try:
        result = await compact(session, _compact_request(session, verdict, sent), progress=progress)
    except CannotFit as error:
        smallest = await _compact_to_floor(session, error, sent, progress)
        if smallest is None:
            return answer(retry=False, reason=error.message, floor=floor_in(error))
        result = smallest
    session.last_sent_epoch = session.state.epoch
    if not result.compacted:
        return answer(
            retry=False,
            reason=f"no compaction makes the request smaller: {result.reason}",
            compaction=result,
            floor=await floor_of(session),
        )
    most = session.budget_status().budget.max_output.value
    return answer(
        retry=True,
        reason=f"The conversation was compacted ({result.tokens_before:,} → {result.tokens_after:,} tokens): "
        "send the turn again.",
        compaction=result,
        max_output_tokens=None if most is None else max(1, most),
    )


async def _learn(session: Session, verdict: Verdict) -> None:
    """Write the rejection to the journal, and learn the context window if its text names one.

    The window applies to this model and endpoint in all sessions. If the rejection is doubtful or may be a
    quotation, the window applies only to this session.
    """
    accepted = session.state.last_prompt_tokens
    limit = verdict.limit if verdict.teaches and (verdict.limit or 0) > accepted else None
    refusal = Rejected(at=session.host.now(), limit=limit, requested=verdict.requested)
    found, base_url, sent = session.lookup, session.state.model.base_url, session.budget_status().used
    if limit is not None and found is not None:
        learn = partial(
            session.host.learn,
            found,
            base_url,
            limit,
            requested=verdict.requested,
            sent=sent,
            is_own=verdict.is_own,
        )
        observed = await session.host.in_worker(learn)
        if observed is not None and observed.by == "sighting":
            refusal = msgspec.structs.replace(refusal, doubtful=True)
    number = session.write(refusal)
    before = session.token_usage()
    session.refresh()
    await session.wait_durable(number)
    if session.token_usage() != before:
        session.emit_usage()


def _compact_request(session: Session, verdict: Verdict, sent: int) -> CompactRequest:
    """Return the compaction to try. `sent` is compactd's estimate of the rejected request's size.

    The first attempt has no target size and keeps a fifth of the window. Later attempts have a target size.
    So has the first if compactd's estimate says that the rejected request would have fitted.
    """
    targets = []
    if verdict.limit is not None and verdict.requested is not None and verdict.requested > verdict.limit:
        fits = int(sent * verdict.limit / verdict.requested * MARGIN)
        cap = session.budget_status().cap
        if session.overflow_attempts > 1 or not verdict.overflow or (cap is not None and sent <= cap):
            targets.append(fits)
    if session.overflow_attempts > 1:
        targets.append(int(sent * MAX_RETRY_SHARE))
    if not targets:
        return CompactRequest(trigger="overflow", force=True)
    return CompactRequest(
        trigger="overflow", force=True, target_tokens=max(1, min(targets)), strategy="extract"
    )


async def _compact_to_floor(
    session: Session, error: CannotFit, sent: int, progress: Progress | None
) -> CompactionResult | None:
    """Compact the session almost to the floor that `error` names. Return None if that is not possible, or if
    the next request would not be strictly smaller than the rejected one of `sent` tokens."""
    from compactd.compaction.run import compact

    floor = floor_in(error)
    least = 0 if floor is None else floor.system + floor.tools + floor.last_request + floor.summary
    target = least + (sent - least) // 8
    if not least < target < sent:
        return None
    request = CompactRequest(trigger="overflow", force=True, target_tokens=target, strategy="extract")
    try:
        return await compact(session, request, progress=progress)
    except CannotFit:
        return None


def floor_in(error: CannotFit) -> Floor | None:
    """Return the floor that a `CannotFit` error names; None if it names none."""
    try:
        return msgspec.convert(error.data.get("floor"), Floor)
    except msgspec.ValidationError:
        return None
