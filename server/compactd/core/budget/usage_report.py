"""The token usage of a session as clients see it, computed from the session's fold."""

from __future__ import annotations

from msgspec.structs import replace

from compactd.core.budget.budget import BudgetStatus, RequestSize, Window
from compactd.core.history.calibration import EXACT, Scale
from compactd.core.history.state import SessionState, size_without
from compactd.core.models.lookup import Lookup
from compactd.core.models.observed import Observed, lookup_with_observed
from compactd.core.tokens.counting import Counter, ScriptAware
from compactd.protocol.messages import ContextUsage, TokenUsage


def size_of(fold: SessionState, scale: Scale = EXACT) -> RequestSize:
    """Return the size of the next request. `scale` converts the estimates into the model's tokens. O(1)."""
    report = fold.last_report.usage if fold.base is not None and fold.last_report else None
    if report is None:
        return estimated_size(fold.estimated_size, scale)
    answer, base = fold.calibrator.answer, fold.base or 0
    after, said = fold.trailing - answer.counted, answer.tokens(scale)
    came = scale.tokens(after)
    if after < 0:  # the system prompt or the tools became shorter by more tokens than the new messages have
        came = size_without(base + said, -came, scale.tokens(fold.estimated_size)) - base - said
    return RequestSize(
        estimated=scale.tokens(fold.estimated_size),
        base=fold.base,
        trailing=said + came,
        report=report,
        slope=scale.slope,
        hidden=scale.hidden,
        reported_estimate=scale.tokens(fold.estimated_size - after - answer.estimate) + scale.hidden,
    )


def scale_of(fold: SessionState, counter: Counter) -> Scale:
    """Return how to convert this session's estimates into the model's tokens. Only the estimates of a
    `ScriptAware` counter are calibrated. It is used if the model's own tokenizer is not available. O(1)."""
    if not isinstance(counter, ScriptAware):
        return EXACT
    return fold.calibrator.scale(counter.name, fold.model.model, counter.factor)


def estimated_size(estimated: int, scale: Scale) -> RequestSize:
    """Return the size of a request that has no usage report. `estimated` is its estimate, which `scale`
    converts into the model's tokens."""
    return RequestSize(estimated=scale.tokens(estimated), slope=scale.slope, hidden=scale.hidden)


def window_of(fold: SessionState, known: Lookup | None, learned: Observed | None = None) -> Window:
    """Return the limits of the session's model. If the client named a window, it is used. Otherwise the
    limits come from `known`, the registry's, and `learned`, what the model's server said. A limit that a
    provider named in this session is added only if `known` is not used."""
    given, rejected = fold.model.context_window, fold.rejected
    if given is not None:
        window = Window(window=given, confidence="override", source="session/start: context_window")
    elif known is None:
        window = Window(source="the session names no model")
    else:
        window = known_window(known, learned)
    if given is not None or known is None:
        refused = rejected.limit if rejected else None
        window = replace(window, observed=refused, observed_source="a rejected request of this session")
    is_refused = rejected is not None and rejected.limit is None
    window = replace(window, reported=fold.reported_window, rejected=is_refused)
    return window if given is not None else _recorded_window(fold, window)


def _recorded_window(fold: SessionState, known: Window) -> Window:
    """Return `known` with the window that the imported file shows. If the file shows none, or if a larger
    request has been accepted since, return `known` unchanged."""
    recorded = fold.model.recorded_window
    if recorded is None or fold.last_prompt_tokens > recorded:
        return known
    source = fold.model.recorded_source
    if known.window is not None and known.confidence != "guess":
        source = f"{source}; the registry says {known.window:,} ({known.confidence})"
    return replace(known, window=recorded, confidence="observed", source=source)


def known_window(known: Lookup, learned: Observed | None) -> Window:
    """Return the limits of a model from the registry (`known`) and from what its server said (`learned`). No
    session is needed."""
    if learned is not None and learned.by == "server":
        known, learned = lookup_with_observed(known, learned), None
    return Window(
        window=known.context_window,
        confidence=known.confidence,
        source=f"{known.source}: {known.how}",
        input_limit=known.input_limit,
        output_limit=known.output_limit,
        observed=learned.window if learned else None,
        observed_source=learned.source if learned else "",
    )


def token_usage(fold: SessionState, standing: BudgetStatus) -> TokenUsage:
    """Return the tokens billed so far and the current size of the context. O(1)."""
    bill, window = fold.billing, standing.window
    return TokenUsage(
        prompt_tokens=bill.prompt,
        completion_tokens=bill.completion,
        total_tokens=bill.prompt + bill.completion,
        cache_read_tokens=bill.cache_read,
        cache_write_tokens=bill.cache_write,
        reasoning_tokens=bill.reasoning,
        last_prompt_tokens=fold.last_prompt_tokens,
        current_context_tokens=standing.used,
        compared_tokens=standing.compared,
        current_context_source=(
            "estimated" if fold.base is None else "mixed" if fold.trailing else "measured"
        ),
        context_window=window,
        context_window_confidence=standing.confidence,
        threshold_tokens=standing.threshold if standing.enabled else None,
        percent=round(100 * standing.used / window, 2) if window else None,
        decision=standing.decision.kind,
        epoch=fold.epoch,
    )


def context_usage(standing: BudgetStatus) -> ContextUsage:
    """Return the size of the context after a turn, as in the event `turn_end`. O(1)."""
    return ContextUsage(
        tokens=standing.used,
        usage_tokens=standing.reported,
        trailing_tokens=standing.used - standing.reported,
    )
