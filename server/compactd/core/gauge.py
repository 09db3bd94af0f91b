"""The numbers of a session as clients show them, from its fold."""

from __future__ import annotations

from compactd.core.budget import Size, Standing, Window
from compactd.core.fold import Fold
from compactd.core.registry import Lookup
from compactd.messages import ContextUsage, TokenUsage


def size_of(fold: Fold) -> Size:
    """How large the next request is. O(1)."""
    report = fold.last_report.usage if fold.base is not None and fold.last_report else None
    return Size(estimated=fold.estimated, base=fold.base, trailing=fold.trailing, report=report)


def window_of(fold: Fold, known: Lookup | None) -> Window:
    """The model's limits: the window that the client named for its model, else what the registry says."""
    given, report = fold.model.context_window, fold.last_report
    reported = report.usage.context_window if report else None
    if given is not None:
        return Window(
            window=given, confidence="override", source="session/start: context_window", reported=reported
        )
    if known is None:
        return Window(source="no model is named", reported=reported)
    return Window(
        window=known.context_window,
        confidence=known.confidence,
        source=f"{known.source}: {known.how}",
        input_limit=known.input_limit,
        output_limit=known.output_limit,
        reported=reported,
    )


def token_usage(fold: Fold, standing: Standing) -> TokenUsage:
    """Billing and the current size. O(1)."""
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
        current_context_source=(
            "estimated" if fold.base is None else "mixed" if fold.trailing else "measured"
        ),
        context_window=window,
        context_window_confidence=standing.confidence,
        threshold_tokens=standing.threshold,
        percent=round(100 * standing.used / window, 2) if window else None,
        epoch=fold.epoch,
    )


def context_usage(fold: Fold, standing: Standing) -> ContextUsage:
    """The context after a turn, as `turn_end` tells it. O(1)."""
    return ContextUsage(
        tokens=standing.used,
        usage_tokens=fold.base or 0,
        trailing_tokens=fold.trailing if fold.base is not None else fold.estimated,
    )
