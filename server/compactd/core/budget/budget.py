"""The budget equation: how full the context is, when a compaction is due, and how much it keeps.

    cap       = min(window, input limit, observed)
    due       ⇔ the size that the profile compares ≥ (or >) the threshold
    over      ⇔ used > cap, or used + min(1024, window ÷ 16) > window

Each term carries a text that says where its value comes from; `agent/state` shows both. All sizes are tokens;
all functions are O(1). (Rules: docs/dev/behaviour.md, "The budget equation" and "Bounds".)
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.budget.limits import BudgetTerm as BudgetTerm
from compactd.core.budget.limits import Keep as Keep
from compactd.core.budget.limits import Window as Window
from compactd.core.budget.limits import keep_of_rule, limits_of
from compactd.core.budget.rules import Settings
from compactd.core.budget.settings import Resolved
from compactd.core.history.calibration import EXACT, Scale
from compactd.core.tokens.usage import visible_output
from compactd.protocol.messages import Confidence, Decision, Trigger, Usage

HEADROOM_TOKENS = 1024
"""How many tokens of the window a request must leave free for the answer (or window ÷ 16, if that is less). A
request that leaves less is over the limit."""

HEADROOM_DIVISOR = 16

MIN_NOTED_TOKENS = 2048
"""A difference between a usage report and another size is mentioned only if the larger of the two has at
least this many tokens. An agent's own prompt, which compactd may not see, can explain smaller differences."""

SUMMARY_DIVISOR = 16
MIN_SUMMARY_TOKENS = 512
MAX_SUMMARY_TOKENS = 13_107
"""A summary's budget is window ÷ 16, at least 512 and at most 13,107 tokens (docs/dev/behaviour.md,
"`extract`"; 13,107 = 0.8 × 16,384, as in pi)."""

FORCED = frozenset(("overflow", "silent_overflow"))
"""Triggers of an emergency compaction. Such a compaction keeps less, and it cuts even if no cut point is
valid."""


class RequestSize(Struct, frozen=True, kw_only=True):
    """The size of the next request, in tokens."""

    estimated: int
    """The estimate of the whole request: system prompt, tools, messages."""
    base: int | None = None
    """The input tokens of the last usage report of this epoch, cache included; None if there is none."""
    trailing: int = 0
    """The estimate of everything after the reported request, starting with its answer."""
    report: Usage | None = None
    """The last usage report of this epoch; None if there is none."""
    slope: float = 1.0
    """The factor that the estimates above were multiplied by. The session's usage reports calibrate it."""
    hidden: int = 0
    """Tokens that usage reports show but that no message, prompt or tool known to compactd explains. `base`
    includes them; the estimates above do not."""
    reported_estimate: int | None = None
    """The estimate of the reported request, hidden tokens included."""


class Budget(Struct, frozen=True, kw_only=True):
    """The budget equation with all its terms, as `agent/state` shows them."""

    window: BudgetTerm
    input_limit: BudgetTerm
    observed: BudgetTerm
    cap: BudgetTerm
    reserve: BudgetTerm
    threshold: BudgetTerm
    keep: BudgetTerm
    base: BudgetTerm
    trailing: BudgetTerm
    used: BudgetTerm
    compared: BudgetTerm
    """The size that the profile compares with the threshold. (The cap is compared with `used`.)"""
    max_output: BudgetTerm
    over: BudgetTerm


class BudgetStatus(Struct, frozen=True, kw_only=True):
    """The result of the budget equation for a session: its terms, its decision, and plain numbers."""

    budget: Budget
    decision: Decision
    window: int | None
    confidence: Confidence
    cap: int | None
    threshold: int | None
    used: int
    compared: int
    """The size that the profile compares with the threshold."""
    reported: int
    """The part of `used` that the last usage report measured, its answer included; 0 without a report."""
    enabled: bool
    hidden: int = 0
    """Tokens of each request that no estimate of messages, prompts and tools includes."""
    summary_window: int | None = None
    """The window from which the largest sizes of a summary and of pinned messages are derived. If untrusted
    settings lower the window, this is the window without those settings, so that the user's constraints and
    pins keep their room."""
    warnings: tuple[str, ...] = ()
    """Messages for the user about settings that could not be applied as given."""


def compute_budget(resolved: Resolved, window: Window, size: RequestSize) -> BudgetStatus:
    """Compute the budget equation for a session of `size` with the settings `resolved`.

    With `enabled: false`, no compaction is due. A request can still be over; then the caller passes the
    provider's overflow error on to the client.
    """
    settings = resolved.settings
    limits = limits_of(resolved, window)
    keep = keep_of(settings, "threshold", limits.tokens, limits.cap, limits.threshold)
    hidden = min(size.hidden, (limits.tokens or 0) // 2)
    base, trailing, reported = _parts(settings, size, hidden)
    used = max(0, base + trailing)
    compared = profile_size(settings, size, used)
    most = largest_request(limits.tokens, limits.cap)
    over = most is not None and used > most
    threshold = limits.threshold if settings.enabled else None
    due = is_due(compared, threshold, inclusive=settings.rules.inclusive)
    warnings = limits.warnings
    if settings.keep_recent_tokens is not None and keep.tokens != settings.keep_recent_tokens:
        warnings = (
            *warnings,
            f"keep_recent_tokens is {settings.keep_recent_tokens:,}, which is not below the threshold of"
            f" {limits.threshold:,} tokens; {keep.tokens:,} is used instead",
        )
    return BudgetStatus(
        budget=Budget(
            window=_window_term(limits.window, size),
            input_limit=BudgetTerm(limits.input_limit, window.source if limits.input_limit else "none"),
            observed=BudgetTerm(limits.observed, window.observed_source if limits.observed else "none"),
            cap=BudgetTerm(limits.cap, "min(window, input_limit, observed)"),
            reserve=limits.reserve,
            threshold=BudgetTerm(limits.threshold, limits.threshold_source),
            keep=BudgetTerm(keep.tokens if keep.messages is None else keep.messages, keep.source),
            base=_base_term(size, base),
            trailing=BudgetTerm(trailing, _estimate_source(size, hidden)),
            used=BudgetTerm(used, "base + trailing"),
            compared=BudgetTerm(compared, _COMPARED[settings.rules.size if size.report else "estimate"]),
            max_output=_max_output(window, limits.tokens, used),
            over=BudgetTerm(over, "used > cap, or used + min(1024, window ÷ 16) > window"),
        ),
        decision=Decision(
            kind="over" if over else "due" if due else "fits",
            used=used if over else compared,
            threshold=threshold,
            window=limits.tokens,
        ),
        window=limits.tokens,
        confidence=limits.confidence,
        cap=limits.cap,
        threshold=limits.threshold,
        used=used,
        compared=compared,
        reported=reported,
        enabled=settings.enabled,
        hidden=hidden,
        summary_window=_summary_window(limits.tokens, resolved, window),
        warnings=warnings,
    )


def _summary_window(tokens: int | None, resolved: Resolved, window: Window) -> int | None:
    if resolved.without is None:
        return tokens
    without = limits_of(resolved.without, window).tokens
    return tokens if without is None or tokens is None else max(tokens, without)


def in_estimates(standing: BudgetStatus, scale: Scale) -> BudgetStatus:
    """Convert window, cap and threshold from the model's tokens into estimated tokens, because a plan works
    with estimates only. No value becomes larger."""
    if scale == EXACT:
        return standing
    hidden = Scale(scale.slope, standing.hidden)
    return replace(
        standing,
        window=None if standing.window is None else hidden.limit(standing.window),
        cap=None if standing.cap is None else hidden.limit(standing.cap),
        summary_window=None if standing.summary_window is None else hidden.limit(standing.summary_window),
        threshold=None if standing.threshold is None else hidden.limit(standing.threshold),
    )


def is_due(size: int, threshold: int | None, *, inclusive: bool = True) -> bool:
    """Return whether a compaction is due at `size` tokens; never without a threshold. With `inclusive`
    (`Rules.inclusive`), it is due at the threshold, otherwise only above it."""
    if threshold is None:
        return False
    return size >= threshold if inclusive else size > threshold


def headroom(window: int) -> int:
    """Return how many tokens of the window a request must leave free for the answer."""
    return min(HEADROOM_TOKENS, window // HEADROOM_DIVISOR)


def largest_request(window: int | None, cap: int | None) -> int | None:
    """Return the size of the largest request that is not over; None if neither window nor cap is known."""
    if window is None:
        return cap
    fits = window - headroom(window)
    return fits if cap is None else min(cap, fits)


def summary_budget(settings: Settings, window: int | None) -> int:
    """Return the most tokens that a summary may take. The plan of a compaction may use fewer."""
    if settings.summary_tokens is not None:
        return settings.summary_tokens
    if window is None:
        return MAX_SUMMARY_TOKENS
    return max(MIN_SUMMARY_TOKENS, min(MAX_SUMMARY_TOKENS, window // SUMMARY_DIVISOR))


def profile_size(settings: Settings, size: RequestSize, used: int) -> int:
    """Return the size that this profile compares with its threshold (see `SizeRule`). Without a usage report,
    it is an estimate."""
    rule, report = settings.rules.size, size.report
    if report is None or size.base is None:
        return size.estimated if rule == "estimate" else used
    match rule:
        case "prompt" | "total":
            return used
        case "context_size":
            return size.base + report.output_tokens
        case "finished":
            return report.input_tokens + report.cache_read_tokens + report.output_tokens
        case "estimate":
            return size.estimated


def keep_of(
    settings: Settings, trigger: Trigger, window: int | None, cap: int | None, threshold: int | None
) -> Keep:
    """Return how much of the newest conversation a compaction with this trigger keeps word for word, if the
    request for the compaction does not say how much.

    The tokens of a profile's rule are limited to threshold ÷ 2, which matters only on small windows
    (docs/dev/behaviour.md, "Bounds"). The user's `keep_recent_tokens` is used unchanged if it is below the
    threshold; otherwise it is replaced by threshold ÷ 2.
    """
    rules = settings.rules
    forced = trigger in FORCED
    given = settings.keep_recent_tokens
    if not forced and given is not None:
        if threshold is None or given < threshold:
            return Keep(tokens=given, source="keep_recent_tokens")
        return Keep(
            tokens=max(1, threshold // 2),
            source="threshold ÷ 2, because keep_recent_tokens is not below the threshold",
        )
    if not forced and settings.keep_messages is not None:
        return Keep(messages=settings.keep_messages, source="keep_messages")
    keep = keep_of_rule(rules.overflow_keep if forced else rules.keep, trigger, window)
    if keep.tokens is None or threshold is None or cap is None:
        return keep
    most = max(1, min(threshold, cap) // 2)
    return keep if keep.tokens <= most else Keep(tokens=most, source="threshold ÷ 2, on a small window")


_COMPARED: Mapping[str, str] = {
    "prompt": "used",
    "total": "used",
    "context_size": "the last usage report: input, cache and output tokens",
    "finished": "the last usage report: input, cache read and output tokens",
    "estimate": "estimate of the whole request",
}
"""Where the compared size comes from, in words, by `Rules.size`."""


def _parts(settings: Settings, size: RequestSize, hidden: int) -> tuple[int, int, int]:
    """Return (base, estimate of what came after the base, size of the reported request and its answer), in
    tokens.

    The base is the size of the reported request. In the profile go-agent, it also includes the answer, so
    that the answer's reasoning counts too (docs/dev/behaviour.md, "size: base").
    """
    if size.base is None:
        return 0, size.estimated + hidden, 0
    answer = 0 if size.report is None else visible_output(size.report)
    if settings.rules.size == "total" and size.report is not None:
        total = size.base + size.report.output_tokens
        return total, size.trailing - answer, total
    return size.base, size.trailing, size.base + answer


def _base_term(size: RequestSize, base: int) -> BudgetTerm:
    """Return the term `base`. Its source says so if compactd's own estimate of the reported request differs
    from the report by more than half."""
    if size.base is None:
        return BudgetTerm(0, "no usage report for this context")
    ours = size.reported_estimate
    if ours is None or not _disagree(size.base, ours):
        return BudgetTerm(base, "the last usage report")
    return BudgetTerm(
        base,
        f"the last usage report; compactd's estimate of that request, {ours:,}, differs by more than half",
    )


def _window_term(window: BudgetTerm, size: RequestSize) -> BudgetTerm:
    """Return the term `window`. Its source says so if the last usage report is more than half above the
    window; then one of the two is wrong."""
    if size.base is None or not isinstance(window.value, int) or size.base <= window.value:
        return window
    if not _disagree(size.base, window.value):
        return window
    return BudgetTerm(
        window.value, f"{window.source}; the last usage report, {size.base:,}, is more than half above it"
    )


def _disagree(one: int, other: int) -> bool:
    """Return whether two sizes differ by more than half of the smaller one and are large enough to be
    mentioned."""
    return max(one, other) >= MIN_NOTED_TOKENS and 2 * max(one, other) > 3 * min(one, other)


def _estimate_source(size: RequestSize, hidden: int) -> str:
    source = (
        "estimate of the whole request"
        if size.base is None
        else "estimate of what came after the last usage report"
    )
    if size.slope != 1.0:
        source += f" × {size.slope:.2f}, the ratio of reported to estimated tokens"
    if size.base is None and hidden:
        source += f", plus {hidden:,} tokens that usage reports counted and the estimate lacks"
    return source


def _max_output(window: Window, tokens: int | None, used: int) -> BudgetTerm:
    """Return the largest `max_tokens` of the next request: the model's output limit, or what is left of the
    window if that is less."""
    if tokens is None:
        return BudgetTerm(
            window.output_limit,
            "the model's output limit" if window.output_limit else "the model's output limit is not known",
        )
    left = max(0, tokens - used)
    if window.output_limit is not None and window.output_limit <= left:
        return BudgetTerm(window.output_limit, "the model's output limit")
    return BudgetTerm(left, "window − used")
