"""The budget equation: how full the context is, where a compaction becomes due, how much it keeps.

    cap       = min(window, input limit, observed)
    due       ⇔ the profile's size ≥ (or >) the threshold
    over      ⇔ our size > cap, or our size + min(1024, window ÷ 16) > window

Every term carries where it comes from, for `agent/state`. Tokens throughout; all functions are O(1).
(Rules: docs/dev/behaviour.md, "The budget equation" and "Bounds".)
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.budget.limits import Keep as Keep
from compactd.core.budget.limits import Term as Term
from compactd.core.budget.limits import Window as Window
from compactd.core.budget.limits import keep_by, limits_of
from compactd.core.budget.rules import Settings
from compactd.core.budget.settings import Resolved
from compactd.core.history.calibration import EXACT, Scale
from compactd.core.tokens.usage import visible_output
from compactd.protocol.messages import Confidence, Decision, Trigger, Usage

HEADROOM_TOKENS = 1024
"""An answer needs room too: with less than this left (window ÷ 16 of a small window), a request is over."""

HEADROOM_DIVISOR = 16

WORTH_A_WORD = 2048
"""Tokens below which a report and an estimate may differ as they like: a program's own prompt is more."""

SUMMARY_DIVISOR = 16
SUMMARY_LEAST = 512
SUMMARY_MOST = 13_107
"""A summary's budget: window ÷ 16 within these (docs/dev/behaviour.md, "`extract`"; 13,107 = 0.8 × 16,384,
pi's)."""

FORCED = frozenset(("overflow", "silent_overflow"))
"""Triggers of an emergency compaction: it keeps less, and cuts where no valid cut is."""


class Size(Struct, frozen=True, kw_only=True):
    """How large the next request is. Tokens."""

    estimated: int
    """Our estimate of everything: system prompt, tools, messages."""
    base: int | None = None
    """Input and cache of the last report of this epoch; none where there is none."""
    trailing: int = 0
    """Estimate of what came after that report, its answer included."""
    report: Usage | None = None
    """That report."""
    slope: float = 1.0
    """What the estimates above were multiplied by, as the session's reports taught."""
    hidden: int = 0
    """What reports showed beside all that we know of; part of a report, and of no estimate above."""
    reported_estimate: int | None = None
    """What we would have estimated for the request that was reported on, with what is hidden."""


class Budget(Struct, frozen=True, kw_only=True):
    """The equation with its terms, for `agent/state` as it stands, and what follows from it."""

    window: Term
    input_limit: Term
    observed: Term
    cap: Term
    reserve: Term
    threshold: Term
    keep: Term
    base: Term
    trailing: Term
    used: Term
    compared: Term
    """What the profile compares with the threshold; `used` is what it compares with the cap."""
    max_output: Term
    over: Term


class Standing(Struct, frozen=True, kw_only=True):
    """Where a session stands: the equation, and the same as plain numbers."""

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
    """Of `used`, what the last report measured, its answer included; 0 without a report."""
    enabled: bool
    hidden: int = 0
    """Tokens of each request that are in none of our estimates."""
    summary_window: int | None = None
    """The window that the sizes of a summary and of pinned messages are shares of: the one in force without
    an untrusted source, which must not take room from what the user demanded or pinned."""
    warnings: tuple[str, ...] = ()
    """Settings that cannot be as they were set, for a person."""


def stand(resolved: Resolved, window: Window, size: Size) -> Standing:
    """The budget equation for a session of `size` under `resolved` settings.

    With `enabled: false` nothing is due; that a request is over stays true, and the caller leaves it so: the
    provider's overflow then reaches the client.
    """
    settings = resolved.settings
    limits = limits_of(resolved, window)
    keep = keep_of(settings, "threshold", limits.tokens, limits.cap, limits.threshold)
    hidden = min(size.hidden, (limits.tokens or 0) // 2)
    base, trailing, reported = _parts(settings, size, hidden)
    used = max(0, base + trailing)
    compared = profile_size(settings, size, used)
    over = is_over(used, limits.tokens, limits.cap)
    threshold = limits.threshold if settings.enabled else None
    due = threshold is not None and _reaches(compared, threshold, settings.rules.inclusive)
    warnings = limits.warnings
    if settings.keep_recent_tokens is not None and keep.tokens != settings.keep_recent_tokens:
        warnings = (
            *warnings,
            f"keep_recent_tokens {settings.keep_recent_tokens:,} is not below the threshold;"
            f" {keep.tokens:,} are kept",
        )
    return Standing(
        budget=Budget(
            window=_window_term(limits.window, size),
            input_limit=Term(limits.input_limit, window.source if limits.input_limit else "none"),
            observed=Term(limits.observed, window.observed_source if limits.observed else "none"),
            cap=Term(limits.cap, "min(window, input_limit, observed)"),
            reserve=limits.reserve,
            threshold=Term(limits.threshold, limits.threshold_source),
            keep=Term(keep.tokens if keep.messages is None else keep.messages, keep.source),
            base=_base_term(size, base),
            trailing=Term(trailing, _estimate_source(size, hidden)),
            used=Term(used, "base + trailing"),
            compared=Term(compared, _COMPARED[settings.rules.size if size.report else "estimate"]),
            max_output=_max_output(window, limits.tokens, used),
            over=Term(over, "used > cap, or used + min(1024, window ÷ 16) > window"),
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
        summary_window=_larger(limits.tokens, resolved, window),
        warnings=warnings,
    )


def _larger(tokens: int | None, resolved: Resolved, window: Window) -> int | None:
    if resolved.without is None:
        return tokens
    without = limits_of(resolved.without, window).tokens
    return tokens if without is None or tokens is None else max(tokens, without)


def in_estimates(standing: Standing, scale: Scale) -> Standing:
    """`standing` with window, cap and threshold as sizes of what we would estimate: for a plan, whose tokens
    are estimates all. None of them is larger than it was."""
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


def is_over(used: int, window: int | None, cap: int | None) -> bool:
    """True where a request of `used` tokens cannot be sent, or leaves no room for an answer. Strict both."""
    if cap is not None and used > cap:
        return True
    return window is not None and used + headroom(window) > window


def headroom(window: int) -> int:
    """Tokens that a request must leave of the window."""
    return min(HEADROOM_TOKENS, window // HEADROOM_DIVISOR)


def room(window: int | None, cap: int | None) -> int | None:
    """The largest request that is not over; none where no window is known."""
    if window is None:
        return cap
    fits = window - headroom(window)
    return fits if cap is None else min(cap, fits)


def summary_budget(settings: Settings, window: int | None) -> int:
    """Most tokens that a summary may take; what it must be below as well is the plan's to know."""
    if settings.summary_tokens is not None:
        return settings.summary_tokens
    if window is None:
        return SUMMARY_MOST
    return max(SUMMARY_LEAST, min(SUMMARY_MOST, window // SUMMARY_DIVISOR))


def profile_size(settings: Settings, size: Size, used: int) -> int:
    """The size that this profile compares with its threshold; our estimate where there is no report."""
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
    """How much a compaction of this trigger keeps, where the request itself names nothing.

    A profile's number is at most threshold ÷ 2, which binds only where keep + reserve > window ÷ 2
    (docs/dev/behaviour.md, "Bounds"). A user's number is exact below the threshold.
    """
    rules = settings.rules
    forced = trigger in FORCED
    given = settings.keep_recent_tokens
    if not forced and given is not None:
        if threshold is None or given < threshold:
            return Keep(tokens=given, source="keep_recent_tokens")
        return Keep(tokens=max(1, threshold // 2), source="threshold ÷ 2, below keep_recent_tokens")
    if not forced and settings.keep_messages is not None:
        return Keep(messages=settings.keep_messages, source="keep_messages")
    keep = keep_by(rules.overflow_keep if forced else rules.keep, trigger, window)
    if keep.tokens is None or threshold is None or cap is None:
        return keep
    most = max(1, min(threshold, cap) // 2)
    return keep if keep.tokens <= most else Keep(tokens=most, source="threshold ÷ 2, on a small window")


_COMPARED: Mapping[str, str] = {
    "prompt": "used",
    "total": "used",
    "context_size": "the last report: input, cache, output",
    "finished": "the last report: input, cache read, output",
    "estimate": "estimate of everything",
}
"""Where the compared size comes from, by `Rules.size`."""


def _parts(settings: Settings, size: Size, hidden: int) -> tuple[int, int, int]:
    """(base, estimate of what came after it, what the last report measured with its answer). Tokens.

    The base is what the report says of the request. Under go-agent it is the reported total, so that the
    answer's reasoning counts too (docs/dev/behaviour.md, "size: base").
    """
    if size.base is None:
        return 0, size.estimated + hidden, 0
    answer = 0 if size.report is None else visible_output(size.report)
    if settings.rules.size == "total" and size.report is not None:
        total = size.base + size.report.output_tokens
        return total, size.trailing - answer, total
    return size.base, size.trailing, size.base + answer


def _base_term(size: Size, base: int) -> Term:
    """The report that the size starts from; it says where our estimate of that request is far off."""
    if size.base is None:
        return Term(0, "no report of this context")
    ours = size.reported_estimate
    if ours is None or not _disagree(size.base, ours):
        return Term(base, "the last report")
    return Term(base, f"the last report; our estimate of that request, {ours:,}, differs by more than half")


def _window_term(window: Term, size: Size) -> Term:
    """The window; it says where a report does not fit into it by far: then one of the two is wrong."""
    if size.base is None or not isinstance(window.value, int) or size.base <= window.value:
        return window
    if not _disagree(size.base, window.value):
        return window
    return Term(window.value, f"{window.source}; the last report, {size.base:,}, is more than half above it")


def _disagree(one: int, other: int) -> bool:
    """True for two sizes that differ by more than half of the smaller and are worth a word."""
    return max(one, other) >= WORTH_A_WORD and 2 * max(one, other) > 3 * min(one, other)


def _estimate_source(size: Size, hidden: int) -> str:
    source = "estimate of everything" if size.base is None else "estimate since then"
    if size.slope != 1.0:
        source += f" × {size.slope:.2f}, the growth that reports showed"
    if size.base is None and hidden:
        source += f", and {hidden:,} that they showed beside it"
    return source


def _max_output(window: Window, tokens: int | None, used: int) -> Term:
    """What `max_tokens` of the next request may be: at most what is left of the window."""
    if tokens is None:
        return Term(
            window.output_limit, "the model's output limit" if window.output_limit else "none is known"
        )
    left = max(0, tokens - used)
    if window.output_limit is not None and window.output_limit <= left:
        return Term(window.output_limit, "the model's output limit")
    return Term(left, "window − used")


def _reaches(size: int, threshold: int, inclusive: bool) -> bool:
    return size >= threshold if inclusive else size > threshold
